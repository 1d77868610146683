//! The calls on paths.

use super::calls::NewTimes;
use super::descriptors::{Descriptor, Mode, OpenFile, OpenFolder, Place, Side};
use super::stat::{APPEND, NONBLOCK};
use super::tree::{Body, Id};
use super::walk::{Base, End, Last, lone_name, parent, walk};
use super::{Done, Errno, Files, Guest};

/// Bits of the flags.
const FOLLOW: u32 = 1;
const CREATE: u32 = 1;
const DIRECTORY: u32 = 2;
const EXCLUSIVE: u32 = 4;
const TRUNCATE: u32 = 8;
const OPEN_FLAGS: u32 = 0b1111;
const FD_FLAGS: u32 = 0b1_1111;
const SYNC_FLAGS: u32 = 0b1_1010;
const RIGHTS: u64 = (1 << 30) - 1;
const READ: u64 = 1 << 1;
const WRITE: u64 = 1 << 6;
/// Longest path that is read at all; one that is longer than Linux takes is told so.
const MAX_READ: u32 = 1 << 16;

/// Where a path's bytes are.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    pub at: u32,
    pub len: u32,
}

impl Text {
    fn read(self, guest: &impl Guest) -> Done<String> {
        if u64::from(self.at) + u64::from(self.len) > guest.size() {
            return Err(Errno::FAULT);
        }
        if self.len > MAX_READ {
            return Err(Errno::NAMETOOLONG);
        }
        let mut bytes = vec![0; self.len as usize];
        guest.read(self.at, &mut bytes)?;
        String::from_utf8(bytes).map_err(|_| Errno::ILSEQ)
    }
}

/// How something is to be opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    pub lookup: u32,
    pub flags: u32,
    pub rights: u64,
    pub inheriting: u64,
    pub fd_flags: u32,
}

impl Opening {
    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    fn check(&self) -> Done {
        let is_known = self.lookup & !FOLLOW == 0
            && self.flags & !OPEN_FLAGS == 0
            && (self.rights | self.inheriting) & !RIGHTS == 0
            && self.fd_flags & !FD_FLAGS == 0;
        if is_known { Ok(()) } else { Err(Errno::INVAL) }
    }

    /// Whoever makes or empties something may write to it, and whoever may not write may read.
    fn mode(&self) -> Mode {
        let asked = self.rights & WRITE != 0;
        let write = asked || self.has(CREATE) || self.has(TRUNCATE);
        Mode { read: self.rights & READ != 0 || !asked, write }
    }
}

/// Makes and opens.
impl Files {
    pub fn path_open(
        &mut self,
        guest: &mut impl Guest,
        fd: u32,
        path: Text,
        opening: Opening,
        out: u32,
    ) -> Done {
        opening.check()?;
        let path = path.read(guest)?;
        let start = match self.open.get(fd)? {
            Descriptor::Folder(folder) => folder.place,
            Descriptor::File(_) => return Err(Errno::NOTDIR),
            Descriptor::Stream(_) => return Err(Errno::BADF),
        };
        if opening.fd_flags & SYNC_FLAGS != 0 {
            return Err(Errno::NOTSUP);
        }
        if opening.has(DIRECTORY) && opening.flags & (CREATE | EXCLUSIVE | TRUNCATE) != 0 {
            return Err(Errno::INVAL);
        }
        let mode = opening.mode();
        if mode.write && start.side == Side::Data {
            return Err(Errno::PERM);
        }
        if u64::from(out) + 4 > guest.size() {
            return Err(Errno::FAULT);
        }
        self.open.may_open()?;
        let node = self.find_or_make(guest, start, &path, &opening)?;
        let place = Place { node, ..start };
        let tree = self.tree(place.side);
        let is_folder = tree.is_folder(node);
        if !is_folder && opening.has(DIRECTORY) {
            return Err(Errno::NOTDIR);
        }
        if let Ok(tree) = self.tree_mut(place.side) {
            tree.opened(node);
        }
        let flag = |flag: u16| opening.fd_flags & u32::from(flag) != 0;
        let descriptor = match is_folder {
            true => Descriptor::Folder(OpenFolder { place, preopened: None, mode }),
            false => {
                let (append, nonblock) = (flag(APPEND), flag(NONBLOCK));
                Descriptor::File(OpenFile { place, position: 0, append, nonblock, mode })
            }
        };
        let fd = self.open.push(descriptor);
        guest.write(out, &fd.to_le_bytes())
    }

