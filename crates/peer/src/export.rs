//! The owner's side: what the peer was granted, and what it does with it. Every operation is checked here.

use std::collections::BTreeMap;
use std::sync::Arc;

use shoal_protocol::Hasher;

use crate::error::{Code, PeerError};
use crate::handle::{Handle, Kind, Right, Rights};
use crate::part::{Landing, Sending, hash_of};
use crate::words::{Claim, Part, Version, Words, data_channel};

/// Buffers exported on one connection: more are a leak.
const MAX_EXPORTS: usize = 4_096;
/// Operations of one peer at a time: each may need a copy of a buffer.
const MAX_SERVED: usize = 8;
/// WebGPU's COPY_SRC, COPY_DST and STORAGE: what a page may use its copy for.
const USAGE: u32 = 0x8c;

#[derive(Debug)]
pub(crate) struct Grant {
    token: String,
    rights: Rights,
    label: String,
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) version: u64,
    /// Of this version, once it travelled.
    hash: Option<String>,
}

#[derive(Debug)]
struct Writing {
    buffer: u32,
    onto: i64,
    landing: Landing,
}

#[derive(Debug, Default)]
pub(crate) struct Exports {
    grants: BTreeMap<u32, Grant>,
    reading: BTreeMap<u64, (u32, Sending)>,
    writing: BTreeMap<u64, Writing>,
    last: u32,
}

/// What the peer hears: words, bytes behind them, and on which channel.
pub(crate) type Said = (Words, Vec<u8>, u16);

impl Exports {
    pub(crate) fn add(
        &mut self,
        me: u64,
        seed: &[u8; 32],
        bytes: Vec<u8>,
        (rights, label): (Rights, &str),
    ) -> Result<Handle, PeerError> {
        if bytes.is_empty() || !bytes.len().is_multiple_of(4) {
            let message =
                format!("{} bytes cannot be exported: expected a multiple of 4", bytes.len());
            return Err(PeerError::new(Code::Usage, message));
        }
        if self.grants.len() >= MAX_EXPORTS {
            let message = format!("{MAX_EXPORTS} buffers are exported already: take some back");
            return Err(PeerError::new(Code::Busy, message));
        }
        self.last += 1;
        let (size, label) = (bytes.len() as u64, String::from(label));
        let token = token(seed, self.last);
        let handle = Handle {
            kind: Kind::Buffer,
            peer: me,
            buffer: self.last,
            label: label.clone(),
            size,
            usage: USAGE,
            version: 1,
            rights: rights.clone(),
            token: token.clone(),
        };
        let grant = Grant { token, rights, label, bytes: Arc::new(bytes), version: 1, hash: None };
        self.grants.insert(self.last, grant);
        Ok(handle)
    }

    /// What was granted with a handle; says so if it was not.
    pub(crate) fn find(&self, claim: &Claim, needed: &[Right]) -> Result<&Grant, PeerError> {
        let number = claim.buffer;
        let Some(grant) = self.grants.get(&number).filter(|grant| grant.token == claim.token)
        else {
            let message = format!("buffer {number} is not exported here, or not by this handle");
            return Err(PeerError::new(Code::UnknownHandle, message));
        };
        let Some(missing) = needed.iter().find(|right| !grant.rights.has(**right)) else {
            return Ok(grant);
        };
        let (name, right, granted) =
            (named(number, &grant.label), missing.name(), grant.rights.names());
        let message = format!("{name}: no right to {right}; granted: {granted}");
        Err(PeerError::new(Code::Denied, message))
    }

    /// The owner's own next version.
    pub(crate) fn replace(&mut self, claim: &Claim, bytes: Vec<u8>) -> Result<Said, PeerError> {
        let size = self.find(claim, &[])?.bytes.len();
        if bytes.len() != size {
            let message = format!("{} bytes for a buffer of {size}", bytes.len());
            return Err(PeerError::new(Code::Size, message));
        }
        Ok(self.changed(claim.buffer, bytes, None))
    }

    pub(crate) fn remove(&mut self, claim: &Claim) -> Result<(), PeerError> {
        self.find(claim, &[])?;
        self.grants.remove(&claim.buffer);
        self.writing.retain(|_, writing| writing.buffer != claim.buffer);
        Ok(())
    }

