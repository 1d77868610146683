/** Runs a peer's shader over buffers of this page that it was granted `execute` for. */

import { GPUPeerError } from "./error.js";
import { type Exports, type Grant, named } from "./exports.js";
import { checked } from "./transfer.js";
import { STAGE_COMPUTE } from "./usage.js";
import { accessOf, place } from "./wgsl.js";
import type { Words } from "./words.js";

/** Compiled shaders kept for a peer: a loop over some kernels compiles each once. */
const MOST_KEPT = 16;
/** Shaders of a peer that run or wait at a time: more would keep this page's own work from the device. */
const MOST_RUNNING = 8;

type Asked = Words & { is: "run" };

interface Bound {
  group: number;
  binding: number;
  grant: Grant;
  type: GPUBufferBindingType;
}

const TYPES = { uniform: "uniform", read: "read-only-storage", write: "storage" } as const;

export class Runner {
  private readonly kept = new Map<string, Promise<GPUComputePipeline>>();
  private running = 0;

  constructor(
    private readonly device: GPUDevice,
    private readonly exports: Exports,
  ) {}

  /** Answers with the buffers that may have been written, and their versions. */
  async run(asked: Asked): Promise<{ buffer: number; version: number }[]> {
    if (this.running >= MOST_RUNNING) throw new GPUPeerError("busy", `${MOST_RUNNING} shaders of this peer are already running`);
    this.running += 1;
    try {
      return await this.compute(asked);
    } finally {
      this.running -= 1;
    }
  }

  private async compute(asked: Asked): Promise<{ buffer: number; version: number }[]> {
    const bound = this.bind(asked);
    const pipeline = await this.pipeline(asked, bound);
    const [x = 1, y = 1, z = 1] = asked.workgroups;
    const names = bound.map(({ grant }) => named(grant)).join(", ");
    return checked(this.device, `the shader cannot run over ${names || "no buffers"}`, () => {
      const encoder = this.device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      for (const group of new Set(bound.map(({ group }) => group))) {
        const entries = bound
          .filter((one) => one.group === group)
          .map(({ binding, grant }) => ({ binding, resource: { buffer: grant.source.buffer } }));
        pass.setBindGroup(group, this.device.createBindGroup({ layout: pipeline.getBindGroupLayout(group), entries }));
      }
      pass.dispatchWorkgroups(x, y, z);
      pass.end();
      this.device.queue.submit([encoder.finish()]);
      const written = new Set(bound.filter(({ type }) => type === "storage").map(({ grant }) => grant));
      return [...written].map(({ number, source }) => ({ buffer: number, version: source.changed() }));
    });
  }

  /** What the peer may do to each buffer. The shader's text only says what it wants: the device holds it to the types. */
  private bind({ code, bindings }: Asked): Bound[] {
    const access = accessOf(code);
    if (bindings.length === 0) {
      throw new GPUPeerError("denied", "the shader is not bound to any buffer of this page; it may use only buffers that you granted execute for");
    }
    return bindings.map(({ group, binding, ...claim }) => {
      const wanted = access.get(place(group, binding));
      const grant = wanted === "write" ? this.exports.find(claim, "execute", "write") : this.exports.find(claim, "execute");
      if (wanted !== undefined) return { group, binding, grant, type: TYPES[wanted] };
      const at = `@group(${group}) @binding(${binding})`;
      throw new GPUPeerError("shader", `${named(grant)} is bound at ${at}, but the shader declares nothing there, or not with plain numbers`);
    });
  }

  private pipeline(asked: Asked, bound: Bound[]): Promise<GPUComputePipeline> {
    const places = bound.map(({ group, binding, type }) => [group, binding, type]);
    const key = JSON.stringify([asked.code, asked.entryPoint, asked.constants, places]);
    const known = this.kept.get(key);
    if (known) return known;
    const [oldest] = this.kept.keys();
    if (this.kept.size >= MOST_KEPT && oldest !== undefined) this.kept.delete(oldest);
    const made = this.compile(asked, bound);
    this.kept.set(key, made);
    made.catch(() => this.kept.delete(key));
    return made;
  }

  private async compile({ code, entryPoint, constants }: Asked, bound: Bound[]): Promise<GPUComputePipeline> {
    const module = this.device.createShaderModule({ code });
    const { messages } = await module.getCompilationInfo();
    const wrong = messages.find(({ type }) => type === "error");
    if (wrong) throw new GPUPeerError("shader", `line ${wrong.lineNum}, column ${wrong.linePos}: ${wrong.message}`);
    try {
      const layout = this.layout(bound);
      return await this.device.createComputePipelineAsync({ layout, compute: { module, entryPoint, constants } });
    } catch (error) {
      throw new GPUPeerError("shader", error instanceof Error ? error.message : String(error));
    }
  }

  private layout(bound: Bound[]): GPUPipelineLayout {
    const { device } = this;
    const groups = Math.min(device.limits.maxBindGroups, 1 + Math.max(-1, ...bound.map(({ group }) => group)));
    const bindGroupLayouts = Array.from({ length: groups }, (_, group) => {
      const here = bound.filter((one) => one.group === group);
      const entries = here.map(({ binding, type }) => ({ binding, visibility: STAGE_COMPUTE, buffer: { type } }));
      return device.createBindGroupLayout({ entries });
    });
    return device.createPipelineLayout({ bindGroupLayouts });
  }
}
