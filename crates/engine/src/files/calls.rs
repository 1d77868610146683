//! The calls on descriptors.

use super::descriptors::{Descriptor, OpenFile, Place};
use super::stat::{APPEND, FILESTAT, FOLDER, NONBLOCK, filetype, size};
use super::tree::{Body, Times};
use super::{Done, Errno, Files, Guest, Stream};

/// Bytes of an entry in a listing, in front of its name.
const ENTRY: usize = 24;
/// Pieces of one read or write that are looked at; libraries use two.
const MOST_PIECES: u32 = 1024;
/// Bits that are known.
const FD_FLAGS: u32 = 0b1_1111;
const SYNC_FLAGS: u32 = 0b1_1010;
const TIME_FLAGS: u32 = 0b1111;
const RIGHTS: u64 = (1 << 30) - 1;
/// Kinds of advice.
const ADVICES: u32 = 6;

/// What a file's times become.
#[derive(Clone, Copy)]
pub(super) struct NewTimes {
    accessed: NewTime,
    modified: NewTime,
}

#[derive(Clone, Copy)]
enum NewTime {
    Same,
    Now,
    At(u64),
}

impl NewTimes {
    pub(super) fn read(accessed: u64, modified: u64, flags: u32) -> Done<NewTimes> {
        if flags & !TIME_FLAGS != 0 {
            return Err(Errno::INVAL);
        }
        let time = |set: u32, now: u32, time: u64| match (flags & set != 0, flags & now != 0) {
            (true, true) => Err(Errno::INVAL),
            (true, false) => Ok(NewTime::At(time)),
            (false, true) => Ok(NewTime::Now),
            (false, false) => Ok(NewTime::Same),
        };
        Ok(NewTimes { accessed: time(1, 2, accessed)?, modified: time(4, 8, modified)? })
    }

    pub(super) fn set(self, times: &mut Times, guest: &mut impl Guest) {
        let is_now = |time| matches!(time, NewTime::Now);
        let now = if is_now(self.accessed) || is_now(self.modified) { guest.stamp() } else { 0 };
        let set = |time: &mut u64, new: NewTime| match new {
            NewTime::Same => {}
            NewTime::Now => *time = now,
            NewTime::At(at) => *time = at,
        };
        set(&mut times.accessed, self.accessed);
        set(&mut times.modified, self.modified);
    }
}

/// Descriptors.
impl Files {
    pub fn fd_advise(&self, fd: u32, _offset: u64, len: u64, advice: u32) -> Done {
        if advice >= ADVICES {
            return Err(Errno::INVAL);
        }
        self.open.file(fd)?;
        if i64::try_from(len).is_ok() { Ok(()) } else { Err(Errno::INVAL) }
    }

    pub fn fd_allocate(&self, fd: u32) -> Done {
        self.open.file(fd)?;
        Err(Errno::NOTSUP)
    }

    pub fn fd_close(&mut self, fd: u32) -> Done {
        if let Some(place) = self.open.close(fd)?
            && let Ok(tree) = self.tree_mut(place.side)
        {
            tree.closed(place.node);
        }
        Ok(())
    }

    /// Nothing is kept back, so there is nothing to do.
    pub fn fd_sync(&self, fd: u32) -> Done {
        self.open.file(fd).map(drop)
    }

    pub fn fd_fdstat_get(&self, guest: &mut impl Guest, fd: u32, out: u32) -> Done {
        guest.write(out, &self.fdstat(self.open.get(fd)?))
    }

    pub fn fd_fdstat_set_flags(&mut self, fd: u32, flags: u32) -> Done {
        if flags & !FD_FLAGS != 0 {
            return Err(Errno::INVAL);
        }
        let file = self.open.file_mut(fd)?;
        if flags & SYNC_FLAGS != 0 {
            return Err(Errno::INVAL);
        }
        file.append = flags & u32::from(APPEND) != 0;
        file.nonblock = flags & u32::from(NONBLOCK) != 0;
        Ok(())
    }

    pub fn fd_fdstat_set_rights(&self, fd: u32, base: u64, inheriting: u64) -> Done {
        if (base | inheriting) & !RIGHTS != 0 {
            return Err(Errno::INVAL);
        }
        self.open.place(fd)?;
        Err(Errno::NOTSUP)
    }

    pub fn fd_filestat_get(&self, guest: &mut impl Guest, fd: u32, out: u32) -> Done {
        let stat = match self.open.get(fd)? {
            Descriptor::Stream(_) => [0; FILESTAT],
            Descriptor::Folder(folder) => self.filestat(folder.place)?,
            Descriptor::File(file) => self.filestat(file.place)?,
        };
        guest.write(out, &stat)
    }

    pub fn fd_filestat_set_size(&mut self, guest: &mut impl Guest, fd: u32, size: u64) -> Done {
        let &OpenFile { place, mode, .. } = self.open.file(fd)?;
        let tree = self.tree_mut(place.side)?;
        if i64::try_from(size).is_err() || !mode.write {
            return Err(Errno::INVAL);
        }
        tree.resize(place.node, size, guest.stamp())
    }

