/** What this device has to lend, as far as a page may know. */

import type { GpuOffer } from "../../generated/brain/brain.js";
import { isSoftware } from "../adapter.js";

export interface Device {
  name: string;
  cores: number;
  /** Bytes, as far as the browser tells. */
  memory: number;
  gpu: GpuOffer | undefined;
  /** Why there is no GPU, in words for the donor. */
  gpuProblem: string | undefined;
}

/** A GPU that hangs would keep the donor waiting for ever; a healthy one answers in a tenth of a second. */
const ADAPTER_MS = 5_000;
/** Units at a time on the GPU: one computes while the next one's bytes come and the last one's go. */
const GPU_SLOTS = 3;

/** Memory of a device whose browser does not tell, in GiB: what small phones have. */
const UNKNOWN_GIB = 2;

export async function lookAtDevice(): Promise<Device> {
  const name = browserName();
  const cores = navigator.hardwareConcurrency || 1;
  const [gpu, gpuProblem] = await lookForGpu();
  return { name, cores, memory: deviceMemory(), gpu, gpuProblem };
}

/** What is lent of a device's memory if the donor says nothing. */
export function usualMemory(memory: number): number {
  return memory / 2;
}

/** Browsers round it, and some do not tell. */
function deviceMemory(): number {
  const { deviceMemory } = navigator as Navigator & { deviceMemory?: number };
  return (deviceMemory ?? UNKNOWN_GIB) * 2 ** 30;
}

async function lookForGpu(): Promise<[GpuOffer | undefined, string | undefined]> {
  if (!isSecureContext) {
    return [undefined, "WebGPU needs a secure page (https, or http on this machine). Programs still run"];
  }
  if (!("gpu" in navigator)) {
    return [undefined, "This browser has no WebGPU, so it cannot run kernels. Programs still run"];
  }
  const asked = navigator.gpu.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  const late = new Promise<"late">((resolve) => setTimeout(resolve, ADAPTER_MS, "late"));
  const adapter = await Promise.race([asked, late]);
  if (adapter === "late") {
    return [undefined, "The GPU does not answer. It may be busy with something that never ends. Programs still run"];
  }
  if (!adapter) {
    return [undefined, "This browser has WebGPU, but found no GPU it can use. Programs still run"];
  }
  const { limits, info } = adapter;
  const names = [info.description, info.device, [info.vendor, info.architecture].join(" ")];
  const gpu: GpuOffer = {
    name: names.find((name) => name.trim() !== "")?.trim() ?? "GPU",
    backend: "WebGPU",
    software: isSoftware(info),
    bufferBytes: Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize),
    workgroupInvocations: limits.maxComputeInvocationsPerWorkgroup,
    workgroupBytes: limits.maxComputeWorkgroupStorageSize,
    storageBuffers: limits.maxStorageBuffersPerShaderStage,
    slots: GPU_SLOTS,
  };
  return [gpu, undefined];
}

/** "Chrome on Android", from what the browser says of itself. */
function browserName(): string {
  const agent = navigator.userAgent;
  const browsers: [RegExp, string][] = [
    [/Firefox\//, "Firefox"],
    [/Edg\//, "Edge"],
    [/OPR\//, "Opera"],
    [/Chrom(e|ium)\//, "Chrome"],
    [/Safari\//, "Safari"],
  ];
  const systems: [RegExp, string][] = [
    [/Android/, "Android"],
    [/iPhone|iPad/, "iOS"],
    [/Windows/, "Windows"],
    [/Mac OS X/, "macOS"],
    [/CrOS/, "ChromeOS"],
    [/Linux/, "Linux"],
  ];
  const pick = (list: [RegExp, string][], other: string) =>
    list.find(([pattern]) => pattern.test(agent))?.[1] ?? other;
  return `${pick(browsers, "Browser")} on ${pick(systems, "an unknown system")}`;
}
