//! An answer on its way: whole characters from the bytes of tokens, and an end where a stop text begins.

use alloc::string::String;
use alloc::vec::Vec;

/// Puts characters together whose bytes come in several tokens.
#[derive(Clone, Debug, Default)]
pub struct Characters {
    /// The beginning of a character: three bytes at most.
    begun: Vec<u8>,
}

impl Characters {
    /// All characters that are whole now. Bytes that can never become one are shown as U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.begun.extend_from_slice(bytes);
        let mut text = String::new();
        loop {
            match core::str::from_utf8(&self.begun) {
                Ok(whole) => {
                    text += whole;
                    self.begun.clear();
                    return text;
                }
                Err(error) => {
                    let (whole, rest) = self.begun.split_at(error.valid_up_to());
                    text += core::str::from_utf8(whole).unwrap_or_default();
                    let Some(wrong) = error.error_len() else {
                        self.begun = rest.into();
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    self.begun = rest[wrong..].into();
                }
            }
        }
    }

    /// Nothing more comes: what was begun is no character.
    pub fn finish(&mut self) -> String {
        let broken = !core::mem::take(&mut self.begun).is_empty();
        broken.then_some(char::REPLACEMENT_CHARACTER).into_iter().collect()
    }
}

/// Looks for texts that end an answer, also where they begin in one token and end in another.
#[derive(Clone, Debug, Default)]
pub struct Stops {
    texts: Vec<String>,
    /// What may be the beginning of one.
    held: String,
}

/// What may be shown now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    Text(String),
    /// The last of it: a stop text follows, which is not shown.
    Stopped(String),
}

impl Stops {
    /// Empty texts stop nothing.
    pub fn new(mut texts: Vec<String>) -> Stops {
        texts.retain(|text| !text.is_empty());
        Stops { texts, held: String::new() }
    }

    pub fn push(&mut self, text: &str) -> Shown {
        self.held += text;
        let found = self.texts.iter().filter_map(|stop| self.held.find(stop.as_str())).min();
        if let Some(at) = found {
            self.held.truncate(at);
            return Shown::Stopped(core::mem::take(&mut self.held));
        }
        let begins = |at: &usize| {
            let rest = &self.held[*at..];
            self.texts.iter().any(|stop| stop.starts_with(rest))
        };
        let longest = self.texts.iter().map(String::len).max().unwrap_or(0);
        let near = self.held.len().saturating_sub(longest);
        let mut places = self.held.char_indices().map(|(at, _)| at).skip_while(|at| *at < near);
        let at = places.find(begins).unwrap_or(self.held.len());
        let rest = self.held.split_off(at);
        Shown::Text(core::mem::replace(&mut self.held, rest))
    }

    /// Nothing more comes: what was held back is no stop text.
    pub fn finish(&mut self) -> String {
        core::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_never_split_and_wrong_bytes_are_seen() {
        let mut characters = Characters::default();
        let text = "a€漢🙂";
        let mut shown = String::new();
        for byte in text.bytes() {
            shown += &characters.push(&[byte]);
            assert!(text.starts_with(&shown), "{shown:?}");
        }
        assert_eq!((shown.as_str(), characters.finish().as_str()), (text, ""));
        assert_eq!(characters.push(b"\xff\xe2\x82A\xf0\x9f"), "\u{fffd}\u{fffd}A");
        assert_eq!(characters.finish(), "\u{fffd}");
    }

    #[test]
    fn a_stop_text_is_found_over_the_borders_of_tokens() {
        let mut stops = Stops::new(["\n\nUser:".into(), "END".into(), String::new()].into());
        assert_eq!(stops.push("Hello\n"), Shown::Text("Hello".into()));
        assert_eq!(stops.push("\nUs"), Shown::Text("".into()));
        assert_eq!(stops.push("age\n"), Shown::Text("\n\nUsage".into()));
        assert_eq!(stops.push("\nUser"), Shown::Text("".into()));
        assert_eq!(stops.push(": no EN"), Shown::Stopped("".into()));
        let mut stops = Stops::new(["END".into()].into());
        assert_eq!(stops.push("the EE"), Shown::Text("the E".into()));
        assert_eq!(stops.push("N"), Shown::Text("".into()));
        assert_eq!(stops.finish(), "EN");
        let mut none = Stops::default();
        assert_eq!(none.push("all"), Shown::Text("all".into()));
    }
}
