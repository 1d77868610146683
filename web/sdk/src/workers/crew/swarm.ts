/** The exchange of blobs with other devices: the pure part decides, here it is wired to the coordinator, to the crews
 * of two by which pieces travel, and to the files of this browser's shelf. Whole blobs come here; of parts `seeks` tells
 * what is needed, and `holdings` has what is kept. */

import { type SharedBlob, Swarm as Mind, type SwarmOutput } from "../../../generated/crew/crew.js";
import { fileAt, lockName, poolFolder, poolName, shelved } from "../../shelf.js";
import type { Pieces, Seek, Sought } from "../crews.js";
import { Hashing, hexOf } from "../hashing.js";
import { Held } from "../held.js";
import { claimRoom, nameOf } from "../room.js";
import { type Moving, openAlone } from "../shelf.js";
import { PIECE, Source } from "../source.js";
import { Holdings } from "./holdings.js";
import type { CrewHost, Pool } from "./host.js";
import { Seeks } from "./seeks.js";

/** Pieces hashed before other things get their turn: a heartbeat must not wait for a gigabyte. */
const AT_A_TIME = 8;

/** How long another tab of this browser that gets the blob is waited for. */
const LOCK_MS = 60_000;

/** A blob whose pieces are coming. */
interface Coming {
  file: FileSystemSyncAccessHandle;
  /** All pieces are there (`true`), or will not be. */
  end: (isWhole: boolean) => void;
  /** From then on it is a file like the others. */
  closed?: Promise<unknown>;
}

