//! Keeps users' words from becoming marks of the model when a template has put them into its text.
//!
//! Wherever a user's text spells a mark, [`close`] puts a letter between that no text has; [`open`] takes it out again when
//! marks have been looked for. Text that has such letters already comes through unchanged.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// Letters that Unicode promises never to use.
const GUARD: char = '\u{fdd0}';
const ITSELF: char = '\u{fdd1}';
const NOTHING: char = '\u{fdd2}';

/// A user's text for a template, such that no mark is found in it. Marks have two letters at least.
pub(crate) fn close<'a>(text: &str, marks: impl Iterator<Item = &'a str>) -> String {
    let mut cuts: Vec<usize> = Vec::new();
    for mark in marks {
        let first = mark.chars().next().map_or(0, char::len_utf8);
        // Marks may overlap, so every place is looked at.
        let mut from = 0;
        while let Some(found) = text.get(from..).and_then(|rest| rest.find(mark)) {
            cuts.push(from + found + first);
            from += found + first.max(1);
        }
    }
    cuts.sort_unstable();
    cuts.dedup();
    let mut cuts = cuts.into_iter().peekable();
    let mut closed = String::with_capacity(text.len());
    for (at, letter) in text.char_indices() {
        if cuts.next_if_eq(&at).is_some() {
            closed.extend([GUARD, NOTHING]);
        }
        closed.push(letter);
        closed.extend((letter == GUARD).then_some(ITSELF));
    }
    closed
}

/// The text as the user wrote it.
pub(crate) fn open(text: &str) -> Cow<'_, str> {
    if !text.contains(GUARD) {
        return Cow::Borrowed(text);
    }
    let mut opened = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let kept = letter != GUARD
            || letters.next_if_eq(&ITSELF).is_some()
            || letters.next_if_eq(&NOTHING).is_none();
        opened.extend(kept.then_some(letter));
    }
    Cow::Owned(opened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mark_is_left_and_all_comes_back() {
        let marks = ["<|end|>", "<|end|>x"];
        let texts = [
            "plain",
            "a <|end|>x b<|end|>",
            "<|<|end|>end|>",
            "\u{fdd0}<|end|>\u{fdd0}\u{fdd2}\u{fdd1}",
            "",
        ];
        for text in texts {
            let closed = close(text, marks.into_iter());
            assert!(!closed.contains("<|end|>"), "{closed:?}");
            assert_eq!(open(&closed), text);
        }
        assert_eq!(open("\u{fdd0}x"), "\u{fdd0}x");
    }
}
