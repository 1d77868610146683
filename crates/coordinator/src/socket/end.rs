//! How a talk ends: why, and what is said last.

use std::time::Duration;

use shoal_protocol::{Refusal, ToNode};
use tokio::time::timeout;

use super::ears::{Deaf, Ears};
use super::mouth::Mouth;

/// How long a last word may take to be sent.
const GOODBYE_WITHIN: Duration = Duration::from_secs(2);

/// Why a node's half of the talk ended.
pub(super) enum End {
    /// It left, or the driver ended it.
    Gone,
    /// It said goodbye, in these words.
    Left(Vec<u8>),
    Refused(Refusal),
}

/// What breaks the rules is the node's fault and worth a word; anything else is a lost connection.
pub(super) fn ended(deaf: Deaf) -> End {
    tracing::debug!("a socket ends: {deaf}");
    match deaf {
        Deaf::Gone(_) => End::Gone,
        Deaf::Head(_) | Deaf::TooLong(_) | Deaf::Text | Deaf::OutOfTurn => {
            End::Refused(Refusal::Garbled)
        }
    }
}

/// Says goodbye. One that does not listen any more has nothing to hear.
pub(super) async fn part(ears: &mut Ears, mouth: &mut Mouth, end: End) {
    mouth.outlet.forget_frames();
    let goodbye = async {
        match end {
            End::Gone => {}
            End::Left(words) => mouth.close(&words).await?,
            End::Refused(refusal) => {
                tracing::info!("a node is refused: {refusal}");
                let is_at_fault = refusal == Refusal::Garbled;
                mouth.say(&ToNode::Refused(refusal)).await?;
                mouth.close(&[]).await?;
                if is_at_fault {
                    // A socket closed with bytes unread would be reset, and the refusal lost.
                    ears.ignore().await;
                }
            }
        }
        std::io::Result::Ok(())
    };
    let _ = timeout(GOODBYE_WITHIN, goodbye).await;
    mouth.outlet.close();
}
