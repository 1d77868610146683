/** One run of a WASI preview1 program. */

import { WASI, WASIProcExit } from "@bjorn3/browser_wasi_shim";
import { MAX_STDERR_BYTES } from "../../constants.js";
import type { BrainJob, UnitFailure } from "../messages.js";
import { UnitError } from "../blobs.js";
import { type Folder, filesOf } from "./files.js";
import { calls, granted, settled } from "./world.js";

export interface Run {
  module: WebAssembly.Module;
  /** The item's number in the whole job. */
  item: number;
  /** How often the item ran before and failed: each time it gets other random bytes. */
  again: number;
  /** Exit codes of a run that did what it should. */
  ok: readonly number[];
  args: readonly string[];
  env: readonly string[];
  stdin: Uint8Array;
  folder: Folder | undefined;
  /** Whether it finds `/out`, whose files are part of the answer. */
  leaves: boolean;
  limits: BrainJob["limits"];
  /** Whether the real time and real random bytes are granted. */
  clock: boolean;
  /** The end of stderr so far, told now and then in case the run never ends. */
  onStderr: (tail: string) => void;
  /** Gets what the program writes to stdout while it runs. What it has not got at the end is the run's answer. */
  onPart?: (bytes: Uint8Array<ArrayBuffer>) => void;
}

interface Exports extends WebAssembly.Exports {
  memory: WebAssembly.Memory;
  _start: () => unknown;
}

/** What a run gave that did what it should: to the last byte the same on every node. */
export interface Ran {
  /** What it wrote to stdout, without what `onPart` got. */
  stdout: Uint8Array;
  /** The last bytes of what it wrote to stderr. */
  stderr: Uint8Array;
  /** What it left in `/out`, as answers carry it. */
  files: Uint8Array;
}

export function runProgram(run: Run): Ran {
  const stdout = new Output(run.limits.output, run.onPart);
  const stderr = new Tail(run.onStderr);
  const wasi = new WASI([...run.args], [...run.env], []);
  const files = filesOf(run.folder, run.limits.memory, run.leaves);
  const streams = {
    stdin: run.stdin,
    stdout: (bytes: Uint8Array) => stdout.add(bytes),
    stderr: (bytes: Uint8Array) => stderr.add(bytes),
  };
  const world = run.clock ? granted() : settled(run.item, run.again);
  const imports = calls(wasi, world, streams, files, run.folder);
  let memory: WebAssembly.Memory | undefined;
  try {
    const instance = new WebAssembly.Instance(run.module, { wasi_snapshot_preview1: imports });
    const exports = instance.exports as Exports;
    memory = exports.memory;
    const code = wasi.start({ exports });
    if (!run.ok.includes(code)) throw new WASIProcExit(code);
    const packed = files.left(run.limits.output - stdout.written);
    if (!packed) throw new OverOutput();
    return { stdout: stdout.bytes(), stderr: stderr.bytes(), files: packed };
  } catch (error) {
    const failure = judge(error, run.limits, memory, stderr.text());
    const end = endOf(failure, error);
    // A flood up to its limit is of no use to anybody.
    const left = end?.limit === "output" ? new Uint8Array(0) : stdout.bytes();
    const told = end && { ...end, stdout: left, stderr: stderr.bytes() };
    throw new RunError({ ...failure, item: run.item, stderr: stderr.text() }, told);
  } finally {
    files.free();
  }
}

/** How a run ended that failed by itself: its exit code, or the limit that it went over; neither if it trapped. */
export interface End {
  code?: number;
  limit?: "memory" | "output";
}

/** What a failed run leaves, to the last byte the same on every node. */
export interface Told extends End {
  stdout: Uint8Array;
  stderr: Uint8Array;
}

/** A run that failed. What every node tells of it is there if it failed by itself: not for want of time. */
export class RunError extends UnitError {
  constructor(
    failure: UnitFailure,
    readonly told: Told | undefined,
  ) {
    super(failure);
  }
}

