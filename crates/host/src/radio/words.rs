//! What two radios say to each other before they hear each other: session descriptions and candidates, as the
//! JSON that a browser's `RTCPeerConnection` gives and takes.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use str0m::Candidate;
use str0m::change::{SdpAnswer, SdpOffer};

use super::streams::{self, MAX_ADDRESSES};

/// Longest words heard. A description of one data channel has less than 2 kB.
const MAX_WORDS: usize = 16 << 10;
const CANDIDATE: &str = "a=candidate:";

/// Words that were understood.
pub(super) enum Words {
    /// Of a channel, and perhaps of streams.
    Offer(SdpOffer, Option<streams::Offer>),
    Answer(SdpAnswer),
    /// Said only to who offered streams.
    Streams(streams::Offer),
    Candidate(Candidate),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Json {
    Description {
        r#type: String,
        sdp: String,
        /// Only native nodes look at it: browsers take the description and leave the rest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        streams: Option<Streams>,
    },
    Candidate {
        candidate: Trickled,
    },
    Streams {
        streams: Streams,
    },
}

#[derive(Serialize, Deserialize)]
struct Streams {
    /// 64 hexadecimal digits.
    half: String,
    at: Vec<SocketAddr>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Trickled {
    candidate: String,
    sdp_mid: Option<String>,
    sdp_m_line_index: Option<u16>,
}

/// `None` for what makes no sense, and for candidates this side cannot reach, such as the `.local`
/// names by which browsers hide addresses: who has such a name calls here itself.
pub(super) fn read(bytes: &[u8]) -> Option<Words> {
    if bytes.len() > MAX_WORDS {
        return None;
    }
    match serde_json::from_slice(bytes).ok()? {
        Json::Description { r#type, sdp, streams } => {
            let sdp = with_known_candidates(&sdp);
            match r#type.as_str() {
                "offer" => {
                    let offer = SdpOffer::from_sdp_string(&sdp).ok()?;
                    Some(Words::Offer(offer, streams.and_then(offered)))
                }
                "answer" => SdpAnswer::from_sdp_string(&sdp).ok().map(Words::Answer),
                _ => None,
            }
        }
        Json::Candidate { candidate } => {
            Candidate::from_sdp_string(&candidate.candidate).ok().map(Words::Candidate)
        }
        Json::Streams { streams } => offered(streams).map(Words::Streams),
    }
}

pub(super) fn offer(offer: &SdpOffer, streams: Option<&streams::Offer>) -> Vec<u8> {
    description("offer", offer.to_sdp_string(), streams)
}

pub(super) fn answer(answer: &SdpAnswer) -> Vec<u8> {
    description("answer", answer.to_sdp_string(), None)
}

pub(super) fn streams(offer: &streams::Offer) -> Vec<u8> {
    text(&Json::Streams { streams: said(offer) })
}

pub(super) fn candidate(candidate: &Candidate) -> Vec<u8> {
    let candidate = candidate.to_sdp_string();
    let (sdp_mid, sdp_m_line_index) = (None, Some(0));
    text(&Json::Candidate { candidate: Trickled { candidate, sdp_mid, sdp_m_line_index } })
}

fn description(kind: &str, sdp: String, streams: Option<&streams::Offer>) -> Vec<u8> {
    text(&Json::Description { r#type: kind.into(), sdp, streams: streams.map(said) })
}

fn said(offer: &streams::Offer) -> Streams {
    let half = blake3::Hash::from_bytes(offer.half).to_hex().to_string();
    Streams { half, at: offer.at.clone() }
}

fn offered(Streams { half, mut at }: Streams) -> Option<streams::Offer> {
    at.truncate(MAX_ADDRESSES);
    let half = *blake3::Hash::from_hex(half).ok()?.as_bytes();
    Some(streams::Offer { half, at })
}

fn text(json: &Json) -> Vec<u8> {
    // Strings and small numbers are always JSON.
    serde_json::to_vec(json).unwrap_or_default()
}

fn with_known_candidates(sdp: &str) -> String {
    let is_known = |line: &&str| match line.trim_end().strip_prefix("a=") {
        Some(rest) if line.starts_with(CANDIDATE) => Candidate::from_sdp_string(rest).is_ok(),
        Some(_) | None => true,
    };
    sdp.split_inclusive('\n').filter(is_known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_said_beside_an_offer_and_alone() {
        let offer =
            streams::Offer { half: [7; 32], at: vec!["10.0.0.7:5000".parse().expect("one")] };
        let words = streams(&offer);
        let golden =
            format!(r#"{{"streams":{{"half":"{}","at":["10.0.0.7:5000"]}}}}"#, "07".repeat(32));
        assert_eq!(String::from_utf8_lossy(&words), golden);
        assert!(matches!(read(&words), Some(Words::Streams(read)) if read == offer));
        for garbage in [r#"{"streams":{"half":"07","at":[]}}"#, r#"{"streams":{"half":""}}"#] {
            assert!(read(garbage.as_bytes()).is_none());
        }
    }

    #[test]
    fn hidden_and_garbled_candidates_are_left_out() {
        let hidden = "a=candidate:1 1 udp 2122260223 a0b1.local 50028 typ host\r\n";
        let plain = "a=candidate:2 1 udp 2122260223 10.0.0.7 50028 typ host\r\n";
        let sdp = format!("v=0\r\n{hidden}{plain}a=mid:0\r\n");
        assert_eq!(with_known_candidates(&sdp), format!("v=0\r\n{plain}a=mid:0\r\n"));
        let trickled = br#"{"candidate":{"candidate":"candidate:2 1 udp 2122260223 10.0.0.7 50028 typ host generation 0","sdpMid":"0","sdpMLineIndex":0}}"#;
        assert!(matches!(read(trickled), Some(Words::Candidate(_))));
        for garbage in [&b""[..], b"{}", b"{\"type\":\"offer\",\"sdp\":\"x\"}", &[255; 40]] {
            assert!(read(garbage).is_none());
        }
        assert!(read(&[b' '; MAX_WORDS + 1]).is_none());
    }
}