    pub fn fd_filestat_set_times(
        &mut self,
        guest: &mut impl Guest,
        fd: u32,
        (accessed, modified, flags): (u64, u64, u32),
    ) -> Done {
        let new = NewTimes::read(accessed, modified, flags)?;
        let place = self.open.place(fd)?;
        self.tree_mut(place.side)?;
        // wasmtime opens these for nothing but paths.
        if self.preopened(fd)?.is_some() {
            return Err(Errno::BADF);
        }
        new.set(self.own.times(place.node)?, guest);
        Ok(())
    }

    pub fn fd_prestat_get(&self, guest: &mut impl Guest, fd: u32, out: u32) -> Done {
        let name = self.preopened(fd)?.ok_or(Errno::BADF)?;
        let mut stat = [0; 8];
        stat[4..].copy_from_slice(&(name.len() as u32).to_le_bytes());
        guest.write(out, &stat)
    }

    pub fn fd_prestat_dir_name(
        &self,
        guest: &mut impl Guest,
        fd: u32,
        out: u32,
        most: u32,
    ) -> Done {
        let name = self.preopened(fd)?.ok_or(Errno::NOTDIR)?;
        if name.len() > most as usize {
            return Err(Errno::NAMETOOLONG);
        }
        guest.write(out, name.as_bytes())
    }

    fn preopened(&self, fd: u32) -> Done<Option<&'static str>> {
        Ok(match self.open.get(fd)? {
            Descriptor::Folder(folder) => folder.preopened,
            Descriptor::Stream(_) | Descriptor::File(_) => None,
        })
    }

    pub fn fd_renumber(&mut self, from: u32, to: u32) -> Done {
        self.open.get(to)?;
        self.open.get(from)?;
        if from == to {
            return Ok(());
        }
        self.fd_close(to)?;
        self.open.renumber(from, to)
    }

    pub fn fd_seek(
        &mut self,
        guest: &mut impl Guest,
        fd: u32,
        (offset, whence): (i64, u32),
        out: u32,
    ) -> Done {
        if whence > 2 {
            return Err(Errno::INVAL);
        }
        let &OpenFile { place, position, .. } = self.open.seekable(fd)?;
        let from = match whence {
            0 => 0,
            1 => position,
            _ => size(self.tree(place.side).node(place.node)?),
        };
        let position = from.checked_add_signed(offset).ok_or(Errno::INVAL)?;
        self.open.file_mut(fd)?.position = position;
        guest.write(out, &position.to_le_bytes())
    }

    pub fn fd_tell(&self, guest: &mut impl Guest, fd: u32, out: u32) -> Done {
        let position = self.open.seekable(fd)?.position;
        guest.write(out, &position.to_le_bytes())
    }

    /// There are no sockets.
    pub fn sock(&self, fd: u32) -> Done {
        self.open.get(fd)?;
        Err(Errno::NOTSOCK)
    }
}

/// Bytes.
impl Files {
    /// Not of stdin: the shell reads that.
    pub fn fd_read(&mut self, guest: &mut impl Guest, fd: u32, pieces: Pieces, out: u32) -> Done {
        let piece = pieces.first(guest)?;
        if let Descriptor::Stream(Stream::In) = self.open.get(fd)? {
            let (at, len) = piece;
            // No more than fits into 32 bits.
            let read = u64::from(len).min(guest.stdin_left()) as u32;
            guest.stdin(at, read)?;
            return guest.write(out, &read.to_le_bytes());
        }
        let position = self.open.file(fd)?.position;
        let read = self.read_at(guest, fd, position, piece)?;
        self.open.file_mut(fd)?.position = position + u64::from(read);
        guest.write(out, &read.to_le_bytes())
    }

    pub fn fd_pread(
        &mut self,
        guest: &mut impl Guest,
        fd: u32,
        pieces: Pieces,
        (offset, out): (u64, u32),
    ) -> Done {
        let piece = pieces.first(guest)?;
        if let Descriptor::Stream(Stream::In) = self.open.get(fd)? {
            return Err(Errno::SPIPE);
        }
        let read = self.read_at(guest, fd, offset, piece)?;
        guest.write(out, &read.to_le_bytes())
    }

    fn read_at(
        &self,
        guest: &mut impl Guest,
        fd: u32,
        from: u64,
        (at, len): (u32, u32),
    ) -> Done<u32> {
        let &OpenFile { place, mode, .. } = self.open.file(fd)?;
        if !mode.read {
            return Err(Errno::BADF);
        }
        check_range(from, len)?;
        let node = self.tree(place.side).node(place.node)?;
        let left = size(node).saturating_sub(from);
        let len = u64::from(len).min(left) as u32;
        if len == 0 {
            return Ok(0);
        }
        match &node.body {
            Body::File(bytes) => {
                let start = from as usize;
                let piece = bytes.get(start..start + len as usize).ok_or(Errno::IO)?;
                guest.write(at, piece)?;
            }
            Body::Shared { file, .. } => guest.copy(*file, from, at, len)?,
            Body::Link(_) | Body::Folder(_) => return Err(Errno::IO),
        }
        Ok(len)
    }