export class Swarm {
  private readonly mind = new Mind();
  private readonly pool: string;
  private readonly source: Source;
  private readonly hashing: Hashing;
  private readonly links = new Map<number, (bytes: Uint8Array) => void>();
  /** Of these, those with a direct way. */
  private readonly nearOnes = new Set<number>();
  private readonly needs = new Map<string, Promise<void>>();
  private readonly coming = new Map<string, Coming>();
  private readonly holdings: Holdings;
  private readonly seeks: Seeks;
  private readonly todo: SwarmOutput[] = [];
  private performing = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly host: CrewHost,
    private readonly from: Pool,
  ) {
    const { base, session, hashing } = from;
    this.pool = poolName(base);
    this.source = new Source(base, session());
    this.hashing = new Hashing(hashing);
    this.holdings = new Holdings(from, (hash) => this.needs.has(hash));
    this.seeks = new Seeks(this.holdings, {
      want: (...wanted) => this.wantPart(...wanted),
      have: (...has) => this.havePart(...has),
      awaited: ({ hash }) => this.mind.awaited(hash),
    });
  }

  /** Pieces that an engine Worker needs. */
  seek(pieces: Pieces, answer: Sought): Seek {
    return this.seeks.begin(pieces, answer);
  }

  /** One of them that came from the coordinator and has its hash. */
  keep(pieces: Pieces, piece: number, bytes: Uint8Array<ArrayBuffer>): void {
    this.seeks.keep(pieces, piece, bytes);
  }

  /** Resolves when the blob is on the shelf, or cannot be had this way. */
  need(blob: SharedBlob): Promise<void> {
    const known = this.needs.get(blob.hash);
    if (known) return known;
    const need = this.get(blob)
      .catch((error: unknown) => console.warn(`blob ${blob.hash} does not come from other devices: ${String(error)}`))
      .then(() => this.tellGot(blob))
      .catch((error: unknown) => console.warn(error));
    this.needs.set(blob.hash, need);
    return need;
  }

  /** The coordinator welcomed this node, or is away. */
  relay(isUp: boolean): void {
    if (!isUp) return this.give((mind, now) => mind.away(now));
    this.source.setSession(this.from.session());
    this.give((mind, now) => mind.joined(now));
    void this.tellHeld().catch((error: unknown) => console.warn(error));
  }

  told(bytes: Uint8Array): void {
    this.give((mind, now) => mind.told(now, bytes));
  }

  /** A crew of two with that node is there; `tell` says something in it. */
  linked(peer: number, tell: (bytes: Uint8Array) => void): void {
    this.links.set(peer, tell);
  }

  unlinked(peer: number): void {
    this.links.delete(peer);
    this.nearOnes.delete(peer);
    this.give((mind, now) => mind.gone(now, peer));
  }

  near(peer: number, isNear: boolean): void {
    if (isNear) this.nearOnes.add(peer);
    else this.nearOnes.delete(peer);
    this.give((mind, now) => mind.near(now, peer, isNear));
  }

  heard(from: number, bytes: Uint8Array): void {
    this.give((mind, now) => mind.heard(now, from, bytes));
  }

  private async tellHeld(): Promise<void> {
    const kept = (await shelved()).filter(({ pool, kind, size }) => pool === this.pool && kind === "whole" && Mind.isShared(size));
    for (const { hash, size } of kept) this.give((mind, now) => mind.have(now, hash, size));
    for (const blob of await this.holdings.look()) {
      const isKnown = this.seeks.isFor(blob.hash) || kept.some(({ hash }) => hash === blob.hash);
      if (!isKnown) this.havePart(blob, this.holdings.pieces(blob.hash));
    }
  }

  private wantPart({ hash, size }: SharedBlob, hashes: Uint8Array, needs: number[], has: Iterable<number>): boolean {
    // All of it was asked for already.
    if (this.needs.has(hash)) return false;
    this.give((mind, now) => mind.want(now, hash, size, hashes, Uint32Array.from(needs), Uint32Array.from(has)));
    return this.nearOnes.size > 0;
  }

  private havePart({ hash, size }: SharedBlob, has: Iterable<number>): void {
    // While all of it comes, what is here of it is in another file.
    if (!this.needs.has(hash)) this.give((mind, now) => mind.havePart(now, hash, size, Uint32Array.from(has)));
  }

  /** One tab of a browser gets the blob, the others wait for it. */
  private async get(blob: SharedBlob): Promise<void> {
    // A tab that holds it and was frozen must not keep the others waiting.
    const signal = AbortSignal.timeout(LOCK_MS);
    await this.holdings.close(blob);
    await navigator.locks.request(lockName(this.pool, blob.hash), { signal }, async () => {
      const folder = await poolFolder(this.pool);
      if (await fileAt(folder, nameOf(blob))) return;
      const hashes = await this.source.pieces(blob);
      const part = await claimRoom(this.pool, blob);
      if (!part) return;
      if (!(await this.fill(blob, part, hashes))) return;
      await (part as Moving).move(nameOf(blob));
      await Held.remove(folder, blob);
    });
  }

  /** After all of a blob was needed: whether it is here, or perhaps some pieces. */
  private async tellGot(blob: SharedBlob): Promise<void> {
    this.needs.delete(blob.hash);
    await this.holdings.lookAt(blob);
    const isThere = await fileAt(await poolFolder(this.pool), nameOf(blob));
    if (isThere) this.give((mind, now) => mind.have(now, blob.hash, blob.size));
    else this.tellLeft(blob);
  }

  /** Whether all of the blob is in the file. */
  private async fill(blob: SharedBlob, part: FileSystemFileHandle, hashes: Uint8Array): Promise<boolean> {
    const file = await openAlone(part);
    let close = (_: unknown): void => undefined;
    try {
      await this.lay(file, blob);
      const has = await this.check(file, blob, hashes);
      const all = Uint32Array.from({ length: hashes.byteLength / 32 }, (_, piece) => piece);
      const isWhole = await new Promise<boolean>((end) => {
        this.coming.set(blob.hash, { file, end });
        this.give((mind, now) => mind.want(now, blob.hash, blob.size, hashes, all, has));
      });
      const coming = this.coming.get(blob.hash);
      if (!isWhole || !coming || (await this.hashOf(file, blob)) !== blob.hash) {
        file.truncate(0);
        return false;
      }
      file.flush();
      coming.closed = new Promise((resolve) => (close = resolve));
      return true;
    } finally {
      file.close();
      // Who asks for a piece now waits until it has its name.
      setTimeout(() => {
        this.coming.delete(blob.hash);
        close(undefined);
      });
    }
  }

  /** Pieces that were kept of it go where they are in the whole. */
  private async lay(file: FileSystemSyncAccessHandle, blob: SharedBlob): Promise<void> {
    const folder = await poolFolder(this.pool);
    if ((await Held.noted(folder, blob)).length === 0) return;
    const held = await Held.open(folder, blob, this.hashing);
    try {
      for (const piece of held.pieces) {
        const bytes = held.read(piece);
        if (bytes) file.write(bytes, { at: piece * PIECE });
        await turn();
      }
    } finally {
      await held.close();
    }
  }

  /** Which pieces an earlier try left. */
  private async check(file: FileSystemSyncAccessHandle, blob: SharedBlob, hashes: Uint8Array): Promise<Uint32Array> {
    const has: number[] = [];
    const size = file.getSize();
    for (let piece = 0; piece * PIECE < size; piece++) {
      const expected = hexOf(hashes.subarray(piece * 32, piece * 32 + 32));
      if (this.hashing.hex(readPiece(file, blob, piece)) === expected) has.push(piece);
      if (piece % AT_A_TIME === AT_A_TIME - 1) await turn();
    }
    return Uint32Array.from(has);
  }

  private async hashOf(file: FileSystemSyncAccessHandle, blob: SharedBlob): Promise<string> {
    const hasher = this.hashing.begin();
    try {
      for (let piece = 0; piece * PIECE < blob.size; piece++) {
        hasher.update(readPiece(file, blob, piece));
        if (piece % AT_A_TIME === AT_A_TIME - 1) await turn();
      }
      return hasher.hex();
    } finally {
      hasher.free();
    }
  }

  /** Gives the mind one input, and does all it wants then. */
  private give(input: (mind: Mind, now: number) => SwarmOutput[]): void {
    this.todo.push(...input(this.mind, performance.now()));
    if (this.performing) return;
    this.performing = true;
    try {
      for (let output = this.todo.shift(); output; output = this.todo.shift()) this.act(output);
    } finally {
      this.performing = false;
    }
    this.wind();
  }

  private act(output: SwarmOutput): void {
    switch (output.type) {
      case "say":
        this.host.tellBrain((brain, now) => brain.swarmSays(now, output.bytes));
        break;
      case "tell":
        this.links.get(output.to)?.(output.bytes);
        this.seeks.asked();
        break;
      case "fetch":
        this.seeks.toFetch(output.blob, output.piece);
        if (this.coming.has(output.blob.hash)) void this.fetch(output.blob, output.piece);
        break;
      case "store":
        this.store(output.blob, output.piece, output.bytes);
        break;
      case "load":
        void this.load(output.blob, output.piece, output.to);
        break;
      case "part":
        break;
      case "whole":
        this.coming.get(output.blob.hash)?.end(true);
        break;
      case "failed":
        console.warn(`blob ${output.blob.hash}: ${output.why}`);
        this.coming.get(output.blob.hash)?.end(false);
        this.seeks.failed(output.blob);
        break;
    }
  }

  private async fetch(blob: SharedBlob, piece: number): Promise<void> {
    const { hash, size } = blob;
    try {
      const bytes = await this.source.range(blob, piece * PIECE, Math.min(size, (piece + 1) * PIECE));
      this.give((mind, now) => mind.fetched(now, hash, piece, new Uint8Array(bytes)));
    } catch (error) {
      this.give((mind, now) => mind.notFetched(now, hash, piece, String(error)));
    }
  }

  private store(blob: SharedBlob, piece: number, bytes: Uint8Array<ArrayBuffer>): void {
    const coming = this.coming.get(blob.hash);
    try {
      const at = piece * PIECE;
      if (coming && coming.file.write(bytes, { at }) < bytes.byteLength) throw new DOMException("no room", "QuotaExceededError");
    } catch (error) {
      console.warn(`a piece could not be kept: ${String(error)}`);
      coming?.end(false);
    }
    this.seeks.came(blob, piece, bytes);
  }

  private async load(blob: SharedBlob, piece: number, to: number): Promise<void> {
    const bytes = await this.read(blob, piece).catch(() => undefined);
    this.give((mind, now) => mind.loaded(now, blob.hash, piece, to, bytes));
    // The donor cleared the shelf, others needed the room, or the disk changed it.
    if (!bytes) this.tellLeft(blob);
  }

  /** A blob is not here as was said: perhaps some pieces are. */
  private tellLeft(blob: SharedBlob): void {
    // Who needs more of it says what is here.
    if (!this.seeks.isFor(blob.hash)) this.havePart(blob, this.holdings.pieces(blob.hash));
  }

  private async read(blob: SharedBlob, piece: number): Promise<Uint8Array | undefined> {
    const coming = this.coming.get(blob.hash);
    if (coming && !coming.closed) return readPiece(coming.file, blob, piece);
    // The move to its name follows at once, under the blob's lock.
    await coming?.closed;
    await this.needs.get(blob.hash);
    const file = await fileAt(await poolFolder(this.pool), nameOf(blob));
    const bytes = await file?.slice(piece * PIECE, (piece + 1) * PIECE).arrayBuffer();
    if (bytes) return new Uint8Array(bytes);
    return this.holdings.read(blob, piece);
  }

  private wind(): void {
    clearTimeout(this.timer);
    const due = this.mind.nextTimeout();
    if (due === undefined) return;
    this.timer = setTimeout(() => this.give((mind, now) => mind.tick(now)), Math.max(0, due - performance.now()));
  }
}

function readPiece(file: FileSystemSyncAccessHandle, { size }: SharedBlob, piece: number): Uint8Array<ArrayBuffer> {
  const at = piece * PIECE;
  const bytes = new Uint8Array(Math.min(PIECE, size - at));
  return bytes.subarray(0, file.read(bytes, { at }));
}

function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
