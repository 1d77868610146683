/** The few drawings used, all strokes in the colour of the text beside them. */

import { svg } from "../view/dom";

type Drawing = readonly string[];

const DRAWINGS = {
  /** A browser tab. */
  browser: ["M3 5h18v14H3z", "M3 9h18", "M6 7h.01"],
  /** A terminal. */
  native: ["M3 4h18v16H3z", "M7 9l3 3-3 3", "M12 15h5"],
  gpu: [
    "M6 6h12v12H6z",
    "M10 10h4v4h-4z",
    "M9 2v4M15 2v4M9 18v4M15 18v4M2 9h4M2 15h4M18 9h4M18 15h4",
  ],
  plus: ["M12 5v14M5 12h14"],
  stop: ["M6 6h12v12H6z"],
  play: ["M7 4l13 8-13 8z"],
  save: ["M12 3v12M7 10l5 5 5-5", "M4 20h16"],
  copy: ["M9 9h11v11H9z", "M5 15H4V4h11v1"],
  shield: ["M12 3l8 3v6c0 4.5-3.2 7.8-8 9-4.8-1.2-8-4.500-8-9V6z", "M9 12l2 2 4-4"],
  bin: ["M4 7h16M10 11v6M14 11v6M6 7l1 13h10l1-13M9 7V4h6v3"],
  picture: ["M3 5h18v14H3z", "M3 16l5-5 4 4 3-3 6 5", "M15.500 9h.01"],
  camera: ["M3 7h4l2-3h6l2 3h4v12H3z", "M15.500 13a3.500 3.500 0 11-7 0 3.500 3.500 0 017 0z"],
  key: ["M15 9a4 4 0 11-8 0 4 4 0 018 0z", "M11 13v8M11 17h3M11 20h3"],
} satisfies Record<string, Drawing>;

export type IconName = keyof typeof DRAWINGS;

export function icon(name: IconName): SVGElement {
  return svg(
    "svg",
    { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" },
    DRAWINGS[name].map((d) => svg("path", { d })),
  );
}

/** Four fish, one way. */
export function logo(): SVGElement {
  const fish =
    "M0 0c2.200-2.600 6-2.600 8.600 0c-2.600 2.600-6.400 2.600-8.600 0zM.8 0l-2.600-2v4z";
  const places = ["11 6", "4 12", "14 13", "8 19"];
  return svg(
    "svg",
    { class: "logo", viewBox: "0 0 25 25", "aria-hidden": "true" },
    places.map((at) => svg("path", { d: fish, transform: `translate(${at})` })),
  );
}
