/** The node's connection to its coordinator: one at a time, frames of bytes. */

/** Frames waiting to leave. More are dropped, so that what the node itself has to say is not late; links repeat them. */
const MOST_WAITING = 8 << 20;

export interface SocketEvents {
  opened: () => void;
  closed: () => void;
  received: (frame: Uint8Array) => void;
}

export class Socket {
  private present: WebSocket | undefined;

  constructor(
    private readonly url: string,
    private readonly on: SocketEvents,
  ) {}

  open(): void {
    this.close();
    const socket = new WebSocket(this.url);
    socket.binaryType = "arraybuffer";
    this.present = socket;
    // Events of a socket that was given up say nothing about the present one.
    const ifPresent = (act: () => void) => () => this.present === socket && act();
    socket.onopen = ifPresent(this.on.opened);
    socket.onclose = ifPresent(() => {
      this.present = undefined;
      this.on.closed();
    });
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
      if (this.present === socket) this.on.received(new Uint8Array(data));
    };
  }

  close(): void {
    const { present } = this;
    this.present = undefined;
    present?.close();
  }

  send(bytes: Uint8Array): void {
    if (this.present?.readyState === WebSocket.OPEN) this.present.send(bytes as Uint8Array<ArrayBuffer>);
  }

  /** A frame for the relay. */
  sendFrame(bytes: Uint8Array): void {
    if ((this.present?.bufferedAmount ?? 0) + bytes.byteLength <= MOST_WAITING) this.send(bytes);
  }
}
