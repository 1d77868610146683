/** What a program sees as files: a tree in the memory of a module made from the native engine's code, so that both say the
 * same. Fetched with the first program. */

import init, { Files, type Lent, SharedFolder } from "../../../generated/files/files.js";

let loaded: Promise<unknown> | undefined;

/** Has the module here. One that did not come is fetched again the next time. */
export async function loadFiles(): Promise<void> {
  loaded ??= init({ module_or_path: new URL("./files_bg.wasm", import.meta.url) });
  try {
    await loaded;
  } catch (error) {
    loaded = undefined;
    throw error;
  }
}

/** Files that all runs of a job find in `/data`. No run copies them. */
export class Folder {
  private readonly tree: SharedFolder;

  /** Names have `/` between folders. */
  constructor(
    names: string[],
    readonly bytes: Uint8Array[],
  ) {
    this.tree = new SharedFolder(names, Float64Array.from(bytes, ({ byteLength }) => byteLength));
  }

  files(memory: number): Files {
    return Files.with(memory, this.tree);
  }
}

/** The files of a run whose job allows it so many bytes of memory, with `/out` if it may leave some there. */
export function filesOf(folder: Folder | undefined, memory: number, leaves: boolean): Files {
  const files = folder ? folder.files(memory) : Files.empty(memory);
  return leaves ? files.withOut() : files;
}

/** What a run lends with each call. */
export class Lending implements Lent {
  private view = new Uint8Array(0);

  constructor(
    private readonly buffer: () => ArrayBuffer,
    private readonly folder: Folder | undefined,
    /** What is left of it. */
    private input: Uint8Array,
    readonly stamp: () => bigint,
  ) {}

  get memory(): Uint8Array {
    const buffer = this.buffer();
    if (this.view.buffer !== buffer) this.view = new Uint8Array(buffer);
    return this.view;
  }

  get stdinLeft(): number {
    return this.input.byteLength;
  }

  /** The item's bytes, once, from front to back. */
  stdin(at: number, len: number): void {
    this.memory.set(this.input.subarray(0, len), at);
    this.input = this.input.subarray(len);
  }

  copy(file: number, from: number, at: number, len: number): void {
    const bytes = this.folder?.bytes[file];
    if (bytes) this.memory.set(bytes.subarray(from, from + len), at);
  }
}

export type { Files };
