//! HTTPS for other devices: a certificate made at first start and kept, or the operator's own.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::data::{DataFolder, write_private};
use crate::options::OpenError;

/// Apple's systems refuse certificates valid for more than 825 days.
const VALID: Duration = Duration::from_secs(820 * 24 * 3600);
/// Our own certificate is replaced when it has less than this left, so that it never runs out between
/// two starts a month apart.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * 24 * 3600);
/// First words of a certificate file that we made; the operator's own has no such line and is left alone.
const MADE_BY_US: &str = "# made by shoal, expires at unix second ";

pub(crate) fn acceptor(folder: &DataFolder, lan: &[IpAddr]) -> Result<TlsAcceptor, OpenError> {
    let (cert, key) = (folder.certificate(), folder.certificate_key());
    if must_make(&cert)? {
        make(&cert, &key, lan)?;
    }
    let bad = |message: String| OpenError::Certificate { path: cert.clone(), message };
    let chain = CertificateDer::pem_file_iter(&cert)
        .and_then(Iterator::collect)
        .map_err(|error| bad(error.to_string()))?;
    let key =
        PrivateKeyDer::from_pem_file(&key).map_err(|error| bad(format!("cert.key: {error}")))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| bad(error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn must_make(cert: &Path) -> Result<bool, OpenError> {
    match fs::read_to_string(cert) {
        Ok(text) => Ok(expires(&text).is_some_and(|at| at < unix_now() + RENEW_BEFORE)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(OpenError::file(cert, error)),
    }
}

/// When a certificate of ours ends; `None` for the operator's own.
fn expires(text: &str) -> Option<Duration> {
    let seconds = text.lines().next()?.strip_prefix(MADE_BY_US)?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}

fn make(cert: &Path, key: &Path, lan: &[IpAddr]) -> Result<(), OpenError> {
    let bad = |error: rcgen::Error| OpenError::Certificate {
        path: cert.into(),
        message: error.to_string(),
    };
    let mut names: Vec<String> = vec!["localhost".into(), "127.0.0.1".into(), "::1".into()];
    names.extend(lan.iter().map(IpAddr::to_string));
    let ends = unix_now() + VALID;
    let mut params = rcgen::CertificateParams::new(names).map_err(bad)?;
    params.distinguished_name.push(rcgen::DnType::CommonName, "Shoal coordinator");
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + unix_now().saturating_sub(Duration::from_secs(24 * 3600));
    params.not_after = epoch + ends;
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    let pair = rcgen::KeyPair::generate().map_err(bad)?;
    let made = params.self_signed(&pair).map_err(bad)?;
    // The key first: a certificate without its key would count as broken at the next start.
    write_private(key, pair.serialize_pem().as_bytes())
        .map_err(|error| OpenError::file(key, error))?;
    let text = format!("{MADE_BY_US}{}\n{}", ends.as_secs(), made.pem());
    write_private(cert, text.as_bytes()).map_err(|error| OpenError::file(cert, error))
}

fn unix_now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
