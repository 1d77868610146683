//! Where a node connects from, as a number: votes count owners, and a thousand tabs behind one address
//! have one.

use std::net::IpAddr;

use axum::http::HeaderMap;

/// Bytes of an address that name its owner's network: /24 and /48 are what providers give one customer
/// or less.
const V4_PREFIX: usize = 3;
const V6_PREFIX: usize = 6;

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FarEnd(pub(crate) IpAddr);

impl FarEnd {
    /// Who really asks: a proxy on this machine says so, if there is one. Others could say anything, also
    /// through a plain tunnel that ends here.
    pub(crate) fn asking(self, headers: &HeaderMap, proxy: bool) -> IpAddr {
        let said = || {
            let value = headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()?;
            value.rsplit(',').next()?.trim().parse().ok()
        };
        let is_here = proxy && self.0.to_canonical().is_loopback();
        if is_here { said().unwrap_or(self.0) } else { self.0 }
    }
}

/// Numbers for networks, made with a key of this run, so that nobody can look for an address with the
/// same number.
pub(crate) struct Networks {
    key: [u8; 32],
}

impl Networks {
    pub(crate) fn new() -> Result<Networks, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Networks { key })
    }

    /// 0 where everybody shares one network and it says nothing about owners.
    pub(crate) fn number(&self, ip: IpAddr) -> u64 {
        let ip = ip.to_canonical();
        if is_shared(ip) {
            return 0;
        }
        let hash = match ip {
            IpAddr::V4(v4) => blake3::keyed_hash(&self.key, &v4.octets()[..V4_PREFIX]),
            IpAddr::V6(v6) => blake3::keyed_hash(&self.key, &v6.octets()[..V6_PREFIX]),
        };
        let bytes = hash.as_bytes();
        u64::from_le_bytes(std::array::from_fn(|at| bytes[at])).max(1)
    }
}

fn is_shared(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => {
            v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_unspecified()
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || v6.is_unspecified()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn neighbours_are_one_network_and_strangers_are_not() {
        let networks = Networks { key: [7; 32] };
        let number = |text| networks.number(ip(text));
        assert_eq!(number("203.0.113.5"), number("203.0.113.250"));
        assert_eq!(number("203.0.113.5"), number("::ffff:203.0.113.9"));
        assert_ne!(number("203.0.113.5"), number("203.0.114.5"));
        assert_eq!(number("2001:db8:1:2::3"), number("2001:db8:1:ffff::9"));
        assert_ne!(number("2001:db8:1:2::3"), number("2001:db8:2:2::3"));
        assert_ne!(number("203.0.113.5"), 0);
        let other = Networks { key: [8; 32] };
        assert_ne!(number("203.0.113.5"), other.number(ip("203.0.113.5")));
    }

    #[test]
    fn a_network_that_everybody_shares_says_nothing() {
        let networks = Networks { key: [7; 32] };
        for shared in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.1.9",
            "172.16.0.1",
            "169.254.1.1",
            "::1",
            "fd00::1",
            "fe80::1",
        ] {
            assert_eq!(networks.number(ip(shared)), 0, "{shared}");
        }
    }

    #[test]
    fn only_a_proxy_on_this_machine_may_speak_for_others() {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", "198.51.100.1, 203.0.113.5".parse().unwrap());
        assert_eq!(FarEnd(ip("127.0.0.1")).asking(&headers, true), ip("203.0.113.5"));
        assert_eq!(FarEnd(ip("127.0.0.1")).asking(&headers, false), ip("127.0.0.1"));
        assert_eq!(FarEnd(ip("192.0.2.1")).asking(&headers, true), ip("192.0.2.1"));
        assert_eq!(FarEnd(ip("::1")).asking(&HeaderMap::new(), true), ip("::1"));
        headers.insert("x-forwarded-for", "nobody".parse().unwrap());
        assert_eq!(FarEnd(ip("127.0.0.1")).asking(&headers, true), ip("127.0.0.1"));
    }
}
