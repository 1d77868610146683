//! Bodies of `POST /api/v1/jobs`, from bytes to a planned job, with the real check of kernels and programs. Planning
//! is pure: only the blobs are made up here.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use shoal_engine::intake::EngineIntake;
use shoal_kinds::JobSpec;
use shoal_kinds::plan::{self, Store, StoreError, Tools};
use shoal_protocol::{BlobRef, Hash};

static BLOBS: LazyLock<Blobs> = LazyLock::new(Blobs::new);

fuzz_target!(|body: &[u8]| {
    let planned = plan::read(body).and_then(|request| {
        // What is understood can be shown again.
        assert!(serde_json::to_string(&request).is_ok());
        request.work.ask().code()?;
        plan::plan(&request, None, &Tools { intake: &EngineIntake, store: &*BLOBS })
    });
    match planned {
        Ok(planned) => check(&planned.spec),
        Err(error) => assert!(!error.to_string().is_empty() && !error.code().is_empty()),
    }
});

/// What the scheduler takes for granted.
fn check(spec: &JobSpec) {
    assert!(spec.items > 0 && spec.sizing.grain > 0 && spec.sizing.grain <= spec.sizing.most);
    assert!(!spec.name.is_empty() && !spec.owner.is_empty());
    assert!(spec.limits.memory > 0 && spec.limits.output > 0);
    assert!(shoal_kinds::Kind::read(&spec.work.work()).as_ref() == Some(&spec.work));
}

/// Blobs named by a number, with as many zeros before it as a hash has digits; the last also by its
/// hash, because programs are read whole and looked at.
struct Blobs {
    bytes: Vec<Vec<u8>>,
    program: Hash,
}

impl Blobs {
    /// Nothing, an array, lines of text, and a program.
    fn new() -> Blobs {
        let array: Vec<u8> = (0..1024_u32).flat_map(u32::to_le_bytes).collect();
        let program: &[u8] = &[
            b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x05\x03\x01\0\x01\x07\x13\x02",
            &b"\x06memory\x02\0\x06_start\0\0\x0a\x04\x01\x02\0\x0b"[..],
        ]
        .concat();
        let contents: [&[u8]; 4] = [b"", &array, b"one\ntwo\n\nfour without an end", program];
        let program = shoal_protocol::hash(program);
        Blobs { bytes: contents.map(<[u8]>::to_vec).into(), program }
    }

    fn at(&self, hash: Hash) -> Option<&Vec<u8>> {
        if hash == self.program {
            return self.bytes.last();
        }
        let (last, zeros) = hash.0.split_last()?;
        zeros.iter().all(|byte| *byte == 0).then(|| self.bytes.get(usize::from(*last)))?
    }
}

impl Store for Blobs {
    fn find(&self, hash: Hash) -> Result<Option<BlobRef>, StoreError> {
        Ok(self.at(hash).map(|bytes| BlobRef { hash, size: bytes.len() as u64 }))
    }

    fn read(&self, hash: Hash, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<bool, StoreError> {
        let Some(bytes) = self.at(hash) else { return Ok(false) };
        // Pieces as small as these show what depends on where they end.
        bytes.chunks(7).all(take);
        Ok(true)
    }

    /// Nobody reads what was planned.
    fn put(&self, bytes: &[u8]) -> Result<BlobRef, StoreError> {
        Ok(BlobRef { hash: Hash([255; 32]), size: bytes.len() as u64 })
    }

    /// A program named by its number is torn, each time anew.
    fn drop_torn(&self, _hash: Hash) {}
}
