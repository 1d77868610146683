//! The importer's side: copies, and what was asked of the owner and is not answered yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Code, PeerError};
use crate::handle::Handle;
use crate::part::{Landing, Sending, hash_of};
use crate::words::{Claim, Part, Words, data_channel};

/// Transfers asked for at a time. Half of what an owner serves, so that it need not refuse.
const MAX_AT_ONCE: usize = 4;

/// An imported buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import(pub(crate) u32);

/// Something that was asked for: how it ends is an output with this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Op(pub(crate) u64);

/// A shader to run on the owner's device, over its buffers.
#[derive(Clone, Debug)]
pub struct RunThere<'a> {
    /// WGSL.
    pub code: &'a str,
    pub entry_point: &'a str,
    pub workgroups: [u32; 3],
    /// Group, binding, and the buffer that is bound there.
    pub buffers: &'a [(u32, u32, &'a Handle)],
}

/// What is here of a peer's buffer.
#[derive(Clone, Debug)]
pub struct Copy {
    pub(crate) handle: Handle,
    bytes: Arc<Vec<u8>>,
    version: u64,
    newest: u64,
    hash: String,
    is_revoked: bool,
}

impl Copy {
    /// Of `version`; empty before the first one.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// 0: none yet.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The newest version of the owner that is known here.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// BLAKE3 of this version, in hex.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    fn claim(&self) -> Claim {
        Claim { buffer: self.handle.buffer, token: self.handle.token.clone() }
    }
}

#[derive(Debug)]
enum Asked {
    Read { import: Import, landing: Landing },
    Write { import: Import, sending: Sending, bytes: Arc<Vec<u8>>, hash: String },
    Run,
}

#[derive(Debug, Default)]
pub(crate) struct Asks {
    copies: BTreeMap<Import, Copy>,
    asked: BTreeMap<u64, Asked>,
    last_import: u32,
    last_op: u64,
}

/// What the owner's answer led to.
pub(crate) enum Answered {
    Nothing,
    Done(Op, u64),
    Failed(Op, PeerError),
}

impl Asks {
    pub(crate) fn import(&mut self, handle: Handle, peer: u64) -> Result<Import, PeerError> {
        if handle.peer != peer {
            let owner = handle.peer;
            let message =
                format!("the handle is of node {owner}, and this connection goes to node {peer}");
            return Err(PeerError::new(Code::UnknownHandle, message));
        }
        self.last_import += 1;
        let import = Import(self.last_import);
        let newest = handle.version;
        let (bytes, hash) = (Arc::default(), String::new());
        let copy = Copy { handle, bytes, version: 0, newest, hash, is_revoked: false };
        self.copies.insert(import, copy);
        Ok(import)
    }

    pub(crate) fn release(&mut self, import: Import) {
        self.copies.remove(&import);
    }

    pub(crate) fn copy(&self, import: Import) -> Result<&Copy, PeerError> {
        let copy = self.copies.get(&import).filter(|copy| !copy.is_revoked);
        copy.ok_or_else(|| {
            PeerError::new(Code::UnknownHandle, "this copy was released, or its handle taken back")
        })
    }

    pub(crate) fn pull(&mut self, import: Import) -> Result<(Op, Words), PeerError> {
        self.check_room()?;
        let copy = self.copy(import)?;
        let (have, claim) = (copy.version, copy.claim());
        let landing = Landing::new(copy.handle.size);
        let op = self.ask(Asked::Read { import, landing });
        Ok((op, Words::Read { id: op.0, have, claim }))
    }

    pub(crate) fn push(
        &mut self,
        import: Import,
        bytes: Vec<u8>,
        onto: Option<u64>,
    ) -> Result<(Op, Words, u16), PeerError> {
        self.check_room()?;
        let copy = self.copy(import)?;
        let (size, claim) = (copy.handle.size, copy.claim());
        if bytes.len() as u64 != size {
            let message = format!("{} bytes for a buffer of {size}", bytes.len());
            return Err(PeerError::new(Code::Size, message));
        }
        let hash = hash_of(&bytes);
        let bytes = Arc::new(bytes);
        let sending = Sending::new(bytes.clone(), hash.clone(), 0, true);
        let channel = data_channel(claim.buffer);
        let op = self.ask(Asked::Write { import, sending, bytes, hash });
        let onto = onto.map_or(-1, |version| version as i64);
        Ok((op, Words::Write { id: op.0, size, onto, claim }, channel))
    }

