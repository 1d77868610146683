/** The engine Workers of a node, kernels on one and programs on others, and what is offered of them. A GPU comes and
 * goes; the offer follows it. */

import { Engines } from "../../generated/brain/brain.js";
import { Lane, type LaneConfig } from "./lane.js";
import type { Offer, Places } from "./messages.js";

type Own = "engines" | "worker" | "wasm" | "base" | "onHealth";
/** What both kinds share, and what to do when the GPU stopped answering (why), or answers again. */
export type LanesConfig = Omit<LaneConfig, Own> & { onGpu: (problem: string | undefined) => void };

export class Lanes {
  readonly gpu: Lane;
  readonly cpu: Lane;
  /** Of the GPU: nothing is known before it was opened and probed, then its numeric class or what is wrong with it. */
  private isOpened = false;
  private problem: string | undefined;
  private class: string | undefined;

  constructor(
    places: Places,
    private lends: Offer,
    { onGpu, ...shared }: LanesConfig,
  ) {
    const { base } = places;
    this.gpu = new Lane({
      ...shared,
      base,
      engines: new Engines(true),
      worker: places.gpuWorker,
      wasm: places.gpuWasm,
      onHealth: (problem, probed) => this.learn(problem, probed) && onGpu(problem),
    });
    this.cpu = new Lane({
      ...shared,
      base,
      engines: new Engines(false),
      worker: places.wasiWorker,
      wasm: "",
      onHealth: (problem) => problem && console.error(`programs cannot run: ${problem}`),
    });
  }

  /** What the donor lends. */
  get lent(): Offer {
    return this.lends;
  }

  /** The donor lends this from now on. */
  lend(offer: Offer): void {
    this.lends = offer;
    this.cpu.limit(offer.cpuSlots);
    this.gpu.limit(offer.gpu ? 1 : 0);
  }

  /** Whether there is nothing to wait for before it is said what can be offered. */
  get isKnown(): boolean {
    return this.isOpened || !this.lends.gpu;
  }

  /** What can be offered now of what the donor lends: a GPU only if it answers. */
  able(): Offer {
    const { gpu, ...rest } = this.lends;
    const able: Offer = rest;
    if (gpu && this.isOpened && this.problem === undefined) able.gpu = gpu;
    if (this.class !== undefined) able.class = this.class;
    return able;
  }

  /** Whether this is news. */
  private learn(problem: string | undefined, probed: string | undefined): boolean {
    const found = probed ?? this.class;
    const isNews = !this.isOpened || problem !== this.problem || found !== this.class;
    this.isOpened = true;
    this.problem = problem;
    this.class = found;
    return isNews;
  }
}
