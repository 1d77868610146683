//! What is told of files and descriptors, as preview1 lays it out in memory.

use super::descriptors::{Descriptor, Mode, Place};
use super::tree::{Body, Node};
use super::{Done, Files, Stream};

/// Kinds of file.
pub(super) const FOLDER: u8 = 3;
const FILE: u8 = 4;
const LINK: u8 = 7;
const UNKNOWN: u8 = 0;

/// Rights, by the place of their bit.
const READ: u64 = 1 << 1;
const SEEK: u64 = 1 << 2;
const WRITE: u64 = 1 << 6;
const READDIR: u64 = 1 << 14;
const PATH_SET_SIZE: u64 = 1 << 19;
const SET_SIZE: u64 = 1 << 22;
const ALL: u64 = (1 << 30) - 1;
/// What a preopened folder is said to allow: programs look for these before they try.
const PREOPENED: u64 = bits(&[9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 23, 24, 25, 26]);
/// And what is opened in it.
const INHERITED: u64 = PREOPENED | bits(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 22, 27]);

const fn bits(places: &[u32]) -> u64 {
    let (mut bits, mut at) = (0, 0);
    while at < places.len() {
        bits |= 1 << places[at];
        at += 1;
    }
    bits
}

/// Bits of descriptor flags.
pub(super) const APPEND: u16 = 1;
pub(super) const NONBLOCK: u16 = 4;
/// Bytes of both.
pub(super) const FILESTAT: usize = 64;
pub(super) const FDSTAT: usize = 24;

pub(super) fn filetype(node: &Node) -> u8 {
    match node.body {
        Body::File(_) | Body::Shared { .. } => FILE,
        Body::Link(_) => LINK,
        Body::Folder(_) => FOLDER,
    }
}

pub(super) fn size(node: &Node) -> u64 {
    match &node.body {
        Body::File(bytes) => bytes.len() as u64,
        Body::Shared { size, .. } => *size,
        Body::Link(target) => target.len() as u64,
        Body::Folder(_) => 0,
    }
}

impl Files {
    pub(super) fn filestat(&self, Place { side, node: id }: Place) -> Done<[u8; FILESTAT]> {
        let tree = self.tree(side);
        let node = tree.node(id)?;
        let times = node.times;
        let mut stat = [0; FILESTAT];
        let words = [
            (0, 1),
            (8, u64::from(id)),
            (24, tree.links(id)?),
            (32, size(node)),
            (40, times.accessed),
            (48, times.modified),
            (56, times.created),
        ];
        for (at, word) in words {
            stat[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        stat[16] = filetype(node);
        Ok(stat)
    }

    pub(super) fn fdstat(&self, descriptor: &Descriptor) -> [u8; FDSTAT] {
        let (filetype, flags, base, inherited) = match descriptor {
            Descriptor::Stream(Stream::In) => (UNKNOWN, 0, READ, READ),
            Descriptor::Stream(Stream::Out | Stream::Err) => (UNKNOWN, 0, WRITE, WRITE),
            Descriptor::Folder(folder) if folder.preopened.is_some() => {
                (FOLDER, 0, PREOPENED, INHERITED)
            }
            Descriptor::Folder(folder) => {
                let mode = Mode { write: false, ..folder.mode };
                let rights = rights(mode) & !(SEEK | SET_SIZE | PATH_SET_SIZE);
                (FOLDER, 0, rights, rights)
            }
            Descriptor::File(file) => {
                let append = if file.append { APPEND } else { 0 };
                let nonblock = if file.nonblock { NONBLOCK } else { 0 };
                let rights = rights(file.mode);
                (FILE, append | nonblock, rights, rights)
            }
        };
        let mut stat = [0; FDSTAT];
        stat[0] = filetype;
        stat[2..4].copy_from_slice(&flags.to_le_bytes());
        stat[8..16].copy_from_slice(&base.to_le_bytes());
        stat[16..].copy_from_slice(&inherited.to_le_bytes());
        stat
    }
}

fn rights(mode: Mode) -> u64 {
    let read = if mode.read { 0 } else { READ | READDIR };
    let write = if mode.write { 0 } else { WRITE };
    ALL & !(read | write)
}
