/**
 * GPU buffers shared between pages: see docs/gpu-p2p.md. Browsers have no such thing, so what one page imports of another
 * is a copy that travels over a link.
 *
 * ```js
 * import { connectMesh } from "@shoal/sdk/gpu-p2p";
 * const mesh = await connectMesh("http://127.0.0.1:7420/join#token");
 * const connection = await device.createGPUConnection(peerId);
 * ```
 */

export type { GPUPeerCapabilities } from "./capabilities.js";
export { GPUConnection, type GPUConnectionOptions, type RemoteRun } from "./connection.js";
export { DoubleBuffered, doubleBuffered, type Half } from "./double.js";
export { GPUPeerError, type GPUPeerErrorCode } from "./error.js";
export type { ExportOptions, GPUBufferHandle, GPUBufferRight } from "./handle.js";
export { connectMesh } from "./install.js";
export type { MeshOptions } from "./mesh.js";
export { GPUPeerDevice, type PeerBindGroupDescriptor, type PeerBindGroupEntry } from "./peer-device.js";
export { type Mesh, MessagePeer, type PeerPort } from "./port.js";
export type { PassRecorder, PeerPassDescriptor, Recorder, Uses } from "./recorder.js";
export { GPUSharedBuffer, type PushOptions } from "./shared.js";