/** How deep calls may go differs between engines, so that a stack that was too deep is not told. */
function endOf(failure: UnitFailure, error: unknown): End | undefined {
  if (failure.kind === "exit") return { code: failure.code ?? 0 };
  if (failure.kind === "output") return { limit: "output" };
  const itself = error instanceof WebAssembly.RuntimeError || error instanceof WASIProcExit;
  if (failure.kind === "memory" && itself) return { limit: "memory" };
  return failure.kind === "trap" && itself ? {} : undefined;
}

/** What the end of a run that did not just return means. */
function judge(
  error: unknown,
  limits: BrainJob["limits"],
  memory: WebAssembly.Memory | undefined,
  stderr: string,
): UnitFailure {
  if (error instanceof OverOutput) return { kind: "output", message: "", allowed: limits.output };
  if (isStarved(limits.memory, memory, stderr)) {
    return { kind: "memory", message: "", allowed: limits.memory };
  }
  if (error instanceof WASIProcExit) return { kind: "exit", message: "", code: error.code };
  return { kind: "trap", message: error instanceof Error ? error.message : String(error) };
}

/** A browser does not tell when a program was refused memory, so it is read off what a failed run leaves: a memory so full
 * that the next step of an allocator was probably refused, or the last words of the common allocators. The native engine
 * says it by the same rule, so that all nodes say the same. */
function isStarved(most: number, memory: WebAssembly.Memory | undefined, stderr: string): boolean {
  const held = memory?.buffer.byteLength ?? 0;
  return held * 5 > most * 4 || /memory allocation of \d+ bytes failed|out of memory/i.test(stderr);
}

class OverOutput extends Error {}

/** What a program writes within this time is one part of its answer: a quick run's answer stays whole. */
const TOGETHER_MS = 20;
/** A part is given at once when it has so many bytes (`ANSWER_PART_BYTES` of the protocol). */
const PART_BYTES = 256 << 10;

class Output {
  private pieces: Uint8Array[] = [];
  private held = 0;
  private given = 0;
  /** When the program began, or something was given last. */
  private since = performance.now();

  constructor(
    private readonly most: number,
    private readonly onPart: ((bytes: Uint8Array<ArrayBuffer>) => void) | undefined,
  ) {}

  add(data: Uint8Array): void {
    this.held += data.byteLength;
    if (this.written > this.most) throw new OverOutput();
    this.pieces.push(data);
    if (!this.onPart || (this.held < PART_BYTES && performance.now() - this.since < TOGETHER_MS)) return;
    this.onPart(this.bytes().slice());
    this.given += this.held;
    [this.pieces, this.held, this.since] = [[], 0, performance.now()];
  }

  /** Bytes of all that the program wrote. */
  get written(): number {
    return this.given + this.held;
  }

  bytes(): Uint8Array {
    const [only] = this.pieces;
    if (only && this.pieces.length === 1) return only;
    const all = new Uint8Array(this.held);
    let at = 0;
    for (const piece of this.pieces) {
      all.set(piece, at);
      at += piece.byteLength;
    }
    return all;
  }
}

/** The first words are told at once; a flood only now and then, so that it does not fill the listener's memory. */
const TOLD_AT_ONCE = 64;
const TOLD_EVERY_MS = 100;

class Tail {
  private last: Uint8Array = new Uint8Array(0);
  private told = 0;
  private next = 0;

  constructor(private readonly onTail: (tail: string) => void) {}

  add(data: Uint8Array): void {
    const joined = new Uint8Array(this.last.byteLength + data.byteLength);
    joined.set(this.last);
    joined.set(data, this.last.byteLength);
    this.last = joined.slice(-MAX_STDERR_BYTES);
    if (this.told >= TOLD_AT_ONCE && performance.now() < this.next) return;
    this.told++;
    this.next = performance.now() + TOLD_EVERY_MS;
    this.onTail(this.text());
  }

  bytes(): Uint8Array {
    return this.last;
  }

  text(): string {
    return new TextDecoder().decode(this.last);
  }
}
