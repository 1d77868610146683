/** The door to a node's crews: their code is loaded when the node is first asked into one, because most tabs never are. */

import type { CrewHost } from "./crew/host.js";
import type { CrewOrder, Crews as Open } from "./crew/index.js";

/** Bytes on the socket that begin so are a frame of a crew, and no message. */
const FIRST_OF_FRAMES = 0x80;

export class Crews {
  private readonly waiting: CrewOrder[] = [];
  private loading = false;
  private open: Open | undefined;

  constructor(
    private readonly places: { base: string; crewModule: string; crewWasm: string },
    private readonly host: CrewHost,
  ) {}

  act(order: CrewOrder): void {
    if (this.open) return this.open.act(order);
    this.waiting.push(order);
    if (!this.loading) void this.load();
  }

  /** Whether it was a frame. */
  take(bytes: Uint8Array): boolean {
    if ((bytes[0] ?? 0) < FIRST_OF_FRAMES) return false;
    this.open?.frame(bytes);
    return true;
  }

  relay(isUp: boolean): void {
    this.open?.relay(isUp);
  }

  /** Those there are: none as long as their code is not needed. */
  get present(): Open | undefined {
    return this.open;
  }

  private async load(): Promise<void> {
    this.loading = true;
    try {
      const code = (await import(this.places.crewModule)) as typeof import("./crew/index.js");
      this.open = await code.open(this.places.crewWasm, this.places.base, this.host);
      this.open.relay(this.host.joined() !== undefined);
      for (const order of this.waiting.splice(0)) this.open.act(order);
    } catch (error) {
      const message = `crews cannot be joined: ${String(error)}`;
      console.error(message);
      for (const order of this.waiting.splice(0)) {
        if (!("crew" in order)) continue;
        const { crew } = order;
        this.host.tellBrain((brain, now) => brain.crewFailed(now, crew, 0, { kind: "unable", message }));
      }
    }
    this.loading = false;
  }
}
