/** Time, chance and the streams as a program sees them: the calls that must be alike on every node.
 *
 * Unless the real ones are granted, all clocks start at zero and go on by a microsecond with each look, sleep passes at
 * once on that clock, and random bytes are the SplitMix64 sequence seeded with the item's number, as in the native
 * engine. */

import { type WASI, WASIProcExit, wasi as defs } from "@bjorn3/browser_wasi_shim";
import { type Files, type Folder, Lending } from "./files.js";

export interface World {
  /** Nanoseconds on the wall clock, or since the start of the run. */
  look(wall: boolean): bigint;
  /** The time that a change of a file has: behind every look so far, and never 0. */
  stamp(): bigint;
  sleep(nanos: bigint): void;
  fill(bytes: Uint8Array): void;
}

export interface Streams {
  stdin: Uint8Array;
  stdout(bytes: Uint8Array): void;
  stderr(bytes: Uint8Array): void;
}

/** What one look at a clock costs in virtual time. */
const LOOK_NANOS = 1_000n;
/** Most bytes the browser gives in one call. */
const RANDOM_STEP = 65_536;

/** Where the count of tries stands in the seed: jobs have fewer items. */
const TRIES_FROM_BIT = 40n;

/** The same for every node that runs an item. */
export function settled(item: number, again: number): World {
  let now = 0n;
  const random = splitMix(BigInt(item) ^ (BigInt(again) << TRIES_FROM_BIT));
  return {
    look() {
      const seen = now;
      now += LOOK_NANOS;
      return seen;
    },
    stamp() {
      now += LOOK_NANOS;
      return now;
    },
    sleep(nanos) {
      now += nanos;
    },
    fill(bytes) {
      for (let at = 0; at < bytes.length; at += 8) {
        let word = random();
        for (let i = at; i < Math.min(at + 8, bytes.length); i++) {
          bytes[i] = Number(word & 0xffn);
          word >>= 8n;
        }
      }
    },
  };
}

/** The real ones. */
export function granted(): World {
  const start = performance.now();
  const nanos = (millis: number) => BigInt(Math.round(millis * 1e6));
  return {
    look: (wall) => nanos(wall ? performance.timeOrigin + performance.now() : performance.now() - start),
    stamp: () => nanos(performance.timeOrigin + performance.now()),
    sleep(nanos) {
      const until = performance.now() + Number(nanos) / 1e6;
      while (performance.now() < until) nap(until - performance.now());
    },
    fill(bytes) {
      for (let at = 0; at < bytes.length; at += RANDOM_STEP) {
        // The program's memory may not be handed to the browser's generator where it is shared.
        bytes.set(crypto.getRandomValues(new Uint8Array(Math.min(RANDOM_STEP, bytes.length - at))), at);
      }
    },
  };
}

/** Without shared memory there is no way to wait but to spin. */
function nap(millis: number): void {
  if (typeof SharedArrayBuffer === "undefined") return;
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, millis);
}

/** SplitMix64: small enough to be written alike in every engine. */
function splitMix(state: bigint): () => bigint {
  const wrap = (value: bigint) => BigInt.asUintN(64, value);
  return () => {
    state = wrap(state + 0x9e37_79b9_7f4a_7c15n);
    let z = state;
    z = wrap((z ^ (z >> 30n)) * 0xbf58_476d_1ce4_e5b9n);
    z = wrap((z ^ (z >> 27n)) * 0x94d0_49bb_1331_11ebn);
    return z ^ (z >> 31n);
  };
}

type Call = (...args: never[]) => unknown;
type Calls = Record<string, Call>;

const MOST_PIECES = 1024;

/** Calls on files, which the module answers. */
const ON_FILES = [
  "fd_advise", "fd_allocate", "fd_close", "fd_datasync", "fd_sync", "fd_fdstat_get", "fd_fdstat_set_flags", "fd_fdstat_set_rights",
  "fd_filestat_get", "fd_filestat_set_size", "fd_filestat_set_times", "fd_prestat_get", "fd_prestat_dir_name", "fd_renumber",
  "fd_read", "fd_pread", "fd_write", "fd_pwrite", "fd_seek", "fd_tell", "fd_readdir", "path_open", "path_filestat_get",
  "path_filestat_set_times", "path_readlink", "path_create_directory", "path_remove_directory", "path_unlink_file", "path_symlink",
  "path_link", "path_rename", "sock_accept", "sock_recv", "sock_send", "sock_shutdown",
] as const satisfies readonly (keyof Files)[];

/** All WASI calls: the shim's of arguments and environment, the module's on files, and ours. */
export function calls(wasi: WASI, world: World, streams: Streams, files: Files, folder: Folder | undefined): Calls {
  const lent = new Lending(() => wasi.inst.exports.memory.buffer, folder, streams.stdin, () => world.stamp());
  const onFiles = ON_FILES.map((name): [string, Call] => {
    const call = files[name].bind(files) as (...args: unknown[]) => number;
    return [name, (...args: unknown[]) => call(lent, ...args)];
  });
  const all: Calls = { ...wasi.wasiImport, ...Object.fromEntries(onFiles), ...ours(wasi, world, streams, files, lent) };
  return Object.fromEntries(Object.entries(all).map(([name, call]) => [name, guarded(call)]));
}

