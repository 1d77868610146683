//! Two nodes that know each other's public keys agree on fresh ones: Noise KK in two messages. Each proves
//! that it has the secret half of its key; what is agreed depends on the pool, the crew and who calls whom.
//!
//! The first message may be a copy of an old one, which the answering node cannot tell: its seal is proven
//! by the first frame that opens with it, and until then nothing else may be given up for it.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use shoal_protocol::{CrewId, LinkKey, NodeId, PublicKey};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, Error, HandshakeState};

use crate::keys::Keys;
use crate::seal::Seal;

const PATTERN: &str = "Noise_KK_25519_ChaChaPoly_BLAKE2s";
/// What a message has beside its word: the fresh key and a tag.
const MESSAGE_BYTES: usize = 32 + 16;
/// A word said inside a handshake message: room for some numbers.
pub const MAX_WORD_BYTES: usize = 64;

/// Whose agreement it is. Both must mean the same, or it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parties {
    pub coordinator: PublicKey,
    pub crew: CrewId,
    pub caller: NodeId,
    pub called: NodeId,
}

impl Parties {
    fn prologue(&self) -> Vec<u8> {
        let numbers = [self.crew.0, self.caller.0, self.called.0];
        let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
        b"shoal link 1\0".iter().copied().chain(self.coordinator.0).chain(numbers).collect()
    }
}

/// The calling node's half, until the answer comes.
pub struct Handshake {
    state: HandshakeState,
}

/// The called node's half: it read the call and may look at its word before it answers.
pub struct Answering {
    state: HandshakeState,
    word: Vec<u8>,
}

impl Handshake {
    /// Calls: the first message, with a word inside that only the peer can read. `seed`: 32 random bytes used
    /// for nothing else. The message may be sent again as long as no answer came.
    pub fn initiate(
        keys: &Keys,
        peer: &LinkKey,
        parties: &Parties,
        seed: [u8; 32],
        word: &[u8],
    ) -> Result<(Handshake, Vec<u8>), ShakeError> {
        let mut state = build(keys, peer, parties, seed, true)?;
        let first = write(&mut state, word)?;
        Ok((Handshake { state }, first))
    }

    /// Reads a call. One that is no call of this peer leaves nothing behind.
    pub fn respond(
        keys: &Keys,
        peer: &LinkKey,
        parties: &Parties,
        seed: [u8; 32],
        first: &[u8],
    ) -> Result<Answering, ShakeError> {
        let mut state = build(keys, peer, parties, seed, false)?;
        let word = hear(&mut state, first)?;
        Ok(Answering { state, word })
    }

    /// Reads the answer: the seal, and the word inside. After an answer that is none, the true one can
    /// still come.
    pub fn finish(&mut self, answer: &[u8]) -> Result<(Seal, Vec<u8>), ShakeError> {
        let word = hear(&mut self.state, answer)?;
        let (outgoing, incoming) = self.state.dangerously_get_raw_split();
        Ok((Seal::new(&outgoing, &incoming, id(&self.state)), word))
    }
}

impl Answering {
    /// What the caller said.
    pub fn word(&self) -> &[u8] {
        &self.word
    }

    /// The answer to be sent, and the seal that a frame of the caller still has to prove.
    pub fn answer(mut self, word: &[u8]) -> Result<(Seal, Vec<u8>), ShakeError> {
        let answer = write(&mut self.state, word)?;
        let (incoming, outgoing) = self.state.dangerously_get_raw_split();
        Ok((Seal::new(&outgoing, &incoming, id(&self.state)), answer))
    }
}

fn build(
    keys: &Keys,
    peer: &LinkKey,
    parties: &Parties,
    seed: [u8; 32],
    calls: bool,
) -> Result<HandshakeState, ShakeError> {
    let prologue = parties.prologue();
    let params = PATTERN.parse().map_err(ShakeError::Noise)?;
    let builder = Builder::with_resolver(params, Box::new(Seeded(seed)))
        .local_private_key(&keys.secret)
        .and_then(|builder| builder.remote_public_key(&peer.0))
        .and_then(|builder| builder.prologue(&prologue))
        .map_err(ShakeError::Noise)?;
    let built = if calls { builder.build_initiator() } else { builder.build_responder() };
    built.map_err(ShakeError::Noise)
}

fn write(state: &mut HandshakeState, word: &[u8]) -> Result<Vec<u8>, ShakeError> {
    if word.len() > MAX_WORD_BYTES {
        return Err(ShakeError::Length(word.len()));
    }
    let mut message = vec![0; MESSAGE_BYTES + word.len()];
    let size = state.write_message(word, &mut message).map_err(ShakeError::Noise)?;
    message.truncate(size);
    Ok(message)
}

fn hear(state: &mut HandshakeState, message: &[u8]) -> Result<Vec<u8>, ShakeError> {
    let words = MESSAGE_BYTES..=MESSAGE_BYTES + MAX_WORD_BYTES;
    if !words.contains(&message.len()) {
        return Err(ShakeError::Length(message.len()));
    }
    let mut word = vec![0; message.len()];
    let size = state.read_message(message, &mut word).map_err(|_| ShakeError::Forged)?;
    word.truncate(size);
    Ok(word)
}

fn id(state: &HandshakeState) -> u64 {
    let hash = state.get_handshake_hash();
    hash.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

/// The usual primitives, but the fresh key is what the caller gave.
struct Seeded([u8; 32]);

impl CryptoResolver for Seeded {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(self.0))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// Gives its 32 bytes once: a second fresh key out of the same seed would be the same key.
struct Once(Option<[u8; 32]>);

impl Random for Once {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        let seed = self.0.take().ok_or(Error::Rng)?;
        let dest: &mut [u8; 32] = dest.try_into().map_err(|_| Error::Rng)?;
        *dest = seed;
        Ok(())
    }
}

/// Why an agreement failed.
#[derive(Debug)]
pub enum ShakeError {
    /// A message, or a word to be said in one, of a length that none has.
    Length(usize),
    /// Not said by the owner of that key, not to this node, or about another crew.
    Forged,
    /// The primitives refuse; keys from a wire cannot bring that about.
    Noise(Error),
}

impl fmt::Display for ShakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShakeError::Length(size) => write!(
                f,
                "a handshake of {size} bytes; expected {MESSAGE_BYTES} and a word of at most {MAX_WORD_BYTES}"
            ),
            ShakeError::Forged => f.write_str(
                "a handshake that is not of that member's key, or is about another crew or member",
            ),
            ShakeError::Noise(error) => write!(f, "the key agreement cannot be done: {error}"),
        }
    }
}
