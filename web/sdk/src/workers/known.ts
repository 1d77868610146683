/** What is known of the GPU: nothing before it was opened and probed, then its numeric class or what is wrong with it. */

import type { Offer } from "./messages.js";

export class GpuKnown {
  private isOpened = false;
  private problem: string | undefined;
  private class: string | undefined;

  get isKnown(): boolean {
    return this.isOpened;
  }

  /** Whether this is news. */
  learn(problem: string | undefined, probed: string | undefined): boolean {
    const found = probed ?? this.class;
    const isNews = !this.isOpened || problem !== this.problem || found !== this.class;
    this.isOpened = true;
    this.problem = problem;
    this.class = found;
    return isNews;
  }

  /** What can be offered now of what the donor lends: a GPU only if it answers. */
  able({ gpu, ...rest }: Offer): Offer {
    const able: Offer = rest;
    if (gpu && this.isOpened && this.problem === undefined) able.gpu = gpu;
    if (this.class !== undefined) able.class = this.class;
    return able;
  }
}
