//! Text into tokens, and tokens into bytes.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;

use crate::join::join;
use crate::letters;
use crate::split::Split;
use crate::vocabulary::{Family, Sort, Token, Vocabulary};

/// A place of a byte for which the vocabulary has no letter.
const NO_LETTER: Token = Token::MAX;
/// How SentencePiece writes a space.
const SPACE: char = '\u{2581}';

/// Writes with the words of a model.
#[derive(Debug)]
pub struct Tokenizer {
    words: Vocabulary,
    /// The word for each byte alone.
    bytes: Box<[Option<Token>; 256]>,
}

/// Why a text cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    #[error("the model has no token for the character {character:?} (U+{:04X}), which is at byte {at} of the text", u32::from(*.character))]
    NoLetter { character: char, at: usize },
}

/// A piece of a text.
enum Piece {
    Text(Range<usize>),
    Mark(Token),
}

impl Tokenizer {
    pub fn new(words: Vocabulary) -> Tokenizer {
        let mut bytes = Box::new([None; 256]);
        for (byte, place) in (0..=255u8).zip(bytes.iter_mut()) {
            let text: String = match words.family {
                Family::Bytes(_) => letters::letter(byte).into(),
                Family::Pieces => alloc::format!("<0x{byte:02X}>"),
            };
            *place = words.numbers.get(text.as_str()).copied();
        }
        Tokenizer { words, bytes }
    }

    pub fn words(&self) -> &Vocabulary {
        &self.words
    }

    /// A user's words as they are: no mark of the model's own is read in them. What the model wants before and behind
    /// a text is added.
    pub fn encode(&self, text: &str) -> Result<Vec<Token>, EncodeError> {
        self.framed(text, false, true)
    }

    /// What a template wrote, in which marks are read; see [`crate::Template`] for how users' words in it are kept
    /// from becoming marks. It brings its own frame; only a missing beginning is added.
    pub fn encode_rendered(&self, text: &str) -> Result<Vec<Token>, EncodeError> {
        let begins = self.words.bos.and_then(|token| self.words.text(token));
        let has_frame = begins.is_some_and(|begins| text.starts_with(begins));
        self.framed(text, true, !has_frame)
    }

    fn framed(&self, text: &str, marks: bool, frame: bool) -> Result<Vec<Token>, EncodeError> {
        let Vocabulary { add_bos, add_eos, bos, eos, .. } = &self.words;
        let mut tokens = Vec::new();
        tokens.extend(bos.filter(|_| frame && *add_bos));
        self.write(text, marks, &mut tokens)?;
        tokens.extend(eos.filter(|_| !marks && frame && *add_eos));
        Ok(tokens)
    }

    fn write(&self, text: &str, marks: bool, to: &mut Vec<Token>) -> Result<(), EncodeError> {
        let mut after_mark = true;
        for piece in self.pieces(text, marks) {
            match piece {
                Piece::Mark(token) => {
                    to.push(token);
                    after_mark = true;
                }
                Piece::Text(range) => {
                    let plain = &text[range.clone()];
                    let plain = if marks { crate::guard::open(plain) } else { plain.into() };
                    let error = |error: EncodeError| error.moved(range.start);
                    match self.words.family {
                        Family::Bytes(split) => self.write_bytes(&plain, split, to),
                        Family::Pieces => self.write_pieces(&plain, after_mark, to),
                    }
                    .map_err(error)?;
                    after_mark = false;
                }
            }
        }
        Ok(())
    }

    /// Cuts at marks, those with the longest text first.
    fn pieces(&self, text: &str, marks: bool) -> Vec<Piece> {
        let mut pieces = Vec::new();
        if !text.is_empty() {
            pieces.push(Piece::Text(0..text.len()));
        }
        for token in &self.words.marks {
            let allowed = marks || self.words.sorts[*token as usize] == Sort::Defined;
            let mark = &*self.words.tokens[*token as usize];
            if !allowed || !text.contains(mark) {
                continue;
            }
            let mut cut = Vec::with_capacity(pieces.len() + 2);
            for piece in pieces {
                let Piece::Text(range) = piece else {
                    cut.push(piece);
                    continue;
                };
                let mut from = range.start;
                while let Some(found) = text[from..range.end].find(mark) {
                    if found > 0 {
                        cut.push(Piece::Text(from..from + found));
                    }
                    cut.push(Piece::Mark(*token));
                    from += found + mark.len();
                }
                if from < range.end {
                    cut.push(Piece::Text(from..range.end));
                }
            }
            pieces = cut;
        }
        pieces
    }

