/** The page's radio: opens direct ways to other nodes for the Worker, which may not. It decides nothing; if a way does
 * not open or dies, links go on by relay. Loaded when the first call is made. */

import { type FromRadio, LABEL, MOST_WAITING, type RadioCall, type ToRadio } from "../workers/radio-words.js";

/** A way that is interrupted may come back by itself; links meanwhile use the relay. */
const INTERRUPTED_MS = 3_000;
/** What is left to send when the Worker hears that there is room again. */
const LITTLE_WAITING = MOST_WAITING / 4;

type Words = { type: "offer" | "answer"; sdp: string } | { candidate: RTCIceCandidateInit };

/** Serves one call of the Worker until it hangs up. */
export function answer(call: RadioCall): void {
  new Call(call).start();
}

class Call {
  private readonly port: MessagePort;
  private peer: RTCPeerConnection | undefined;
  private interrupted: ReturnType<typeof setTimeout> | undefined;
  /** A channel that could not be moved to the Worker. */
  private channel: RTCDataChannel | undefined;
  private given = 0;
  /** What the peer's radio says is taken one after the other. */
  private hearing = Promise.resolve();

  constructor(private readonly call: RadioCall) {
    this.port = call.port;
  }

  start(): void {
    this.port.onmessage = ({ data }: MessageEvent<ToRadio>) => this.hear(data);
    if (typeof RTCPeerConnection === "undefined") return this.say({ is: "down" });
    if (this.call.do === "listen") return;
    const peer = this.open();
    this.take(peer.createDataChannel(LABEL));
    this.then(async () => {
      await peer.setLocalDescription();
      this.describe(peer);
    });
  }

  private hear(said: ToRadio): void {
    switch (said.is) {
      case "hear":
        this.then(() => this.heard(JSON.parse(new TextDecoder().decode(said.words)) as Words));
        break;
      case "frame":
        this.send(said.bytes);
        break;
      case "ping":
        this.say({ is: "pong" });
        break;
      case "hang":
        this.close();
        this.port.close();
        break;
    }
  }

  private async heard(words: Words): Promise<void> {
    if ("candidate" in words) {
      // One that cannot be used leaves the others.
      await this.peer?.addIceCandidate(words.candidate).catch(() => undefined);
      return;
    }
    if (words.type === "answer") {
      await this.peer?.setRemoteDescription(words);
      return;
    }
    // The peer dials anew: what was before is over.
    if (this.peer) this.down();
    const peer = this.open();
    await peer.setRemoteDescription(words);
    await peer.setLocalDescription();
    this.describe(peer);
  }

  private open(): RTCPeerConnection {
    const peer = new RTCPeerConnection({ iceServers: this.call.ice.map(server) });
    this.peer = peer;
    peer.onicecandidate = ({ candidate }) => {
      if (candidate?.candidate && this.peer === peer) this.tell({ candidate: candidate.toJSON() });
    };
    peer.onconnectionstatechange = () => this.peer === peer && this.changed(peer.connectionState);
    // Moved in the very event that brings it: later it can no longer be.
    peer.ondatachannel = ({ channel }) => {
      if (this.peer === peer && channel.label === LABEL) this.take(channel);
    };
    return peer;
  }

  private changed(state: RTCPeerConnectionState): void {
    clearTimeout(this.interrupted);
    if (state === "failed" || state === "closed") this.down();
    if (state === "disconnected") this.interrupted = setTimeout(() => this.down(), INTERRUPTED_MS);
  }

  /** Gives the channel to the Worker, or passes on its bytes where it must stay here. */
  private take(channel: RTCDataChannel): void {
    if (this.call.takesChannels) {
      try {
        this.say({ is: "channel", channel }, [channel]);
        return;
      } catch {
        // This browser cannot move it.
      }
    }
    this.channel = channel;
    this.given = 0;
    channel.binaryType = "arraybuffer";
    channel.bufferedAmountLowThreshold = LITTLE_WAITING;
    channel.onbufferedamountlow = () => this.tellLeft(channel);
    const opened = () => this.channel === channel && this.say({ is: "up" });
    if (channel.readyState === "open") opened();
    channel.onopen = opened;
    channel.onclose = () => this.channel === channel && this.down();
    channel.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => this.say({ is: "frame", bytes: data }, [data]);
  }

  private send(bytes: Uint8Array<ArrayBuffer>): void {
    const { channel } = this;
    if (channel?.readyState !== "open") return;
    try {
      channel.send(bytes);
    } catch {
      // It closes at this moment, or is full: the link says it again.
    }
    this.given += bytes.byteLength;
    if (channel.bufferedAmount <= LITTLE_WAITING) this.tellLeft(channel);
  }

  private tellLeft(channel: RTCDataChannel): void {
    if (this.channel === channel) this.say({ is: "left", bytes: this.given - channel.bufferedAmount });
  }

  private describe({ localDescription }: RTCPeerConnection): void {
    if (localDescription) this.tell({ type: localDescription.type as "offer" | "answer", sdp: localDescription.sdp });
  }

  /** To the peer's radio. */
  private tell(words: Words): void {
    this.say({ is: "words", words: new TextEncoder().encode(JSON.stringify(words)) });
  }

  private then(act: () => Promise<void>): void {
    // Words that make no sense open no way; the relay stays.
    this.hearing = this.hearing.then(act).catch(() => this.down());
  }

  private down(): void {
    this.close();
    this.say({ is: "down" });
  }

  private close(): void {
    clearTimeout(this.interrupted);
    const { peer } = this;
    [this.peer, this.channel] = [undefined, undefined];
    peer?.close();
  }

  private say(said: FromRadio, transfer: Transferable[] = []): void {
    this.port.postMessage(said, transfer);
  }
}

/** `turn:host:port user password`, or an address alone. */
function server(text: string): RTCIceServer {
  const [urls = "", username, credential] = text.split(" ");
  return username === undefined || credential === undefined ? { urls } : { urls, username, credential };
}
