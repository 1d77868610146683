/** The services of the pool, as long as the dashboard is open. */

import type { Service, Shoal } from "@shoal/sdk";

import { onCleanup, signal } from "../../view/reactive";

/** Models are added and lost by hand; nobody waits for this line. */
const AGAIN_MS = 3_000;

export function services(shoal: Shoal): () => readonly Service[] {
  const known = signal<readonly Service[]>([]);
  let timer: number | undefined;
  let over = false;
  const look = async () => {
    // Nobody looks at a hidden page, and a coordinator that is away is told of elsewhere.
    if (!document.hidden) await shoal.services().then(known.set, () => undefined);
    if (!over) timer = window.setTimeout(() => void look(), AGAIN_MS);
  };
  void look();
  onCleanup(() => {
    over = true;
    window.clearTimeout(timer);
  });
  return known;
}