    pub(crate) fn read(
        &mut self,
        id: u64,
        have: u64,
        claim: &Claim,
    ) -> Result<Option<Words>, PeerError> {
        let grant = self.find(claim, &[Right::Read])?;
        if grant.version == have {
            let hash = grant.hash.clone().unwrap_or_default();
            return Ok(Some(Words::Same { id, version: have, hash }));
        }
        self.check_room()?;
        let Some(grant) = self.grants.get_mut(&claim.buffer) else { return Ok(None) };
        let hash = grant.hash.get_or_insert_with(|| hash_of(&grant.bytes)).clone();
        let sending = Sending::new(grant.bytes.clone(), hash, grant.version, false);
        self.reading.insert(id, (claim.buffer, sending));
        Ok(None)
    }

    pub(crate) fn write(
        &mut self,
        id: u64,
        size: u64,
        onto: i64,
        claim: &Claim,
    ) -> Result<(), PeerError> {
        let grant = self.find(claim, &[Right::Write])?;
        let here = grant.bytes.len() as u64;
        if size != here {
            let name = named(claim.buffer, &grant.label);
            let message = format!("{name} has {here} bytes; {size} were to be written");
            return Err(PeerError::new(Code::Size, message));
        }
        check_base(claim.buffer, grant, onto)?;
        self.check_room()?;
        let writing = Writing { buffer: claim.buffer, onto, landing: Landing::new(size) };
        self.writing.insert(id, writing);
        Ok(())
    }

    /// Of a write; parts of one that was refused are not waited for any more. Answers with what the peer hears of
    /// the new version, if it is whole.
    pub(crate) fn part(&mut self, part: &Part, bytes: &[u8]) -> Result<Vec<Said>, PeerError> {
        let id = part.id;
        let Some(writing) = self.writing.get_mut(&id) else { return Ok(Vec::new()) };
        let took = Words::Took { id, from_owner: false, bytes: bytes.len() as u64 };
        let mut said = vec![control(took)];
        let (buffer, onto) = (writing.buffer, writing.onto);
        let Some((whole, hash)) = writing.landing.take(part, bytes)? else { return Ok(said) };
        self.writing.remove(&id);
        if let Some(grant) = self.grants.get(&buffer) {
            check_base(buffer, grant, onto)?;
        }
        let announced = self.changed(buffer, whole, Some(hash));
        let version = self.grants.get(&buffer).map_or(0, |grant| grant.version);
        said.extend([announced, control(Words::Wrote { id, version })]);
        Ok(said)
    }

    pub(crate) fn took(&mut self, id: u64, bytes: u64) {
        if let Some((_, sending)) = self.reading.get_mut(&id) {
            sending.took(bytes);
        }
    }

    /// A write is refused: nothing of it is kept.
    pub(crate) fn forget(&mut self, id: u64) {
        self.writing.remove(&id);
    }

    /// The next part that may leave.
    pub(crate) fn next(&mut self) -> Option<Said> {
        let said = self.reading.iter_mut().find_map(|(id, (buffer, sending))| {
            let (part, bytes) = sending.next(*id)?;
            Some((Words::Part(part), bytes.to_vec(), data_channel(*buffer)))
        });
        self.reading.retain(|_, (_, sending)| !sending.is_said());
        said
    }

    fn changed(&mut self, buffer: u32, bytes: Vec<u8>, hash: Option<String>) -> Said {
        let version = self.grants.get_mut(&buffer).map_or(0, |grant| {
            grant.version += 1;
            grant.bytes = Arc::new(bytes);
            grant.hash = hash;
            grant.version
        });
        control(Words::Version(Version { buffer, version }))
    }

    fn check_room(&self) -> Result<(), PeerError> {
        if self.reading.len() + self.writing.len() < MAX_SERVED {
            return Ok(());
        }
        let message = format!("{MAX_SERVED} transfers are under way on this connection already");
        Err(PeerError::new(Code::Busy, message))
    }
}

fn control(words: Words) -> Said {
    (words, Vec::new(), crate::words::CONTROL)
}

fn check_base(buffer: u32, grant: &Grant, onto: i64) -> Result<(), PeerError> {
    let version = grant.version;
    if onto < 0 || onto as u64 == version {
        return Ok(());
    }
    let name = named(buffer, &grant.label);
    let message = format!("{name} is at version {version}; this is based on version {onto}");
    Err(PeerError::new(Code::Stale, message))
}

fn named(buffer: u32, label: &str) -> String {
    match label {
        "" => format!("buffer {buffer}"),
        label => format!("buffer {buffer} (\"{label}\")"),
    }
}

/// Half a hash of what only this connection knows.
fn token(seed: &[u8; 32], buffer: u32) -> String {
    let mut hasher = Hasher::new();
    hasher.update(b"shoal peer 1\0");
    hasher.update(seed);
    hasher.update(&buffer.to_le_bytes());
    let mut token = hasher.finish().to_string();
    token.truncate(32);
    token
}
