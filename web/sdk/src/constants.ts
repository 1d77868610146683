/** What Rust and TypeScript must agree on.
 *
 * Made by `cargo xtask types` of the constants in Rust: change them there. */

/** What people are told of each kind that this build knows, by its name. */
export const KINDS = {
  "exec": {
    "donor": "a program in a sandbox",
    "item": "run",
    "items": "runs"
  },
  "llm": {
    "donor": "a language model",
    "item": "item",
    "items": "items"
  },
  "map": {
    "donor": "a GPU kernel over numbers",
    "item": "item",
    "items": "items"
  },
  "noop": {
    "donor": "empty units, to measure the pool",
    "item": "item",
    "items": "items"
  },
  "onnx": {
    "donor": "a model such as an image classifier",
    "item": "item",
    "items": "items"
  },
  "render": {
    "donor": "parts of a picture, on the GPU",
    "item": "tile",
    "items": "tiles"
  },
  "sim": {
    "donor": "a part of a simulation, together with others",
    "item": "row",
    "items": "rows"
  }
};

/** Largest control message on a socket. Bulk data goes by HTTP, so a larger frame is a fault or an attack. */
export const MAX_FRAME_BYTES = 4194304;

/** Results up to this size ride inside `Done`; larger ones are stored by HTTP first, so that a socket never stalls
 * heartbeats behind megabytes. */
export const MAX_INLINE_BYTES = 16384;

/** What is kept of a program's stderr, from its end, where the reason stands. */
export const MAX_STDERR_BYTES = 2048;

/** Pixels a side in the live picture of a simulation: what a page shows, at a tenth of the field's bytes. */
export const MAX_VIEW_SIDE = 512;

/** Bytes a node may send to another before it hears that they were taken: 80 MB/s at a round trip of 50 ms, and
 * little enough that a phone can have a dozen peers. */
export const LINK_WINDOW = 4194304;

/** What nodes exchange of a blob at a time: small enough to be spread and sent again, large enough that a word about
 * each costs nothing beside it. */
export const PIECE_BYTES = 1048576;

/** Blobs of so many pieces are shared by nodes; smaller ones come sooner than two nodes meet. */
export const SHARED_FROM = 8388608;

/** The layout of the header. Raised when an older peer could misread it. No message of the coordinator's begins with
 * a byte of 128 or more, so frames and messages share a socket. */
export const FRAME_VERSION = 241;

/** A frame's header, which says how long the rest is. */
export const HEADER_BYTES = 48;

/** Where in the header the length of the rest is: 32 bits, little-endian. */
export const LENGTH_AT = 4;

/** Where in the header the crew is: 64 bits, little-endian. */
export const CREW_AT = 24;

/** Bytes on a socket that begin with this or more are a frame, and no message to or from the coordinator. */
export const FIRST_OF_FRAMES = 128;

/** The channel on which two nodes ask for pieces and give them. A token for sharing allows reading it, no more. */
export const BLOBS = 16;

/** What a signature of code begins with, so that none can be taken for one of another kind. */
export const CODE_DOMAIN = "shoal code 1\u0000";

/** The coordinator's answer to a good greeting. To any other it closes the connection. */
export const QUIC_ACCEPTED = 1;

/** Of the words; both ends must have the same. */
export const PEER_VERSION = 1;

/** Everything but buffers' bytes. */
export const PEER_CONTROL = 1;

/** Channels for bytes: what is below the one that crews use themselves. Buffers take turns on them. */
export const PEER_FIRST_DATA = 2;

/** How many they are. */
export const PEER_DATA_CHANNELS = 13;

/** Longest words: a shader and its buffers. */
export const PEER_WORDS_BYTES = 524288;

/** What one message carries of a buffer: enough to make its own cost small, little enough that it travels while the
 * next is read. */
export const PEER_PART_BYTES = 1048576;

/** Bytes on the way that the other end has not taken: a link's own window twice, so that the link is never idle. */
export const PEER_WINDOW_BYTES = 8388608;
