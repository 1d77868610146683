//! Cutting text into parts that are never joined into one word. Each family of models has its own rules, which were
//! written as regular expressions; here they are read by hand, so that no engine for those is needed.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use unicode_general_category::{GeneralCategory as Category, get_general_category};

/// The rules of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// ` ?letters`, ` ?digits`, ` ?others`, spaces.
    Gpt2,
    /// As GPT-2, but every digit is a part of its own.
    Smollm,
    /// `letters` with one sign before them, up to three digits, others with the line's end.
    Llama3,
    /// As Llama 3, but every digit is a part of its own.
    Qwen2,
    /// Words by their capital letters, every digit alone.
    Tekken,
    /// Words by their capital letters with what is behind an apostrophe, up to three digits.
    Gpt4o,
}

/// What files call them. Families that share the rules share a line.
const NAMES: [(&str, Split); 21] = [
    ("gpt-2", Split::Gpt2),
    ("gpt2", Split::Gpt2),
    ("phi-2", Split::Gpt2),
    ("smollm", Split::Smollm),
    ("starcoder", Split::Smollm),
    ("refact", Split::Smollm),
    ("command-r", Split::Smollm),
    ("codeshell", Split::Smollm),
    ("llama-bpe", Split::Llama3),
    ("llama3", Split::Llama3),
    ("llama-v3", Split::Llama3),
    ("falcon3", Split::Llama3),
    ("falcon-h1", Split::Llama3),
    ("pixtral", Split::Llama3),
    ("qwen2", Split::Qwen2),
    ("deepseek-r1-qwen", Split::Qwen2),
    ("stablelm2", Split::Qwen2),
    ("megrez", Split::Qwen2),
    ("tekken", Split::Tekken),
    ("gpt-4o", Split::Gpt4o),
    ("llama4", Split::Gpt4o),
];

impl Split {
    pub fn of(name: &str) -> Option<Split> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, split)| *split)
    }

    /// The names of all.
    pub fn known() -> String {
        NAMES.map(|(name, _)| name).join(", ")
    }

    /// The parts of a text, in order; together they are all of it.
    pub fn parts(self, text: &str) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        if self != Split::Smollm {
            self.walk(text, 0, &mut parts);
            return parts;
        }
        let mut from = 0;
        for (at, letter) in text.char_indices().filter(|(_, letter)| letter.is_numeric()) {
            let end = at + letter.len_utf8();
            self.walk(&text[from..at], from, &mut parts);
            parts.push(at..end);
            from = end;
        }
        self.walk(&text[from..], from, &mut parts);
        parts
    }

    fn walk(self, text: &str, offset: usize, parts: &mut Vec<Range<usize>>) {
        let letters: Vec<(usize, char)> = text.char_indices().collect();
        let place = |at: usize| letters.get(at).map_or(text.len(), |(place, _)| *place) + offset;
        let row = Row { letters: &letters };
        let mut at = 0;
        while at < letters.len() {
            // Whatever the rules leave over is a part of its own.
            let end = self.next(&row, at).unwrap_or(at + 1);
            parts.push(place(at)..place(end));
            at = end;
        }
    }

    /// Where the part that begins here ends.
    fn next(self, row: &Row<'_>, at: usize) -> Option<usize> {
        match self {
            Split::Gpt2 | Split::Smollm => {
                let after = row.after_space(at);
                row.contraction(at, false)
                    .or_else(|| row.run(after, is_letter))
                    .or_else(|| row.run(after, is_number))
                    .or_else(|| row.run(after, is_other))
                    .or_else(|| row.spaces(at))
            }
            Split::Llama3 | Split::Qwen2 => {
                let digits = if self == Split::Qwen2 { 1 } else { 3 };
                row.contraction(at, true)
                    .or_else(|| row.word(at, |row, at| row.run(at, is_letter)))
                    .or_else(|| row.digits(at, digits))
                    .or_else(|| row.signs(at, "\r\n"))
                    .or_else(|| row.lines(at))
                    .or_else(|| row.spaces(at))
            }
            Split::Tekken | Split::Gpt4o => {
                let (digits, tail) = if self == Split::Tekken { (1, false) } else { (3, true) };
                let ended = |end: usize| match row.contraction(end, true) {
                    Some(longer) if tail => longer,
                    _ => end,
                };
                row.word(at, Row::rising)
                    .or_else(|| row.word(at, Row::capitals))
                    .map(ended)
                    .or_else(|| row.digits(at, digits))
                    .or_else(|| row.signs(at, "\r\n/"))
                    .or_else(|| row.lines(at))
                    .or_else(|| row.spaces(at))
            }
        }
    }
}

struct Row<'a> {
    letters: &'a [(usize, char)],
}

