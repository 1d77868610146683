/** Conformance cases as they lie on disk (see conformance/README.md), and what they expect. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = new URL("../../../conformance/", import.meta.url).pathname;

/** Cases that `prepared` (a folder the native run wrote) has work or a program for. */
export function loadCases(prepared) {
  return readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name: kind }) => readdirSync(join(ROOT, kind)).map((name) => `${kind}/${name}`))
    .filter((name) => existsSync(join(prepared, name)))
    .map((name) => new Case(name, join(prepared, name)));
}

class Case {
  constructor(name, prepared) {
    this.name = name;
    this.folder = join(ROOT, name);
    this.prepared = prepared;
    this.json = JSON.parse(readFileSync(join(this.folder, "case.json"), "utf8"));
  }

  /** The bytes of a file beside the case, or of `{"outside": ID, "path": PATH}`. */
  file(at) {
    if (typeof at === "string") return readFileSync(join(this.folder, at));
    return readFileSync(join(process.env.SHOAL_OUTSIDE ?? "", at.outside, at.path));
  }

  /** Bytes written as text, `{"hex"}`, `{"repeat", "count"}` or `{"file"}`. */
  content(json) {
    if (json === undefined || json === null) return Buffer.alloc(0);
    if (typeof json === "string") return Buffer.from(json);
    if (json.file !== undefined) return this.file(json.file);
    if (json.hex !== undefined) return Buffer.from(json.hex, "hex");
    return Buffer.from(json.repeat.repeat(json.count));
  }

  /** The bytes of an expected array: `{"type", "values" | "ramp" | "random" | "file"}`. */
  array(json) {
    if (json.file !== undefined) return this.file(json.file);
    const make = { f32: Float32Array, u32: Uint32Array, i32: Int32Array }[json.type];
    return Buffer.from(make.from(numbers(json)).buffer);
  }

  /** A sentence about the first difference, or `undefined`. */
  difference(found) {
    const expect = this.json.expect;
    const wanted = this.array(expect);
    if (wanted.length !== found.length) return `${found.length} bytes instead of ${wanted.length}`;
    const { abs = 0, rel = 0, channel = 0 } = expect.tolerance ?? {};
    const read = { f32: "readFloatLE", u32: "readUInt32LE", i32: "readInt32LE" }[expect.type];
    for (let at = 0; at < wanted.length; at += 4) {
      if (wanted.readUInt32LE(at) === found.readUInt32LE(at)) continue;
      if (channel > 0) {
        const far = [0, 1, 2, 3].some((i) => Math.abs(wanted[at + i] - found[at + i]) > channel);
        if (far) return `pixel ${at / 4} is ${found.subarray(at, at + 4).toJSON().data}`;
        continue;
      }
      const [want, have] = [wanted[read](at), found[read](at)];
      const near = Math.abs(want - have) <= abs + rel * Math.abs(want);
      if (!near && !(Number.isNaN(want) && Number.isNaN(have))) {
        return `value ${at / 4} is ${have} instead of ${want}`;
      }
    }
    return undefined;
  }
}

function numbers({ type, values, ramp, random }) {
  if (values) return values;
  if (ramp) return Array.from({ length: ramp.count }, (_, at) => ramp.start + at * ramp.step);
  const mask = (1n << 64n) - 1n;
  let state = BigInt(random.seed);
  return Array.from({ length: random.count }, () => {
    state = (state + 0x9e3779b97f4a7c15n) & mask;
    let z = state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask;
    z ^= z >> 31n;
    const number = random.low + (Number(z >> 40n) / 2 ** 24) * (random.high - random.low);
    return type === "f32" ? number : Math.floor(number);
  });
}
