//! Who is there: a node says so first, and proves it.

use shoal_protocol::codec::{DecodeError, Wire};
use shoal_protocol::limit::{OLDEST_VERSION, PROTOCOL_VERSION};
use shoal_protocol::sign::join_statement;
use shoal_protocol::{Bytes, FromNode, Hello, PublicKey, Refusal, ToNode};

use super::ears::{Ears, Heard};
use super::end::{End, ended};
use super::mouth::Mouth;
use super::parcel::Parcel;
use super::ws::Kind;
use crate::http::App;
use crate::keys::has_signed;

/// Asks who it is, and whether that can be believed. Done here, because checking a signature takes longer
/// than anything the driver does for a node.
pub(super) async fn greet(
    app: &App,
    ears: &mut Ears,
    mouth: &mut Mouth,
) -> Result<(Hello, bool), End> {
    let mut nonce = [0; 32];
    if let Err(error) = getrandom::fill(&mut nonce) {
        tracing::error!("no random bytes for a challenge: {error}");
        return Err(End::Refused(Refusal::Full));
    }
    let coordinator = app.signer.public();
    mouth.say(&ToNode::Challenge { nonce, coordinator }).await.map_err(|_| End::Gone)?;
    let hello = greeting(ears, mouth).await?;
    let (oldest, newest, yours) = (OLDEST_VERSION, PROTOCOL_VERSION, hello.version);
    if !(oldest..=newest).contains(&yours) {
        return Err(End::Refused(Refusal::Version { oldest, newest, yours }));
    }
    let trusted = app.auth.key.matches(&hello.token);
    if !trusted && !app.auth.token.matches(&hello.token) {
        return Err(End::Refused(Refusal::Token));
    }
    let (who, statement) = (PublicKey(hello.identity.0), join_statement(&coordinator, &nonce));
    if !has_signed(&who, &statement, &hello.proof) {
        return Err(End::Refused(Refusal::Identity));
    }
    Ok((hello, trusted))
}

async fn greeting(ears: &mut Ears, mouth: &mut Mouth) -> Result<Hello, End> {
    loop {
        match ears.next().await.map_err(ended)? {
            Heard::Message(parcel) => match decode(parcel)? {
                Some(FromNode::Hello(hello)) => return Ok(*hello),
                Some(_) => return Err(End::Refused(Refusal::Garbled)),
                None => {}
            },
            Heard::Ping(word) => {
                mouth.send([Parcel::new(Kind::Pong, &word)]).await.map_err(|_| End::Gone)?;
            }
            Heard::Pong(_) => {}
            Heard::Close(words) => return Err(End::Left(words)),
        }
    }
}

/// A message of a kind that this build knows; `None` for others. What it carries stays in the parcel if it is most of it.
pub(super) fn decode(parcel: Parcel) -> Result<Option<FromNode>, End> {
    if parcel.is_mostly_payload() {
        let bytes = Bytes::from_owner(parcel);
        known(FromNode::decode_shared(&bytes), &bytes)
    } else {
        known(FromNode::decode(parcel.payload()), parcel.payload())
    }
}

fn known(decoded: Result<FromNode, DecodeError>, bytes: &[u8]) -> Result<Option<FromNode>, End> {
    match decoded {
        Ok(message) => Ok(Some(message)),
        Err(DecodeError::UnknownKind(kind)) => {
            tracing::debug!(kind, "an unknown message");
            Ok(None)
        }
        Err(DecodeError::TooLarge(_) | DecodeError::Garbled) => {
            Err(End::Refused(strange_version(bytes).unwrap_or(Refusal::Garbled)))
        }
    }
}

/// A `Hello` of another protocol may be unreadable but for its version, which stands first.
fn strange_version(bytes: &[u8]) -> Option<Refusal> {
    let (kind, version) =
        postcard::from_bytes::<(u8, u16)>(bytes.get(..bytes.len().min(4))?).ok()?;
    let ours = (OLDEST_VERSION..=PROTOCOL_VERSION).contains(&version);
    let (oldest, newest, yours) = (OLDEST_VERSION, PROTOCOL_VERSION, version);
    (kind == 0 && !ours).then_some(Refusal::Version { oldest, newest, yours })
}
