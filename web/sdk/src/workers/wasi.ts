/** A WASI Worker: programs, one run after the other. A run that does not end is ended with its Worker. */

import { type Blobs, type StoredBlob, UnitError } from "./blobs.js";
import { type Computed, type Computer, say, serve, type Task } from "./engine.js";
import type { BrainJob, UnitSpan } from "./messages.js";
import type { ExecWork } from "../../generated/brain/brain.js";
import { Folder, loadFiles } from "./program/files.js";
import { type Answer, packRuns } from "./pack.js";
import { lowerMemory } from "./program/memory.js";
import { type Ran, RunError, runProgram } from "./program/run.js";

interface Listed extends StoredBlob {
  name: string;
}

/** What the runs of a job share. */
interface Prepared {
  module: WebAssembly.Module;
  folder: Folder | undefined;
  files: Listed[] | undefined;
}

interface Item {
  stdin: Uint8Array;
  name: string | undefined;
}

class ProgramComputer implements Computer {
  private readonly jobs = new Map<number, Promise<Prepared>>();

  constructor(private readonly blobs: Blobs) {}

  async prepare({ unit, info }: Task): Promise<void> {
    await this.prepared(unit.job, info);
  }

  async compute({ unit, info, signal }: Task): Promise<Computed> {
    const work = execOf(info);
    const { limits } = info;
    const { module, folder, files } = await this.prepared(unit.job, info);
    const items = await this.items(unit, work, files, signal);
    const answers = items.map(({ stdin, name }, at): Answer => {
      const item = unit.start + at;
      const env = work.env.map(([name, value]) => `${name}=${value}`);
      if (name !== undefined) env.push(`SHOAL_INPUT=${name}`);
      const onStderr = (tail: string) => say({ type: "stderr", attempt: unit.attempt, tail });
      const args = ["program", ...work.args];
      const onPart = (bytes: Uint8Array<ArrayBuffer>) =>
        say({ type: "part", attempt: unit.attempt, bytes }, [bytes.buffer]);
      const { ok, retry, stop } = work.failing;
      const { clock, leaves } = work;
      const run = { module, item, ok, args, env, stdin, folder, leaves, limits, clock, onStderr };
      const once = (again: number) => {
        say({ type: "clock", attempt: unit.attempt, item });
        return runProgram({ ...run, again, ...(unit.body ? { onPart } : {}) });
      };
      return unit.body ? { bytes: once(0).stdout } : lastTry(retry, stop, leaves, once);
    });
    say({ type: "rest", attempt: unit.attempt });
    return { bytes: packRuns(answers), release: () => undefined };
  }

  forget(job: number): void {
    this.jobs.delete(job);
  }

  private prepared(job: number, info: BrainJob): Promise<Prepared> {
    let prepared = this.jobs.get(job);
    if (!prepared) {
      prepared = this.fetch(execOf(info), info.limits.memory);
      prepared.catch(() => this.jobs.delete(job));
      this.jobs.set(job, prepared);
    }
    return prepared;
  }

  private async fetch(work: ExecWork, memory: number): Promise<Prepared> {
    await loadFiles();
    const [module, folder, files] = await Promise.all([
      this.blobs.all(work.module).then((wasm) => compile(lowerMemory(wasm, memory))),
      work.folder && this.folder(work.folder),
      work.items.kind === "files" ? this.list(work.items.manifest) : undefined,
    ]);
    return { module, folder, files };
  }

  private async folder(list: StoredBlob): Promise<Folder> {
    const files = await this.list(list);
    const bytes = await Promise.all(files.map((file) => this.blobs.all(file)));
    return new Folder(files.map(({ name }) => name), bytes);
  }

  private async list(blob: StoredBlob): Promise<Listed[]> {
    return JSON.parse(new TextDecoder().decode(await this.blobs.all(blob))) as Listed[];
  }

  private items(unit: UnitSpan, work: ExecWork, files: Listed[] | undefined, signal: AbortSignal): Promise<Item[]> {
    if (unit.body) return Promise.resolve([{ stdin: unit.body, name: undefined }]);
    return files ? this.fileItems(unit, files, signal) : this.lineItems(unit, work.items, signal);
  }

  private fileItems({ start, len }: UnitSpan, files: Listed[], signal: AbortSignal): Promise<Item[]> {
    const mine = files.slice(start, start + len);
    return Promise.all(
      mine.map(async (file) => ({ stdin: await this.blobs.once(file, signal), name: file.name })),
    );
  }

  private async lineItems(
    { job, start, len }: UnitSpan,
    items: ExecWork["items"],
    signal: AbortSignal,
  ): Promise<Item[]> {
    if (items.kind !== "lines") throw new UnitError({ kind: "internal", message: "no lines to run over" });
    // One more in front: where the first item starts.
    const first = Math.max(0, start - 1);
    const table = await this.blobs.range(job, items.ends, first * 8, (start + len) * 8, signal);
    const bounds = [...new BigUint64Array(table.slice().buffer)].map(Number);
    if (start === 0) bounds.unshift(0);
    const base = bounds[0] ?? 0;
    const data = await this.blobs.range(job, items.data, base, bounds[len] ?? base, signal);
    return Array.from({ length: len }, (_, at) => ({
      stdin: data.subarray((bounds[at] ?? base) - base, (bounds[at + 1] ?? base) - base),
      name: undefined,
    }));
  }
}

/** Runs an item, and again while it fails by itself and may be tried again. */
function lastTry(retry: number, stop: boolean, leaves: boolean, run: (again: number) => Ran): Answer {
  for (let again = 0; ; again++) {
    try {
      const ran = run(again);
      return { bytes: ran.stdout, ...(leaves ? { left: ran } : {}) };
    } catch (error) {
      const told = error instanceof RunError ? error.told : undefined;
      if (told && again < retry) continue;
      if (!told || stop) throw error;
      return { bytes: told.stdout, failed: told };
    }
  }
}

function execOf({ work }: BrainJob): ExecWork {
  if ("module" in work) return work;
  throw new UnitError({ kind: "internal", message: `a program unit of kind ${work.kind}` });
}

async function compile(wasm: Uint8Array<ArrayBuffer>): Promise<WebAssembly.Module> {
  try {
    return await WebAssembly.compile(wasm);
  } catch (error) {
    throw new UnitError({ kind: "kernel", message: `the browser cannot load the program: ${String(error)}` });
  }
}

serve(
  (blobs) => Promise.resolve(new ProgramComputer(blobs)),
  () => false,
);
