/** Where pictures come from: drawn, from a file, or from the camera. All are asked at 32 x 32 pixels. */

import { el, show } from "../../view/dom";
import { effect, every, onCleanup, signal } from "../../view/reactive";
import { type Classifier, SIDE } from "./classifier";
import { pad } from "./pad";

const SOURCES = { draw: "Draw", file: "Picture", camera: "Camera" } as const;
type Source = keyof typeof SOURCES;
/** Frames a second that are asked of the camera; those that find all slices busy are left out. */
const FRAME_MS = 40;

export function pictures(classifier: Classifier): HTMLElement {
  const source = signal<Source>("draw");
  const preview = el("canvas", { class: "preview", width: SIDE, height: SIDE, role: "img", "aria-label": "What the model sees, 32 by 32 pixels" });
  const ask = (from: CanvasImageSource, width: number, height: number): boolean => {
    const picture = small(preview, from, width, height);
    return picture !== null && classifier.ask(picture);
  };
  return el(
    "section",
    { class: "card", "aria-labelledby": "picture" },
    el("h2", { id: "picture" }, "Picture"),
    el(
      "div",
      { class: "segments", role: "radiogroup", "aria-label": "Where the picture comes from" },
      (Object.keys(SOURCES) as Source[]).map((one) =>
        el(
          "label",
          null,
          el("input", { type: "radio", name: "source", value: one, checked: () => source() === one, onchange: () => source.set(one) }),
          el("span", null, SOURCES[one]),
        ),
      ),
    ),
    show(source, (source) => {
      if (source === "draw") return pad(ask);
      return source === "file" ? files(ask) : camera(ask);
    }),
    el("div", { class: "line seen" }, preview, el("small", null, "What the model sees")),
  );
}

type Ask = (from: CanvasImageSource, width: number, height: number) => boolean;

/** The middle of a picture as the model takes it: three planes of numbers from 0 to 1. */
function small(to: HTMLCanvasElement, from: CanvasImageSource, width: number, height: number): Float32Array | null {
  const context = to.getContext("2d", { willReadFrequently: true });
  const side = Math.min(width, height);
  if (!context || side === 0) return null;
  context.imageSmoothingQuality = "high";
  context.drawImage(from, (width - side) / 2, (height - side) / 2, side, side, 0, 0, SIDE, SIDE);
  const { data } = context.getImageData(0, 0, SIDE, SIDE);
  const picture = new Float32Array(3 * SIDE * SIDE);
  for (let at = 0; at < SIDE * SIDE; at += 1) {
    for (let plane = 0; plane < 3; plane += 1) picture[plane * SIDE * SIDE + at] = (data[4 * at + plane] ?? 0) / 255;
  }
  return picture;
}

function files(ask: Ask): HTMLElement {
  const problem = signal("");
  const image = el("img", { class: "shown", alt: "" });
  let url = "";
  const take = (file: File | undefined) => {
    if (!file) return;
    URL.revokeObjectURL(url);
    url = URL.createObjectURL(file);
    problem.set("");
    image.onload = () => void ask(image, image.naturalWidth, image.naturalHeight);
    image.onerror = () => problem.set(`${file.name} is no picture that this browser can read.`);
    image.alt = file.name;
    image.src = url;
  };
  onCleanup(() => URL.revokeObjectURL(url));
  return el(
    "div",
    {
      class: "drop",
      ondragover: (event: DragEvent) => event.preventDefault(),
      ondrop: (event: DragEvent) => {
        event.preventDefault();
        take(event.dataTransfer?.files[0]);
      },
    },
    image,
    el("label", { for: "file" }, "Drop a picture here, or choose one"),
    el("input", { id: "file", type: "file", accept: "image/*", onchange: (event: Event) => take((event.target as HTMLInputElement).files?.[0]) }),
    el("p", { class: "problem", role: "alert" }, problem),
  );
}

function camera(ask: Ask): HTMLElement {
  const problem = signal("");
  const video = el("video", { class: "shown", playsinline: true, muted: true, "aria-label": "The camera's picture" });
  const stream = signal<MediaStream | null>(null);
  let isOver = false;
  const open = async () => {
    try {
      const opened = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment", width: 320, height: 320 } });
      if (isOver) return opened.getTracks().forEach((track) => track.stop());
      stream.set(opened);
    } catch (error) {
      problem.set(`The camera cannot be used: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  effect(() => {
    video.srcObject = stream();
    if (stream()) void video.play().catch(() => undefined);
  });
  onCleanup(() => {
    isOver = true;
    stream()?.getTracks().forEach((track) => track.stop());
  });
  every(FRAME_MS, () => stream() && ask(video, video.videoWidth, video.videoHeight));
  void open();
  return el("div", { class: "drop" }, video, el("p", { class: "problem", role: "alert" }, problem));
}
