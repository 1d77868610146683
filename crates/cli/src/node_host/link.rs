//! The join link: where the coordinator is, the token that opens it, and whom to expect there.

use crate::fail::Fail;
use crate::place::base_url;
use crate::tls::Fingerprint;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JoinLink {
    /// Scheme, host and port.
    pub(crate) base: String,
    pub(crate) token: String,
    /// The coordinator's certificate, if the link names it: `#TOKEN&fp=HEX`.
    pub(crate) pin: Option<Fingerprint>,
}

impl JoinLink {
    pub(crate) fn parse(text: &str) -> Result<JoinLink, Fail> {
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
                Fail::input(format!("fp={hex} is no fingerprint: {expected}"))
            })?);
        }
        Ok(JoinLink { base: base_url(address)?, token: token.into(), pin })
    }

    /// The same for the operator's own machine, which shows the API key instead of a token.
    pub(crate) fn with_key(text: &str, key: String) -> Result<JoinLink, Fail> {
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
            ("https://h/join#t&fp=12", "no fingerprint"),
            ("mailto:x#t", "no coordinator"),
        ] {
            let Err(Fail::Input { message, .. }) = JoinLink::parse(text) else { panic!("{text}") };
            assert!(message.contains(wanted), "{message}");
        }
    }
}
