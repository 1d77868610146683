/** Generated inputs and the parameters' values, as a job wants them. */

import type { ParamValue } from "@shoal/sdk";

import type { NumberArray } from "../../core/kernel-numbers";
import type { Binding, Param, Scalar } from "../../core/wgsl";
import type { InputSetting } from "./settings";

/** The bytes of one input. */
export function inputData(setting: InputSetting, binding: Binding, items: number): NumberArray {
  if (setting.fill === "file") {
    if (!setting.file) throw new Error(`Choose a .npy file for the input ${binding.name}.`);
    return setting.file.data;
  }
  const out = makeArray(binding.scalar, items * setting.perItem * binding.lanes);
  const { to } = setting;
  switch (setting.fill) {
    case "ramp":
      for (let i = 0; i < out.length; i += 1) out[i] = (to * i) / Math.max(1, out.length - 1);
      break;
    case "wave":
      for (let i = 0; i < out.length; i += 1)
        out[i] = to * Math.sin((i / out.length) * 16 * Math.PI);
      break;
    case "noise":
      fillNoise(out, to, binding.scalar === "u32" ? 0 : -to);
      break;
    case "zeros":
      break;
  }
  return out;
}

/** Empty fields are left out, so that the coordinator can say what is missing. */
export function paramValues(
  params: readonly Param[],
  texts: Readonly<Record<string, string>>,
): Record<string, ParamValue> {
  const out: Record<string, ParamValue> = {};
  for (const { name, lanes } of params) {
    const text = texts[name]?.trim();
    if (!text) continue;
    const numbers = text.split(/[\s,]+/).map(Number);
    if (numbers.some(Number.isNaN))
      throw new Error(`The parameter ${name} is "${text}", which is not a number.`);
    if (numbers.length !== lanes) {
      throw new Error(
        `The parameter ${name} takes ${lanes} numbers, but "${text}" has ${numbers.length}.`,
      );
    }
    out[name] = lanes === 1 ? (numbers[0] ?? 0) : numbers;
  }
  return out;
}

function makeArray(scalar: Scalar, length: number): NumberArray {
  switch (scalar) {
    case "i32":
      return new Int32Array(length);
    case "u32":
      return new Uint32Array(length);
    case "f32":
      return new Float32Array(length);
  }
}

/** Always the same noise, so that two runs can be compared (xorshift). */
function fillNoise(out: NumberArray, high: number, low: number): void {
  let state = 0x9e3779b9;
  for (let i = 0; i < out.length; i += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    out[i] = low + ((state >>> 0) / 4294967296) * (high - low);
  }
}
