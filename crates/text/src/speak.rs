//! From what a node says to what a client reads: whole characters, an end at a stop text, chances by name.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::ask::{Done, Said, Why, Words};
use crate::file::Texts;
use crate::sample::Chosen;
use crate::stream::{Characters, Shown, Stops};
use crate::vocabulary::Token;

/// One answer on its way.
pub struct Speaker {
    texts: Arc<Texts>,
    words: Words,
    characters: Characters,
    stops: Stops,
    /// Tokens that were said.
    pub said: u32,
}

/// What there is to show now.
#[derive(Debug, Default, PartialEq)]
pub struct Heard {
    pub text: String,
    pub chances: Vec<Chance>,
    pub end: Option<Ended>,
}

/// Why an answer ended, and how it went if the node got to say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub why: Finish,
    pub done: Option<Done>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    Stop,
    Length,
}

impl Finish {
    pub fn name(self) -> &'static str {
        match self {
            Finish::Stop => "stop",
            Finish::Length => "length",
        }
    }
}

/// A token with the logarithm of its chance, and those beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Chance {
    pub own: Named,
    pub others: Vec<Named>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    pub bytes: Vec<u8>,
    pub chance: f32,
}

impl Named {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl Speaker {
    pub fn new(texts: Arc<Texts>, stops: Vec<String>) -> Speaker {
        let (words, characters) = (Words::default(), Characters::default());
        Speaker { texts, words, characters, stops: Stops::new(stops), said: 0 }
    }

    /// What a node said, cut anywhere. After an end nothing is heard.
    pub fn hear(&mut self, part: &[u8]) -> Result<Heard, String> {
        self.words.push(part);
        let mut heard = Heard::default();
        while let Some(said) = self.words.take().map_err(|error| error.to_string())? {
            match said {
                Said::Token(chosen) => self.token(&chosen, &mut heard),
                Said::Done(done) => self.done(done, &mut heard),
                Said::Embedding(_) => return Err("numbers where words were asked for".into()),
            }
            if heard.end.is_some() {
                break;
            }
        }
        Ok(heard)
    }

    fn token(&mut self, chosen: &Chosen, heard: &mut Heard) {
        self.said += 1;
        let named = |token: Token, chance: f32| Named { bytes: self.shown(token), chance };
        if let Some(chance) = chosen.chance {
            let others = chosen.alternatives.iter().map(|(token, chance)| named(*token, *chance));
            let others = others.collect();
            heard.chances.push(Chance { own: named(chosen.token, chance), others });
        }
        let text = self.characters.push(&self.texts.tokenizer.bytes(chosen.token));
        match self.stops.push(&text) {
            Shown::Text(text) => heard.text += &text,
            Shown::Stopped(text) => {
                heard.text += &text;
                heard.end = Some(Ended { why: Finish::Stop, done: None });
            }
        }
    }

    fn done(&mut self, done: Done, heard: &mut Heard) {
        let rest = self.characters.finish();
        let mut why = match done.why {
            Why::End => Finish::Stop,
            Why::Length => Finish::Length,
        };
        match self.stops.push(&rest) {
            Shown::Text(text) => heard.text += &(text + &self.stops.finish()),
            Shown::Stopped(text) => {
                heard.text += &text;
                why = Finish::Stop;
            }
        }
        heard.end = Some(Ended { why, done: Some(done) });
    }

    /// A token among chances: the model's own marks by their names.
    fn shown(&self, token: Token) -> Vec<u8> {
        let bytes = self.texts.tokenizer.bytes(token);
        if !bytes.is_empty() {
            return bytes;
        }
        self.texts.tokenizer.words().text(token).unwrap_or_default().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::pack;
    use crate::embed::Pooling;
    use crate::tokenizer::Tokenizer;
    use crate::vocabulary::{Listed, Vocabulary};
    use alloc::{format, vec};

    /// Words: bytes of a euro sign, some letters, and a mark.
    fn texts() -> Arc<Texts> {
        let tokens = ["<0xE2>", "<0x82>", "<0xAC>", "Hi", " th", "ere", "</s>"];
        let listed = Listed {
            model: "llama".into(),
            tokens: tokens.map(Into::into).into(),
            sorts: vec![6, 6, 6, 1, 1, 1, 3],
            scores: vec![0.0; 7],
            eos: Some(6),
            ..Listed::default()
        };
        let tokenizer = Tokenizer::new(Vocabulary::new(listed).expect("as it should be"));
        Arc::new(Texts { tokenizer, template: None, pooling: Ok(Pooling::Mean) })
    }

    fn said(tokens: &[Token], why: Why) -> Vec<u8> {
        let token = |token: &Token| {
            let alternatives = vec![(*token, -0.25), (6, -2.0)];
            pack(&Said::Token(Chosen { token: *token, chance: Some(-0.25), alternatives }))
        };
        let done = Done::new(why);
        tokens.iter().flat_map(token).chain(pack(&Said::Done(done))).collect()
    }

    #[test]
    fn bytes_become_characters_and_chances_have_names() {
        let mut speaker = Speaker::new(texts(), Vec::new());
        let bytes = said(&[3, 0, 1, 2], Why::Length);
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        let (first, rest) = (
            speaker.hear(first).expect("as it should be"),
            speaker.hear(rest).expect("as it should be"),
        );
        assert_eq!(format!("{}{}", first.text, rest.text), "Hi€");
        assert_eq!(speaker.said, 4);
        assert_eq!(rest.end.expect("as it should be").why, Finish::Length);
        let chance = &first.chances[0];
        assert_eq!((chance.own.text(), chance.others[1].text()), ("Hi".into(), "</s>".into()));
        assert_eq!(rest.chances.last().expect("as it should be").own.bytes, [0xac]);
    }

    #[test]
    fn a_stop_text_ends_it_and_is_not_shown() {
        let mut speaker = Speaker::new(texts(), vec!["there".into()]);
        let heard = speaker.hear(&said(&[3, 4, 5, 3], Why::End)).expect("as it should be");
        assert_eq!((heard.text.as_str(), speaker.said), ("Hi ", 3));
        assert_eq!(heard.end, Some(Ended { why: Finish::Stop, done: None }));
        // What only looked like the beginning of one is shown at the end.
        let mut speaker = Speaker::new(texts(), vec!["there".into()]);
        assert_eq!(speaker.hear(&said(&[3, 4], Why::End)).expect("as it should be").text, "Hi th");
        assert!(speaker.hear(&[255; 16]).is_err());
    }
}
