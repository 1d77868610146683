/** A plain text editor for kernels: line numbers, Tab, kept indentation, a marked line. */

import { el } from "../view/dom";
import { effect } from "../view/reactive";

interface EditorOptions {
  id: string;
  label: string;
  text: () => string;
  onchange: (text: string) => void;
  /** Counted from 1. */
  badLine: () => number | null;
  /** Ctrl or Cmd with Enter. */
  onrun: () => void;
}

const INDENT = "    ";

export function editor(options: EditorOptions): HTMLElement {
  const numbers = el("div", { class: "numbers", "aria-hidden": "true" });
  const mark = el("div", {
    class: "mark",
    hidden: () => options.badLine() === null,
    vars: { "--line": () => String((options.badLine() ?? 1) - 1) },
  });
  let leaving = false;
  const area = el("textarea", {
    id: options.id,
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    wrap: "off",
    "aria-label": options.label,
    "aria-describedby": `${options.id}-help`,
    value: options.text,
    oninput: () => options.onchange(area.value),
    onscroll: () => box.style.setProperty("--scroll", `${-area.scrollTop}px`),
    onkeydown: (event: KeyboardEvent) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        options.onrun();
      } else if (event.key === "Tab" && !leaving && !event.shiftKey) {
        event.preventDefault();
        insert(area, INDENT);
      } else if (event.key === "Enter") {
        event.preventDefault();
        insert(area, `\n${indentation(area)}`);
      }
      // Escape lets the next Tab leave, so that the keyboard is never trapped here.
      leaving = event.key === "Escape";
    },
  });
  const box = el(
    "div",
    { class: "editor" },
    el("div", { class: "gutter" }, numbers),
    el("div", { class: "sheet" }, mark, area),
  );
  effect(() => {
    const lines = options.text().split("\n").length;
    const bad = options.badLine();
    numbers.replaceChildren(
      ...Array.from({ length: lines }, (_, i) =>
        el("span", { class: i + 1 === bad ? "bad" : null }, i + 1),
      ),
    );
  });
  return el(
    "div",
    null,
    box,
    el(
      "p",
      { id: `${options.id}-help`, class: "unseen" },
      "Tab indents. Press Escape, then Tab, to leave the editor. Control Enter runs.",
    ),
  );
}

/** Through the browser's own editing, so that undo works. */
function insert(area: HTMLTextAreaElement, text: string): void {
  if (document.execCommand("insertText", false, text)) return;
  area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
  area.dispatchEvent(new Event("input"));
}

function indentation(area: HTMLTextAreaElement): string {
  const before = area.value.slice(0, area.selectionStart);
  const line = before.slice(before.lastIndexOf("\n") + 1);
  return (/^\s*/.exec(line)?.[0] ?? "") + (/\{\s*$/.test(line) ? INDENT : "");
}
