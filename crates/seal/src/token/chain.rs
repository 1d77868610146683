//! A token's bytes: blocks, each signed by the key the one before names, and a proof at the end.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use ed25519_dalek::{Signer as _, SigningKey};
use serde::{Deserialize, Serialize};
use shoal_protocol::sign::token_statement;
use shoal_protocol::{Hash, Hasher, PublicKey, Signature};

use super::claims::Claims;
use crate::keys::is_signed;

/// Blocks of a token: the coordinator's, the holder's, and two more for whatever runs inside it.
pub const MAX_BLOCKS: usize = 4;
/// A block takes at most 160 bytes, the proof 65.
pub const MAX_TOKEN_BYTES: usize = 1024;

#[derive(Serialize, Deserialize)]
struct Token {
    blocks: Vec<Block>,
    proof: Proof,
}

#[derive(Serialize, Deserialize)]
struct Block {
    claims: Claims,
    /// Who may sign what comes next.
    next: PublicKey,
    signature: Signature,
}

#[derive(Serialize, Deserialize)]
enum Proof {
    /// In the holder's hands: the secret half of the last block's key.
    Secret([u8; 32]),
    /// Shown to others: signed with it.
    Shown(Signature),
}

/// A new token, for the holder alone. `sign` signs as the coordinator does; `secret` is 32 random bytes used
/// for nothing else.
pub fn mint(sign: impl FnOnce(&[u8]) -> Signature, claims: &Claims, secret: [u8; 32]) -> Vec<u8> {
    let next = public(&secret);
    let signature = sign(&token_statement(&digest(None, claims, &next)));
    let block = Block { claims: *claims, next, signature };
    encode(&Token { blocks: vec![block], proof: Proof::Secret(secret) })
}

/// The same token, allowing less.
pub fn attenuate(token: &[u8], narrower: &Claims, secret: [u8; 32]) -> Result<Vec<u8>, TokenError> {
    let mut token = decode(token)?;
    let Proof::Secret(last) = &token.proof else { return Err(TokenError::Shown) };
    let signer = SigningKey::from_bytes(last);
    if token.blocks.len() >= MAX_BLOCKS {
        return Err(TokenError::TooManyBlocks(token.blocks.len() + 1));
    }
    if token.blocks.last().is_none_or(|block| !narrower.within(&block.claims)) {
        return Err(TokenError::Wider { block: token.blocks.len() });
    }
    let next = public(&secret);
    let digest = digest(Some(token.last_digest()), narrower, &next);
    let signature = Signature::new(&signer.sign(&token_statement(&digest)).to_bytes());
    token.blocks.push(Block { claims: *narrower, next, signature });
    token.proof = Proof::Secret(secret);
    Ok(encode(&token))
}

/// The token as it is shown to others. One that was shown to us is passed on as it is.
pub fn present(token: &[u8]) -> Result<Vec<u8>, TokenError> {
    let mut token = decode(token)?;
    if let Proof::Secret(secret) = &token.proof {
        let statement = token_statement(&digest_of_end(&token.last_digest()));
        let signature = SigningKey::from_bytes(secret).sign(&statement);
        token.proof = Proof::Shown(Signature::new(&signature.to_bytes()));
    }
    Ok(encode(&token))
}

/// What a token allows, if the coordinator with that key began it and everything after was right.
pub fn read(token: &[u8], root: &PublicKey) -> Result<Claims, TokenError> {
    let token = decode(token)?;
    let (mut signer, mut before) = (*root, None);
    let mut claims: Option<Claims> = None;
    for (at, block) in token.blocks.iter().enumerate() {
        let digest = digest(before, &block.claims, &block.next);
        if !is_signed(&signer.0, &token_statement(&digest), &block.signature) {
            return Err(TokenError::Forged { block: at });
        }
        if claims.is_some_and(|wider| !block.claims.within(&wider)) {
            return Err(TokenError::Wider { block: at });
        }
        (signer, before, claims) = (block.next, Some(digest), Some(block.claims));
    }
    let end = before.unwrap_or(Hash([0; 32]));
    let proven = match &token.proof {
        Proof::Secret(secret) => public(secret) == signer,
        Proof::Shown(signature) => {
            is_signed(&signer.0, &token_statement(&digest_of_end(&end)), signature)
        }
    };
    if !proven {
        return Err(TokenError::Cut);
    }
    claims.ok_or(TokenError::Garbled)
}

impl Token {
    fn last_digest(&self) -> Hash {
        let digests = |before, block: &Block| Some(digest(before, &block.claims, &block.next));
        self.blocks.iter().fold(None, digests).unwrap_or(Hash([0; 32]))
    }
}

fn public(secret: &[u8; 32]) -> PublicKey {
    PublicKey(SigningKey::from_bytes(secret).verifying_key().to_bytes())
}

/// Names a block and all before it.
fn digest(before: Option<Hash>, claims: &Claims, next: &PublicKey) -> Hash {
    let mut hasher = Hasher::new();
    hasher.update(b"block");
    hasher.update(&before.unwrap_or(Hash([0; 32])).0);
    hasher.update(&postcard::to_allocvec(claims).unwrap_or_default());
    hasher.update(&next.0);
    hasher.finish()
}

/// Names a token's end, so that a block signed next can never be taken for it.
fn digest_of_end(last: &Hash) -> Hash {
    let mut hasher = Hasher::new();
    hasher.update(b"shown");
    hasher.update(&last.0);
    hasher.finish()
}

fn encode(token: &Token) -> Vec<u8> {
    postcard::to_allocvec(token).unwrap_or_default()
}

fn decode(bytes: &[u8]) -> Result<Token, TokenError> {
    if bytes.len() > MAX_TOKEN_BYTES {
        return Err(TokenError::TooLong(bytes.len()));
    }
    let (token, rest): (Token, _) =
        postcard::take_from_bytes(bytes).map_err(|_| TokenError::Garbled)?;
    if !rest.is_empty() {
        return Err(TokenError::Garbled);
    }
    match token.blocks.len() {
        0 => Err(TokenError::Garbled),
        1..=MAX_BLOCKS => Ok(token),
        blocks => Err(TokenError::TooManyBlocks(blocks)),
    }
}

/// Why bytes are no token that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    TooLong(usize),
    TooManyBlocks(usize),
    Garbled,
    /// Not signed by the key that should have signed it.
    Forged {
        block: usize,
    },
    /// Allows what the block before does not.
    Wider {
        block: usize,
    },
    /// Does not end with the last block's key: its end was cut off, or it is somebody else's.
    Cut,
    /// It was shown and can get no more blocks.
    Shown,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenError::TooLong(size) => {
                write!(f, "a token of {size} bytes; at most {MAX_TOKEN_BYTES} are allowed")
            }
            TokenError::TooManyBlocks(blocks) => {
                write!(f, "a token of {blocks} blocks; at most {MAX_BLOCKS} are allowed")
            }
            TokenError::Garbled => f.write_str("bytes that are no token"),
            TokenError::Forged { block: 0 } => {
                f.write_str("a token that this pool's coordinator did not sign")
            }
            TokenError::Forged { block } => {
                write!(f, "a token whose block {block} is not signed by the key before it")
            }
            TokenError::Wider { block } => {
                write!(f, "a token whose block {block} allows more than the one before")
            }
            TokenError::Cut => f.write_str("a token without its end"),
            TokenError::Shown => f.write_str(
                "a token that was shown by its holder; only the holder's own can be narrowed",
            ),
        }
    }
}
