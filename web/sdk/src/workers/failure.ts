/** Why a unit could not be computed, on its way out of nested calls. */

import type { UnitFailure } from "./messages.js";

export interface StoredBlob {
  hash: string;
  size: number;
}

export class UnitError extends Error {
  constructor(readonly failure: UnitFailure) {
    super(failure.message);
  }
}

export function mustBeItself(blob: StoredBlob, hash: string): void {
  if (hash !== blob.hash) throw fetchFailed(blob, `other bytes came, of hash ${hash}`);
}

export function fetchFailed(blob: StoredBlob, message: string): UnitError {
  return new UnitError({ kind: "fetch", message: `blob ${blob.hash}: ${message}` });
}

export async function refused(what: string, answer: Response): Promise<UnitError> {
  const said = await answer.text().catch(() => "");
  return new UnitError({ kind: "fetch", message: `${what}: ${answer.status} ${said.slice(0, 300)}` });
}
