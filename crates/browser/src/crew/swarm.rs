//! The exchange of blobs for JavaScript: each call is one input and answers with all outputs in order.

use js_sys::Uint8Array;
use shoal_node::{SwarmInput, SwarmOutput, Swarms};
use shoal_protocol::swarm::{is_shared, pieces_of};
use shoal_protocol::{BlobRef, Hash, PieceSet};
use wasm_bindgen::prelude::*;

use super::{at, node, words};
use crate::object::Fields;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
export interface SharedBlob { hash: string; size: number }
/** One thing for the Worker to do, in order: what was stored can be loaded. */
export type SwarmOutput =
  /** For the brain's `swarmSays`. */
  | { type: "say"; bytes: Uint8Array }
  /** For that node, on the channel of blobs. */
  | { type: "tell"; to: number; bytes: Uint8Array }
  /** Get this piece from the coordinator; answer with `fetched` or `notFetched`. */
  | { type: "fetch"; blob: SharedBlob; piece: number }
  | { type: "store"; blob: SharedBlob; piece: number; bytes: Uint8Array<ArrayBuffer> }
  /** Read this piece for that node; answer with `loaded`. */
  | { type: "load"; blob: SharedBlob; piece: number; to: number }
  /** All pieces are stored: the whole is still to be checked. */
  | { type: "whole"; blob: SharedBlob }
  /** All pieces that were needed are stored, and others are not. */
  | { type: "part"; blob: SharedBlob }
  | { type: "failed"; blob: SharedBlob; why: string };
"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "SwarmOutput[]")]
    pub type SwarmOutputs;
}

/// Times are milliseconds as `performance.now()` gives them; blobs are told by hash and size.
#[wasm_bindgen]
#[derive(Default)]
pub struct Swarm {
    swarms: Swarms,
}

#[wasm_bindgen]
impl Swarm {
    #[wasm_bindgen(constructor)]
    pub fn new() -> Swarm {
        Swarm::default()
    }

    /// Whether a blob of this size is exchanged.
    #[wasm_bindgen(js_name = isShared)]
    pub fn is_shared(size: f64) -> bool {
        is_shared(&BlobRef { hash: Hash([0; 32]), size: size as u64 })
    }

    pub fn joined(&mut self, now: f64) -> SwarmOutputs {
        self.handle(now, SwarmInput::Joined)
    }

    pub fn away(&mut self, now: f64) -> SwarmOutputs {
        self.handle(now, SwarmInput::Away)
    }

    /// These pieces of the blob are needed, beside those that were before: 32 bytes of hash for each piece of all,
    /// and the pieces that are here and were checked.
    pub fn want(
        &mut self,
        now: f64,
        hash: &str,
        size: f64,
        hashes: &[u8],
        needs: &[u32],
        has: &[u32],
    ) -> Result<SwarmOutputs, JsError> {
        let blob = blob(hash, size)?;
        let hashes = hashes.as_chunks::<32>().0.iter().map(|hash| Hash(*hash)).collect();
        let (needs, has) = (set(&blob, needs), set(&blob, has));
        Ok(self.handle(now, SwarmInput::Want { blob, hashes, needs, has }))
    }

    /// These pieces of the blob are here, and none is needed now.
    #[wasm_bindgen(js_name = havePart)]
    pub fn have_part(
        &mut self,
        now: f64,
        hash: &str,
        size: f64,
        has: &[u32],
    ) -> Result<SwarmOutputs, JsError> {
        let blob = blob(hash, size)?;
        let has = set(&blob, has);
        Ok(self.handle(now, SwarmInput::HavePart { blob, has }))
    }

    /// The pieces of a blob that other nodes were asked for.
    pub fn awaited(&self, hash: &str) -> Result<Vec<u32>, JsError> {
        Ok(self.swarms.awaited(words::hash(hash)?))
    }

    /// All of the blob is here.
    pub fn have(&mut self, now: f64, hash: &str, size: f64) -> Result<SwarmOutputs, JsError> {
        let blobs = vec![blob(hash, size)?];
        Ok(self.handle(now, SwarmInput::Have(blobs)))
    }

    /// It is not needed any more, or not here.
    pub fn forget(&mut self, now: f64, hash: &str) -> Result<SwarmOutputs, JsError> {
        Ok(self.handle(now, SwarmInput::Drop(words::hash(hash)?)))
    }

    /// What the brain's `swarm` gives.
    pub fn told(&mut self, now: f64, bytes: &[u8]) -> Result<SwarmOutputs, JsError> {
        let told = words::read(bytes, "a word about blobs")?;
        Ok(self.handle(now, SwarmInput::Told(told)))
    }

