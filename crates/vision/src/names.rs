//! Names of classes: as a model's file has them, or lists that everyone knows, or a number.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use core::iter::Peekable;
use core::str::CharIndices;
use thiserror::Error;

/// Classes that have a name: the largest lists have some 20,000. A file is a stranger's word.
const MOST_CLASSES: usize = 65_536;
/// Letters of a name: what is longer is cut off, because it is drawn and printed.
const MOST_LETTERS: usize = 100;

/// What classes are called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    list: BTreeMap<usize, String>,
}

/// A text that is no list of names.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NamesError {
    #[error("the names of the classes cannot be read: at letter {at}, {expected} is expected")]
    Text { at: usize, expected: &'static str },
    #[error(
        "the names of the classes cannot be read: they have the number {number}, and {MOST_CLASSES} is too many"
    )]
    TooMany { number: usize },
}

impl Names {
    /// Names as models' files have them: `{0: 'person', 1: 'bicycle'}` as Python writes it, which is what Ultralytics' models
    /// have in their metadata under `names`, or `["person", "bicycle"]` or `{"0": "person"}` as JSON.
    pub fn parse(text: &str) -> Result<Self, NamesError> {
        let mut reader = Reader { letters: text.char_indices().peekable(), end: text.len() };
        let list = match reader.next_word() {
            Some('{') => reader.pairs()?,
            Some('[') => reader.row(']')?,
            Some('(') => reader.row(')')?,
            _ => return Err(NamesError::Text { at: 0, expected: "a list in brackets" }),
        };
        match reader.peek_word() {
            None => Ok(Self { list }),
            Some(_) => Err(reader.expected("the end")),
        }
    }

    /// The names of COCO, for a detector of as many classes whose file names none. No other number is so sure a sign.
    pub fn for_count(classes: usize) -> Self {
        let known: &[&str] = if classes == COCO.len() { &COCO } else { &[] };
        Self { list: known.iter().map(ToString::to_string).enumerate().collect() }
    }

    /// How many classes there are, as far as names tell.
    pub fn count(&self) -> usize {
        self.list.last_key_value().map_or(0, |(last, _)| last + 1)
    }

    pub fn of(&self, class: usize) -> Cow<'_, str> {
        match self.list.get(&class) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("class {class}")),
        }
    }
}

struct Reader<'a> {
    letters: Peekable<CharIndices<'a>>,
    end: usize,
}

