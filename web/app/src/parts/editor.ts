/** Where kernels are edited: CodeMirror as soon as it is loaded, a plain text field until then and without it. */

import type { Editor } from "../editor";
import { el } from "../view/dom";
import { effect, onCleanup, root } from "../view/reactive";

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

const HELP = "Tab indents. Press Escape, then Tab, to leave the editor. Control Enter runs.";

export function editor(options: EditorOptions): HTMLElement {
  const area = el("textarea", {
    id: options.id,
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    wrap: "off",
    "aria-label": options.label,
    value: options.text,
    oninput: () => options.onchange(area.value),
    onkeydown: (event: KeyboardEvent) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      options.onrun();
    },
  });
  const box = el("div", { class: "editor" }, area);
  let close = () => {};
  let isGone = false;
  onCleanup(() => {
    isGone = true;
    close();
  });
  const improve = async () => {
    const code = await load();
    if (!isGone) close = root(() => replace(area, code, options))[1];
  };
  improve().catch((error: unknown) => console.warn("the editor stays plain:", error));
  return box;
}

type Code = typeof import("../editor");

/** A file of its own, so that no other page has its weight. */
async function load(): Promise<Code> {
  return (await import(new URL("./editor.js", import.meta.url).href)) as Code;
}

function replace(
  area: HTMLTextAreaElement,
  code: Code,
  { label, text, badLine, onchange, onrun }: EditorOptions,
): void {
  const host = el("div", { class: "code" });
  const hadFocus = document.activeElement === area;
  area.replaceWith(host);
  const opened: Editor = code.openEditor(host, { label, help: HELP, text: text(), onchange, onrun });
  onCleanup(opened.close);
  effect(() => opened.setText(text()));
  effect(() => opened.setBadLine(badLine()));
  if (hadFocus) opened.focus();
}
