/** Time and chance as a program sees them. Unless the real ones are granted they are settled by the item's number, so
 * that every node, also a native one, gives the same answer. */

import { type WASI, wasi as defs } from "@bjorn3/browser_wasi_shim";

type Imports = Record<string, (...args: never[]) => number>;

/** What both worlds need besides the shim's own. */
function common(wasi: WASI): Imports {
  const view = () => new DataView(wasi.inst.exports.memory.buffer);
  return {
    args_sizes_get: (count: number, size: number) => {
      const encoder = new TextEncoder();
      view().setUint32(count, wasi.args.length, true);
      const bytes = wasi.args.reduce((sum, arg) => sum + encoder.encode(arg).length + 1, 0);
      view().setUint32(size, bytes, true);
      return defs.ERRNO_SUCCESS;
    },
    sched_yield: () => defs.ERRNO_SUCCESS,
  };
}

export function granted(wasi: WASI): Imports {
  return common(wasi);
}

export function settled(wasi: WASI, item: number): Imports {
  const view = () => new DataView(wasi.inst.exports.memory.buffer);
  let now = 0n;
  let state = BigInt(item);
  return {
    ...common(wasi),
    clock_time_get: (_id: number, _precision: bigint, out: number) => {
      view().setBigUint64(out, now, true);
      now += 1n;
      return defs.ERRNO_SUCCESS;
    },
    clock_res_get: (_id: number, out: number) => {
      view().setBigUint64(out, 1n, true);
      return defs.ERRNO_SUCCESS;
    },
    random_get: (at: number, len: number) => {
      const bytes = new Uint8Array(wasi.inst.exports.memory.buffer, at, len);
      for (let i = 0; i < len; i++) {
        state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
        bytes[i] = Number(state >> 56n);
      }
      return defs.ERRNO_SUCCESS;
    },
  };
}
