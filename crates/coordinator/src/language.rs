//! What the coordinator knows of language models: their words and templates, to write prompts and to read answers. What
//! is computed, nodes compute.

use std::io::Read;
use std::sync::Arc;

use shoal_gguf::{FIRST_BYTES, Model, ReadError};
use shoal_kinds::LlmWork;
use shoal_protocol::{BlobRef, Hash};
use shoal_text::Texts;
use tokio::sync::Mutex;

use crate::store::blobs::Blobs;

/// Models whose words are kept in memory: some tens of megabytes each.
const KEPT: usize = 4;

/// The words of models that were asked lately.
#[derive(Default)]
pub(crate) struct Languages {
    /// The most recently used last. Whoever reads a file holds the lock: others most likely wait for the same.
    kept: Mutex<Vec<(Hash, Arc<Texts>)>>,
}

impl Languages {
    /// The words of a model, from its file.
    pub(crate) async fn texts(&self, work: &LlmWork, blobs: &Blobs) -> Result<Arc<Texts>, String> {
        let mut kept = self.kept.lock().await;
        if let Some(at) = kept.iter().position(|(hash, _)| *hash == work.model.hash) {
            let found = kept.remove(at);
            kept.push(found.clone());
            return Ok(found.1);
        }
        let (blobs, blob) = (blobs.clone(), work.model);
        let reading = tokio::task::spawn_blocking(move || read(&blobs, blob));
        let texts = Arc::new(reading.await.map_err(|error| error.to_string())??);
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((work.model.hash, texts.clone()));
        Ok(texts)
    }
}

fn read(blobs: &Blobs, blob: BlobRef) -> Result<Texts, String> {
    let mut wanted = FIRST_BYTES.min(blob.size);
    loop {
        let opened = blobs.open_blob(blob.hash).map_err(|error| error.to_string())?;
        let (file, _) = opened.ok_or("its file is no longer stored")?;
        let mut head = Vec::new();
        file.take(wanted).read_to_end(&mut head).map_err(|error| error.to_string())?;
        match Model::read(head, blob.size) {
            Err(ReadError::Short { needed }) if wanted < blob.size => {
                wanted = needed.max(wanted * 2).min(blob.size);
            }
            Err(error) => return Err(error.to_string()),
            Ok(model) => return Texts::read(model.head()).map_err(|error| error.to_string()),
        }
    }
}
