//! A tree of files, folders and symbolic links: who is where under which name, what they hold, what all of it takes.

use std::collections::BTreeMap;

use super::{Done, Errno};

/// A file, folder or link, counted from 1 in the order in which they were made: its inode.
pub(super) type Id = u32;

/// Longest name of an entry, as on Linux.
const MAX_NAME: usize = 255;
/// What an entry takes beside its name and bytes.
const ENTRY_BYTES: u64 = 256;
/// Where listing goes on behind `.` and `..`.
const FIRST_SERIAL: u64 = 3;
/// What a root has that must not count among what a program makes.
const LAST: Id = Id::MAX;

pub(super) struct Tree {
    nodes: BTreeMap<Id, Node>,
    made: Id,
    room: u64,
    taken: u64,
    most: usize,
}

pub(super) struct Node {
    pub(super) body: Body,
    pub(super) times: Times,
    /// Names that lead here.
    names: u32,
    /// Descriptors that are open on it.
    open: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) accessed: u64,
    pub(super) modified: u64,
    pub(super) created: u64,
}

impl Times {
    fn at(now: u64) -> Times {
        Times { accessed: now, modified: now, created: now }
    }
}

pub(super) enum Body {
    File(Vec<u8>),
    /// A file of the job, whose bytes are elsewhere.
    Shared {
        file: u32,
        size: u64,
    },
    Link(String),
    Folder(Folder),
}

#[derive(Default)]
pub(super) struct Folder {
    names: BTreeMap<String, Entry>,
    /// The names in the order in which they came, so that listing goes on where it was whatever is removed meanwhile.
    order: BTreeMap<u64, String>,
    came: u64,
    /// None of a root, and of one that was removed.
    parent: Option<Id>,
}

#[derive(Clone, Copy)]
struct Entry {
    node: Id,
    serial: u64,
}

impl Node {
    pub(super) fn folder(&self) -> Option<&Folder> {
        match &self.body {
            Body::Folder(folder) => Some(folder),
            Body::File(_) | Body::Shared { .. } | Body::Link(_) => None,
        }
    }

    pub(super) fn is_folder(&self) -> bool {
        self.folder().is_some()
    }

    /// What else takes room than its names.
    fn bytes(&self) -> u64 {
        match &self.body {
            Body::File(bytes) => bytes.len() as u64,
            Body::Link(target) => target.len() as u64,
            Body::Shared { .. } | Body::Folder(_) => 0,
        }
    }
}

impl Tree {
    pub(super) fn new(room: u64, most: usize) -> Tree {
        Tree { nodes: BTreeMap::new(), made: 0, room, taken: 0, most }
    }

    /// A folder of its own, which no name leads to.
    pub(super) fn root(&mut self) -> Id {
        self.insert(Body::Folder(Folder { came: FIRST_SERIAL, ..Folder::default() }), 0)
    }

    pub(super) fn first(&self) -> Id {
        1
    }

    /// A further root, with the last number of all: those of other files are the same with and without it.
    pub(super) fn last_root(&mut self) -> Id {
        let made = self.made;
        self.made = LAST - 1;
        let root = self.root();
        self.made = made;
        root
    }

    fn insert(&mut self, body: Body, now: u64) -> Id {
        self.made += 1;
        let node = Node { body, times: Times::at(now), names: 0, open: 0 };
        self.nodes.insert(self.made, node);
        self.made
    }

    pub(super) fn node(&self, id: Id) -> Done<&Node> {
        self.nodes.get(&id).ok_or(Errno::NOENT)
    }

    fn node_mut(&mut self, id: Id) -> Done<&mut Node> {
        self.nodes.get_mut(&id).ok_or(Errno::NOENT)
    }

    pub(super) fn times(&mut self, id: Id) -> Done<&mut Times> {
        Ok(&mut self.node_mut(id)?.times)
    }

    fn folder(&self, id: Id) -> Done<&Folder> {
        self.node(id)?.folder().ok_or(Errno::NOTDIR)
    }

    fn folder_mut(&mut self, id: Id) -> Done<&mut Folder> {
        match &mut self.node_mut(id)?.body {
            Body::Folder(folder) => Ok(folder),
            Body::File(_) | Body::Shared { .. } | Body::Link(_) => Err(Errno::NOTDIR),
        }
    }

    /// What a name in a folder leads to.
    pub(super) fn child(&self, folder: Id, name: &str) -> Done<Option<Id>> {
        if name.len() > MAX_NAME {
            return Err(Errno::NAMETOOLONG);
        }
        Ok(self.folder(folder)?.names.get(name).map(|entry| entry.node))
    }

