/** Kernels to start from, each with settings that show it well. */

import julia from "../../../../../examples/kernels/julia.wgsl";
import mandelbrot from "../../../../../examples/kernels/mandelbrot.wgsl";
import matmul from "../../../../../examples/kernels/matmul.wgsl";
import path from "../../../../../examples/kernels/path.wgsl";
import saxpy from "../../../../../examples/kernels/saxpy.wgsl";
import spiral from "../../../../../examples/kernels/spiral.wgsl";
import wave from "../../../../../examples/kernels/wave.wgsl";
import gravity from "../../samples/gravity.wgsl";
import type { InputSetting, PictureSetting, View } from "./settings";

export interface Sample {
  name: string;
  source: string;
  items?: number;
  inputs?: Partial<InputSetting>[];
  outPerItem?: number;
  params?: Record<string, string>;
  view?: View;
  picture?: Partial<PictureSetting>;
}

export const SAMPLES: readonly Sample[] = [
  { name: "Wave: one number in, one out", source: wave, inputs: [{ fill: "ramp", to: 32 }] },
  {
    name: "Path tracer: a picture made of light rays",
    source: path,
    picture: { width: 640, height: 360, samples: 16, tile: 64 },
  },
  {
    name: "Mandelbrot: a picture from a formula",
    source: mandelbrot,
    picture: { width: 1280, height: 720, samples: 4, tile: 64 },
  },
  {
    name: "Julia: a picture with a parameter",
    source: julia,
    params: { c: "-0.79, 0.15" },
    picture: { width: 1200, height: 800, samples: 1, tile: 64 },
  },
  {
    name: "Gravity: every body pulls every other",
    source: gravity,
    items: 8_192,
    inputs: [{ fill: "noise", to: 1, whole: true }],
    params: { step: "0.8", softness: "0.01" },
    view: "points",
  },
  {
    name: "Spiral: no input, two numbers out",
    source: spiral,
    items: 16_384,
    params: { turns: "12" },
    view: "points",
  },
  {
    name: "Saxpy: two inputs",
    source: saxpy,
    inputs: [
      { fill: "ramp", to: 1 },
      { fill: "noise", to: 0.2 },
    ],
    params: { a: "2.5" },
  },
  {
    name: "Matrix product: one input split, one whole",
    source: matmul,
    items: 256,
    inputs: [
      { fill: "wave", to: 1, perItem: 256 },
      { fill: "noise", to: 1, perItem: 256, whole: true },
    ],
    outPerItem: 256,
    view: "heat",
  },
];
