/** A buffer of this page that others may see: which version it is. One for each GPU buffer, however often it is exported. */

export type Watcher = (version: number) => void;

const SOURCES = new WeakMap<GPUBuffer, Source>();

export class Source {
  /** Counts writes; whoever has not got it yet has version 0. */
  version = 1;
  /** Of this version, once it travelled. */
  hash: string | undefined;
  private readonly watchers = new Set<Watcher>();

  private constructor(readonly buffer: GPUBuffer) {}

  static of(buffer: GPUBuffer): Source {
    const source = SOURCES.get(buffer) ?? new Source(buffer);
    SOURCES.set(buffer, source);
    return source;
  }

  /** It was written. */
  changed(hash?: string): number {
    this.version += 1;
    this.hash = hash;
    for (const watcher of [...this.watchers]) watcher(this.version);
    return this.version;
  }

  watch(watcher: Watcher): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }
}
