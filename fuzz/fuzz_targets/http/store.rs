//! In place of the coordinator's store: a few blobs whose names a request can guess.

pub(crate) mod blobs {
    //! Blobs named by a number, with as many zeros before it as a hash has digits; the last also by its
    //! hash, because programs are read whole and looked at.

    use std::fs::File;
    use std::io::{self, Write};

    use shoal_protocol::{BlobRef, Hash};

    pub(crate) struct Blobs {
        files: Vec<(File, u64)>,
        program: Hash,
    }

    impl Blobs {
        /// Nothing, an array, lines of text, and a program.
        pub(crate) fn new() -> Blobs {
            let array: Vec<u8> = (0..1024_u32).flat_map(u32::to_le_bytes).collect();
            let program: &[u8] = &[
                b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x05\x03\x01\0\x01\x07\x13\x02",
                &b"\x06memory\x02\0\x06_start\0\0\x0a\x04\x01\x02\0\x0b"[..],
            ]
            .concat();
            let contents: [&[u8]; 4] = [b"", &array, b"one\ntwo\n\nfour without an end", program];
            let files = contents.map(|bytes| match kept(bytes) {
                Ok(file) => (file, bytes.len() as u64),
                Err(error) => panic!("a temporary file: {error}"),
            });
            Blobs { files: files.into(), program: Hash(*blake3::hash(program).as_bytes()) }
        }

        fn at(&self, hash: Hash) -> Option<&(File, u64)> {
            if hash == self.program {
                return self.files.last();
            }
            let (last, zeros) = hash.0.split_last()?;
            zeros.iter().all(|byte| *byte == 0).then(|| self.files.get(usize::from(*last)))?
        }

        pub(crate) fn find(&self, hash: Hash) -> io::Result<Option<BlobRef>> {
            Ok(self.at(hash).map(|(_, size)| BlobRef { hash, size: *size }))
        }

        pub(crate) fn open_blob(&self, hash: Hash) -> io::Result<Option<(File, u64)>> {
            let Some((file, size)) = self.at(hash) else { return Ok(None) };
            let mut file = file.try_clone()?;
            // Clones share their place in the file.
            io::Seek::rewind(&mut file)?;
            Ok(Some((file, *size)))
        }

        /// A program named by its number is torn, each time anew.
        pub(crate) fn drop_torn(&self, _hash: Hash) {}

        /// Nobody reads what was planned.
        pub(crate) fn put(&self, bytes: &[u8]) -> io::Result<BlobRef> {
            Ok(BlobRef { hash: Hash([255; 32]), size: bytes.len() as u64 })
        }
    }

    /// A file that is gone when this process is.
    fn kept(bytes: &[u8]) -> io::Result<File> {
        let id = std::process::id();
        let path = std::env::temp_dir().join(format!("shoal-fuzz-{id}-{}", bytes.len()));
        File::create(&path)?.write_all(bytes)?;
        let file = File::open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    }
}

pub(crate) mod facts {
    //! What the shell remembers of a job, field for field as the coordinator has it.

    use crate::json::{OutputJson, ReducedJson};

    #[derive(Clone, Debug, Default)]
    pub(crate) struct Note {
        pub(crate) output: Option<OutputJson>,
        pub(crate) looks: Vec<String>,
        pub(crate) reduced: Option<ReducedJson>,
        pub(crate) lines_per_run: Option<u64>,
    }
}
