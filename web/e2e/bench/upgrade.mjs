// Measures `bench upgrade`: how soon two tabs that joined hear each other, and how soon they do so directly.
//
//   node upgrade.mjs URL TOKEN
//
// Prints one JSON object, in milliseconds: a tab's joining, and from the moment when both have joined until the first relayed
// message was heard, until one says things directly, and until both do.

import { join, pages } from "./mesh-page.mjs";

const [url, token] = process.argv.slice(2);
const { pages: [one, two], close } = await pages(2);
try {
  const id = await one.evaluate(join, { url, token, isDirect: true });
  await two.evaluate(join, { url, token, isDirect: true });
  await two.evaluate(async (id) => {
    take(await mesh.meet(id));
    port.send(1, new Uint8Array(64));
    news.via = port.via;
  }, id);
  for (const page of [one, two]) await page.waitFor(() => news.heardAt && news.directAt);
  const [a, b] = [await one.evaluate(() => news), await two.evaluate(() => news)];
  if (b.via !== "relay") throw new Error(`the first message went by ${b.via}`);
  const both = Math.max(a.joinedAt, b.joinedAt);
  console.log(JSON.stringify({
    joined: b.joinedAt - b.calledAt,
    relayed: a.heardAt - both,
    first: Math.min(a.directAt, b.directAt) - both,
    direct: Math.max(a.directAt, b.directAt) - both,
  }));
} finally {
  await close();
}
