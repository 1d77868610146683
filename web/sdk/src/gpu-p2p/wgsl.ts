/** Which storage buffers a shader reads and writes, read from its text. */

/** By `group,binding`. A guess of the device's: what a shader truly does is what the device says. */
export type Access = Map<string, "uniform" | "read" | "write">;

const DECLARATION = /((?:@\w+\s*(?:\([^)]*\))?\s*)+)var\s*<\s*(storage|uniform)\s*(?:,\s*(\w+)\s*,?)?\s*>/g;

/** Those whose place is not written as plain numbers are missing; whoever asks takes them as written. */
export function accessOf(code: string): Access {
  const access: Access = new Map();
  for (const [, attributes = "", kind, mode] of withoutComments(code).matchAll(DECLARATION)) {
    const group = /@group\s*\(\s*(\d+)[iu]?\s*,?\s*\)/.exec(attributes)?.[1];
    const binding = /@binding\s*\(\s*(\d+)[iu]?\s*,?\s*\)/.exec(attributes)?.[1];
    if (group === undefined || binding === undefined) continue;
    const at = place(Number(group), Number(binding));
    // Entry points may each have their own there: one that writes counts for all.
    if (access.get(at) !== "write") access.set(at, kind === "uniform" ? kind : mode === "read_write" ? "write" : "read");
  }
  return access;
}

export function place(group: number, binding: number): string {
  return `${group},${binding}`;
}

/** Block comments nest. */
function withoutComments(code: string): string {
  let text = "";
  let depth = 0;
  for (let at = 0; at < code.length; at++) {
    const two = code.slice(at, at + 2);
    if (two === "/*") {
      depth += 1;
      at += 1;
    } else if (two === "*/" && depth > 0) {
      depth -= 1;
      at += 1;
      text += " ";
    } else if (depth === 0 && two === "//") {
      const end = code.indexOf("\n", at);
      at = end < 0 ? code.length : end;
      text += "\n";
    } else if (depth === 0) {
      text += code[at];
    }
  }
  return text;
}
