//! The servers that help nodes find direct ways to each other, as members of crews are told of them.

use crate::options::{OpenError, Options};

/// Servers in all: browsers warn from five on, and each costs every link some packets.
const MAX_SERVERS: usize = 8;

/// STUN servers, then TURN servers with their user and password.
pub(crate) fn servers(options: &Options) -> Result<Vec<String>, OpenError> {
    let stun = options.stun.iter().map(|given| stun(given));
    let all: Vec<String> =
        stun.chain(options.turn.iter().map(|given| turn(given))).collect::<Result<_, _>>()?;
    if all.len() > MAX_SERVERS {
        let given = format!("{} servers", all.len());
        return Err(OpenError::Ice { kind: "STUN or TURN", given, expected: "at most 8 in all" });
    }
    Ok(all)
}

fn stun(given: &str) -> Result<String, OpenError> {
    let mut words = given.split_whitespace();
    match (words.next().filter(|url| has_scheme(url, &["stun:", "stuns:"])), words.next()) {
        (Some(url), None) => Ok(url.into()),
        (_, _) => {
            let expected = "a URL such as stun:stun.example.org:3478";
            Err(OpenError::Ice { kind: "STUN", given: given.into(), expected })
        }
    }
}

fn turn(given: &str) -> Result<String, OpenError> {
    let words: Vec<&str> = given.split_whitespace().collect();
    match words.as_slice() {
        [url, user, password] if has_scheme(url, &["turn:", "turns:"]) => {
            Ok(format!("{url} {user} {password}"))
        }
        // The password stays out of the message.
        words => Err(OpenError::Ice {
            kind: "TURN",
            given: words.first().copied().unwrap_or_default().into(),
            expected: "a URL, a user and a password with spaces between: turn:turn.example.org:3478 USER PASSWORD",
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
        assert_eq!(stun("stun:a:3478").unwrap(), "stun:a:3478");
        assert_eq!(turn(" turn:a:3478  user secret ").unwrap(), "turn:a:3478 user secret");
        for bad in ["", "stun:", "http://a", "stun:a b"] {
            assert!(stun(bad).is_err(), "{bad}");
        }
        let error = turn("turn:a:3478 user").unwrap_err().to_string();
        assert!(error.contains("turn:a:3478") && error.contains("PASSWORD"), "{error}");
        assert!(!turn("http:a user secret").unwrap_err().to_string().contains("secret"));
    }
}
