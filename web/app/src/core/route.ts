/** Which page is shown, by the address; links inside the app do not reload it. */

import { signal } from "../view/reactive";

export type Route =
  | { page: "dashboard" }
  | { page: "job"; id: number }
  | { page: "playground" }
  | { page: "chat" }
  | { page: "detect" }
  | { page: "classify" }
  | { page: "unknown"; path: string };

const current = signal(parse(location.pathname));

export const route = (): Route => current();

export function go(path: string): void {
  history.pushState(null, "", path);
  scrollTo(0, 0);
  current.set(parse(location.pathname));
}

/** Lets the browser's own links and buttons steer; called once. */
export function listen(): void {
  addEventListener("popstate", () => current.set(parse(location.pathname)));
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest("a");
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin)
      return;
    if (link.hash || parse(link.pathname).page === "unknown") return;
    event.preventDefault();
    if (link.pathname !== location.pathname) go(link.pathname);
  });
}

function parse(path: string): Route {
  const job = /^\/jobs\/(\d+)\/?$/.exec(path);
  if (job) return { page: "job", id: Number(job[1]) };
  if (path === "/" || path === "/index.html") return { page: "dashboard" };
  if (path === "/detect" || path === "/detect/") return { page: "detect" };
  if (path === "/playground" || path === "/playground/") return { page: "playground" };
  if (path === "/chat" || path === "/chat/") return { page: "chat" };
  if (path === "/classify" || path === "/classify/") return { page: "classify" };
  return { page: "unknown", path };
}
