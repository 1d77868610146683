/** The colours of WGSL, token by token. It understands words, not programs: the coordinator's checks do that. */

import type { StreamParser, StringStream } from "@codemirror/language";

interface State {
  /** Block comments that are open; they nest. */
  comments: number;
  /** Brackets that are open. */
  brackets: number;
  /** Between `var<` and `>`, where words name address spaces. */
  isSpace: boolean;
}

// prettier-ignore
const KEYWORDS = new Set([
  "alias", "break", "case", "const", "const_assert", "continue", "continuing", "default", "diagnostic",
  "discard", "else", "enable", "fn", "for", "if", "let", "loop", "override", "requires", "return", "struct",
  "switch", "var", "while",
]);
const TYPE =
  /^(?:bool|[fiu]32|f16|vec[234][fiuh]?|mat[234]x[234][fh]?|array|atomic|ptr|sampler(?:_comparison)?|texture_\w+)$/;
const NUMBER = /^(?:0[xX][\da-fA-F]*\.?[\da-fA-F]*(?:[pP][+-]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[iufh]?/;
const WORD = /^[\p{ID_Start}_][\p{ID_Continue}]*/u;

export const wgsl: StreamParser<State> = {
  name: "wgsl",
  startState: () => ({ comments: 0, brackets: 0, isSpace: false }),
  token: (stream, state) => (state.comments > 0 ? comment(stream, state) : token(stream, state)),
  indent(state, after, { unit }) {
    const closing = /^\s*[)\]}]/.test(after) ? 1 : 0;
    return Math.max(0, state.brackets - closing) * unit;
  },
  languageData: { commentTokens: { line: "//", block: { open: "/*", close: "*/" } } },
};

function token(stream: StringStream, state: State): string | null {
  if (stream.eatSpace()) return null;
  if (stream.match("//")) {
    stream.skipToEnd();
    return "comment";
  }
  if (stream.match("/*")) {
    state.comments = 1;
    return comment(stream, state);
  }
  if (stream.match(/^@\s*\w+/)) return "meta";
  if (/[\d.]/.test(stream.peek() ?? "") && stream.match(NUMBER)) return "number";
  if (stream.match(WORD)) return word(stream, state);
  const sign = stream.next() ?? "";
  if ("([{".includes(sign)) state.brackets += 1;
  if (")]}".includes(sign)) state.brackets = Math.max(0, state.brackets - 1);
  if (sign === ">") state.isSpace = false;
  return null;
}

function word(stream: StringStream, state: State): string | null {
  const text = stream.current();
  if (text === "var" && stream.match(/^\s*</, false)) state.isSpace = true;
  if (KEYWORDS.has(text)) return "keyword";
  if (state.isSpace) return "modifier";
  if (text === "true" || text === "false") return "number";
  if (TYPE.test(text)) return "typeName";
  return stream.match(/^\s*\(/, false) ? "macroName" : null;
}

function comment(stream: StringStream, state: State): string {
  while (state.comments > 0 && !stream.eol()) {
    if (stream.match("/*")) state.comments += 1;
    else if (stream.match("*/")) state.comments -= 1;
    else stream.next();
  }
  return "comment";
}
