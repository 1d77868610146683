/** What this browser keeps of its pools' blobs, in files that only this site's pages reach: tabs share one copy, and a
 * reload fetches nothing again. `workers/shelf.ts` puts things here; a page sees how much it is, and clears it.
 *
 * `shoal-shelf/POOL/HASH.SIZE` is a whole blob, `.part` behind it one that is on its way or was left when a tab ended,
 * `.held` one of which some pieces are kept, with the note `.pieces` that tells which (`workers/held.ts`), `.used` an
 * empty note whose date is that of the last use. Pools do not share files: one that knows only the hash of
 * another's blob could otherwise have a kernel copy it. */

const FOLDER = "shoal-shelf";
const NAME = /^([0-9a-f]{64})\.(\d+)(\.part|\.held)?$/;

const KINDS: Record<string, Shelved["kind"]> = { ".part": "part", ".held": "held" };

/** A blob; `size` is that of the whole. */
export interface Shelved {
  pool: string;
  folder: FileSystemDirectoryHandle;
  name: string;
  hash: string;
  size: number;
  /** `part`: all of it is on its way. `held`: some pieces of it are kept. */
  kind: "whole" | "part" | "held";
}

export const shelf = {
  /** Bytes of blobs kept by this site, of all pools. */
  async size(): Promise<number> {
    const kept = await shelved().catch(() => []);
    const sizes = kept.map((one) => (one.kind === "whole" ? one.size : bytesIn(one)));
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  },

  /** Removes all but what a tab is fetching at this moment. */
  async clear(): Promise<void> {
    const kept = await shelved().catch(() => []);
    await Promise.all(kept.map(drop));
  },
};

export function poolName(base: string): string {
  return encodeURIComponent(base);
}

export function lockName(pool: string, hash: string): string {
  return `shoal shelf ${pool} ${hash}`;
}

export async function poolFolder(pool: string): Promise<FileSystemDirectoryHandle> {
  const top = await navigator.storage.getDirectory();
  const all = await top.getDirectoryHandle(FOLDER, { create: true });
  return all.getDirectoryHandle(pool, { create: true });
}

/** Everything on the shelf, told by names alone: opening thousands of files would take seconds. */
export async function shelved(): Promise<Shelved[]> {
  const kept: Shelved[] = [];
  const all = await absentAs(undefined, async () => {
    return (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER);
  });
  for await (const folder of all?.values() ?? []) {
    if (!(folder instanceof FileSystemDirectoryHandle)) continue;
    for await (const name of folder.keys()) {
      const [, hash, size, kind] = NAME.exec(name) ?? [];
      if (hash === undefined) continue;
      kept.push({ pool: folder.name, folder, name, hash, size: Number(size), kind: KINDS[kind ?? ""] ?? "whole" });
    }
  }
  return kept;
}

/** The file as it is now; its bytes cannot be read any more once it is changed or removed. */
export function fileAt(folder: FileSystemDirectoryHandle, name: string): Promise<File | undefined> {
  return absentAs(undefined, async () => (await folder.getFileHandle(name)).getFile());
}

/** What its file has now. */
export async function bytesIn({ folder, name }: Shelved): Promise<number> {
  return (await fileAt(folder, name).catch(() => undefined))?.size ?? 0;
}

/** Whether it is gone: a blob that some tab is fetching stays. */
export function drop({ pool, hash, size, folder, name, kind }: Shelved): Promise<boolean> {
  return navigator.locks.request(lockName(pool, hash), { ifAvailable: true }, async (lock) => {
    if (!lock) return false;
    try {
      // Without its note nothing of a held blob counts.
      if (kind === "held") await absentAs(undefined, () => folder.removeEntry(`${hash}.${size}.pieces`));
      await absentAs(undefined, () => folder.removeEntry(name));
      if (kind !== "part") await absentAs(undefined, () => folder.removeEntry(`${hash}.${size}.used`));
      return true;
    } catch {
      // In use in a way that no lock tells, as by a Worker that is just being ended.
      return false;
    }
  });
}

export async function absentAs<T>(otherwise: T, look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (error) {
    if (error instanceof DOMException && error.name === "NotFoundError") return otherwise;
    throw error;
  }
}
