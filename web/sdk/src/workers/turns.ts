/** Who computes next in a Worker with one thread: requests, because somebody waits for them, then units. */

/** Requests in a row while a unit waits: a crowd that keeps asking must not stop the farm for ever. */
const MOST_IN_A_ROW = 32;

export class Turns {
  private readonly requests: (() => void)[] = [];
  private readonly units: (() => void)[] = [];
  private isTaken = false;
  private inARow = 0;

  /** Computes when it is its turn. */
  async take<T>(isRequest: boolean, compute: () => Promise<T>): Promise<T> {
    const waiting = isRequest ? this.requests : this.units;
    const mine = new Promise<void>((resolve) => waiting.push(resolve));
    if (!this.isTaken) void this.next();
    await mine;
    try {
      return await compute();
    } finally {
      void this.next();
    }
  }

  private async next(): Promise<void> {
    this.isTaken = true;
    await heard();
    const isUnits = this.requests.length === 0 || (this.units.length > 0 && this.inARow >= MOST_IN_A_ROW);
    this.inARow = isUnits ? 0 : this.inARow + 1;
    const begin = (isUnits ? this.units : this.requests).shift();
    if (begin) begin();
    else this.isTaken = false;
  }
}

/** Resolves when all messages that are here already were heard. */
export function heard(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(0);
  });
}
