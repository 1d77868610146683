/** Gives every `GPUDevice` the method that begins it all. */

import { GPUConnection, type GPUConnectionOptions } from "./connection.js";
import { GPUPeerError } from "./error.js";
import { connectMesh as join, type MeshOptions } from "./mesh.js";
import type { Mesh, PeerPort } from "./port.js";

declare global {
  interface GPUDevice {
    /** Shares buffers with another page: a node of the pool by its number, or whatever is at the other end of a port. Both pages
     * must call it. */
    createGPUConnection(peer: number | PeerPort, options?: GPUConnectionOptions): Promise<GPUConnection>;
  }
}

/** The mesh that peers' numbers are of: the one joined last. */
let present: Mesh | undefined;

/** Joins the pool of a join link: this page becomes a node that others can call by `mesh.id`. */
export async function connectMesh(pool: string | URL | MeshOptions): Promise<Mesh> {
  const mesh = await join(pool);
  present = mesh;
  void mesh.closed.then(() => {
    if (present === mesh) present = undefined;
  });
  return mesh;
}

async function createGPUConnection(this: GPUDevice, peer: number | PeerPort, options?: GPUConnectionOptions): Promise<GPUConnection> {
  if (typeof peer !== "number") return GPUConnection.open(this, peer, options);
  if (!Number.isSafeInteger(peer) || peer < 0) throw new TypeError(`invalid peer ${peer}: expected a node's number`);
  if (!present) throw new GPUPeerError("no-mesh", `no pool was joined: call connectMesh before talking to node ${peer}`);
  return GPUConnection.open(this, await present.meet(peer), options);
}

// Where there is no WebGPU there is nothing to connect.
if (typeof GPUDevice !== "undefined") {
  Object.defineProperty(GPUDevice.prototype, "createGPUConnection", {
    value: createGPUConnection,
    writable: true,
    configurable: true,
  });
}
