/** One colour per device, the same on every page. */

export const COLOURS = 10;

/** Numbers are given out in order, so that the first ten devices never share a colour. */
export function colourOf(id: number): number {
  return (((id - 1) % COLOURS) + COLOURS) % COLOURS;
}

/** For canvases, which cannot use classes. */
export function colourValue(index: number): string {
  return themeColour(`--c${index % COLOURS}`);
}

export function themeColour(variable: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}
