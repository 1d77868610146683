//! The servers that help nodes find direct ways to each other, as members of crews are told of them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use shoal_protocol::{Micros, NodeId, Time};

use crate::options::{OpenError, Options};

/// Servers in all: browsers warn from five on, and each costs every link some packets.
const MAX_SERVERS: usize = 8;

/// Passwords made from a secret are good for so long: a crew is called anew, with new ones, twice a day.
const PASSWORDS_LAST: Micros = Micros::from_secs(24 * 3600);
/// Begins the word that is a secret, where others give a name and a password.
const SECRET: &str = "secret:";

/// STUN servers, then TURN servers.
pub(crate) struct Ice(Vec<Server>);

enum Server {
    /// Said to everybody as it is: a STUN server, or a TURN server with a name and a password.
    Open(String),
    /// A TURN server that shares this secret with the coordinator.
    Shared { url: String, secret: String },
}

impl Ice {
    pub(crate) fn of(options: &Options) -> Result<Ice, OpenError> {
        let stun = options.stun.iter().map(|given| stun(given));
        let all: Vec<Server> =
            stun.chain(options.turn.iter().map(|given| turn(given))).collect::<Result<_, _>>()?;
        if all.len() > MAX_SERVERS {
            let given = format!("{} servers", all.len());
            let expected = "at most 8 in all";
            return Err(OpenError::Ice { kind: "STUN or TURN", given, expected });
        }
        Ok(Ice(all))
    }

    /// What a node is told: URLs, those of TURN servers with a name and a password.
    pub(crate) fn told(&self, now: Time, node: NodeId) -> Vec<String> {
        let servers = self.0.iter().map(|server| match server {
            Server::Open(words) => words.clone(),
            Server::Shared { url, secret } => {
                let name = format!("{}:{node}", (now + PASSWORDS_LAST).0 / 1_000_000);
                let password = password(secret, &name);
                format!("{url} {name} {password}")
            }
        });
        servers.collect()
    }
}

/// As `turnserver --use-auth-secret` makes it: whoever has the secret need keep no list of names.
fn password(secret: &str, name: &str) -> String {
    // Keys of any length are taken.
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(secret.as_bytes()) else { return String::new() };
    mac.update(name.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

fn stun(given: &str) -> Result<Server, OpenError> {
    let mut words = given.split_whitespace();
    match (words.next().filter(|url| has_scheme(url, &["stun:", "stuns:"])), words.next()) {
        (Some(url), None) => Ok(Server::Open(url.into())),
        (_, _) => {
            let expected = "a URL such as stun:stun.example.org:3478";
            Err(OpenError::Ice { kind: "STUN", given: given.into(), expected })
        }
    }
}

fn turn(given: &str) -> Result<Server, OpenError> {
    let words: Vec<&str> = given.split_whitespace().collect();
    let is_turn = words.first().is_some_and(|url| has_scheme(url, &["turn:", "turns:"]));
    match words.as_slice() {
        [url, user, password] if is_turn => Ok(Server::Open(format!("{url} {user} {password}"))),
        [url, word] if is_turn && has_scheme(word, &[SECRET]) => {
            Ok(Server::Shared { url: (*url).into(), secret: word[SECRET.len()..].into() })
        }
        // The password stays out of the message.
        words => Err(OpenError::Ice {
            kind: "TURN",
            given: words.first().copied().unwrap_or_default().into(),
            expected: "a URL and a user and a password with spaces between, turn:turn.example.org:3478 USER PASSWORD, or a URL and a shared secret, turn:turn.example.org:3478 secret:SECRET",
        }),
    }
}

/// A URL of one of these schemes that names a host.
fn has_scheme(url: &str, schemes: &[&str]) -> bool {
    schemes.iter().any(|scheme| url.strip_prefix(scheme).is_some_and(|host| !host.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_passed_on_and_others_refused_with_words() {
        let told = |server| Ice(vec![server]).told(Time(0), NodeId(1)).remove(0);
        assert_eq!(told(stun("stun:a:3478").unwrap()), "stun:a:3478");
        assert_eq!(told(turn(" turn:a:3478  user secret ").unwrap()), "turn:a:3478 user secret");
        for bad in ["", "stun:", "http://a", "stun:a b"] {
            assert!(stun(bad).is_err(), "{bad}");
        }
        for bad in ["", "turn:a", "turn:a secret:", "turn:a secret", "turn:a b c d"] {
            assert!(turn(bad).is_err(), "{bad}");
        }
        let error = |given| turn(given).err().expect("refused").to_string();
        let words = error("turn:a:3478 user");
        assert!(words.contains("turn:a:3478") && words.contains("PASSWORD"), "{words}");
        assert!(!error("http:a user hidden").contains("hidden"));
        assert!(!error("turn:a secret:hidden more words").contains("hidden"));
    }

    /// The password is what OpenSSL makes of the same secret and name.
    #[test]
    fn names_say_until_when_they_are_good_and_passwords_follow_from_them() {
        let ice = Ice(vec![turn("turn:a:3478 secret:north").unwrap()]);
        let at = Time(1_000_000_000_000_000);
        let told = ice.told(at, NodeId(7));
        let name = "1000086400:7";
        assert_eq!(told, [format!("turn:a:3478 {name} {}", password("north", name))]);
        assert_eq!(password("north", name), "mXQ91tfqfHIWAuNw4e0HAtack9E=");
    }
}
