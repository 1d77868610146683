/** How much of a donor's disk the shelf may take, and who goes first when it is full. */

import { bytesIn, drop, fileAt, poolFolder, type Shelved, shelved } from "../shelf.js";
import type { StoredBlob } from "./failure.js";

/** Several models of some hundred MB: more than a donor expects a page to keep would be impolite. */
const MOST_BYTES = 2 * 2 ** 30;
/** Of what the browser lets this site keep: the site may have things of its own. */
const MOST_SHARE = 1 / 2;
/** Freed beyond what is needed, so that not each new blob has to look at the dates of all. */
const SLACK = 1 / 8;
const LOCK = "shoal shelf";

export function nameOf({ hash, size }: StoredBlob): string {
  return `${hash}.${size}`;
}

/** The file for a blob that is to come, perhaps with what an earlier fetch left; none if there is no room for it. Who
 * calls has the blob's lock. Its name tells its size, so that others count with all of it from now on. */
export function claimRoom(pool: string, blob: StoredBlob): Promise<FileSystemFileHandle | undefined> {
  return navigator.locks.request(LOCK, async () => {
    const name = `${nameOf(blob)}.part`;
    const others = (await shelved()).filter((kept) => kept.pool !== pool || kept.name !== name);
    if (!(await isRoomFor(others, blob.size))) return undefined;
    return (await poolFolder(pool)).getFileHandle(name, { create: true });
  });
}

/** Whether so many bytes more may be kept, of pieces alone. They count when they are there: two tabs that ask at the same
 * time may take a little more than they should. */
export function claimBytes(bytes: number): Promise<boolean> {
  return navigator.locks.request(LOCK, async () => isRoomFor(await shelved(), bytes));
}

/** Makes room beside what is kept, if that is possible. */
async function isRoomFor(kept: Shelved[], bytes: number): Promise<boolean> {
  const { quota = 0, usage = 0 } = await navigator.storage.estimate();
  const most = Math.min(MOST_BYTES, quota * MOST_SHARE);
  const sizes = await Promise.all(kept.map(taken));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  // What is not ours cannot be removed.
  if (bytes > most || usage - total + bytes > quota) return false;
  const over = Math.max(total + bytes - most, usage + bytes - quota);
  return over <= 0 || (await free(kept, over + most * SLACK)) >= over;
}

/** Of pieces, those that are there; else what all of it will take. */
function taken(kept: Shelved): number | Promise<number> {
  return kept.kind === "held" ? bytesIn(kept) : kept.size;
}

/** After a write failed for want of room: browsers may allow less than they say. */
export async function giveBack(bytes: number): Promise<void> {
  await navigator.locks.request(LOCK, async () => free(await shelved(), bytes));
}

/** Removes those longest not used; answers how many bytes that gave. */
async function free(kept: Shelved[], wanted: number): Promise<number> {
  const dated = await Promise.all(kept.map(async (one) => ({ one, used: await lastUse(one) })));
  dated.sort((a, b) => a.used - b.used);
  let freed = 0;
  for (const { one } of dated) {
    if (freed >= wanted) break;
    const bytes = await taken(one);
    if (await drop(one)) freed += bytes;
  }
  return freed;
}

async function lastUse({ folder, name, hash, size, kind }: Shelved): Promise<number> {
  const note = kind === "part" ? undefined : await fileAt(folder, `${nameOf({ hash, size })}.used`);
  const file = note ?? (await fileAt(folder, name));
  return file?.lastModified ?? 0;
}

/** Leaves a note of when the blob was used. Made anew: in private mode what is written to a file does not date it. */
export async function noteUse(folder: FileSystemDirectoryHandle, blob: StoredBlob): Promise<void> {
  const name = `${nameOf(blob)}.used`;
  await folder.removeEntry(name).catch(() => undefined);
  await folder.getFileHandle(name, { create: true });
}
