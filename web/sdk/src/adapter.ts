/** Whether a GPU is one. */

/** A processor that plays the GPU's part computes no faster than the same processor without that. */
export function isSoftware(info: GPUAdapterInfo): boolean {
  const words = `${info.vendor} ${info.architecture} ${info.device} ${info.description}`;
  return info.isFallbackAdapter || /swiftshader|llvmpipe|basic render|warp/i.test(words);
}
