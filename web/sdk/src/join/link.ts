/** Join links, as the coordinator prints them. */

/** What a join link says: the coordinator's address, and the token behind the `#`. */
export function partsOf(link: string): { url: string; token: string } {
  const parsed = URL.canParse(link) ? new URL(link) : undefined;
  const path = parsed && /^(.*)\/join\/?$/.exec(parsed.pathname);
  const token = parsed?.hash.slice(1);
  if (!parsed || !path || !token) {
    throw new TypeError(`${JSON.stringify(link)} is no join link: expected https://ADDRESS/join#TOKEN`);
  }
  return { url: parsed.origin + (path[1] ?? ""), token };
}
