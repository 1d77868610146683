//! Whom to trust over https. A coordinator makes its own certificate, which no authority has
//! signed, so it is trusted by its fingerprint: one that was given, or the one seen first, which is
//! remembered.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

use crate::fail::Fail;
use crate::link::is_loopback;

/// The SHA-256 of a certificate, as `openssl x509 -fingerprint -sha256` shows it, without colons.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(crate) fn of(certificate: &[u8]) -> Option<Fingerprint> {
        // rustls needs SHA-256 itself; borrowing its copy spares a dependency.
        let suite = aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13()?;
        let hash = suite.common.hash_provider.hash(certificate);
        hash.as_ref().try_into().ok().map(Fingerprint)
    }

    /// Of the first certificate in a PEM file.
    pub fn of_file(path: &Path) -> Option<Fingerprint> {
        CertificateDer::from_pem_file(path).ok().and_then(|first| Fingerprint::of(&first))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = ();

    fn from_str(text: &str) -> Result<Fingerprint, ()> {
        let digits: String = text.chars().filter(|c| *c != ':').collect();
        // The same 64 digits that name a blob.
        digits.parse::<shoal_protocol::Hash>().map(|hash| Fingerprint(hash.0)).map_err(|_| ())
    }
}

/// Installs the one provider of cryptography. Must come before the first connection.
pub fn install_provider() {
    // It fails only if one is installed already, which is as good.
    let _ = aws_lc_rs::default_provider().install_default();
}

/// Called with a coordinator's address and a certificate that is shown there for the first time and trusted
/// from then on: somebody should compare it.
pub type FirstSeen = fn(base: &str, found: Fingerprint);

/// Whom this process trusts.
#[derive(Clone, Debug)]
pub struct Trust(Arc<Verifier>);

impl Trust {
    /// Trust in the coordinator at `base`. With a fingerprint only that certificate will do;
    /// without, the first one seen there is remembered in the data folder.
    pub fn new(data: &Path, base: &str, pin: Option<Fingerprint>, first_seen: FirstSeen) -> Trust {
        let known = Known { path: data.join("known.json"), base: base.into(), first_seen };
        Trust::with(pin, Some(known))
    }

    /// Trusts nobody until told whom by [`Trust::pin`], and touches no file.
    pub(crate) fn nobody() -> Trust {
        Trust::with(None, None)
    }

    fn with(pin: Option<Fingerprint>, known: Option<Known>) -> Trust {
        Trust(Arc::new(Verifier {
            provider: Arc::new(aws_lc_rs::default_provider()),
            pin: Mutex::new(pin),
            known,
            seen: Mutex::new(None),
        }))
    }

    pub fn config(&self) -> Result<ClientConfig, Fail> {
        let builder = ClientConfig::builder_with_provider(self.0.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| Fail::world("tls", error.to_string()))?;
        Ok(builder
            .dangerous()
            .with_custom_certificate_verifier(self.0.clone())
            .with_no_client_auth())
    }

    /// From now on only this certificate will do.
    pub(crate) fn pin(&self, pin: Fingerprint) {
        *self.0.pin.lock().unwrap_or_else(PoisonError::into_inner) = Some(pin);
    }

