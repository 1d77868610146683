//! The files that a WASI preview1 program sees: a tree in memory, and every `fd_` and `path_` call on it. Pure: no
//! files of the machine, no clock, no chance. One implementation for processes and tabs, so that a program finds the
//! same everywhere, to the last error number and inode. What it says is what wasmtime's command line says on Linux.
//!
//! A program finds `/data` if its job has a folder (read-only), `/tmp` for whatever it wants, and `.`, which is `/tmp`
//! too: relative names work. It is empty when a run begins and gone when it ends. So is `/out`, behind them, if the job takes
//! back what runs leave there ([`Files::left`]). It is of one tree with `/tmp`, so that files move from one to the other.
//!
//! Its shells (`wasi` natively, `crates/browser` in tabs) lend the program's memory and its clock with each call
//! ([`Guest`]), keep what is on stdin, and take what goes to stdout and stderr.

mod calls;
mod descriptors;
mod errno;
mod left;
mod paths;
mod stat;
mod tree;
mod walk;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use calls::Pieces;
use descriptors::{Descriptor, Descriptors, Place, Side};
pub use errno::Errno;
pub use paths::{Opening, Text};
use tree::{Id, Tree};

/// What most calls come to.
type Done<T = ()> = Result<T, Errno>;

/// Files and folders of one run: more is a program that went wild, and each takes a few hundred bytes.
pub const MAX_ENTRIES: usize = shoal_kinds::exec::left::MAX_FILES;
/// Open files and folders of one run: what Linux gives a process.
pub const MAX_OPEN: usize = 1024;

/// Where the preopened folders are, in the order of their descriptors.
const DATA: &str = "/data";
const TMP: &str = "/tmp";
const HERE: &str = ".";
const OUT: &str = "/out";

/// The program's memory, its clock, its stdin, and the bytes of the files its job brought.
pub trait Guest {
    /// Bytes of its memory.
    fn size(&self) -> u64;
    fn read(&self, at: u32, into: &mut [u8]) -> Result<(), Errno>;
    fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), Errno>;
    /// Copies a piece of a file in `/data` to the program's memory. Both are known to be there.
    fn copy(&mut self, file: u32, from: u64, at: u32, len: u32) -> Result<(), Errno>;
    /// Bytes of stdin that were not read yet.
    fn stdin_left(&self) -> u64;
    /// Moves the next bytes of stdin to the program's memory. Both are known to be there.
    fn stdin(&mut self, at: u32, len: u32) -> Result<(), Errno>;
    /// The time of a change, in nanoseconds.
    fn stamp(&mut self) -> u64;
}

/// A folder that all runs of a job share: its files by name, their bytes elsewhere.
pub struct Shared(Tree);

impl Shared {
    /// Of names like `a/b.txt`, and sizes. A file is known by its place in the list afterwards.
    pub fn new<'a>(files: impl IntoIterator<Item = (&'a str, u64)>) -> Shared {
        let mut files: Vec<(usize, (&str, u64))> = files.into_iter().enumerate().collect();
        // So that listing the folder gives the same everywhere.
        files.sort_by(|a, b| a.1.0.cmp(b.1.0));
        let mut tree = Tree::new(u64::MAX, usize::MAX);
        let root = tree.root();
        for (at, (name, size)) in files {
            tree.put(root, name, at as u32, size);
        }
        Shared(tree)
    }
}

/// The three descriptors that are no files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    In,
    Out,
    Err,
}

/// The files of one run.
pub struct Files {
    own: Tree,
    data: Option<Arc<Shared>>,
    open: Descriptors,
    /// The folder whose files come back.
    out: Option<Id>,
}

impl Files {
    /// With room for so many bytes in all that it writes.
    pub fn new(room: u64, data: Option<Arc<Shared>>) -> Files {
        let mut own = Tree::new(room, MAX_ENTRIES);
        let tmp = own.root();
        let mut open = Descriptors::default();
        if let Some(data) = &data {
            let place = Place { side: Side::Data, node: data.0.first() };
            open.preopen(DATA, place);
        }
        for name in [TMP, HERE] {
            own.opened(tmp);
            open.preopen(name, Place { side: Side::Own, node: tmp });
        }
        Files { own, data, open, out: None }
    }

    /// The same, with a folder whose files come back.
    pub fn with_out(mut self) -> Files {
        let out = self.own.last_root();
        self.own.opened(out);
        self.open.preopen(OUT, Place { side: Side::Own, node: out });
        self.out = Some(out);
        self
    }

    /// The files in `/out`, packed by [`shoal_kinds::exec::left`]; none if they take more bytes than so many, or lie deeper
    /// than paths reach. Folders come with what is in them; links do not come.
    pub fn left(&self, most: u64) -> Option<Vec<u8>> {
        let Some(out) = self.out else { return Some(Vec::new()) };
        left::pack(&self.own, out, most)
    }

    /// Which stream a descriptor is, if it is one.
    pub fn stream(&self, fd: u32) -> Option<Stream> {
        match self.open.get(fd) {
            Ok(Descriptor::Stream(stream)) => Some(*stream),
            Ok(Descriptor::Folder(_) | Descriptor::File(_)) | Err(_) => None,
        }
    }

    fn tree(&self, side: Side) -> &Tree {
        match (side, &self.data) {
            (Side::Data, Some(data)) => &data.0,
            (Side::Data, None) | (Side::Own, _) => &self.own,
        }
    }

    /// The tree for a change, which `/data` takes none of.
    fn tree_mut(&mut self, side: Side) -> Done<&mut Tree> {
        match side {
            Side::Own => Ok(&mut self.own),
            Side::Data => Err(Errno::PERM),
        }
    }
}
