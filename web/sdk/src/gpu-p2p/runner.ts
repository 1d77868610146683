/** Runs a peer's shader over buffers of this page that it was granted `execute` for. */

import { GPUPeerError } from "./error.js";
import { type Exports, type Grant, named } from "./exports.js";
import { checked } from "./transfer.js";
import { accessOf, place } from "./wgsl.js";
import type { Words } from "./words.js";

/** Compiled shaders kept for a peer: a loop over some kernels compiles each once. */
const MOST_KEPT = 16;

type Asked = Words & { is: "run" };

export class Runner {
  private readonly kept = new Map<string, Promise<GPUComputePipeline>>();

  constructor(
    private readonly device: GPUDevice,
    private readonly exports: Exports,
  ) {}

  /** Answers with the buffers that may have been written, and their versions. */
  async run(asked: Asked): Promise<{ buffer: number; version: number }[]> {
    const access = accessOf(asked.code);
    const written = new Set<Grant>();
    const bound = asked.bindings.map(({ group, binding, ...claim }) => {
      // What the text does not tell counts as written.
      const writes = access.get(place(group, binding)) !== "read";
      const grant = writes ? this.exports.find(claim, "execute", "write") : this.exports.find(claim, "execute");
      if (writes) written.add(grant);
      return { group, binding, grant };
    });
    const pipeline = await this.pipeline(asked);
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
      return [...written].map(({ number, source }) => ({ buffer: number, version: source.changed() }));
    });
  }

  private pipeline(asked: Asked): Promise<GPUComputePipeline> {
    const key = JSON.stringify([asked.code, asked.entryPoint, asked.constants]);
    const known = this.kept.get(key);
    if (known) return known;
    const [oldest] = this.kept.keys();
    if (this.kept.size >= MOST_KEPT && oldest !== undefined) this.kept.delete(oldest);
    const made = this.compile(asked);
    this.kept.set(key, made);
    made.catch(() => this.kept.delete(key));
    return made;
  }

  private async compile({ code, entryPoint, constants }: Asked): Promise<GPUComputePipeline> {
    const module = this.device.createShaderModule({ code });
    const { messages } = await module.getCompilationInfo();
    const wrong = messages.find(({ type }) => type === "error");
    if (wrong) throw new GPUPeerError("shader", `line ${wrong.lineNum}, column ${wrong.linePos}: ${wrong.message}`);
    try {
      return await this.device.createComputePipelineAsync({ layout: "auto", compute: { module, entryPoint, constants } });
    } catch (error) {
      throw new GPUPeerError("shader", error instanceof Error ? error.message : String(error));
    }
  }
}
