/** Ports of a pool's mesh: many in one Worker. */

import type { ToTalker } from "./mesh-words.js";
import { Listener, type PeerPort } from "./port.js";

/** Whoever has the Worker. */
export interface Carrier {
  readonly id: number;
  tell(message: ToTalker, transfer?: Transferable[]): void;
  viaOf(crew: number): "relay" | "direct";
  /** The port of a crew was closed. */
  leave(crew: number, lingers: boolean): void;
}

/** One connection's way through a crew of two. */
export class Port implements PeerPort {
  readonly messages = new Listener<[number, Uint8Array<ArrayBuffer>]>((_, { byteLength }) => {
    this.mesh.tell({ type: "took", crew: this.crew, bytes: byteLength });
  });
  readonly ends = new Listener<[string]>();
  /** A connection is, or is being, made of it. */
  isTaken = false;

  constructor(
    private readonly mesh: Carrier,
    private readonly crew: number,
    readonly peerId: number,
  ) {}

  get me(): number {
    return this.mesh.id;
  }

  get via(): "relay" | "direct" {
    return this.mesh.viaOf(this.crew);
  }

  get onmessage() {
    return this.messages.get();
  }

  set onmessage(listener) {
    this.messages.set(listener);
  }

  get onclose() {
    return this.ends.get();
  }

  set onclose(listener) {
    this.ends.set(listener);
  }

  send(channel: number, bytes: Uint8Array<ArrayBuffer>): void {
    this.mesh.tell({ type: "say", crew: this.crew, channel, bytes }, [bytes.buffer]);
  }

  close(lingers = false): void {
    [this.onmessage, this.onclose] = [() => undefined, () => undefined];
    this.mesh.leave(this.crew, lingers);
  }
}
