//! Who may ask: the API key, the join token, and one session for each connected node.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};
use shoal_api::BESIDE;
use shoal_scheduler::Conn;

use crate::data::{DataFolder, write_private};
use crate::options::OpenError;

/// 128 bits: beyond guessing, and short enough for a link and its QR code.
const SECRET_BYTES: usize = 16;
/// Shorter secrets put into the folder by hand are refused, because they can be guessed.
const SHORTEST_SECRET: usize = 8;
/// A node whose socket broke may finish a transfer it began, for this long.
const SESSION_GRACE: Duration = Duration::from_secs(60);

/// A secret word, kept with its hash so that comparing takes the same time whatever is offered.
#[derive(Clone)]
pub(crate) struct Secret {
    text: String,
    hash: blake3::Hash,
}

impl Secret {
    /// Reads the secret of a file, or makes one there.
    pub(crate) fn load(path: &Path) -> Result<Secret, OpenError> {
        match fs::read_to_string(path) {
            Ok(text) if text.trim().len() >= SHORTEST_SECRET => Ok(Secret::new(text.trim())),
            Ok(text) => Err(too_short(path, text.trim().len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Secret::make(path),
            Err(error) => Err(OpenError::file(path, error)),
        }
    }

    fn make(path: &Path) -> Result<Secret, OpenError> {
        let text = random_word().map_err(|error| OpenError::Random(error.to_string()))?;
        write_private(path, text.as_bytes()).map_err(|error| OpenError::file(path, error))?;
        Ok(Secret::new(&text))
    }

    pub(crate) fn new(text: &str) -> Secret {
        Secret { text: text.into(), hash: blake3::hash(text.as_bytes()) }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Comparing BLAKE3 hashes is constant-time by that crate's promise.
    pub(crate) fn matches(&self, offered: &str) -> bool {
        blake3::hash(offered.as_bytes()) == self.hash
    }
}

fn too_short(path: &Path, found: usize) -> OpenError {
    let message = format!(
        "the secret in it has {found} bytes and could be guessed: write at least {SHORTEST_SECRET}, or remove the file to have a new one made"
    );
    OpenError::Folder { path: path.into(), source: io::Error::other(message) }
}

/// Everything that opens a door.
pub(crate) struct Auth {
    pub(crate) key: Secret,
    pub(crate) token: Secret,
    /// Known to those who can read the data folder while this coordinator runs.
    pub(crate) beside: Secret,
    sessions: RwLock<HashMap<blake3::Hash, Session>>,
}

struct Session {
    conn: Conn,
    /// Of the operator's own node.
    is_own: bool,
    ends: Option<Instant>,
}

impl Auth {
    pub(crate) fn load(folder: &DataFolder) -> Result<Auth, OpenError> {
        let beside = random_word().map_err(|error| OpenError::Random(error.to_string()))?;
        Ok(Auth {
            key: Secret::load(&folder.key())?,
            token: Secret::load(&folder.token())?,
            beside: Secret::new(&beside),
            sessions: RwLock::default(),
        })
    }

    /// Opens a session for a connection and gives its word.
    pub(crate) fn open_session(
        &self,
        conn: Conn,
        is_own: bool,
    ) -> Result<String, getrandom::Error> {
        let word = random_word()?;
        let session = Session { conn, is_own, ends: None };
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        sessions.insert(blake3::hash(word.as_bytes()), session);
        Ok(word)
    }

    /// The connection is gone; its session ends soon, and those that ended before are forgotten.
    pub(crate) fn close_session(&self, word: &str) {
        let now = Instant::now();
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = sessions.get_mut(&blake3::hash(word.as_bytes())) {
            session.ends = Some(now + SESSION_GRACE);
        }
        sessions.retain(|_, session| session.ends.is_none_or(|ends| ends > now));
    }

    /// Whose session a request carries.
    pub(crate) fn session(&self, headers: &HeaderMap) -> Option<Conn> {
        self.session_of(bearer(headers)?.as_bytes())
    }

    /// The same of the operator's own nodes that share this machine's data folder.
    pub(crate) fn session_beside(&self, headers: &HeaderMap) -> Option<Conn> {
        let (conn, is_own) = self.find_session(bearer(headers)?.as_bytes())?;
        (is_own && self.is_beside(headers)).then_some(conn)
    }

    /// Whose session this word is.
    pub(crate) fn session_of(&self, word: &[u8]) -> Option<Conn> {
        self.find_session(word).map(|(conn, _)| conn)
    }

    fn find_session(&self, word: &[u8]) -> Option<(Conn, bool)> {
        let hash = blake3::hash(word);
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        let session = sessions.get(&hash)?;
        let lives = session.ends.is_none_or(|ends| ends > Instant::now());
        lives.then_some((session.conn, session.is_own))
    }

    /// Whether who asks can read the data folder.
    pub(crate) fn is_beside(&self, headers: &HeaderMap) -> bool {
        let offered = headers.get(BESIDE).and_then(|word| word.to_str().ok());
        offered.is_some_and(|word| self.beside.matches(word))
    }

    pub(crate) fn has_key(&self, headers: &HeaderMap) -> bool {
        bearer(headers).is_some_and(|offered| self.key.matches(offered))
    }
}

/// The word after `Bearer` in the `Authorization` header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, word) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| word.trim())
}

/// A fresh secret in hexadecimal, from the system's randomness.
pub(crate) fn random_word() -> Result<String, getrandom::Error> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().fold(String::with_capacity(2 * SECRET_BYTES), |mut word, byte| {
        // Writing to a String cannot fail.
        let _ = write!(word, "{byte:02x}");
        word
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_matches_only_itself() {
        let secret = Secret::new("correct horse");
        assert!(secret.matches("correct horse"));
        assert!(!secret.matches("correct hors"));
        assert!(!secret.matches(""));
    }

    #[test]
    fn random_words_differ_and_are_long_enough() {
        let (one, two) = (random_word().unwrap(), random_word().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.len(), 2 * SECRET_BYTES);
    }

    #[test]
    fn bearer_words_are_read_whatever_the_case_of_the_scheme() {
        let mut headers = HeaderMap::new();
        assert_eq!(bearer(&headers), None);
        headers.insert(header::AUTHORIZATION, "bearer abc".parse().unwrap());
        assert_eq!(bearer(&headers), Some("abc"));
        headers.insert(header::AUTHORIZATION, "Basic abc".parse().unwrap());
        assert_eq!(bearer(&headers), None);
    }
}
