/** Whether this browser can lend a GPU, asked before anything is lent so that the donor knows. */

export type GpuAnswer = { found: true; name: string } | { found: false; why: string };

export async function askGpu(): Promise<GpuAnswer> {
  if (!isSecureContext)
    return { found: false, why: "WebGPU needs a secure page: open the link with https." };
  if (!("gpu" in navigator)) return { found: false, why: "This browser has no WebGPU." };
  try {
    const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter)
      return { found: false, why: "This browser has WebGPU, but found no GPU it can use." };
    const { description, device, vendor, architecture } = adapter.info;
    return {
      found: true,
      name: description || device || `${vendor} ${architecture}`.trim() || "GPU",
    };
  } catch (error) {
    return { found: false, why: `WebGPU failed to start: ${String(error)}.` };
  }
}
