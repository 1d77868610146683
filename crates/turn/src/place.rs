//! Where a server is and how it is reached, as its URL says (RFC 7064, RFC 7065).

use alloc::borrow::ToOwned;
use alloc::string::String;

const DEFAULT_PORT: u16 = 3478;
const DEFAULT_TLS_PORT: u16 = 5349;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub host: String,
    pub port: u16,
    pub by: By,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Udp,
    Tcp,
    /// TLS over TCP.
    Tls,
}

/// What `stun:host:port`, `turn:host:port?transport=tcp` or `turns:host:port` says, by its scheme (`stun` or
/// `turn`, without the s). `None` for others, and for DTLS, which nobody here speaks.
pub fn place(url: &str, scheme: &str) -> Option<Place> {
    let rest = url.strip_prefix(scheme)?;
    let (is_tls, rest) = match rest.strip_prefix('s') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let rest = rest.strip_prefix(':')?;
    let (rest, transport) = match rest.split_once('?') {
        Some((rest, transport)) => (rest, Some(transport)),
        None => (rest, None),
    };
    let (by, default) = match (is_tls, transport) {
        (false, None | Some("transport=udp")) => (By::Udp, DEFAULT_PORT),
        (false, Some("transport=tcp")) => (By::Tcp, DEFAULT_PORT),
        (true, None | Some("transport=tcp")) => (By::Tls, DEFAULT_TLS_PORT),
        (_, Some(_)) => return None,
    };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            (host, port.parse().ok()?)
        }
        Some(_) | None => (rest, default),
    };
    Some(Place { host: host.trim_matches(['[', ']']).to_owned(), port, by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_servers() {
        let at = |url, scheme| place(url, scheme).map(|place| (place.host, place.port, place.by));
        let is = |host: &str, port, by| Some((host.to_owned(), port, by));
        assert_eq!(at("stun:a.example:99", "stun"), is("a.example", 99, By::Udp));
        assert_eq!(at("stun:a.example", "stun"), is("a.example", 3478, By::Udp));
        assert_eq!(at("turn:a.example:99", "stun"), None);
        assert_eq!(at("turn:a.example:99", "turn"), is("a.example", 99, By::Udp));
        assert_eq!(at("turn:a:99?transport=udp", "turn"), is("a", 99, By::Udp));
        assert_eq!(at("turn:a:99?transport=tcp", "turn"), is("a", 99, By::Tcp));
        assert_eq!(at("turn:a:99?transport=smoke", "turn"), None);
        assert_eq!(at("turns:a:99", "turn"), is("a", 99, By::Tls));
        assert_eq!(at("turns:a?transport=tcp", "turn"), is("a", 5349, By::Tls));
        assert_eq!(at("turns:a?transport=udp", "turn"), None, "DTLS");
        assert_eq!(at("turn", "turn"), None);
        assert_eq!(at("stun:[::1]:7", "stun"), is("::1", 7, By::Udp));
        assert_eq!(at("stun:[2001:db8::1]", "stun"), is("2001:db8::1", 3478, By::Udp));
    }
}