    /// What is to be opened, made or emptied if that was asked for.
    fn find_or_make(
        &mut self,
        guest: &mut impl Guest,
        start: Place,
        path: &str,
        opening: &Opening,
    ) -> Done<Id> {
        let (create, exclusive) = (opening.has(CREATE), opening.has(EXCLUSIVE));
        let follow = opening.lookup & FOLLOW != 0 && !(create && exclusive);
        let tree = self.tree(start.side);
        let end = walk(tree, start.node, path, follow)?;
        if create && end.slash && matches!(end.last, Last::Name(..)) {
            return Err(Errno::ISDIR);
        }
        let node = match &end {
            End { folder, last: Last::Name(name, None), .. } if create => {
                let (folder, name) = (*folder, name.clone());
                let now = guest.stamp();
                let tree = self.tree_mut(start.side)?;
                return tree.make(folder, &name, Body::File(Vec::new()), now);
            }
            end => end.node()?,
        };
        if create && exclusive {
            return Err(Errno::EXIST);
        }
        let (is_folder, is_link) =
            (tree.is_folder(node), matches!(tree.node(node)?.body, Body::Link(_)));
        if create && is_folder {
            return Err(Errno::ISDIR);
        }
        if end.slash && !is_folder {
            return Err(Errno::NOTDIR);
        }
        if is_link {
            return Err(Errno::LOOP);
        }
        if is_folder && opening.mode().write {
            return Err(Errno::ISDIR);
        }
        if opening.has(TRUNCATE) {
            let now = guest.stamp();
            self.tree_mut(start.side)?.resize(node, 0, now)?;
        }
        Ok(node)
    }

    pub fn path_create_directory(&mut self, guest: &mut impl Guest, fd: u32, path: Text) -> Done {
        let start = self.open.folder(fd)?;
        let path = path.read(guest)?;
        self.tree_mut(start.side)?;
        let (folder, base) = parent(&self.own, start.node, without_slashes(&path))?;
        let Base::Name(name) = base else { return Err(Errno::EXIST) };
        if self.own.child(folder, &name)?.is_some() {
            return Err(Errno::EXIST);
        }
        self.own.make_folder(folder, &name, guest.stamp()).map(drop)
    }

    pub fn path_symlink(
        &mut self,
        guest: &mut impl Guest,
        target: Text,
        fd: u32,
        path: Text,
    ) -> Done {
        let start = self.open.folder(fd)?;
        let (target, path) = (target.read(guest)?, path.read(guest)?);
        self.tree_mut(start.side)?;
        if target.starts_with('/') {
            return Err(Errno::PERM);
        }
        let (folder, base) = parent(&self.own, start.node, &path)?;
        if target.contains('\0') {
            return Err(Errno::INVAL);
        }
        if target.is_empty() {
            return Err(Errno::NOENT);
        }
        let Base::Name(name) = base else { return Err(Errno::EXIST) };
        if self.own.child(folder, &name)?.is_some() {
            return Err(Errno::EXIST);
        }
        if target.len() > 4095 {
            return Err(Errno::NAMETOOLONG);
        }
        self.own.make(folder, &name, Body::Link(target), guest.stamp()).map(drop)
    }

    pub fn path_link(
        &mut self,
        guest: &mut impl Guest,
        (old_fd, lookup, old): (u32, u32, Text),
        (new_fd, new): (u32, Text),
    ) -> Done {
        if lookup & !FOLLOW != 0 {
            return Err(Errno::INVAL);
        }
        let (from, to) = (self.open.folder(old_fd)?, self.open.folder(new_fd)?);
        let (old, new) = (old.read(guest)?, new.read(guest)?);
        self.tree_mut(from.side)?;
        self.tree_mut(to.side)?;
        if lookup & FOLLOW != 0 {
            return Err(Errno::INVAL);
        }
        let (old_folder, old_base) = parent(&self.own, from.node, &old)?;
        let (folder, base) = parent(&self.own, to.node, &new)?;
        let node = match &old_base {
            Base::Itself => old_folder,
            Base::Name(name) => self.own.child(old_folder, name)?.ok_or(Errno::NOENT)?,
        };
        let Base::Name(name) = base else { return Err(Errno::EXIST) };
        if self.own.child(folder, &name)?.is_some() {
            return Err(Errno::EXIST);
        }
        if self.own.is_folder(node) {
            return Err(Errno::PERM);
        }
        self.own.link(node, folder, &name, guest.stamp())
    }
}

/// Looks.
impl Files {
    pub fn path_filestat_get(
        &self,
        guest: &mut impl Guest,
        fd: u32,
        (lookup, path): (u32, Text),
        out: u32,
    ) -> Done {
        if lookup & !FOLLOW != 0 {
            return Err(Errno::INVAL);
        }
        let start = self.open.folder(fd)?;
        let path = path.read(guest)?;
        let tree = self.tree(start.side);
        let follow = lookup & FOLLOW != 0;
        let node = match lone_name(&path).filter(|_| !follow && !path.contains('\0')) {
            Some(name) => tree.child(start.node, name)?.ok_or(Errno::NOENT)?,
            None => existing(&walk(tree, start.node, &path, follow)?, |id| tree.is_folder(id))?,
        };
        guest.write(out, &self.filestat(Place { node, ..start })?)
    }

