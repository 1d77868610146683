/**
 * Elements from data. Attributes and children may be functions: these are kept up to date for as long as
 * the surrounding scope lives. The DOM shows state and never holds it.
 */

import { effect, memo, onCleanup, root, signal, untracked } from "./reactive";
import type { Signal } from "./reactive";

export type Child = Node | string | number | null | undefined | false | Child[] | (() => Child);
type Value = string | number | boolean | null | undefined;
type Handler = (event: never) => void;
export type Attrs = {
  [name: string]: Value | (() => Value) | Handler | Vars | undefined;
  /** CSS custom properties, set through CSSOM because the page's policy forbids style attributes. */
  vars?: Vars;
};
type Vars = Record<string, string | (() => string)>;

const SVG = "http://www.w3.org/2000/svg";

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attrs?: Attrs | null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attrs, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attrs?: Attrs | null,
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag), attrs, children);
}

/** One element per item, kept (and moved) while its key stays in the list. */
export function each<T>(
  items: () => readonly T[],
  key: (item: T) => string | number,
  render: (item: () => T) => Element,
): Child {
  type Row = { node: Element; item: Signal<T>; drop: () => void };
  const rows = new Map<string | number, Row>();
  const end = document.createTextNode("");
  const fragment = document.createDocumentFragment();
  fragment.append(end);
  effect(() => {
    const seen = new Set<string | number>();
    let place: Node = end;
    for (const item of [...items()].reverse()) {
      const id = key(item);
      seen.add(id);
      let row = rows.get(id);
      if (row) {
        row.item.set(item);
      } else {
        const live = signal(item);
        const [node, drop] = root(() => render(live));
        row = { node, item: live, drop };
        rows.set(id, row);
      }
      if (row.node.nextSibling !== place) end.parentNode?.insertBefore(row.node, place);
      place = row.node;
    }
    for (const [id, row] of rows) {
      if (seen.has(id)) continue;
      row.drop();
      row.node.remove();
      rows.delete(id);
    }
  });
  onCleanup(() => rows.forEach((row) => row.drop()));
  return fragment;
}

/**
 * What `build` makes of a value, made anew only when the value differs. Unlike a plain function
 * child, `build` may read signals without being rerun by them: use it for whole components.
 */
export function show<T>(
  value: () => T,
  build: (value: Exclude<T, Nothing>) => Child,
  otherwise?: () => Child,
): Child {
  const current = memo(value);
  return () => {
    const now = current();
    return untracked(() => (isNothing(now) ? otherwise?.() : build(now as Exclude<T, Nothing>)));
  };
}

type Nothing = null | undefined | false;

function isNothing(value: unknown): value is Nothing {
  return value === null || value === undefined || value === false;
}

/** Replaces what `place` shows by what `body` makes; returns how to take it away. */
export function mount(place: Element, body: () => Child): () => void {
  const [, drop] = root(() => {
    place.replaceChildren();
    append(place, body());
  });
  return drop;
}

function fill<E extends Element>(
  element: E,
  attrs: Attrs | null | undefined,
  children: Child[],
): E {
  for (const [name, value] of Object.entries(attrs ?? {})) {
    if (name === "vars") setVars(element, value as Vars);
    else if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), value as unknown as EventListener);
    } else if (typeof value === "function") {
      effect(() => setAttr(element, name, (value as () => Value)()));
    } else setAttr(element, name, value as Value);
  }
  append(element, children);
  return element;
}

function setVars(element: Element, vars: Vars): void {
  const style = (element as HTMLElement | SVGElement).style;
  for (const [name, value] of Object.entries(vars)) {
    if (typeof value === "string") style.setProperty(name, value);
    else effect(() => style.setProperty(name, value()));
  }
}

function setAttr(element: Element, name: string, value: Value): void {
  if (name === "value" || name === "checked") {
    const input = element as unknown as Record<string, Value>;
    if (input[name] !== value) input[name] = value;
  } else if (value === null || value === undefined || value === false) {
    element.removeAttribute(name);
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

function append(parent: Node, child: Child): void {
  if (isNothing(child)) return;
  if (Array.isArray(child)) child.forEach((one) => append(parent, one));
  else if (typeof child === "function") appendLive(parent, child);
  else parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
}

function appendLive(parent: Node, child: () => Child): void {
  const [start, end] = [document.createTextNode(""), document.createTextNode("")];
  parent.appendChild(start);
  parent.appendChild(end);
  let text: Text | null = null;
  effect(() => {
    const next = child();
    if (typeof next === "string" || typeof next === "number") {
      // Text that stays the same is left alone: a screen reader would say it again.
      if (text && text.data === String(next)) return;
      if (text) {
        text.data = String(next);
        return;
      }
    }
    while (start.nextSibling && start.nextSibling !== end) start.nextSibling.remove();
    text = null;
    if (typeof next === "string" || typeof next === "number") {
      text = document.createTextNode(String(next));
      end.parentNode?.insertBefore(text, end);
      return;
    }
    // What is built reads signals through effects of its own.
    untracked(() => {
      const fragment = document.createDocumentFragment();
      append(fragment, next);
      end.parentNode?.insertBefore(fragment, end);
    });
  });
}