    /// Not to stdout and stderr: the shell takes that.
    pub fn fd_write(&mut self, guest: &mut impl Guest, fd: u32, pieces: Pieces, out: u32) -> Done {
        let piece = pieces.first(guest)?;
        let &OpenFile { place, position, append, .. } = self.open.file(fd)?;
        let written = self.write_at(guest, fd, position, piece)?;
        let position = match append {
            true => size(self.tree(place.side).node(place.node)?),
            false => position + u64::from(written),
        };
        self.open.file_mut(fd)?.position = position;
        guest.write(out, &written.to_le_bytes())
    }

    pub fn fd_pwrite(
        &mut self,
        guest: &mut impl Guest,
        fd: u32,
        pieces: Pieces,
        (offset, out): (u64, u32),
    ) -> Done {
        let piece = pieces.first(guest)?;
        if let Descriptor::Stream(Stream::Out | Stream::Err) = self.open.get(fd)? {
            return Err(Errno::SPIPE);
        }
        let written = self.write_at(guest, fd, offset, piece)?;
        guest.write(out, &written.to_le_bytes())
    }

    fn write_at(
        &mut self,
        guest: &mut impl Guest,
        fd: u32,
        position: u64,
        (from, len): (u32, u32),
    ) -> Done<u32> {
        let &OpenFile { place, mode, append, .. } = self.open.file(fd)?;
        if !mode.write {
            return Err(Errno::BADF);
        }
        let at = match append {
            true => size(self.tree(place.side).node(place.node)?),
            false => position,
        };
        check_range(at, len)?;
        if len == 0 {
            return Ok(0);
        }
        let now = guest.stamp();
        let space = self.tree_mut(place.side)?.space(place.node, at, u64::from(len), now)?;
        guest.read(from, space)?;
        Ok(space.len() as u32)
    }

    pub fn fd_readdir(
        &self,
        guest: &mut impl Guest,
        fd: u32,
        (buffer, most): (u32, u32),
        (cookie, out): (u64, u32),
    ) -> Done {
        let place = self.open.folder(fd)?;
        let tree = self.tree(place.side);
        let listed = tree.list(place.node, cookie)?;
        if u64::from(buffer) + u64::from(most) > guest.size() {
            return Err(Errno::FAULT);
        }
        let most = most as usize;
        let mut told = Vec::new();
        for (next, name) in [(1_u64, "."), (2, "..")].into_iter().skip(cookie.min(2) as usize) {
            entry(&mut told, next, place, FOLDER, name);
        }
        for (serial, name, node) in listed {
            if told.len() >= most {
                break;
            }
            let kind = filetype(tree.node(node)?);
            entry(&mut told, serial, Place { node, ..place }, kind, name);
        }
        told.truncate(most);
        guest.write(buffer, &told)?;
        guest.write(out, &(told.len() as u32).to_le_bytes())
    }
}

/// Files end where Linux ends them.
fn check_range(at: u64, len: u32) -> Done {
    let end = at.checked_add(u64::from(len)).and_then(|end| i64::try_from(end).ok());
    end.map(drop).ok_or(Errno::INVAL)
}

fn entry(told: &mut Vec<u8>, next: u64, place: Place, kind: u8, name: &str) {
    let start = told.len();
    told.extend(next.to_le_bytes());
    told.extend(u64::from(place.node).to_le_bytes());
    told.extend((name.len() as u32).to_le_bytes());
    told.push(kind);
    told.resize(start + ENTRY, 0);
    told.extend(name.as_bytes());
}

/// Where in memory the pieces of a read or write are listed, and how many.
#[derive(Clone, Copy, Debug)]
pub struct Pieces {
    pub at: u32,
    pub count: u32,
}

impl Pieces {
    /// The first piece that is not empty: one call moves no more, and says how much it moved.
    pub fn first(self, guest: &impl Guest) -> Done<(u32, u32)> {
        for piece in 0..self.count {
            if piece == MOST_PIECES {
                return Err(Errno::INVAL);
            }
            let mut bytes = [0; 8];
            let at = piece.checked_mul(8).and_then(|it| self.at.checked_add(it));
            guest.read(at.ok_or(Errno::FAULT)?, &mut bytes)?;
            let [a, b, c, d, e, f, g, h] = bytes;
            let (at, len) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
            if len == 0 {
                continue;
            }
            if u64::from(at) + u64::from(len) > guest.size() {
                return Err(Errno::FAULT);
            }
            return Ok((at, len));
        }
        Ok((0, 0))
    }
}
