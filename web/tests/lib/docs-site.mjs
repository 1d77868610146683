/** The pages of docs/gpu-p2p.md, exactly as printed, on a site of their own. */

import { readFileSync } from "node:fs";
import { createServer } from "node:http";

export const DOCS = readFileSync(new URL("../../../docs/gpu-p2p.md", import.meta.url), "utf8");

export const blocks = (language) =>
  [...DOCS.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, "gm"))].map((match) => match[1]);

/** Only the pool's address and token are others: a test has its own pool. */
export async function startDocsSite(front) {
  const [one, two] = blocks("html").map((page) =>
    page.replaceAll("http://127.0.0.1:7420", front.url).replaceAll("#TOKEN", `#${front.token}`),
  );
  const files = { "/one.html": one, "/two.html": two, "/blank.html": "<!doctype html><title>blank</title>" };
  const server = createServer(({ url }, response) => {
    const file = files[new URL(url, "http://site").pathname];
    response.writeHead(file ? 200 : 404, { "content-type": "text/html" }).end(file ?? "");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
