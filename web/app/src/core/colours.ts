/** One colour per device, the same on every page for as long as this tab lives. */

export const COLOURS = 10;

const assigned = new Map<number, number>();

/** Colours go by order of first sight, so that the first ten devices never share one. */
export function assignColours(ids: readonly number[]): void {
  for (const id of [...ids].sort((a, b) => a - b)) {
    if (!assigned.has(id)) assigned.set(id, assigned.size % COLOURS);
  }
}

export function colourOf(id: number): number {
  assignColours([id]);
  return assigned.get(id) ?? 0;
}

/** For canvases, which cannot use classes. */
export function colourValue(index: number): string {
  return themeColour(`--c${index % COLOURS}`);
}

export function themeColour(variable: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}