impl Row<'_> {
    fn at(&self, at: usize) -> Option<char> {
        self.letters.get(at).map(|(_, letter)| *letter)
    }

    fn is(&self, at: usize, what: impl Fn(char) -> bool) -> bool {
        self.at(at).is_some_and(what)
    }

    /// The end of all that follow each other, if there is one.
    fn run(&self, at: usize, what: impl Fn(char) -> bool) -> Option<usize> {
        let end = self.end(at, what);
        (end > at).then_some(end)
    }

    fn end(&self, mut at: usize, what: impl Fn(char) -> bool) -> usize {
        while self.is(at, &what) {
            at += 1;
        }
        at
    }

    fn after_space(&self, at: usize) -> usize {
        at + usize::from(self.at(at) == Some(' '))
    }

    /// `'s`, `'ll` and the like.
    fn contraction(&self, at: usize, any_case: bool) -> Option<usize> {
        if self.at(at) != Some('\'') {
            return None;
        }
        let small = |at: usize| {
            let letter = self.at(at)?;
            // The long s is a small one of S.
            let letter = if any_case && letter == '\u{17f}' { 's' } else { letter };
            Some(if any_case { letter.to_ascii_lowercase() } else { letter })
        };
        match (small(at + 1)?, small(at + 2)) {
            ('s' | 't' | 'm' | 'd', _) => Some(at + 2),
            ('r' | 'v', Some('e')) | ('l', Some('l')) => Some(at + 3),
            _ => None,
        }
    }

    /// Letters, with one sign or space before them.
    fn word(&self, at: usize, rest: impl Fn(&Self, usize) -> Option<usize>) -> Option<usize> {
        let before = |letter: char| !is_letter(letter) && !is_number(letter) && !is_line(letter);
        let with = if self.is(at, before) { rest(self, at + 1) } else { None };
        with.or_else(|| rest(self, at))
    }

    /// Capital letters if there are any, and then at least one small one.
    fn rising(&self, at: usize) -> Option<usize> {
        let capitals = self.end(at, is_upper);
        let end = self.end(capitals, is_lower);
        if end > capitals {
            return Some(end);
        }
        // A letter that is both may have been taken for a capital.
        (at..capitals).rev().find(|at| self.is(*at, is_lower)).map(|at| at + 1)
    }

    /// At least one capital letter, and then small ones if there are any.
    fn capitals(&self, at: usize) -> Option<usize> {
        let capitals = self.run(at, is_upper)?;
        Some(self.end(capitals, is_lower))
    }

    fn digits(&self, at: usize, most: usize) -> Option<usize> {
        self.run(at, is_number).map(|end| end.min(at + most))
    }

    /// Others, with a space before and certain letters behind them.
    fn signs(&self, at: usize, behind: &str) -> Option<usize> {
        let end = self.run(self.after_space(at), is_other)?;
        Some(self.end(end, |letter| behind.contains(letter)))
    }

    /// Spaces up to the last end of a line among them.
    fn lines(&self, at: usize) -> Option<usize> {
        let end = self.end(at, char::is_whitespace);
        (at..end).rev().find(|at| self.is(*at, is_line)).map(|at| at + 1)
    }

    /// Spaces, but the last one belongs to what follows them.
    fn spaces(&self, at: usize) -> Option<usize> {
        let end = self.run(at, char::is_whitespace)?;
        Some(if end < self.letters.len() && end > at + 1 { end - 1 } else { end })
    }
}

fn is_line(letter: char) -> bool {
    letter == '\r' || letter == '\n'
}

fn is_number(letter: char) -> bool {
    letter.is_numeric()
}

fn is_other(letter: char) -> bool {
    !letter.is_whitespace() && !is_letter(letter) && !is_number(letter)
}

fn is_letter(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_alphabetic();
    }
    matches!(
        get_general_category(letter),
        Category::UppercaseLetter
            | Category::LowercaseLetter
            | Category::TitlecaseLetter
            | Category::ModifierLetter
            | Category::OtherLetter
    )
}

/// Capital letters, and letters and marks that are neither.
fn is_upper(letter: char) -> bool {
    matches!(get_general_category(letter), Category::UppercaseLetter | Category::TitlecaseLetter)
        || is_neither(letter)
}

/// Small letters, and letters and marks that are neither.
fn is_lower(letter: char) -> bool {
    get_general_category(letter) == Category::LowercaseLetter || is_neither(letter)
}

fn is_neither(letter: char) -> bool {
    matches!(
        get_general_category(letter),
        Category::ModifierLetter
            | Category::OtherLetter
            | Category::NonspacingMark
            | Category::SpacingMark
            | Category::EnclosingMark
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts, with bars between.
    fn parts(split: Split, text: &str) -> String {
        let parts = split.parts(text);
        let whole: String = parts.iter().map(|part| &text[part.clone()]).collect();
        assert_eq!(whole, text, "all of it, once");
        let parts: Vec<&str> = parts.into_iter().map(|part| &text[part]).collect();
        parts.join("|")
    }

    #[test]
    fn each_family_cuts_by_its_own_rules() {
        let text = "I'LL pay  12345€ to McDonald's!\n\n  now ";
        let check = |split, expected: &str| assert_eq!(parts(split, text), expected);
        check(Split::Gpt2, "I|'|LL| pay| | 12345|€| to| McDonald|'s|!|\n\n | now| ");
        check(Split::Smollm, "I|'|LL| pay|  |1|2|3|4|5|€| to| McDonald|'s|!|\n\n | now| ");
        check(Split::Llama3, "I|'LL| pay| | |123|45|€| to| McDonald|'s|!\n\n| | now| ");
        check(Split::Qwen2, "I|'LL| pay| | |1|2|3|4|5|€| to| McDonald|'s|!\n\n| | now| ");
        check(Split::Tekken, "I|'LL| pay| | |1|2|3|4|5|€| to| Mc|Donald|'s|!\n\n| | now| ");
        assert_eq!(parts(Split::Gpt4o, "McDonald's 12345"), "Mc|Donald's| |123|45");
    }

    #[test]
    fn letters_that_are_neither_small_nor_capital_stay_together() {
        assert_eq!(parts(Split::Tekken, "漢字かな ABCدef"), "漢字かな| ABCدef");
        assert_eq!(parts(Split::Tekken, "ABC DEfG"), "ABC| DEf|G");
        assert_eq!(parts(Split::Gpt2, ""), "");
        assert!(Split::of("dance").is_none());
    }
}
