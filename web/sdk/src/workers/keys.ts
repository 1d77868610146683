/** Ed25519 as browsers have it: proves who this node is, and checks who stands for code. */

import type { BrainOutput } from "../../generated/brain/brain.js";
import { hex } from "../keyring.js";

type Check = BrainOutput & { type: "check" };

export async function sign(key: CryptoKey, statement: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.sign("Ed25519", key, statement as Uint8Array<ArrayBuffer>));
}

/** What is wrong with a job's code, if anything. */
export async function problemWith({ statement, key, signature }: Check): Promise<string | undefined> {
  if (!statement || !key || !signature) return "nobody signed it";
  const own = (bytes: Uint8Array) => bytes as Uint8Array<ArrayBuffer>;
  try {
    const signer = await crypto.subtle.importKey("raw", own(key), "Ed25519", false, ["verify"]);
    const isTheirs = await crypto.subtle.verify("Ed25519", signer, own(signature), own(statement));
    return isTheirs ? undefined : `it is not what the key ${hex(key)} signed`;
  } catch (error) {
    return `the signature of ${hex(key)} cannot be checked: ${String(error)}`;
  }
}

