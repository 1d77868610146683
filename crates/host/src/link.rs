//! The join link: where the coordinator is, the token that opens it, and whom to expect there; and a
//! coordinator's address, by any link to it.

use crate::fail::Fail;
use crate::tls::Fingerprint;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinLink {
    /// Scheme, host and port.
    pub base: String,
    pub token: String,
    /// The coordinator's certificate, if the link names it: `#TOKEN&fp=HEX`.
    pub pin: Option<Fingerprint>,
}

impl JoinLink {
    pub fn parse(text: &str) -> Result<JoinLink, Fail> {
        let (address, fragment) = text.trim().split_once('#').unwrap_or((text, ""));
        let mut parts = fragment.split('&');
        let token = parts.next().unwrap_or_default();
        if token.is_empty() {
            return Err(Fail::input(format!(
                "{text:?} has no token after '#': use the whole join link that `shoal up` prints, \
                 in quotes"
            )));
        }
        let mut pin = None;
        // A newer link may say more.
        for hex in parts.filter_map(|part| part.strip_prefix("fp=")) {
            pin = Some(hex.parse().map_err(|()| {
                let expected = "expected 64 hexadecimal digits";
                Fail::input(format!("fp={hex} is not a fingerprint: {expected}"))
            })?);
        }
        Ok(JoinLink { base: base_url(address)?, token: token.into(), pin })
    }

    /// The same for the operator's own machine, which shows the API key instead of a token.
    pub fn with_key(text: &str, key: String) -> Result<JoinLink, Fail> {
        let address = text.trim();
        let has_token = address.split_once('#').is_some_and(|(_, token)| !token.is_empty());
        let link = if has_token { address.to_owned() } else { format!("{address}#key") };
        Ok(JoinLink { token: key, ..JoinLink::parse(&link)? })
    }

    pub(crate) fn socket_url(&self) -> String {
        // http becomes ws, https becomes wss.
        format!("ws{}/node/socket", self.base.trim_start_matches("http"))
    }
}

/// A coordinator's address without path, query or fragment: dashboard and join links work as URL
/// too.
pub fn base_url(text: &str) -> Result<String, Fail> {
    let bad = || {
        Fail::input(format!(
            "no coordinator has the URL {text:?}: expected one such as http://127.0.0.1:7420"
        ))
    };
    let text = text.trim();
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = reqwest::Url::parse(&with_scheme).map_err(|_| bad())?;
    let host = url.host_str().unwrap_or_default();
    if !matches!(url.scheme(), "http" | "https") || host.is_empty() {
        return Err(bad());
    }
    let origin = url.origin().ascii_serialization();
    // A coordinator answers plain http to its own machine only.
    match origin.strip_prefix("http://") {
        Some(rest) if !is_loopback(host) => Ok(format!("https://{}", with_port(rest, &url))),
        _ => Ok(origin),
    }
}

/// Plain http on its usual port means that port, not the usual one of https.
fn with_port(authority: &str, url: &reqwest::Url) -> String {
    if url.port().is_some() { authority.into() } else { format!("{authority}:80") }
}

pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_names_place_token_and_certificate() {
        let plain = JoinLink::parse("http://127.0.0.1:7420/join#abc").expect("a link");
        assert_eq!(plain.socket_url(), "ws://127.0.0.1:7420/node/socket");
        assert_eq!((plain.token.as_str(), plain.pin), ("abc", None));
        let hex = "ab".repeat(32);
        let link = format!("https://10.0.0.5:7420/join#abc&fp={hex}&later=1");
        let pinned = JoinLink::parse(&link).expect("a link");
        assert_eq!(pinned.socket_url(), "wss://10.0.0.5:7420/node/socket");
        assert_eq!(pinned.pin.map(|pin| pin.to_string()), Some(hex));
    }

    #[test]
    fn what_is_no_link_says_why() {
        for (text, wanted) in [
            ("http://127.0.0.1:7420/join", "no token"),
            ("http://127.0.0.1:7420/join#", "no token"),
            ("https://h/join#t&fp=12", "not a fingerprint"),
            ("mailto:x#t", "no coordinator"),
        ] {
            let Err(Fail::Input { message, .. }) = JoinLink::parse(text) else { panic!("{text}") };
            assert!(message.contains(wanted), "{message}");
        }
    }

    #[test]
    fn any_link_of_a_coordinator_names_it() {
        let cases = [
            ("http://127.0.0.1:7420", "http://127.0.0.1:7420"),
            ("http://127.0.0.1:7420/#key=abc", "http://127.0.0.1:7420"),
            ("https://pool.example/join#tok", "https://pool.example"),
            ("localhost:7420", "http://localhost:7420"),
            ("http://[::1]:7420/", "http://[::1]:7420"),
            ("http://192.168.1.20:7420/join", "https://192.168.1.20:7420"),
            ("http://pool.example", "https://pool.example:80"),
        ];
        for (given, wanted) in cases {
            assert_eq!(base_url(given).expect(given), wanted);
        }
        for bad in ["", "ftp://x", "http://", "http://a b"] {
            assert!(base_url(bad).is_err(), "{bad:?}");
        }
    }
}
