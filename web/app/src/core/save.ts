/** Results as files on the reader's device. */

import type { Job, Shoal } from "@shoal/sdk";
import { npyHeader } from "@shoal/sdk";

export async function saveResult(shoal: Shoal, job: Job): Promise<void> {
  const name = (job.name || `job-${job.id}`).replace(/[^\w.-]+/g, "-");
  if (job.result.form === "tiles") return saveFile(await shoal.picture(job.id), `${name}.png`);
  const result = await shoal.result(job.id);
  if (job.result.form === "answers") return saveFile(new Blob([result]), `${name}.txt`);
  const header = job.output && npyHeader(...elementShape(job, result.byteLength));
  saveFile(new Blob(header ? [header, result] : [result]), `${name}.${header ? "npy" : "bin"}`);
}

export function saveFile(data: Blob, name: string): void {
  const url = URL.createObjectURL(data);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** The scalar type and shape of a map's output: items by lanes, or a plain list. */
function elementShape(job: Job, size: number): [string, number[]] {
  const lanes = Math.round(size / 4 / Math.max(1, job.items));
  return [job.output?.type ?? "f32", lanes > 1 ? [job.items, lanes] : [job.items]];
}