    /// Links that Linux would count: names, and for a folder itself and the folders in it.
    pub(super) fn links(&self, id: Id) -> Done<u64> {
        let node = self.node(id)?;
        let Some(folder) = node.folder() else { return Ok(u64::from(node.names)) };
        if self.is_removed(id) {
            return Ok(0);
        }
        let inside = folder.names.values().filter(|entry| self.is_folder(entry.node)).count();
        Ok(2 + inside as u64)
    }

    pub(super) fn is_folder(&self, id: Id) -> bool {
        self.node(id).is_ok_and(Node::is_folder)
    }

    /// Roots have no names, and are held open by their descriptors' numbers only.
    fn is_removed(&self, id: Id) -> bool {
        self.node(id).is_ok_and(|node| {
            node.names == 0 && node.folder().is_none_or(|folder| folder.came == 0)
        })
    }

    /// The entries of a folder from a cookie on: what is told with each, its name, and where it leads.
    pub(super) fn list(
        &self,
        id: Id,
        from: u64,
    ) -> Done<impl Iterator<Item = (u64, &str, Id)> + '_> {
        let folder = self.folder(id)?;
        let from = from.saturating_add(1).max(FIRST_SERIAL);
        Ok(folder.order.range(from..).filter_map(|(serial, name)| {
            let entry = folder.names.get(name)?;
            Some((*serial, name.as_str(), entry.node))
        }))
    }

    /// Makes something new under a name that is free.
    pub(super) fn make(&mut self, folder: Id, name: &str, body: Body, now: u64) -> Done<Id> {
        let is_folder = matches!(body, Body::Folder(_));
        let bytes = if let Body::Link(target) = &body { target.len() as u64 } else { 0 };
        self.may_name(folder, name)?;
        self.take(bytes + ENTRY_BYTES + name.len() as u64)?;
        let id = self.insert(body, now);
        if is_folder {
            let made = self.folder_mut(id)?;
            (made.came, made.parent) = (FIRST_SERIAL, Some(folder));
        }
        self.enter(folder, name, id, now)?;
        Ok(id)
    }

    pub(super) fn make_folder(&mut self, folder: Id, name: &str, now: u64) -> Done<Id> {
        self.make(folder, name, Body::Folder(Folder::default()), now)
    }

    /// A further name.
    pub(super) fn link(&mut self, id: Id, folder: Id, name: &str, now: u64) -> Done {
        self.may_name(folder, name)?;
        self.take(ENTRY_BYTES + name.len() as u64)?;
        self.enter(folder, name, id, now)
    }

    /// Whether one more entry may be in a folder.
    fn may_name(&self, folder: Id, name: &str) -> Done {
        if name.len() > MAX_NAME {
            return Err(Errno::NAMETOOLONG);
        }
        if self.is_removed(folder) {
            return Err(Errno::NOENT);
        }
        if self.nodes.len() >= self.most || self.folder(folder)?.names.len() >= self.most {
            return Err(Errno::NOSPC);
        }
        Ok(())
    }

    fn enter(&mut self, folder: Id, name: &str, id: Id, now: u64) -> Done {
        self.node_mut(id)?.names += 1;
        let into = self.folder_mut(folder)?;
        let serial = into.came;
        into.came += 1;
        into.names.insert(name.to_owned(), Entry { node: id, serial });
        into.order.insert(serial, name.to_owned());
        self.times(folder)?.modified = now;
        Ok(())
    }

    /// Takes a name away, and what it led to if that was the last.
    pub(super) fn remove(&mut self, folder: Id, name: &str, now: u64) -> Done {
        let id = self.leave(folder, name, now)?;
        self.give_back(ENTRY_BYTES + name.len() as u64);
        if let Ok(gone) = self.folder_mut(id) {
            (gone.came, gone.parent) = (0, None);
        }
        self.drop_if_unused(id);
        Ok(())
    }

    fn leave(&mut self, folder: Id, name: &str, now: u64) -> Done<Id> {
        let from = self.folder_mut(folder)?;
        let entry = from.names.remove(name).ok_or(Errno::NOENT)?;
        from.order.remove(&entry.serial);
        self.times(folder)?.modified = now;
        self.node_mut(entry.node)?.names -= 1;
        Ok(entry.node)
    }

    /// The same thing under another name, which is free.
    pub(super) fn rename(
        &mut self,
        (from, old): (Id, &str),
        (to, new): (Id, &str),
        now: u64,
    ) -> Done {
        if new.len() > MAX_NAME {
            return Err(Errno::NAMETOOLONG);
        }
        if self.is_removed(to) {
            return Err(Errno::NOENT);
        }
        self.take((new.len().saturating_sub(old.len())) as u64)?;
        self.give_back((old.len().saturating_sub(new.len())) as u64);
        let id = self.leave(from, old, now)?;
        if let Ok(moved) = self.folder_mut(id) {
            moved.parent = Some(to);
        }
        self.enter(to, new, id, now)
    }

    /// Whether a folder is another one, or in it however deep.
    pub(super) fn is_within(&self, folder: Id, other: Id) -> bool {
        let mut at = Some(folder);
        while let Some(id) = at {
            if id == other {
                return true;
            }
            at = self.folder(id).ok().and_then(|it| it.parent);
        }
        false
    }

    pub(super) fn is_empty(&self, folder: Id) -> bool {
        self.folder(folder).is_ok_and(|folder| folder.names.is_empty())
    }

    pub(super) fn opened(&mut self, id: Id) {
        if let Ok(node) = self.node_mut(id) {
            node.open += 1;
        }
    }

    pub(super) fn closed(&mut self, id: Id) {
        if let Ok(node) = self.node_mut(id) {
            node.open = node.open.saturating_sub(1);
        }
        self.drop_if_unused(id);
    }

    fn drop_if_unused(&mut self, id: Id) {
        // A root is never unused: its folder has a number to give, and nobody takes it away.
        let Ok(node) = self.node(id) else { return };
        if node.open == 0 && self.is_removed(id) {
            let bytes = node.bytes();
            self.nodes.remove(&id);
            self.give_back(bytes);
        }
    }

    fn take(&mut self, bytes: u64) -> Done {
        match self.taken.checked_add(bytes).filter(|taken| *taken <= self.room) {
            Some(taken) => self.taken = taken,
            None => return Err(Errno::NOSPC),
        }
        Ok(())
    }

    fn give_back(&mut self, bytes: u64) {
        self.taken = self.taken.saturating_sub(bytes);
    }

    /// A file's bytes made so long, with zeros behind those it has.
    pub(super) fn resize(&mut self, id: Id, size: u64, now: u64) -> Done {
        let had = self.node(id)?.bytes();
        self.take(size.saturating_sub(had))?;
        self.give_back(had.saturating_sub(size));
        let node = self.node_mut(id)?;
        let Body::File(bytes) = &mut node.body else { return Err(Errno::INVAL) };
        bytes.resize(usize::try_from(size).map_err(|_| Errno::NOSPC)?, 0);
        if size < had {
            bytes.shrink_to_fit();
        }
        node.times.modified = now;
        Ok(())
    }

    /// The place in a file where bytes are to be written: for as many of them as there is room.
    pub(super) fn space(&mut self, id: Id, at: u64, len: u64, now: u64) -> Done<&mut [u8]> {
        let had = self.node(id)?.bytes();
        let end = at.checked_add(len).ok_or(Errno::INVAL)?.min(had + (self.room - self.taken));
        if end <= at {
            return Err(Errno::NOSPC);
        }
        self.take(end.saturating_sub(had))?;
        let node = self.node_mut(id)?;
        node.times.modified = now;
        let Body::File(bytes) = &mut node.body else { return Err(Errno::INVAL) };
        let (at, end, had) = (at as usize, end as usize, had as usize);
        if end > bytes.capacity() {
            // Not twice as much: what a file takes is counted by its length.
            bytes.reserve_exact((end - had).max(had / 4));
        }
        if end > had {
            bytes.resize(end, 0);
        }
        bytes.get_mut(at..end).ok_or(Errno::INVAL)
    }

    /// A file of the job under a name with `/` between folders.
    pub(super) fn put(&mut self, root: Id, name: &str, file: u32, size: u64) {
        let mut at = root;
        let mut rest = name;
        while let Some((folder, further)) = rest.split_once('/') {
            rest = further;
            if folder.is_empty() || folder == "." {
                continue;
            }
            let next = match self.child(at, folder) {
                Ok(Some(next)) => Ok(next),
                Ok(None) => self.make_folder(at, folder, 0),
                Err(error) => Err(error),
            };
            let Ok(next) = next else { return };
            at = next;
        }
        // Names were checked where the job was submitted: there is none twice, and none is too long to be told.
        let _ = self.make(at, rest, Body::Shared { file, size }, 0);
    }

    /// What must always hold.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut taken = 0;
        let mut names = BTreeMap::new();
        for (id, node) in &self.nodes {
            taken += node.bytes();
            assert!(node.open > 0 || !self.is_removed(*id), "{id} is of no use to anybody");
            let Some(folder) = node.folder() else { continue };
            assert_eq!(folder.names.len(), folder.order.len());
            for (name, entry) in &folder.names {
                taken += ENTRY_BYTES + name.len() as u64;
                assert_eq!(folder.order.get(&entry.serial), Some(name));
                *names.entry(entry.node).or_insert(0) += 1;
                if let Some(inside) = self.node(entry.node).ok().and_then(Node::folder) {
                    assert_eq!(inside.parent, Some(*id));
                }
            }
        }
        for (id, node) in &self.nodes {
            assert_eq!(node.names, names.get(id).copied().unwrap_or(0));
        }
        assert_eq!(taken, self.taken, "what is taken is counted");
        assert!(self.taken <= self.room);
    }
}
