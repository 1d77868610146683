/** `/assets/editor.js`: CodeMirror with the colours of WGSL, loaded by the playground only. */

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  StreamLanguage,
  syntaxHighlighting,
} from "@codemirror/language";
import { EditorState, RangeSet, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  EditorView,
  GutterMarker,
  gutterLineClass,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";

import { wgsl } from "./wgsl";

export interface EditorOptions {
  label: string;
  /** How to use it, for who cannot see it. */
  help: string;
  text: string;
  onchange: (text: string) => void;
  /** Ctrl or Cmd with Enter. */
  onrun: () => void;
}

export interface Editor {
  setText(text: string): void;
  /** Counted from 1; `null` takes the mark away. */
  setBadLine(line: number | null): void;
  focus(): void;
  close(): void;
}

const HELP = "help";

/** In a shadow tree, because there CodeMirror's styles need no `<style>`, which the page's policy forbids. */
export function openEditor(host: HTMLElement, options: EditorOptions): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const help = document.createElement("p");
  help.id = HELP;
  help.hidden = true;
  help.textContent = options.help;
  root.replaceChildren(help);
  const view = new EditorView({ parent: root, root, state: stateOf(options) });
  return {
    setText(text) {
      const old = view.state.doc;
      if (text === old.toString()) return;
      view.dispatch({ changes: { from: 0, to: old.length, insert: text }, selection: { anchor: 0 } });
    },
    setBadLine(line) {
      const effects: StateEffect<unknown>[] = [mark.of(line)];
      const at = placeOf(view.state, line);
      if (at !== null) effects.push(EditorView.scrollIntoView(at, { y: "center" }));
      view.dispatch({ effects });
    },
    focus: () => view.focus(),
    close: () => view.destroy(),
  };
}

function stateOf({ label, text, onchange, onrun }: EditorOptions): EditorState {
  const run = () => {
    onrun();
    return true;
  };
  return EditorState.create({
    doc: text,
    extensions: [
      lineNumbers(),
      history(),
      indentOnInput(),
      bracketMatching(),
      indentUnit.of("    "),
      StreamLanguage.define(wgsl),
      syntaxHighlighting(COLOURS),
      LOOK,
      badLine,
      keymap.of([
        { key: "Mod-Enter", run },
        { key: "Ctrl-Enter", run },
        { key: "Escape", run: letTabLeave },
        indentWithTab,
        ...defaultKeymap,
        ...historyKeymap,
      ]),
      EditorView.domEventHandlers({ blur: (_, view) => view.setTabFocusMode(false) }),
      EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": HELP }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) onchange(update.state.doc.toString());
      }),
    ],
  });
}

/** So that the keyboard is never trapped here. It holds until another key or until the editor is left. */
function letTabLeave(view: EditorView): boolean {
  view.setTabFocusMode(Infinity);
  return true;
}

const mark = StateEffect.define<number | null>();
const LINE = Decoration.line({ class: "bad-line" });
const NUMBER = new (class extends GutterMarker {
  override elementClass = "bad-line";
})();

/** Where the marked line begins, as the one place both the text and the numbers are marked from. */
const badLine = StateField.define<number | null>({
  create: () => null,
  update(old, { effects, state, changes }) {
    for (const effect of effects) if (effect.is(mark)) return placeOf(state, effect.value);
    return old === null ? null : changes.mapPos(old);
  },
  provide: (field) => [
    EditorView.decorations.from(field, (at) =>
      at === null ? Decoration.none : Decoration.set(LINE.range(at)),
    ),
    gutterLineClass.from(field, (at) =>
      at === null ? RangeSet.empty : RangeSet.of(NUMBER.range(at)),
    ),
    EditorView.contentAttributes.from(field, (at) => ({ "aria-invalid": String(at !== null) })),
  ],
});

function placeOf({ doc }: EditorState, line: number | null): number | null {
  return line !== null && line >= 1 && line <= doc.lines ? doc.line(line).from : null;
}

/** The page's colours, which change with the theme by themselves. */
const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent-strong)", fontWeight: "600" },
  { tag: tags.modifier, color: "var(--accent-strong)" },
  { tag: tags.typeName, color: "var(--good)" },
  { tag: tags.number, color: "var(--warn)" },
  { tag: [tags.meta, tags.macroName], color: "var(--violet)" },
  { tag: tags.comment, color: "var(--quiet)" },
]);

const LOOK = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", fontSize: "0.8125rem" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.25rem" },
  ".cm-content": { padding: "0.625rem 0", caretColor: "var(--ink)" },
  ".cm-line": { padding: "0 0.75rem" },
  ".cm-gutters": {
    color: "var(--quiet)",
    backgroundColor: "var(--paper)",
    borderRight: "1px solid var(--line)",
  },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "2.5rem", padding: "0 0.5rem" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--tint)", outline: "1px solid var(--line)" },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "var(--bad-tint)" },
  ".cm-line.bad-line": { backgroundColor: "var(--bad-tint)" },
  ".cm-gutterElement.bad-line": { color: "var(--bad)", fontWeight: "700" },
});