    pub(crate) fn run(&mut self) -> Op {
        self.ask(Asked::Run)
    }

    /// Of a read. Answers with how much was taken.
    pub(crate) fn part(&mut self, part: &Part, bytes: &[u8]) -> (Option<Words>, Answered) {
        let (id, op) = (part.id, Op(part.id));
        let took = Words::Took { id, from_owner: true, bytes: bytes.len() as u64 };
        let Some(Asked::Read { import, landing }) = self.asked.get_mut(&id) else {
            // Not wanted any more: the owner must not wait for it to be taken.
            return (Some(took), Answered::Nothing);
        };
        let import = *import;
        let taken = landing.take(part, bytes);
        match taken {
            Ok(None) => (Some(took), Answered::Nothing),
            Ok(Some((whole, hash))) => {
                self.asked.remove(&id);
                self.hold(import, Arc::new(whole), part.version, hash);
                (Some(took), Answered::Done(op, part.version))
            }
            Err(error) => {
                self.asked.remove(&id);
                (None, Answered::Failed(op, error))
            }
        }
    }

    pub(crate) fn took(&mut self, id: u64, bytes: u64) {
        if let Some(Asked::Write { sending, .. }) = self.asked.get_mut(&id) {
            sending.took(bytes);
        }
    }

    /// The owner answered: the version there is now.
    pub(crate) fn answered(&mut self, id: u64, version: u64) -> Answered {
        match self.asked.remove(&id) {
            None => return Answered::Nothing,
            Some(Asked::Read { .. } | Asked::Run) => {}
            Some(Asked::Write { import, bytes, hash, .. }) => {
                self.hold(import, bytes, version, hash);
            }
        }
        Answered::Done(Op(id), version)
    }

    pub(crate) fn failed(&mut self, id: u64, error: PeerError) -> Answered {
        match self.asked.remove(&id) {
            Some(_) => Answered::Failed(Op(id), error),
            None => Answered::Nothing,
        }
    }

    /// The owner has this version. Which copies are older now.
    pub(crate) fn heard(&mut self, buffer: u32, version: u64) -> Vec<Import> {
        let mut older = Vec::new();
        for (import, copy) in &mut self.copies {
            if copy.handle.buffer == buffer && copy.newest < version {
                copy.newest = version;
                older.push(*import);
            }
        }
        older
    }

    pub(crate) fn revoked(&mut self, buffer: u32) {
        let copies = self.copies.values_mut().filter(|copy| copy.handle.buffer == buffer);
        copies.for_each(|copy| copy.is_revoked = true);
    }

    /// The next part that may leave.
    pub(crate) fn next(&mut self) -> Option<(Words, Vec<u8>, u16)> {
        let copies = &self.copies;
        self.asked.iter_mut().find_map(|(id, asked)| {
            let Asked::Write { import, sending, .. } = asked else { return None };
            let channel = data_channel(copies.get(import)?.handle.buffer);
            let (part, bytes) = sending.next(*id)?;
            Some((Words::Part(part), bytes.to_vec(), channel))
        })
    }

    /// The connection is over: everything that was asked for is.
    pub(crate) fn close(&mut self) -> Vec<Op> {
        std::mem::take(&mut self.asked).into_keys().map(Op).collect()
    }

    fn hold(&mut self, import: Import, bytes: Arc<Vec<u8>>, version: u64, hash: String) {
        if let Some(copy) = self.copies.get_mut(&import) {
            (copy.bytes, copy.version, copy.hash) = (bytes, version, hash);
            copy.newest = copy.newest.max(version);
        }
    }

    fn ask(&mut self, asked: Asked) -> Op {
        self.last_op += 1;
        self.asked.insert(self.last_op, asked);
        Op(self.last_op)
    }

    fn check_room(&self) -> Result<(), PeerError> {
        let transfers = self.asked.values().filter(|asked| !matches!(asked, Asked::Run)).count();
        if transfers < MAX_AT_ONCE {
            return Ok(());
        }
        let message = format!("{MAX_AT_ONCE} transfers are under way already: wait for one to end");
        Err(PeerError::new(Code::Busy, message))
    }
}
