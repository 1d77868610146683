//! What is open, by number.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::Id;
use super::{Done, Errno, MAX_OPEN, Stream};

/// Which tree something is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Own,
    /// The job's folder.
    Data,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) side: Side,
    pub(super) node: Id,
}

#[derive(Debug)]
pub(super) enum Descriptor {
    Stream(Stream),
    Folder(OpenFolder),
    File(OpenFile),
}

#[derive(Debug)]
pub(super) struct OpenFolder {
    pub(super) place: Place,
    /// Its name in the program's eyes, if it was there from the start.
    pub(super) preopened: Option<&'static str>,
    pub(super) mode: Mode,
}

#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) place: Place,
    pub(super) position: u64,
    pub(super) append: bool,
    pub(super) nonblock: bool,
    pub(super) mode: Mode,
}

/// What something was opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mode {
    pub(super) read: bool,
    pub(super) write: bool,
}

#[derive(Debug)]
pub(super) struct Descriptors {
    used: BTreeMap<u32, Descriptor>,
    /// Numbers that were closed, of which the highest is used next.
    free: BTreeSet<u32>,
}

impl Default for Descriptors {
    fn default() -> Descriptors {
        let streams = [Stream::In, Stream::Out, Stream::Err].map(Descriptor::Stream);
        Descriptors { used: (0..).zip(streams).collect(), free: BTreeSet::new() }
    }
}

impl Descriptors {
    pub(super) fn preopen(&mut self, name: &'static str, place: Place) {
        let mode = Mode { read: true, write: false };
        let folder = OpenFolder { place, preopened: Some(name), mode };
        self.used.insert(self.used.len() as u32, Descriptor::Folder(folder));
    }

    pub(super) fn get(&self, fd: u32) -> Done<&Descriptor> {
        self.used.get(&fd).ok_or(Errno::BADF)
    }

    pub(super) fn file(&self, fd: u32) -> Done<&OpenFile> {
        match self.get(fd)? {
            Descriptor::File(file) => Ok(file),
            Descriptor::Stream(_) | Descriptor::Folder(_) => Err(Errno::BADF),
        }
    }

    pub(super) fn file_mut(&mut self, fd: u32) -> Done<&mut OpenFile> {
        match self.used.get_mut(&fd) {
            Some(Descriptor::File(file)) => Ok(file),
            Some(Descriptor::Stream(_) | Descriptor::Folder(_)) | None => Err(Errno::BADF),
        }
    }

    /// A file, where a stream has another answer.
    pub(super) fn seekable(&self, fd: u32) -> Done<&OpenFile> {
        match self.get(fd)? {
            Descriptor::File(file) => Ok(file),
            Descriptor::Stream(_) => Err(Errno::SPIPE),
            Descriptor::Folder(_) => Err(Errno::BADF),
        }
    }

    pub(super) fn folder(&self, fd: u32) -> Done<Place> {
        match self.get(fd)? {
            Descriptor::Folder(folder) => Ok(folder.place),
            Descriptor::Stream(_) | Descriptor::File(_) => Err(Errno::BADF),
        }
    }

    /// A file or a folder.
    pub(super) fn place(&self, fd: u32) -> Done<Place> {
        match self.get(fd)? {
            Descriptor::Folder(folder) => Ok(folder.place),
            Descriptor::File(file) => Ok(file.place),
            Descriptor::Stream(_) => Err(Errno::BADF),
        }
    }

    pub(super) fn may_open(&self) -> Done {
        if self.used.len() < MAX_OPEN { Ok(()) } else { Err(Errno::MFILE) }
    }

    pub(super) fn push(&mut self, descriptor: Descriptor) -> u32 {
        let next = self.used.last_key_value().map_or(0, |(last, _)| last + 1);
        let fd = self.free.pop_last().unwrap_or(next);
        self.used.insert(fd, descriptor);
        fd
    }

    /// Gives back what was open, if it was no stream.
    pub(super) fn close(&mut self, fd: u32) -> Done<Option<Place>> {
        let closed = self.used.remove(&fd).ok_or(Errno::BADF)?;
        self.free.insert(fd);
        Ok(match closed {
            Descriptor::Folder(folder) => Some(folder.place),
            Descriptor::File(file) => Some(file.place),
            Descriptor::Stream(_) => None,
        })
    }

    /// Another number for something open; the number is free.
    pub(super) fn renumber(&mut self, from: u32, to: u32) -> Done {
        let moved = self.used.remove(&from).ok_or(Errno::BADF)?;
        self.free.insert(from);
        self.free.remove(&to);
        self.used.insert(to, moved);
        Ok(())
    }
}
