/** Two copies of a peer's buffer, so that one is computed with while the other travels. */

import { GPUPeerError } from "./error.js";
import { type GPUSharedBuffer, ImportedBuffer } from "./shared.js";

/** One of the two. */
export interface Half {
  readonly buffer: GPUBuffer;
  /** What it holds; 0: nothing yet. */
  version: number;
}

/** Of an imported buffer; it is used through its halves from then on. */
export function doubleBuffered(shared: GPUSharedBuffer, device: GPUDevice): DoubleBuffered {
  if (!(shared instanceof ImportedBuffer)) {
    throw new TypeError("double buffering is for imported buffers: an exported buffer does not travel to its owner");
  }
  return new DoubleBuffered(shared, device);
}

export class DoubleBuffered {
  private readonly halves: [Half, Half];
  private turn = 0;
  /** What each half has under way. */
  private readonly travelling: [Promise<unknown>, Promise<unknown>] = [Promise.resolve(), Promise.resolve()];

  constructor(
    private readonly shared: ImportedBuffer,
    device: GPUDevice,
  ) {
    const { size, usage, label } = shared.buffer;
    const second = device.createBuffer({ label: `${label} (second half)`, size, usage });
    this.halves = [
      { buffer: shared.buffer, version: shared.version },
      { buffer: second, version: 0 },
    ];
  }

  /** Each version that is found, newest first served: while the body of the loop computes over one, the next one travels.
   * Versions that were replaced before they could travel are left out. Ends only with the connection, by an error, or with `break`. */
  async *versions(): AsyncGenerator<Half, void, void> {
    this.shared.demand("read");
    let [now, next] = this.halves;
    let coming = this.fetch(now, 0);
    for (;;) {
      await coming;
      coming = this.fetch(next, now.version);
      // Told where it is awaited; a loop that breaks does not care.
      coming.catch(() => undefined);
      yield now;
      [now, next] = [next, now];
    }
  }

  /** A half whose former contents have left: write the next version into it, then `send` it. */
  async free(): Promise<Half> {
    const half = this.at(this.turn);
    await this.travelling[this.turn];
    return half;
  }

  /** Sends what a half holds to the owner. The other half is free meanwhile, or soon. */
  send(half: Half): void {
    const index = this.halves.indexOf(half);
    if (index !== this.turn) throw new GPUPeerError("usage", "send the half that free() returned, and only once");
    const before = this.travelling[1 - index] ?? Promise.resolve();
    // In order: the owner must not see the older one last.
    const sent = before.then(async () => {
      half.version = (await this.shared.send(half.buffer)).version;
    });
    sent.catch(() => undefined);
    this.travelling[index] = sent;
    this.turn = 1 - this.turn;
  }

  /** Resolves when the owner has all that was sent. */
  async flush(): Promise<void> {
    await Promise.all(this.travelling);
  }

  /** Frees the second half; the first is the shared buffer's own. */
  destroy(): void {
    this.halves[1].buffer.destroy();
  }

  private at(turn: number): Half {
    return this.halves[turn === 0 ? 0 : 1];
  }

  private async fetch(half: Half, after: number): Promise<void> {
    await this.shared.newer(after);
    half.version = (await this.shared.fetch(half.buffer, after)).version;
  }
}
