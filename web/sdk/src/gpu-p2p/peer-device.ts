/** A device whose passes may use shared buffers like its own: what they read is fetched before, what they write is sent
 * after. It records with the real device, and remembers which shared buffers are touched. */

import { Recorder, type Recording } from "./recorder.js";
import { GPUSharedBuffer } from "./shared.js";
import { checked } from "./transfer.js";
import { type Access, accessOf } from "./wgsl.js";

export interface PeerBindGroupEntry {
  binding: number;
  resource: GPUBindingResource | GPUSharedBuffer | { buffer: GPUBuffer | GPUSharedBuffer; offset?: number; size?: number };
}

export interface PeerBindGroupDescriptor {
  label?: string;
  layout: GPUBindGroupLayout;
  entries: Iterable<PeerBindGroupEntry>;
}

export class GPUPeerDevice {
  private readonly codes = new WeakMap<GPUShaderModule, Access>();
  private readonly accesses = new WeakMap<GPUComputePipeline, Access>();
  private readonly bound = new WeakMap<GPUBindGroup, Map<number, GPUSharedBuffer>>();
  private readonly recordings = new WeakMap<GPUCommandBuffer, Recording>();
  /** Submissions are done one after the other, as a queue does them. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(readonly device: GPUDevice) {}

  createShaderModule(descriptor: GPUShaderModuleDescriptor): GPUShaderModule {
    const module = this.device.createShaderModule(descriptor);
    this.codes.set(module, accessOf(descriptor.code));
    return module;
  }

  createComputePipeline(descriptor: GPUComputePipelineDescriptor): GPUComputePipeline {
    const pipeline = this.device.createComputePipeline(descriptor);
    const access = this.codes.get(descriptor.compute.module);
    if (access) this.accesses.set(pipeline, access);
    return pipeline;
  }

  /** As the device's own; a resource may be a shared buffer. */
  createBindGroup({ entries, ...rest }: PeerBindGroupDescriptor): GPUBindGroup {
    const shared = new Map<number, GPUSharedBuffer>();
    const plain = [...entries].map(({ binding, resource }): GPUBindGroupEntry => {
      if (resource instanceof GPUSharedBuffer) {
        shared.set(binding, resource);
        return { binding, resource: { buffer: resource.buffer } };
      }
      if ("buffer" in resource && resource.buffer instanceof GPUSharedBuffer) {
        shared.set(binding, resource.buffer);
        return { binding, resource: { ...resource, buffer: resource.buffer.buffer } };
      }
      return { binding, resource: resource as GPUBindingResource };
    });
    const group = this.device.createBindGroup({ ...rest, entries: plain });
    this.bound.set(group, shared);
    return group;
  }

  createCommandEncoder(descriptor?: GPUCommandEncoderDescriptor): Recorder {
    return new Recorder(this.device.createCommandEncoder(descriptor), {
      access: (pipeline) => this.accesses.get(pipeline),
      bound: (group) => this.bound.get(group),
      finished: (commands, recording) => this.recordings.set(commands, recording),
    });
  }

  /** Fetches what is read, computes, sends what was written. Resolves when the owners have it. */
  submit(commands: Iterable<GPUCommandBuffer>): Promise<void> {
    const list = [...commands];
    const done = this.last.then(() => this.perform(list));
    this.last = done.catch(() => undefined);
    return done;
  }

  private async perform(commands: GPUCommandBuffer[]): Promise<void> {
    const recordings = commands.map((one) => this.recordings.get(one)).filter((one) => one !== undefined);
    const reads = new Set(recordings.flatMap(({ reads }) => [...reads]));
    const writes = new Set(recordings.flatMap(({ writes }) => [...writes]));
    // All that can be refused is refused before anything is computed.
    for (const shared of writes) shared.demand("write");
    await Promise.all([...reads].map((shared) => shared.pull()));
    // What was read and written must not have been written by others meanwhile.
    const bases = new Map([...writes].filter((shared) => reads.has(shared)).map((shared) => [shared, shared.version]));
    const push = (shared: GPUSharedBuffer) => {
      const onto = bases.get(shared);
      return shared.push(onto === undefined ? {} : { onto });
    };
    const own = await checked(this.device, "these commands cannot run", () => {
      this.device.queue.submit(commands);
      // In the same moment: nobody can come between.
      return [...writes].filter(({ remote }) => !remote).map(push);
    });
    await Promise.all([...own, ...[...writes].filter(({ remote }) => remote).map(push)]);
  }
}
