/** The Worker's half of the radio: one call of one peer, made by the page. */

import { type FromRadio, MOST_WAITING, type RadioCall, type ToRadio } from "./radio-words.js";

/** A page that does not answer for so long is frozen: what it should pass on is lost meanwhile. */
const FROZEN_MS = 3_000;
const PING_EVERY_MS = 1_000;
/** Frames that come before the channel is open: what a link lays on a way that it does not know yet is far less. */
const MOST_EARLY = 64;

export interface CallEvents {
  /** For the peer's radio. */
  words: (words: Uint8Array) => void;
  up: () => void;
  down: () => void;
  frame: (bytes: Uint8Array) => void;
}

/** Asks the page for a direct way to a peer. `tell` reaches the page. */
export class Call {
  private readonly port: MessagePort;
  private channel: RTCDataChannel | undefined;
  private state: "opening" | "up" | "down" = "opening";
  /** Of the bytes given to a channel that stayed on the page. */
  private waiting = { given: 0, left: 0 };
  private pinging: ReturnType<typeof setInterval> | undefined;
  private heardAt = 0;

  constructor(
    tell: (call: RadioCall, transfer: Transferable[]) => void,
    what: { do: "dial" | "listen"; ice: string[]; takesChannels?: boolean },
    private readonly on: CallEvents,
  ) {
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    port1.onmessage = ({ data }: MessageEvent<FromRadio>) => this.hear(data);
    const takesChannels = what.takesChannels ?? typeof RTCDataChannel !== "undefined";
    tell({ type: "radio", port: port2, do: what.do, ice: what.ice, takesChannels }, [port2]);
  }

  /** The peer's radio said this. */
  words(words: Uint8Array): void {
    this.say({ is: "hear", words });
  }

  /** Whether the channel was moved into this Worker. */
  get isHere(): boolean {
    return this.channel !== undefined;
  }

  /** Whether it was taken: what does not leave in time is dropped, and said again by the link. */
  send(bytes: Uint8Array<ArrayBuffer>): boolean {
    if (this.state !== "up") return false;
    if (!this.channel) return this.pass(bytes);
    if (this.channel.bufferedAmount + bytes.byteLength > MOST_WAITING) return false;
    try {
      this.channel.send(bytes);
    } catch {
      return false;
    }
    return true;
  }

  hang(): void {
    this.say({ is: "hang" });
    this.forgetChannel();
    this.port.onmessage = null;
    this.port.close();
  }

  private pass(bytes: Uint8Array<ArrayBuffer>): boolean {
    const { given, left } = this.waiting;
    if (given - left + bytes.byteLength > MOST_WAITING) return false;
    this.waiting.given += bytes.byteLength;
    this.port.postMessage({ is: "frame", bytes } satisfies ToRadio, [bytes.buffer]);
    return true;
  }

  private hear(said: FromRadio): void {
    this.heardAt = performance.now();
    switch (said.is) {
      case "words":
        this.on.words(said.words);
        break;
      case "channel":
        this.take(said.channel);
        break;
      case "up":
        this.waiting = { given: 0, left: 0 };
        this.pinging = setInterval(() => this.look(), PING_EVERY_MS);
        this.rise();
        break;
      case "down":
        this.fall();
        break;
      case "frame":
        if (this.state === "up") this.on.frame(new Uint8Array(said.bytes));
        break;
      case "left":
        this.waiting.left = said.bytes;
        break;
      case "pong":
        break;
    }
  }

  private take(channel: RTCDataChannel): void {
    this.forgetChannel();
    this.channel = channel;
    channel.binaryType = "arraybuffer";
    // A channel that was moved brings what the peer said before it says that it is open, and takes no answer until then.
    const early: ArrayBuffer[] = [];
    const opened = () => {
      this.rise();
      for (const data of early.splice(0)) if (this.channel === channel) this.on.frame(new Uint8Array(data));
    };
    channel.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
      if (channel.readyState === "open") {
        opened();
        if (this.channel === channel) this.on.frame(new Uint8Array(data));
      } else if (early.length < MOST_EARLY) {
        early.push(data);
      }
    };
    channel.onclose = () => this.fall();
    channel.onopen = opened;
    if (channel.readyState === "open") opened();
  }

  private look(): void {
    if (performance.now() - this.heardAt > FROZEN_MS) return this.fall();
    this.say({ is: "ping" });
  }

  private rise(): void {
    if (this.state === "up") return;
    this.state = "up";
    this.on.up();
  }

  /** Also if it never was up, so that whoever dialled can try again later. */
  private fall(): void {
    this.forgetChannel();
    if (this.state === "down") return;
    this.state = "down";
    this.on.down();
  }

  private forgetChannel(): void {
    clearInterval(this.pinging);
    const { channel } = this;
    this.channel = undefined;
    if (!channel) return;
    [channel.onopen, channel.onclose, channel.onmessage] = [null, null, null];
    channel.close();
  }

  private say(said: ToRadio): void {
    this.port.postMessage(said);
  }
}
