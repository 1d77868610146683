/** Who stands for code: whoever submits it signs its hash, and every node checks that before it runs. */

import { blake3 } from "@noble/hashes/blake3.js";

import { CODE_DOMAIN } from "./constants.js";
import { hex, keyPair, type KeyPair } from "./keyring.js";
import type { CodeSignature, JobRequest, MapRequest } from "./types.js";

let own: Promise<KeyPair> | undefined;

/** This browser's key for submitting, the same in all tabs of a site. Elsewhere it lasts as long as the process. */
export function submitterKey(): Promise<KeyPair> {
  own ??= keyPair("submitter");
  return own;
}

/** The hash of the request's code, if it has any. */
export function codeHash(request: JobRequest): Uint8Array<ArrayBuffer> | undefined {
  switch (request.kind) {
    case "noop":
      return undefined;
    case "map":
      return blake3(new TextEncoder().encode(mapCode(request)));
    case "render":
      return blake3(new TextEncoder().encode(request.wgsl));
    case "sim":
      return blake3(new TextEncoder().encode(request.source));
    case "exec":
      return bytesOf(request.module);
  }
}

/** A reduction's own code is signed with the kernel. */
function mapCode({ wgsl, reduce }: MapRequest): string {
  return typeof reduce === "object" ? `${wgsl}\n${reduce.wgsl}` : wgsl;
}

export async function signCode(
  { publicKey, privateKey }: KeyPair,
  hash: Uint8Array,
): Promise<CodeSignature> {
  const domain = new TextEncoder().encode(CODE_DOMAIN);
  const statement = new Uint8Array(domain.length + hash.length);
  statement.set(domain);
  statement.set(hash, domain.length);
  const signature = await crypto.subtle.sign("Ed25519", privateKey, statement);
  return { key: hex(publicKey), signature: hex(new Uint8Array(signature)) };
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}
