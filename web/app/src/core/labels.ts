/** Where the names of boxes stand, so that none hides another. */

export interface Rect {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** A place for a name of this size at a box, inside of a picture, and not over the places that are taken: above the box, or else
 * in it, below it, or at its right. If all are taken, above it. */
export function labelAt(box: Rect, [wide, high]: [number, number], [across, down]: [number, number], taken: readonly Rect[]): Rect {
  const places: [number, number][] = [
    [box.left, box.top - high],
    [box.left, box.top],
    [box.left, box.bottom],
    [box.left, box.bottom - high],
    [box.right - wide, box.top - high],
    [box.right - wide, box.top],
  ];
  const inside = places
    .filter(([, top]) => top >= 0 && top + high <= down)
    .map(([x, top]): Rect => {
      const left = Math.max(0, Math.min(x, across - wide));
      return { left, top, right: left + wide, bottom: top + high };
    });
  const [first = { left: box.left, top: box.top, right: box.left + wide, bottom: box.top + high }] = inside;
  return inside.find((place) => !taken.some((other) => meet(place, other))) ?? first;
}

function meet(a: Rect, b: Rect): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}
