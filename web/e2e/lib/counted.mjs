// Between a browser and a coordinator: counts every byte on the wire, changes none.

import { connect, createServer } from "node:net";

/** `wire` counts what came `down` from the coordinator at this address and what went `up`; `through` gives a link by this way. */
export async function counted(url) {
  const wire = { down: 0, up: 0 };
  const proxy = createServer((client) => {
    const server = connect(Number(new URL(url).port), "127.0.0.1");
    client.on("data", (bytes) => (wire.up += bytes.length)).pipe(server);
    server.on("data", (bytes) => (wire.down += bytes.length)).pipe(client);
    for (const socket of [client, server]) socket.on("error", () => (client.destroy(), server.destroy()));
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const through = (link) => Object.assign(new URL(link), { port: proxy.address().port }).href;
  return { wire, through, close: () => proxy.close() };
}