    /// There is a direct way to that node, or only the relay.
    pub fn near(&mut self, now: f64, peer: f64, near: bool) -> SwarmOutputs {
        self.handle(now, SwarmInput::Near(node(peer), near))
    }

    pub fn gone(&mut self, now: f64, peer: f64) -> SwarmOutputs {
        self.handle(now, SwarmInput::Gone(node(peer)))
    }

    pub fn heard(&mut self, now: f64, from: f64, said: &[u8]) -> SwarmOutputs {
        self.handle(now, SwarmInput::Heard { from: node(from), words: said })
    }

    pub fn fetched(
        &mut self,
        now: f64,
        hash: &str,
        piece: u32,
        bytes: Vec<u8>,
    ) -> Result<SwarmOutputs, JsError> {
        let (blob, result) = (words::hash(hash)?, Ok(bytes));
        Ok(self.handle(now, SwarmInput::Fetched { blob, piece, result }))
    }

    #[wasm_bindgen(js_name = notFetched)]
    pub fn not_fetched(
        &mut self,
        now: f64,
        hash: &str,
        piece: u32,
        why: String,
    ) -> Result<SwarmOutputs, JsError> {
        let (blob, result) = (words::hash(hash)?, Err(why));
        Ok(self.handle(now, SwarmInput::Fetched { blob, piece, result }))
    }

    /// Without bytes it is not there after all.
    pub fn loaded(
        &mut self,
        now: f64,
        hash: &str,
        piece: u32,
        to: f64,
        bytes: Option<Vec<u8>>,
    ) -> Result<SwarmOutputs, JsError> {
        let (blob, bytes) = (words::hash(hash)?, bytes.as_deref());
        Ok(self.handle(now, SwarmInput::Loaded { blob, piece, to: node(to), bytes }))
    }

    pub fn tick(&mut self, now: f64) -> SwarmOutputs {
        self.handle(now, SwarmInput::Tick)
    }

    /// When `tick` is due, if at all.
    #[wasm_bindgen(js_name = nextTimeout)]
    pub fn next_timeout(&self) -> Option<f64> {
        self.swarms.next_timeout().map(|time| time.0 as f64 / 1_000.0)
    }

    /// Bytes given to other nodes.
    #[wasm_bindgen(getter)]
    pub fn given(&self) -> f64 {
        self.swarms.exchanged().given as f64
    }

    /// Bytes taken from other nodes.
    #[wasm_bindgen(getter)]
    pub fn taken(&self) -> f64 {
        self.swarms.exchanged().taken as f64
    }
}

impl Swarm {
    fn handle(&mut self, now: f64, input: SwarmInput<'_>) -> SwarmOutputs {
        self.swarms.handle(at(now), input);
        let outputs = js_sys::Array::new();
        while let Some(output) = self.swarms.poll_output() {
            outputs.push(&plain(&output));
        }
        JsValue::from(outputs).unchecked_into()
    }
}

fn plain(output: &SwarmOutput) -> JsValue {
    let bytes = |bytes: &[u8]| Uint8Array::from(bytes);
    match output {
        SwarmOutput::Say(say) => {
            // Writing to memory cannot fail.
            let said = postcard::to_allocvec(say).unwrap_or_default();
            Fields::of("say").with("bytes", bytes(&said))
        }
        SwarmOutput::Tell { to, words } => {
            Fields::of("tell").with("to", to.0 as f64).with("bytes", bytes(words))
        }
        SwarmOutput::Fetch { blob, piece } => about("fetch", blob).with("piece", *piece),
        SwarmOutput::Store { blob, piece, bytes: stored } => {
            about("store", blob).with("piece", *piece).with("bytes", bytes(stored))
        }
        SwarmOutput::Load { blob, piece, to } => {
            about("load", blob).with("piece", *piece).with("to", to.0 as f64)
        }
        SwarmOutput::Whole(blob) => about("whole", blob),
        SwarmOutput::Part(blob) => about("part", blob),
        SwarmOutput::Failed { blob, why } => about("failed", blob).with("why", why.as_str()),
    }
    .done()
}

fn about(what: &str, blob: &BlobRef) -> Fields {
    let named = Fields::new().with("hash", blob.hash.to_string()).with("size", blob.size as f64);
    Fields::of(what).with("blob", named.done())
}

fn set(blob: &BlobRef, pieces: &[u32]) -> PieceSet {
    let mut set = PieceSet::new(pieces_of(blob));
    for piece in pieces {
        set.insert(*piece);
    }
    set
}

fn blob(hash: &str, size: f64) -> Result<BlobRef, JsError> {
    Ok(BlobRef { hash: words::hash(hash)?, size: size as u64 })
}
