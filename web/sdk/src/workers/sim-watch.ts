/** Time limits of simulations in one GPU Worker: a step that never ends is noticed. */

import type { FromSim, ToSim } from "./sim-words.js";
import { Watch } from "./watch.js";

export class SimWatch {
  /** Of each crew here, the steps asked for and not answered. */
  private readonly open = new Map<number, number>();
  private readonly watch: Watch;
  private allowed = 0;

  constructor(
    private readonly limitOf: (job: number) => number,
    private readonly isComputingUnit: () => boolean,
    onOver: () => void,
  ) {
    // A unit before it has a clock of its own.
    this.watch = new Watch(() => (this.isComputingUnit() ? this.watch.start(this.allowed) : onOver()));
  }

  /** Whether a crew has something here. */
  get isBusy(): boolean {
    return this.open.size > 0;
  }

  asked(ask: ToSim, job: number): void {
    if (ask.type === "leave") {
      this.open.delete(ask.crew);
      this.rest();
      return;
    }
    const isTimed = ask.type === "audition" || ask.command.do === "step";
    this.open.set(ask.crew, (this.open.get(ask.crew) ?? 0) + (isTimed ? 1 : 0));
    if (!isTimed) return;
    this.allowed = this.limitOf(job);
    this.watch.start(this.allowed);
  }

  heard(said: FromSim): void {
    const open = this.open.get(said.crew);
    if (open === undefined) return;
    if (said.type === "auditioned") {
      // It may be a member too.
      if (open > 1) this.open.set(said.crew, open - 1);
      else this.open.delete(said.crew);
    } else if (said.answer.is === "edges" || said.answer.is === "failed") {
      this.open.set(said.crew, Math.max(0, open - 1));
    }
    this.rest();
  }

  /** Whether a crew had something here. */
  close(): boolean {
    this.watch.stop();
    const { isBusy } = this;
    this.open.clear();
    return isBusy;
  }

  private rest(): void {
    if ([...this.open.values()].every((steps) => steps === 0)) this.watch.stop();
  }
}
