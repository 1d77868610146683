//! Certificates that browsers accept by their hash: ECDSA on P-256, valid for at most 14 days. There is one that is
//! shown, and the next, which nodes know before it is shown.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use wtransport::tls::Certificate;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Clocks of devices go wrong by hours, seldom by a day.
const VALID_BEFORE: Duration = DAY;
/// With the day before 13 days; browsers take 14.
const VALID_AFTER: Duration = Duration::from_secs(12 * DAY.as_secs());
/// How long a certificate is shown. One is made as the next, is shown after this time, and for as long: at its end it
/// has two days left.
const SHOWN: Duration = Duration::from_secs(5 * DAY.as_secs());

/// Hashes of the certificate that is shown and of the next.
pub(super) type Hashes = Vec<[u8; 32]>;

/// What stops certificates from being made.
pub(super) type NoCertificate = String;

#[derive(Debug)]
pub(super) struct Certificates {
    provider: Arc<CryptoProvider>,
    pair: RwLock<Pair>,
}

#[derive(Debug)]
struct Pair {
    shown: Made,
    next: Made,
}

#[derive(Debug)]
struct Made {
    key: Arc<CertifiedKey>,
    hash: [u8; 32],
    at: SystemTime,
}

impl Certificates {
    pub(super) fn new(
        provider: Arc<CryptoProvider>,
        now: SystemTime,
    ) -> Result<Certificates, NoCertificate> {
        let pair = Pair { shown: make(&provider, now)?, next: make(&provider, now)? };
        Ok(Certificates { provider, pair: RwLock::new(pair) })
    }

    pub(super) fn hashes(&self) -> Hashes {
        let pair = self.pair.read().unwrap_or_else(PoisonError::into_inner);
        vec![pair.shown.hash, pair.next.hash]
    }

    /// Shows the next certificate if it is time. Whether it was.
    pub(super) fn turn(&self, now: SystemTime) -> Result<bool, NoCertificate> {
        let mut pair = self.pair.write().unwrap_or_else(PoisonError::into_inner);
        let Some(age) = now.duration_since(pair.next.at).ok().filter(|age| *age >= SHOWN) else {
            return Ok(false);
        };
        let new = make(&self.provider, now)?;
        // A machine that slept for a week has two that are too old.
        let is_fresh = age + SHOWN < VALID_AFTER;
        let shown = if is_fresh { None } else { Some(make(&self.provider, now)?) };
        let next = std::mem::replace(&mut pair.next, new);
        pair.shown = shown.unwrap_or(next);
        Ok(true)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let pair = self.pair.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&pair.shown.key))
    }
}

fn make(provider: &CryptoProvider, now: SystemTime) -> Result<Made, NoCertificate> {
    let bad = |error: rcgen::Error| error.to_string();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    // Nodes know it by its hash; no name is looked at.
    let mut params = rcgen::CertificateParams::new(["shoal".to_owned()]).map_err(bad)?;
    params.distinguished_name.push(rcgen::DnType::CommonName, "Shoal relay");
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + since.saturating_sub(VALID_BEFORE);
    params.not_after = epoch + since + VALID_AFTER;
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(bad)?;
    let der = params.self_signed(&pair).map_err(bad)?.der().clone();
    let certificate = Certificate::from_der(der.to_vec()).map_err(|error| error.to_string())?;
    let hash = *certificate.hash().as_ref();
    let secret = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pair.serialize_der()));
    let key = CertifiedKey::from_der(vec![der], secret, provider);
    Ok(Made { key: Arc::new(key.map_err(|error| error.to_string())?), hash, at: now })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificates(now: SystemTime) -> Certificates {
        Certificates::new(Arc::new(rustls::crypto::aws_lc_rs::default_provider()), now).unwrap()
    }

    fn days(count: u64) -> Duration {
        DAY * count as u32
    }

    #[test]
    fn the_next_one_is_known_before_it_is_shown() {
        let start = SystemTime::now();
        let certificates = certificates(start);
        let before = certificates.hashes();
        assert_ne!(before[0], before[1]);
        assert_eq!(certificates.turn(start + days(4)), Ok(false));
        assert_eq!(certificates.hashes(), before);
        assert_eq!(certificates.turn(start + days(5)), Ok(true));
        let after = certificates.hashes();
        assert_eq!(after[0], before[1]);
        assert!(!before.contains(&after[1]));
        assert_eq!(certificates.turn(start + days(5)), Ok(false));
        assert_eq!(certificates.turn(start - days(5)), Ok(false), "a clock that was put back");
    }

    #[test]
    fn after_a_long_sleep_both_are_new() {
        let start = SystemTime::now();
        let certificates = certificates(start);
        let before = certificates.hashes();
        assert_eq!(certificates.turn(start + days(9)), Ok(true));
        assert!(certificates.hashes().iter().all(|hash| !before.contains(hash)));
    }

    #[test]
    fn browsers_accept_how_long_it_is_valid() {
        assert!(VALID_BEFORE + VALID_AFTER <= days(14));
        assert!(2 * SHOWN < VALID_AFTER);
    }
}
