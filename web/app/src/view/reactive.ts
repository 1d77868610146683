/**
 * Signals: values that know who reads them. A change reruns its readers once, in the order they were
 * made, so that a parent is rebuilt (and its children dropped) before a child could see stale data.
 */

export interface Signal<T> {
  (): T;
  set(value: T): void;
  update(change: (old: T) => T): void;
}

interface Watcher {
  id: number;
  run: () => void;
  sources: Set<Set<Watcher>>;
  scope: Scope;
}

type Scope = (() => void)[];

let nextId = 0;
let reader: Watcher | null = null;
let scope: Scope | null = null;
const dirty = new Set<Watcher>();
let scheduled = false;

export function signal<T>(value: T): Signal<T> {
  const readers = new Set<Watcher>();
  const read = () => {
    if (reader) {
      readers.add(reader);
      reader.sources.add(readers);
    }
    return value;
  };
  const set = (next: T) => {
    if (Object.is(next, value)) return;
    value = next;
    for (const watcher of readers) dirty.add(watcher);
    schedule();
  };
  return Object.assign(read, { set, update: (change: (old: T) => T) => set(change(value)) });
}

/** Runs now, and again after anything it read has changed. */
export function effect(body: () => void): void {
  const watcher: Watcher = { id: nextId++, run: () => {}, sources: new Set(), scope: [] };
  const clear = () => {
    for (const source of watcher.sources) source.delete(watcher);
    watcher.sources.clear();
    dispose(watcher.scope);
    dirty.delete(watcher);
  };
  watcher.run = () => {
    clear();
    within(watcher, watcher.scope, body);
  };
  onCleanup(clear);
  watcher.run();
}

/** A value worked out from others; its readers rerun only when the outcome differs. */
export function memo<T>(work: () => T): () => T {
  let out: Signal<T> | null = null;
  effect(() => {
    const value = work();
    if (out) out.set(value);
    else out = signal(value);
  });
  return () => (out as unknown as Signal<T>)();
}

/** Reads without becoming a reader. */
export function untracked<T>(body: () => T): T {
  return within(null, scope, body);
}

/** Everything made inside lives until the returned function is called. */
export function root<T>(body: () => T): [T, () => void] {
  const own: Scope = [];
  const value = within(null, own, body);
  return [value, () => dispose(own)];
}

/** Called when the surrounding effect reruns or its root is dropped. */
export function onCleanup(body: () => void): void {
  scope?.push(body);
}

/** Calls `body` every so often while the surrounding scope lives. */
export function every(milliseconds: number, body: () => void): void {
  const timer = setInterval(body, milliseconds);
  onCleanup(() => clearInterval(timer));
}

function within<T>(nextReader: Watcher | null, nextScope: Scope | null, body: () => T): T {
  const [oldReader, oldScope] = [reader, scope];
  [reader, scope] = [nextReader, nextScope];
  try {
    return body();
  } finally {
    [reader, scope] = [oldReader, oldScope];
  }
}

function dispose(own: Scope): void {
  for (const cleanup of own.splice(0).reverse()) cleanup();
}

function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  queueMicrotask(() => {
    try {
      flush();
    } finally {
      scheduled = false;
    }
  });
}

function flush(): void {
  while (dirty.size > 0) {
    let first: Watcher | null = null;
    for (const watcher of dirty) if (!first || watcher.id < first.id) first = watcher;
    if (!first) return;
    dirty.delete(first);
    first.run();
  }
}
