/** Which module of the language models' engine this browser runs: the one with relaxed SIMD is the faster one. */

/** A function that shuffles bytes with `i8x16.relaxed_swizzle`, and nothing else. */
const PROBE = Uint8Array.of(
  ...[0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0],
  ...[10, 15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15, 253, 128, 2, 11],
);

export function languageModule(assets: string): string {
  return `${assets}/${WebAssembly.validate(PROBE) ? "llm_relaxed_bg.wasm" : "llm_bg.wasm"}`;
}
