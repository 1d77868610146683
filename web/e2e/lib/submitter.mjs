// Somebody who stands for the code they submit, with a key of their own.

import { generateKeyPairSync, sign } from "node:crypto";

import { blake3 } from "../../tests/lib/blake3.mjs";

const CODE = Buffer.from("shoal code 1\0");

/** `{key, sign(code)}`: the public key in hex, and the `signature` of a request. */
export function submitter() {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const key = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
  return {
    key,
    sign: (code) => {
      const statement = Buffer.concat([CODE, Buffer.from(blake3(Buffer.from(code)), "hex")]);
      return { key, signature: sign(null, statement, privateKey).toString("hex") };
    },
  };
}
