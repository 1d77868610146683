/** Time limits: an engine Worker that computes for too long is reported, so that it can be ended. */
export class Watch {
  private deadline: number | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly onOver: () => void) {}

  /** The clock starts anew. Cheap: called for every run of a program. */
  start(millis: number): void {
    this.deadline = performance.now() + millis;
    this.timer ??= setTimeout(() => this.look(), millis);
  }

  stop(): void {
    this.deadline = undefined;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private look(): void {
    this.timer = undefined;
    if (this.deadline === undefined) return;
    const left = this.deadline - performance.now();
    if (left <= 0) {
      this.deadline = undefined;
      this.onOver();
    } else {
      this.timer = setTimeout(() => this.look(), left);
    }
  }
}