impl Reader<'_> {
    /// `0: 'person', 1: 'bicycle'}`, after the bracket.
    fn pairs(&mut self) -> Result<BTreeMap<usize, String>, NamesError> {
        let mut list = BTreeMap::new();
        while !self.take('}') {
            let class = self.number()?;
            if !self.take(':') {
                return Err(self.expected("a colon"));
            }
            let name = self.name()?;
            list.insert(class, name);
            self.comma('}')?;
        }
        Ok(list)
    }

    /// `'person', 'bicycle']`, after the bracket.
    fn row(&mut self, end: char) -> Result<BTreeMap<usize, String>, NamesError> {
        let mut list = BTreeMap::new();
        while !self.take(end) {
            let class = checked(list.len())?;
            let name = self.name()?;
            list.insert(class, name);
            self.comma(end)?;
        }
        Ok(list)
    }

    /// Between two entries. After the last one it may be missing.
    fn comma(&mut self, end: char) -> Result<(), NamesError> {
        if self.take(',') || self.peek_word() == Some(end) {
            return Ok(());
        }
        Err(self.expected("a comma"))
    }

    /// A class's number, in quotes or without.
    fn number(&mut self) -> Result<usize, NamesError> {
        let quote = self.peek_word().filter(|letter| is_quote(*letter));
        if quote.is_some() {
            self.letters.next();
        }
        let mut number: Option<usize> = None;
        while let Some(digit) = self.letters.peek().and_then(|(_, letter)| letter.to_digit(10)) {
            self.letters.next();
            number = Some(checked(number.unwrap_or(0) * 10 + digit as usize)?);
        }
        let number = number.ok_or_else(|| self.expected("the number of a class"))?;
        match quote {
            Some(quote) if !self.take(quote) => Err(self.expected("a closing quotation mark")),
            _ => Ok(number),
        }
    }

    /// A text in quotes of either kind. Terminals obey letters that are none, so those become spaces.
    fn name(&mut self) -> Result<String, NamesError> {
        let quote = self.peek_word().filter(|letter| is_quote(*letter));
        let quote = quote.ok_or_else(|| self.expected("a name in quotation marks"))?;
        self.letters.next();
        let mut name = String::new();
        let mut count = 0;
        loop {
            let letter = match self.letters.next() {
                None => return Err(self.expected("a closing quotation mark")),
                Some((_, letter)) if letter == quote => return Ok(name),
                Some((_, '\\')) => self.escape()?,
                Some((_, letter)) => letter,
            };
            count += 1;
            if count <= MOST_LETTERS {
                name.push(if letter.is_control() { ' ' } else { letter });
            }
        }
    }

    /// What stands for another letter, after the backslash.
    fn escape(&mut self) -> Result<char, NamesError> {
        let Some((_, letter)) = self.letters.next() else {
            return Err(self.expected("a letter after the backslash"));
        };
        Ok(match letter {
            'x' => self.code(2)?,
            'U' => self.code(8)?,
            'u' => self.code(4)?,
            'n' | 'r' | 't' | 'b' | 'f' | 'a' | 'v' | '\n' => ' ',
            other => other,
        })
    }

    /// A letter by its number. Letters beyond 16 bits are two numbers in JSON.
    fn code(&mut self, digits: u32) -> Result<char, NamesError> {
        let first = self.hex(digits)?;
        if !(0xd800..0xdc00).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let mut ahead = self.letters.clone();
        if !(ahead.next().is_some_and(|(_, letter)| letter == '\\')
            && ahead.next().is_some_and(|(_, letter)| letter == 'u'))
        {
            return Ok(char::REPLACEMENT_CHARACTER);
        }
        self.letters = ahead;
        let second = self.hex(4)?;
        let both = char::decode_utf16([first as u16, second as u16]).next().and_then(Result::ok);
        Ok(both.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self, digits: u32) -> Result<u32, NamesError> {
        let mut number = 0;
        for _ in 0..digits {
            let digit = self.letters.peek().and_then(|(_, letter)| letter.to_digit(16));
            number = number << 4 | digit.ok_or_else(|| self.expected("a hexadecimal digit"))?;
            self.letters.next();
        }
        Ok(number)
    }

    /// The next letter that is no space, left where it is.
    fn peek_word(&mut self) -> Option<char> {
        while self.letters.next_if(|(_, letter)| letter.is_whitespace()).is_some() {}
        self.letters.peek().map(|(_, letter)| *letter)
    }

    fn next_word(&mut self) -> Option<char> {
        self.peek_word();
        self.letters.next().map(|(_, letter)| letter)
    }

    /// Whether this letter comes next. Then it is past.
    fn take(&mut self, wanted: char) -> bool {
        let comes = self.peek_word() == Some(wanted);
        if comes {
            self.letters.next();
        }
        comes
    }

    fn expected(&mut self, expected: &'static str) -> NamesError {
        NamesError::Text { at: self.letters.peek().map_or(self.end, |(at, _)| *at), expected }
    }
}

fn is_quote(letter: char) -> bool {
    letter == '\'' || letter == '"'
}

fn checked(number: usize) -> Result<usize, NamesError> {
    if number < MOST_CLASSES { Ok(number) } else { Err(NamesError::TooMany { number }) }
}