    fn write_bytes(
        &self,
        text: &str,
        split: Split,
        to: &mut Vec<Token>,
    ) -> Result<(), EncodeError> {
        let rank = |left: Token, right: Token| {
            let (place, joined) = self.words.merges.get(&(left, right))?;
            Some((Reverse(*place), *joined))
        };
        for part in split.parts(text) {
            let word = &text[part.clone()];
            if self.words.whole_words {
                let letters: String = word.bytes().map(letters::letter).collect();
                if let Some(token) = self.words.numbers.get(letters.as_str()) {
                    to.push(*token);
                    continue;
                }
            }
            let bytes = word.bytes().map(|byte| self.bytes[usize::from(byte)].unwrap_or(NO_LETTER));
            let from = to.len();
            to.extend(join(bytes, rank));
            if to[from..].contains(&NO_LETTER) {
                return Err(self.missing(text, part));
            }
        }
        Ok(())
    }

    /// Which character of a part has a byte without a letter.
    fn missing(&self, text: &str, part: Range<usize>) -> EncodeError {
        let mut letters = text[part.clone()].char_indices();
        let lacks = |letter: char| {
            let mut bytes = [0; 4];
            let bytes = letter.encode_utf8(&mut bytes).bytes();
            bytes.into_iter().any(|byte| self.bytes[usize::from(byte)].is_none())
        };
        let found = letters.find(|(_, letter)| lacks(*letter));
        let (at, character) = found.unwrap_or((0, char::REPLACEMENT_CHARACTER));
        EncodeError::NoLetter { character, at: part.start + at }
    }

    fn write_pieces(
        &self,
        text: &str,
        after_mark: bool,
        to: &mut Vec<Token>,
    ) -> Result<(), EncodeError> {
        let prefix = self.words.add_space_prefix && after_mark;
        let mut shown = String::with_capacity(text.len() + SPACE.len_utf8());
        shown.extend(prefix.then_some(SPACE));
        shown.extend(text.chars().map(|letter| if letter == ' ' { SPACE } else { letter }));
        let find = |range: &Range<usize>| self.words.numbers.get(&shown[range.clone()]).copied();
        let rank = |left: Span, right: Span| {
            let joined = Span { from: left.from, to: right.to };
            let token = find(&joined.range())?;
            Some((Score(self.words.scores[token as usize]), joined))
        };
        let letters =
            shown.char_indices().map(|(from, letter)| Span { from, to: from + letter.len_utf8() });
        for span in join(letters, rank) {
            if let Some(token) = find(&span.range()) {
                to.push(token);
                continue;
            }
            // Only a letter alone can be without a word: what was joined has one.
            for byte in shown[span.range()].bytes() {
                let missing = || {
                    let letter = shown[span.range()].chars().next();
                    let before = shown[..span.from].chars();
                    let before = before.map(|it| if it == SPACE { 1 } else { it.len_utf8() });
                    EncodeError::NoLetter {
                        character: letter.unwrap_or(char::REPLACEMENT_CHARACTER),
                        at: before.sum::<usize>().saturating_sub(usize::from(prefix)),
                    }
                };
                to.push(self.bytes[usize::from(byte)].ok_or_else(missing)?);
            }
        }
        Ok(())
    }

    /// What a token adds to a text; nothing for the model's own marks. Bytes, because a character may take several
    /// tokens.
    pub fn bytes(&self, token: Token) -> Vec<u8> {
        let Some(text) = self.words.text(token) else { return Vec::new() };
        match self.words.sorts[token as usize] {
            Sort::Control | Sort::Unused | Sort::Unknown => Vec::new(),
            Sort::Defined => text.replace(SPACE, " ").into_bytes(),
            Sort::Byte => match hex(text) {
                Some(byte) => Vec::from([byte]),
                None => text.as_bytes().into(),
            },
            Sort::Normal => match self.words.family {
                Family::Pieces => text.replace(SPACE, " ").into_bytes(),
                Family::Bytes(_) => {
                    let mut bytes = Vec::with_capacity(text.len());
                    for letter in text.chars() {
                        match letters::byte(letter) {
                            Some(byte) => bytes.push(byte),
                            None => bytes.extend(letter.encode_utf8(&mut [0; 4]).bytes()),
                        }
                    }
                    bytes
                }
            },
        }
    }
}