/** Numbers come as signed; pointers and sizes are not. What points outside the memory is an error for the program, not
 * its end. */
function guarded(call: Call): Call {
  const plain = call as (...args: unknown[]) => unknown;
  return (...args: unknown[]) => {
    try {
      return plain(...args.map((arg) => (typeof arg === "number" ? arg >>> 0 : arg))) ?? defs.ERRNO_SUCCESS;
    } catch (error) {
      const isStack = error instanceof RangeError && /call stack/i.test(error.message);
      if (error instanceof RangeError && !isStack) return defs.ERRNO_FAULT;
      throw error;
    }
  };
}

function ours(wasi: WASI, world: World, streams: Streams, files: Files, lent: Lending): Calls {
  const memory = () => wasi.inst.exports.memory.buffer;
  const view = () => new DataView(memory());
  return {
    args_sizes_get(count: number, size: number) {
      const encoder = new TextEncoder();
      const bytes = wasi.args.reduce((sum, arg) => sum + encoder.encode(arg).length + 1, 0);
      view().setUint32(count, wasi.args.length, true);
      view().setUint32(size, bytes, true);
      return defs.ERRNO_SUCCESS;
    },
    proc_exit(code: number): never {
      throw new WASIProcExit(code | 0);
    },
    clock_time_get(id: number, _precision: bigint, out: number) {
      if (id > 3) return defs.ERRNO_INVAL;
      view().setBigUint64(out, world.look(id === 0), true);
      return defs.ERRNO_SUCCESS;
    },
    clock_res_get(id: number, out: number) {
      if (id > 1) return id > 3 ? defs.ERRNO_INVAL : defs.ERRNO_BADF;
      view().setBigUint64(out, 1n, true);
      return defs.ERRNO_SUCCESS;
    },
    random_get(at: number, len: number) {
      world.fill(new Uint8Array(memory(), at, len));
      return defs.ERRNO_SUCCESS;
    },
    fd_write(fd: number, pieces: number, count: number, written: number) {
      const stream = files.stream(fd);
      if (stream !== 1 && stream !== 2) return files.fd_write(lent, fd, pieces, count, written);
      if (count > MOST_PIECES) return defs.ERRNO_INVAL;
      let total = 0;
      for (let piece = 0; piece < count; piece++) {
        const at = pieces + piece * 8;
        const length = view().getUint32(at + 4, true);
        const bytes = new Uint8Array(memory(), view().getUint32(at, true), length).slice();
        if (stream === 1) streams.stdout(bytes);
        else streams.stderr(bytes);
        total += length;
      }
      view().setUint32(written, total, true);
      return defs.ERRNO_SUCCESS;
    },
    poll_oneoff: (asked: number, events: number, count: number, out: number) =>
      poll(view(), world, asked, events, count, out),
  };
}

/** Bytes of a subscription and of an event in the program's memory. */
const SUBSCRIPTION = 48;
const EVENT = 32;
const MOST_SUBSCRIPTIONS = 4096;

/** Streams are always ready; without any among the subscriptions it is a sleep until the first clock rings. */
function poll(
  view: DataView,
  world: World,
  asked: number,
  events: number,
  count: number,
  out: number,
): number {
  if (count === 0 || count > MOST_SUBSCRIPTIONS) return defs.ERRNO_INVAL;
  const waits: { userdata: bigint; kind: number; wait: bigint }[] = [];
  for (let at = asked; at < asked + count * SUBSCRIPTION; at += SUBSCRIPTION) {
    const userdata = view.getBigUint64(at, true);
    const kind = view.getUint8(at + 8);
    if (kind > 2) return defs.ERRNO_INVAL;
    waits.push({ userdata, kind, wait: kind === 0 ? clockWait(view, world, at) : 0n });
  }
  const wait = waits.reduce((least, { wait }) => (wait < least ? wait : least), waits[0]?.wait ?? 0n);
  world.sleep(wait);
  const ready = waits.filter((each) => each.wait <= wait);
  ready.forEach(({ userdata, kind }, index) => {
    const at = events + index * EVENT;
    new Uint8Array(view.buffer, at, EVENT).fill(0);
    view.setBigUint64(at, userdata, true);
    view.setUint8(at + 10, kind);
    // A stream has something for whoever asks: bytes, or its end.
    view.setUint8(at + 16, kind === 0 ? 0 : 1);
  });
  view.setUint32(out, ready.length, true);
  return defs.ERRNO_SUCCESS;
}

function clockWait(view: DataView, world: World, at: number): bigint {
  const timeout = view.getBigUint64(at + 24, true);
  const isAbsolute = (view.getUint8(at + 40) & 1) === 1;
  if (!isAbsolute) return timeout;
  const now = world.look(view.getUint32(at + 16, true) === 0);
  return timeout > now ? timeout - now : 0n;
}