#[rustfmt::skip]
const COCO: [&str; 80] = [
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow",
    "elephant", "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee",
    "skis", "snowboard", "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard",
    "tennis racket", "bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple",
    "sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch",
    "potted plant", "bed", "dining table", "toilet", "tv", "laptop", "mouse", "remote", "keyboard",
    "cell phone", "microwave", "oven", "toaster", "sink", "refrigerator", "book", "clock", "vase", "scissors",
    "teddy bear", "hair drier", "toothbrush",
];

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn parsed(text: &str) -> Vec<String> {
        let names = Names::parse(text).unwrap();
        (0..names.count()).map(|class| names.of(class).into_owned()).collect()
    }

    #[test]
    fn names_are_read_as_python_writes_them() {
        assert_eq!(parsed("{0: 'person', 1: 'traffic light'}"), ["person", "traffic light"]);
        assert_eq!(parsed("  { 1 :\"b\",\n 0:'a' , } "), ["a", "b"]);
        assert_eq!(parsed("['a', 'b']"), ["a", "b"]);
        assert_eq!(parsed("('a',)"), ["a"]);
    }

    #[test]
    fn names_are_read_as_json_writes_them() {
        assert_eq!(parsed(r#"["person", "hot dog"]"#), ["person", "hot dog"]);
        assert_eq!(parsed(r#"{"1": "b", "0": "a"}"#), ["a", "b"]);
        assert_eq!(parsed(r#"["a\/b", "\ud83d\udc1f", "\ud83d!"]"#), ["a/b", "🐟", "\u{fffd}!"]);
    }

    #[test]
    fn quotes_and_escapes_are_letters() {
        assert_eq!(parsed(r#"{0: "driver's seat", 1: 'a "b"'}"#), ["driver's seat", "a \"b\""]);
        assert_eq!(
            parsed(r"['it\'s', 'a\\b', '\xe9t\u00e9', '\U0001F41F']"),
            ["it's", "a\\b", "été", "🐟"]
        );
        assert_eq!(parsed("['naïve, {0: é}']"), ["naïve, {0: é}"]);
    }

    #[test]
    fn names_have_no_letters_that_terminals_obey() {
        assert_eq!(parsed("['a\\nb', 'c\\x1b[2J', 'd\u{7}']"), ["a b", "c [2J", "d "]);
        let long = alloc::format!("['{}']", "é".repeat(5000));
        assert_eq!(parsed(&long)[0].chars().count(), MOST_LETTERS);
    }

    #[test]
    fn a_class_without_a_name_has_its_number() {
        let names = Names::parse("{0: 'a', 3: 'b'}").unwrap();
        assert_eq!(
            (names.count(), names.of(2), names.of(17)),
            (4, "class 2".into(), "class 17".into())
        );
        assert_eq!(Names::default().of(17), "class 17");
    }

    #[test]
    fn eighty_classes_are_those_of_coco_and_others_are_numbered() {
        let coco = Names::for_count(80);
        assert_eq!(
            (coco.of(0), coco.of(5), coco.of(79)),
            ("person".into(), "bus".into(), "toothbrush".into())
        );
        assert_eq!(Names::for_count(10).of(3), "class 3");
        assert_eq!(Names::for_count(1000).of(17), "class 17");
    }

    #[test]
    fn a_text_that_is_no_list_says_where() {
        let error = Names::parse("{0: 'a' 1: 'b'}").unwrap_err();
        let expected = "the names of the classes cannot be read: at letter 8, a comma is expected";
        assert_eq!(error.to_string(), expected);
        assert!(matches!(
            Names::parse("{99999999999999999999: 'a'}"),
            Err(NamesError::TooMany { .. })
        ));
    }

    #[test]
    fn no_part_of_a_text_and_no_other_letter_in_it_breaks_the_reader() {
        let text = r#" {0: 'pers\'on', "1": "\u00e9\ud83d\udc1f", 2: '\x41'} "#;
        for (at, _) in text.char_indices() {
            assert!(Names::parse(&text[..at]).is_err() || at + 1 == text.len());
            for other in ["", "\\", "'", "\"", "}", "{", "é", "\\u", "9", ",", ":"] {
                let broken = alloc::format!("{}{other}{}", &text[..at], &text[at + 1..]);
                // Whatever it says, it says it.
                let _ = Names::parse(&broken);
            }
        }
    }
}