impl EncodeError {
    fn moved(self, by: usize) -> EncodeError {
        let EncodeError::NoLetter { character, at } = self;
        EncodeError::NoLetter { character, at: at + by }
    }
}

/// Letters of a text that are joined so far.
#[derive(Clone, Copy)]
struct Span {
    from: usize,
    to: usize,
}

impl Span {
    fn range(self) -> Range<usize> {
        self.from..self.to
    }
}

/// No score is NaN: that was checked.
#[derive(PartialEq)]
struct Score(f32);

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Score) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Score) -> core::cmp::Ordering {
        // Zeros are equal, whatever their sign.
        (self.0 + 0.0).total_cmp(&(other.0 + 0.0))
    }
}

/// Of `<0x0A>`.
fn hex(text: &str) -> Option<u8> {
    u8::from_str_radix(text.strip_prefix("<0x")?.strip_suffix('>')?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::Listed;

    /// A small SentencePiece vocabulary, with bytes where asked.
    fn pieces(bytes: bool) -> Tokenizer {
        let mut listed = Listed { model: "llama".into(), ..Listed::default() };
        let mut add = |text: &str, sort: i64, score: f32| {
            listed.tokens.push(text.into());
            listed.sorts.push(sort);
            listed.scores.push(score);
        };
        add("<unk>", 2, 0.0);
        add("<s>", 3, 0.0);
        add("</s>", 3, 0.0);
        for (score, text) in
            (0..).zip(["\u{2581}a", "ab", "\u{2581}ab", "bc", "\u{2581}", "a", "b", "c"])
        {
            add(text, 1, -(score as f32));
        }
        for byte in 0..=255u8 {
            if bytes {
                add(&alloc::format!("<0x{byte:02X}>"), 6, 0.0);
            }
        }
        (listed.bos, listed.eos) = (Some(1), Some(2));
        Tokenizer::new(Vocabulary::new(listed).unwrap())
    }

    fn shown(tokenizer: &Tokenizer, tokens: &[Token]) -> Vec<String> {
        tokens.iter().map(|token| tokenizer.words().text(*token).unwrap().into()).collect()
    }

    #[test]
    fn pieces_are_joined_by_their_scores_and_bytes_stand_for_the_rest() {
        let tokenizer = pieces(true);
        let tokens = tokenizer.encode("ab abc é").unwrap();
        let expected = ["<s>", "\u{2581}ab", "\u{2581}ab", "c", "\u{2581}", "<0xC3>", "<0xA9>"];
        // `bc` would fit too, but its score is lower.
        assert_eq!(shown(&tokenizer, &tokens), expected);
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| tokenizer.bytes(*token)).collect();
        assert_eq!(bytes, " ab abc é".as_bytes());
    }

    #[test]
    fn marks_are_read_only_in_what_a_template_wrote() {
        let tokenizer = pieces(true);
        let rendered = tokenizer.encode_rendered("<s>a</s>b").unwrap();
        assert_eq!(shown(&tokenizer, &rendered), ["<s>", "\u{2581}a", "</s>", "\u{2581}", "b"]);
        assert!(!tokenizer.encode("a</s>").unwrap()[1..].contains(&2));
    }

    #[test]
    fn what_has_no_word_is_an_error_where_there_are_no_bytes() {
        let error = pieces(false).encode("ab é").unwrap_err();
        assert_eq!(error, EncodeError::NoLetter { character: 'é', at: 3 });
    }

    #[test]
    fn long_texts_of_one_letter_take_no_time() {
        let tokenizer = pieces(true);
        let text = "ab".repeat(50_000);
        assert_eq!(tokenizer.encode(&text).unwrap().len(), 1 + 1 + 49_999);
    }
}
