/** The brain Worker: loads the node's brain and passes on what the page says. */

import { Brain, initSync } from "../../generated/brain/brain.js";
import type { Start, ToBrain } from "./messages.js";
import { Node, tell } from "./node.js";
import { Shelf } from "./shelf.js";

async function open(start: Start): Promise<Node> {
  const code = await compile(start.places.brainWasm);
  initSync({ module: code });
  const seed = Math.floor(Math.random() * Number.MAX_SAFE_INTEGER);
  const { token, identity, offer, rules, state } = start;
  const brain = new Brain(token, identity.publicKey, offer, rules, seed, false, Shelf.isPossible());
  const node = new Node(brain, code, identity.privateKey, start);
  node.start(rules, state);
  return node;
}

async function compile(url: string): Promise<WebAssembly.Module> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  return WebAssembly.compile(await answer.arrayBuffer());
}

let node: Promise<Node> | undefined;

addEventListener("message", ({ data }: MessageEvent<ToBrain>) => {
  if (data.type === "start") {
    node = open(data);
    node.catch((error: unknown) => tell({ type: "stopped", reason: `the node could not start: ${String(error)}` }));
    return;
  }
  const tellNode = (node: Node) => {
    if (data.type === "offer") node.offer(data.offer);
    else if (data.type === "rules") node.rules(data.rules);
    else if (data.type === "state") node.state(data.state);
    else node.stop();
  };
  node?.then(tellNode).catch((error: unknown) => tell({ type: "stopped", reason: `the node failed: ${String(error)}` }));
});
