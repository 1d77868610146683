/** Records passes with a real encoder, and which shared buffers they read and write. */

import type { GPUSharedBuffer } from "./shared.js";
import { type Access, place } from "./wgsl.js";

export interface Recording {
  reads: Set<GPUSharedBuffer>;
  writes: Set<GPUSharedBuffer>;
}

/** What is known of the objects that a pass names. */
export interface Known {
  access(pipeline: GPUComputePipeline): Access | undefined;
  bound(group: GPUBindGroup): Map<number, GPUSharedBuffer> | undefined;
  finished(commands: GPUCommandBuffer, recording: Recording): void;
}

/** What a pass does to shared buffers, if its shaders and bind groups do not tell or tell too much: a buffer that is written whole
 * need not be fetched. */
export interface Uses {
  reads?: readonly GPUSharedBuffer[];
  writes?: readonly GPUSharedBuffer[];
}

export interface PeerPassDescriptor extends GPUComputePassDescriptor {
  uses?: Uses;
}

export class Recorder {
  private readonly recording: Recording = { reads: new Set(), writes: new Set() };

  constructor(
    /** For what is not recorded here: it is in the same commands. */
    readonly encoder: GPUCommandEncoder,
    private readonly known: Known,
  ) {}

  beginComputePass({ uses, ...descriptor }: PeerPassDescriptor = {}): PassRecorder {
    if (uses) this.use(uses);
    const pass = this.encoder.beginComputePass(descriptor);
    return new PassRecorder(pass, this.known, (one) => uses ?? this.use(one));
  }

  copyBufferToBuffer(
    source: GPUBuffer | GPUSharedBuffer,
    sourceOffset: number,
    destination: GPUBuffer | GPUSharedBuffer,
    destinationOffset: number,
    size: number,
  ): void {
    if ("push" in source) this.use({ reads: [source] });
    // The rest of it stays what it is.
    if ("push" in destination) this.touch(destination, size < destination.size);
    const plain = (buffer: GPUBuffer | GPUSharedBuffer) => ("push" in buffer ? buffer.buffer : buffer);
    this.encoder.copyBufferToBuffer(plain(source), sourceOffset, plain(destination), destinationOffset, size);
  }

  finish(descriptor?: GPUCommandBufferDescriptor): GPUCommandBuffer {
    const commands = this.encoder.finish(descriptor);
    this.known.finished(commands, this.recording);
    return commands;
  }

  private touch(shared: GPUSharedBuffer, keepsRest: boolean): void {
    this.use({ writes: [shared], reads: keepsRest && shared.may("read") ? [shared] : [] });
  }

  private use({ reads = [], writes = [] }: Uses): void {
    for (const shared of reads) this.recording.reads.add(shared.demand("read"));
    for (const shared of writes) this.recording.writes.add(shared.demand("write"));
  }
}

export class PassRecorder {
  private access: Access | undefined;
  private readonly groups = new Map<number, Map<number, GPUSharedBuffer>>();

  constructor(
    /** For what is not recorded here. */
    readonly pass: GPUComputePassEncoder,
    private readonly known: Known,
    private readonly use: (uses: Uses) => unknown,
  ) {}

  setPipeline(pipeline: GPUComputePipeline): void {
    this.pass.setPipeline(pipeline);
    this.access = this.known.access(pipeline);
  }

  setBindGroup(index: number, group: GPUBindGroup, dynamicOffsets: number[] = []): void {
    this.pass.setBindGroup(index, group, dynamicOffsets);
    this.groups.set(index, this.known.bound(group) ?? new Map());
  }

  dispatchWorkgroups(x: number, y?: number, z?: number): void {
    this.pass.dispatchWorkgroups(x, y, z);
    this.note();
  }

  dispatchWorkgroupsIndirect(buffer: GPUBuffer, offset: number): void {
    this.pass.dispatchWorkgroupsIndirect(buffer, offset);
    this.note();
  }

  end(): void {
    this.pass.end();
  }

  private note(): void {
    for (const [group, bound] of this.groups) {
      for (const [binding, shared] of bound) {
        // What the shader's text does not tell is taken for both, as far as it is allowed.
        const access = this.access?.get(place(group, binding)) ?? (shared.may("write") ? "write" : "read");
        const reads = access !== "write" || shared.may("read") ? [shared] : [];
        this.use({ reads, writes: access === "write" ? [shared] : [] });
      }
    }
  }
}
