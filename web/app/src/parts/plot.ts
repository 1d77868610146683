/** Arrays as pictures: a line, a heat map, or points. */

import { colourValue, themeColour } from "../core/colours";
import { count } from "../core/format";
import type { NumberArray } from "../core/kernel-numbers";

export interface Values {
  data: NumberArray | Uint16Array<ArrayBuffer>;
  /** Scalars in one element. */
  lanes: number;
}

const LEFT = 60;
const PAD = 10;
const BELOW = 22;
/** Dark to light, even in brightness, so that it reads in grey too. */
// prettier-ignore
const HEAT: readonly (readonly [number, number, number])[] = [
  [13, 18, 48], [32, 50, 110], [22, 102, 134], [38, 152, 133],
  [122, 195, 108], [236, 226, 108], [255, 250, 224],
];

interface Range {
  low: number;
  high: number;
}

/** Every lane as a line; where several values share a pixel, all between the least and the most is drawn. */
export function drawLine(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  values: Values,
): void {
  const length = Math.floor(values.data.length / values.lanes);
  const range = rangeOf(values.data);
  const [wide, high] = [width - LEFT - PAD, height - PAD - BELOW];
  const y = (value: number) => PAD + high * (1 - (value - range.low) / (range.high - range.low));
  axes(context, width, height, range, length);
  for (let lane = 0; lane < Math.min(values.lanes, 4); lane += 1) {
    context.strokeStyle = context.fillStyle = colourValue(lane);
    context.lineWidth = 1.5;
    context.beginPath();
    const dense = length > wide * 2;
    for (let step = 0; step < (dense ? wide : length); step += 1) {
      const from = dense ? Math.floor((step * length) / wide) : step;
      const to = dense ? Math.max(from + 1, Math.floor(((step + 1) * length) / wide)) : step + 1;
      const x = LEFT + (dense ? step : (step * wide) / Math.max(1, length - 1));
      const [least, most] = extremes(values, lane, from, to);
      if (Number.isNaN(least)) continue;
      context.lineTo(x, y(least));
      if (dense) context.lineTo(x, y(most));
    }
    context.stroke();
  }
}

/** The first lane as a picture of `columns` wide rows. */
export function drawHeat(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  values: Values,
  columns: number,
): void {
  const length = Math.floor(values.data.length / values.lanes);
  const rows = Math.ceil(length / columns);
  const [wide, high] = [
    Math.min(columns, Math.round(width * 2)),
    Math.min(rows, Math.round(height * 2)),
  ];
  const range = rangeOf(values.data);
  const image = new ImageData(wide, high);
  for (let y = 0; y < high; y += 1) {
    for (let x = 0; x < wide; x += 1) {
      const item = Math.floor((y * rows) / high) * columns + Math.floor((x * columns) / wide);
      if (item >= length) continue;
      const value = values.data[item * values.lanes] ?? 0;
      image.data.set(
        [...heat((value - range.low) / (range.high - range.low)), 255],
        (y * wide + x) * 4,
      );
    }
  }
  const sheet = new OffscreenCanvas(wide, high);
  sheet.getContext("2d")?.putImageData(image, 0, 0);
  const scale = Math.min(width / columns, height / rows);
  context.imageSmoothingEnabled = scale < 1;
  context.drawImage(
    sheet,
    (width - columns * scale) / 2,
    (height - rows * scale) / 2,
    columns * scale,
    rows * scale,
  );
}

/** The first two lanes as x and y. */
export function drawPoints(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  values: Values,
): void {
  const { data, lanes } = values;
  const [xs, ys] = [rangeOf(data, lanes, 0), rangeOf(data, lanes, 1)];
  const scale = Math.min(
    (width - 2 * PAD) / (xs.high - xs.low),
    (height - 2 * PAD) / (ys.high - ys.low),
  );
  const [midX, midY] = [(xs.low + xs.high) / 2, (ys.low + ys.high) / 2];
  const many = data.length / lanes;
  const size = many > 20_000 ? 1 : many > 2_000 ? 1.5 : 2.5;
  context.fillStyle = themeColour("--accent");
  context.globalAlpha = many > 2_000 ? 0.55 : 0.85;
  for (let i = 0; i + 1 < data.length; i += lanes) {
    const x = width / 2 + ((data[i] ?? 0) - midX) * scale;
    const y = height / 2 - ((data[i + 1] ?? 0) - midY) * scale;
    context.fillRect(x - size / 2, y - size / 2, size, size);
  }
}

/** The least and most of the finite values, never equal, so that one may divide by their distance. */
export function rangeOf(data: ArrayLike<number>, step = 1, first = 0): Range {
  let [low, high] = [Infinity, -Infinity];
  for (let i = first; i < data.length; i += step) {
    const value = data[i] ?? 0;
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return { low: 0, high: 1 };
  return low === high ? { low: low - 0.5, high: high + 0.5 } : { low, high };
}

function extremes(values: Values, lane: number, from: number, to: number): [number, number] {
  let [least, most] = [NaN, NaN];
  for (let i = from; i < to; i += 1) {
    const value = values.data[i * values.lanes + lane] ?? NaN;
    if (!Number.isFinite(value)) continue;
    if (!(value >= least)) least = value;
    if (!(value <= most)) most = value;
  }
  return [least, most];
}

function axes(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  range: Range,
  length: number,
): void {
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = themeColour("--quiet");
  context.strokeStyle = themeColour("--line");
  context.lineWidth = 1;
  context.textAlign = "right";
  for (const share of [0, 0.5, 1]) {
    const y = Math.round(PAD + (height - PAD - BELOW) * (1 - share)) + 0.5;
    context.beginPath();
    context.moveTo(LEFT, y);
    context.lineTo(width - PAD, y);
    context.stroke();
    context.fillText(brief(range.low + share * (range.high - range.low), 3), LEFT - 8, y + 4);
  }
  context.fillText(`item ${count(length - 1)}`, width - PAD, height - 6);
  context.textAlign = "left";
  context.fillText("item 0", LEFT, height - 6);
}

/** A number in few characters. */
export function brief(value: number, digits = 4): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 100_000 || size < 0.001) return value.toExponential(1);
  return String(Number(value.toPrecision(digits)));
}

function heat(share: number): [number, number, number] {
  if (!Number.isFinite(share)) return [120, 120, 120];
  const at = Math.min(1, Math.max(0, share)) * (HEAT.length - 1);
  const low = HEAT[Math.floor(at)] ?? [0, 0, 0];
  const high = HEAT[Math.min(HEAT.length - 1, Math.floor(at) + 1)] ?? low;
  const part = at - Math.floor(at);
  return [0, 1, 2].map((i) => (low[i] ?? 0) + part * ((high[i] ?? 0) - (low[i] ?? 0))) as [
    number,
    number,
    number,
  ];
}
