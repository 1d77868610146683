/** Rates over time as stacked areas: one colour per device or job, the top edge is the whole. */

import { count, rate } from "../core/format";
import type { Sample } from "../core/series";
import { el, svg } from "../view/dom";
import { memo, onCleanup, signal } from "../view/reactive";

export interface ChartSeries {
  id: number;
  name: string;
  colour: number;
}

interface ChartOptions {
  label: string;
  unit: string;
  samples: () => readonly Sample[];
  series: () => readonly ChartSeries[];
  empty: string;
}

interface Geometry {
  width: number;
  start: number;
  end: number;
  top: number;
}

const HEIGHT = 180;
const LEFT = 52;
const RIGHT = 8;
const ABOVE = 10;
const BELOW = 22;
/** The shortest stretch of time shown, so that a young chart does not look like a wall. */
const SHORTEST = 10_000;
const LONGEST = 120_000;

export function chart(options: ChartOptions): HTMLElement {
  const width = signal(600);
  const hover = signal<number | null>(null);
  const box = el("div", { class: "chart-box" });
  const watch = new ResizeObserver(() => width.set(Math.max(260, box.clientWidth)));
  watch.observe(box);
  onCleanup(() => watch.disconnect());

  const samples = memo(() => recent(options.samples()));
  const geometry = memo(() => measure(samples(), width()));
  const picked = memo(() => nearest(samples(), geometry(), hover()));

  box.append(
    svg(
      "svg",
      {
        class: "chart",
        role: "img",
        "aria-label": () => `${options.label}. ${inWords(options)}`,
        viewBox: () => `0 0 ${width()} ${HEIGHT}`,
        height: HEIGHT,
        onpointermove: (event: PointerEvent) => hover.set(event.offsetX),
        onpointerleave: () => hover.set(null),
      },
      () => grid(geometry(), options.unit),
      () => areas(samples(), options.series(), geometry()),
      () => cursor(picked(), geometry()),
    ),
    el("div", { class: "chart-note" }, () => note(picked(), options)),
  );
  return el("figure", { class: "chart-figure" }, box);
}

function recent(samples: readonly Sample[]): readonly Sample[] {
  const end = samples.at(-1)?.time ?? 0;
  return samples.filter((sample) => sample.time >= end - LONGEST);
}

function measure(samples: readonly Sample[], width: number): Geometry {
  const end = samples.at(-1)?.time ?? 0;
  const start = Math.max(Math.min(samples[0]?.time ?? 0, end - SHORTEST), end - LONGEST);
  const peak = samples.reduce((most, sample) => Math.max(most, total(sample)), 0);
  return { width, start, end, top: niceTop(peak) };
}

function niceTop(peak: number): number {
  if (peak <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(peak));
  const step = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((s) => s * power >= peak * 1.04) ?? 12;
  return step * power;
}

function total(sample: Sample): number {
  let sum = 0;
  for (const value of sample.rates.values()) sum += value;
  return sum;
}

function atX(time: number, g: Geometry): number {
  return LEFT + ((time - g.start) / (g.end - g.start)) * (g.width - LEFT - RIGHT);
}

function atY(value: number, g: Geometry): number {
  return HEIGHT - BELOW - (value / g.top) * (HEIGHT - ABOVE - BELOW);
}

function grid(g: Geometry, unit: string): Node[] {
  const lines = [0, 0.5, 1].map((share) => {
    const y = atY(share * g.top, g);
    return svg(
      "g",
      null,
      svg("line", { class: "grid", x1: LEFT, x2: g.width - RIGHT, y1: y, y2: y }),
      svg(
        "text",
        { class: "tick", x: LEFT - 8, y: y + 4, "text-anchor": "end" },
        tick(share * g.top),
      ),
    );
  });
  const seconds = Math.round((g.end - g.start) / 1000);
  const from = svg("text", { class: "tick", x: LEFT, y: HEIGHT - 5 }, `${seconds} s ago`);
  const now = svg(
    "text",
    { class: "tick", x: g.width - RIGHT, y: HEIGHT - 5, "text-anchor": "end" },
    `${unit}, now`,
  );
  return g.end === 0 ? lines.slice(0, 1) : [...lines, from, now];
}

/** "3 M" rather than "3.00 M": the axis is round. */
function tick(value: number): string {
  return count(value).replace(/\.?0+(?= |$)/, (zeros) => (zeros.startsWith(".") ? "" : zeros));
}

function areas(samples: readonly Sample[], series: readonly ChartSeries[], g: Geometry): Node[] {
  if (samples.length < 2) return [];
  const base = new Float64Array(samples.length);
  return series.map((one) => {
    const lower = Float64Array.from(base);
    samples.forEach((sample, i) => {
      base[i] = (base[i] ?? 0) + (sample.rates.get(one.id) ?? 0);
    });
    const point = (i: number, values: Float64Array) =>
      `${atX(samples[i]?.time ?? 0, g).toFixed(1)},${atY(values[i] ?? 0, g).toFixed(1)}`;
    const up = samples.map((_, i) => point(i, base));
    const down = samples.map((_, i) => point(i, lower)).reverse();
    return svg(
      "g",
      { class: `c${one.colour}` },
      svg("path", { class: "area", d: `M${up.join("L")}L${down.join("L")}Z` }),
      svg("path", { class: "edge", d: `M${up.join("L")}` }),
    );
  });
}

function nearest(samples: readonly Sample[], g: Geometry, x: number | null): Sample | null {
  if (x === null) return null;
  let best: Sample | null = null;
  for (const sample of samples) {
    if (!best || Math.abs(atX(sample.time, g) - x) < Math.abs(atX(best.time, g) - x)) best = sample;
  }
  return best;
}

function cursor(sample: Sample | null, g: Geometry): Node | null {
  if (!sample) return null;
  const x = atX(sample.time, g);
  return svg("line", { class: "cursor", x1: x, x2: x, y1: ABOVE, y2: HEIGHT - BELOW });
}

function note(sample: Sample | null, options: ChartOptions): string | HTMLElement[] {
  if (options.samples().length < 2) return options.empty;
  const shown = sample ?? options.samples().at(-1);
  if (!shown) return options.empty;
  return options
    .series()
    .filter((one) => shown.rates.has(one.id))
    .map((one) =>
      el(
        "span",
        { class: "legend" },
        el("i", { class: `dot c${one.colour}` }),
        `${one.name} `,
        el("b", null, rate(shown.rates.get(one.id) ?? 0)),
      ),
    );
}

function inWords(options: ChartOptions): string {
  const last = options.samples().at(-1);
  return last ? `Now ${count(total(last))} ${options.unit}.` : options.empty;
}