    pub fn path_filestat_set_times(
        &mut self,
        guest: &mut impl Guest,
        fd: u32,
        (lookup, path): (u32, Text),
        (accessed, modified, flags): (u64, u64, u32),
    ) -> Done {
        if lookup & !FOLLOW != 0 {
            return Err(Errno::INVAL);
        }
        let new = NewTimes::read(accessed, modified, flags)?;
        let start = self.open.folder(fd)?;
        let path = path.read(guest)?;
        self.tree_mut(start.side)?;
        let tree = &self.own;
        let node = match lookup & FOLLOW != 0 {
            true => existing(&walk(tree, start.node, &path, true)?, |id| tree.is_folder(id))?,
            false => match parent(tree, start.node, &path)? {
                (folder, Base::Itself) => folder,
                (folder, Base::Name(name)) => tree.child(folder, &name)?.ok_or(Errno::NOENT)?,
            },
        };
        new.set(self.own.times(node)?, guest);
        Ok(())
    }

    pub fn path_readlink(
        &self,
        guest: &mut impl Guest,
        fd: u32,
        path: Text,
        (buffer, most): (u32, u32),
        out: u32,
    ) -> Done {
        let start = self.open.folder(fd)?;
        let path = path.read(guest)?;
        let tree = self.tree(start.side);
        let (folder, Base::Name(name)) = parent(tree, start.node, &path)? else {
            return Err(Errno::INVAL);
        };
        let node = tree.child(folder, &name)?.ok_or(Errno::NOENT)?;
        let Body::Link(target) = &tree.node(node)?.body else { return Err(Errno::INVAL) };
        let told = &target.as_bytes()[..target.len().min(most as usize)];
        guest.write(buffer, told)?;
        guest.write(out, &(told.len() as u32).to_le_bytes())
    }
}

/// Moves and takes away.
impl Files {
    pub fn path_remove_directory(&mut self, guest: &mut impl Guest, fd: u32, path: Text) -> Done {
        let start = self.open.folder(fd)?;
        let path = path.read(guest)?;
        self.tree_mut(start.side)?;
        let (folder, Base::Name(name)) = parent(&self.own, start.node, &path)? else {
            return Err(Errno::INVAL);
        };
        let node = self.own.child(folder, &name)?.ok_or(Errno::NOENT)?;
        if !self.own.is_folder(node) {
            return Err(Errno::NOTDIR);
        }
        if !self.own.is_empty(node) {
            return Err(Errno::NOTEMPTY);
        }
        self.own.remove(folder, &name, guest.stamp())
    }

    pub fn path_unlink_file(&mut self, guest: &mut impl Guest, fd: u32, path: Text) -> Done {
        let start = self.open.folder(fd)?;
        let path = path.read(guest)?;
        self.tree_mut(start.side)?;
        let (folder, Base::Name(name)) = parent(&self.own, start.node, &path)? else {
            return Err(Errno::ISDIR);
        };
        let node = self.own.child(folder, &name)?.ok_or(Errno::NOENT)?;
        if self.own.is_folder(node) {
            return Err(Errno::ISDIR);
        }
        self.own.remove(folder, &name, guest.stamp())
    }

    pub fn path_rename(
        &mut self,
        guest: &mut impl Guest,
        (old_fd, old): (u32, Text),
        (new_fd, new): (u32, Text),
    ) -> Done {
        let (from, to) = (self.open.folder(old_fd)?, self.open.folder(new_fd)?);
        let (old, new) = (old.read(guest)?, new.read(guest)?);
        self.tree_mut(from.side)?;
        self.tree_mut(to.side)?;
        let wants_folder = old.ends_with('/') || new.ends_with('/');
        let (old_folder, old) = parent(&self.own, from.node, without_slashes(&old))?;
        let (new_folder, new) = parent(&self.own, to.node, without_slashes(&new))?;
        let (Base::Name(old), Base::Name(new)) = (old, new) else { return Err(Errno::BUSY) };
        let node = self.own.child(old_folder, &old)?.ok_or(Errno::NOENT)?;
        let there = self.own.child(new_folder, &new)?;
        let is_folder = self.own.is_folder(node);
        if wants_folder && !is_folder {
            return Err(Errno::NOTDIR);
        }
        if is_folder && self.own.is_within(new_folder, node) {
            return Err(Errno::INVAL);
        }
        let Some(there) = there else {
            return self.own.rename((old_folder, &old), (new_folder, &new), guest.stamp());
        };
        if self.own.is_folder(there) && self.own.is_within(old_folder, there) {
            return Err(Errno::NOTEMPTY);
        }
        if node == there {
            return Ok(());
        }
        match (is_folder, self.own.is_folder(there)) {
            (true, false) => return Err(Errno::NOTDIR),
            (false, true) => return Err(Errno::ISDIR),
            (true, true) if !self.own.is_empty(there) => return Err(Errno::NOTEMPTY),
            (true, true) | (false, false) => {}
        }
        let now = guest.stamp();
        self.own.remove(new_folder, &new, now)?;
        self.own.rename((old_folder, &old), (new_folder, &new), now)
    }
}

/// What is at a path's end; a folder if the path says so.
fn existing(end: &End, is_folder: impl Fn(Id) -> bool) -> Done<Id> {
    let node = end.node()?;
    if end.slash && !is_folder(node) { Err(Errno::NOTDIR) } else { Ok(node) }
}

/// `/` behind a name that is to be made or moved says nothing.
fn without_slashes(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" if !path.is_empty() => "/",
        path => path,
    }
}
