// A coordinator that is far away: a TCP relay before it that gives every byte on only after some time, in both directions.

import { connect, createServer } from "node:net";

/** `millis` each way. Bandwidth is not narrowed, and what is under way is not bounded. */
export async function late(url, millis) {
  const server = createServer((near) => {
    const far = connect(Number(new URL(url).port), "127.0.0.1");
    for (const [from, to] of [[near, far], [far, near]]) {
      from.setNoDelay(true);
      from.on("data", (bytes) => setTimeout(() => to.write(bytes), millis));
      from.on("close", () => setTimeout(() => to.destroy(), millis));
      from.on("error", () => from.destroy());
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}