    /// The certificate last seen and accepted.
    pub(crate) fn seen(&self) -> Option<Fingerprint> {
        *self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    pin: Mutex<Option<Fingerprint>>,
    known: Option<Known>,
    seen: Mutex<Option<Fingerprint>>,
}

#[derive(Debug)]
struct Known {
    /// The file of coordinators and the fingerprints first seen there.
    path: PathBuf,
    /// Which of them this is about.
    base: String,
    first_seen: FirstSeen,
}

impl Verifier {
    fn pinned(&self) -> Option<Fingerprint> {
        *self.pin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By fingerprint; `is_public` asks whether an authority the system trusts has signed it, which
    /// takes a while and so comes last: an operator's own certificate may be renewed without
    /// anyone noticing.
    fn judge(
        &self,
        host: &str,
        found: Fingerprint,
        is_public: impl FnOnce() -> bool,
    ) -> Result<(), Error> {
        if let Some(pin) = self.pinned() {
            return if pin == found { Ok(()) } else { Err(mismatch(host, pin, found)) };
        }
        let Some(Known { path, base, first_seen }) = &self.known else {
            return Err(Error::General(format!("no certificate of {host} is trusted yet")));
        };
        let mut known = read_known(path);
        let seen = known.get(base).and_then(|text| text.parse().ok());
        if is_loopback(host) || seen == Some(found) || is_public() {
            return Ok(());
        }
        if let Some(seen) = seen {
            return Err(mismatch(base, seen, found));
        }
        first_seen(base, found);
        known.insert(base.clone(), found.to_string());
        write_known(path, &known);
        Ok(())
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = Fingerprint::of(end_entity)
            .ok_or_else(|| Error::General("no SHA-256 in this build".into()))?;
        self.judge(&server_name.to_str(), found, || {
            let platform = rustls_platform_verifier::Verifier::new(self.provider.clone());
            platform.is_ok_and(|platform| {
                platform
                    .verify_server_cert(end_entity, intermediates, server_name, ocsp, now)
                    .is_ok()
            })
        })?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// What TLS has against the other side, if that is among the causes of an error.
pub fn distrust(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<Error>() {
        // The general one is ours: no other fault of TLS is a matter of trust.
        let Error::General(message) = error else { return None };
        return Some(message.clone());
    }
    // An IO error keeps what it was made of apart from its causes.
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    match wrapped {
        Some(wrapped) => distrust(wrapped),
        None => error.source().and_then(distrust),
    }
}

fn mismatch(host: &str, wanted: Fingerprint, found: Fingerprint) -> Error {
    Error::General(format!(
        "{host} shows another certificate than expected (expected {wanted}, found {found}): if its \
         coordinator was set up again, use its new join link or remove its line from known.json in the \
         data folder; otherwise someone may be intercepting the connection"
    ))
}

fn read_known(path: &Path) -> BTreeMap<String, String> {
    std::fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Best effort: a folder that cannot be written means being asked to trust again next time.
fn write_known(path: &Path, known: &BTreeMap<String, String>) {
    if let Some(folder) = path.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    let _ = std::fs::write(path, serde_json::to_vec_pretty(known).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_sha_256_and_reads_back() {
        let empty = Fingerprint::of(b"").expect("SHA-256");
        let text = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(empty.to_string(), text);
        assert_eq!(text.parse(), Ok(empty));
        assert_eq!(text.to_uppercase().parse(), Ok(empty));
        assert_eq!("12".parse::<Fingerprint>(), Err(()));
    }

    #[test]
    fn the_first_certificate_is_remembered_and_another_refused() {
        let folder = std::env::temp_dir().join(format!("shoal-tls-{}", std::process::id()));
        let (one, two) = (Fingerprint([1; 32]), Fingerprint([2; 32]));
        let trust = Trust::new(&folder, "https://pool.example:1", None, |_, _| {});
        assert!(trust.0.judge("pool.example", one, || false).is_ok());
        assert!(trust.0.judge("pool.example", one, || false).is_ok());
        let error = trust.0.judge("pool.example", two, || false).expect_err("another certificate");
        assert!(error.to_string().contains("another certificate"), "{error}");
        assert!(trust.0.judge("pool.example", two, || true).is_ok(), "an authority vouches");
        let beside = Trust::new(&folder, "https://pool.example:2", None, |_, _| {});
        assert!(
            beside.0.judge("pool.example", two, || false).is_ok(),
            "another port is another coordinator"
        );
        let pinned = Trust::new(&folder, "https://pool.example:1", Some(two), |_, _| {});
        assert!(pinned.0.judge("pool.example", one, || false).is_err());
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
