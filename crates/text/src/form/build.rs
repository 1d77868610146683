//! What all JSON is made of, as pieces of a grammar.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::grammar::{ENDLESS, Grammar, Id, Node};
use super::json::Json;

/// Digits of a number before and behind the point: all that clients can hold, and an end.
const DIGITS: u32 = 15;
/// How far a line may be moved in.
const INDENT: u32 = 32;

/// What all JSON is made of.
#[derive(Clone, Copy, Default)]
pub(super) struct Pieces {
    pub(super) space: Id,
    pub(super) comma: Id,
    pub(super) letter: Id,
    pub(super) string: Id,
    pub(super) value: Id,
    pub(super) object: Id,
    pub(super) array: Id,
}

pub(super) struct Build<'a> {
    pub(super) root: &'a Json,
    pub(super) grammar: Grammar,
    pub(super) pieces: Pieces,
    /// What `$ref`s name.
    pub(super) named: BTreeMap<String, Id>,
    /// Schemas within schemas that are being read.
    pub(super) depth: usize,
}

impl<'a> Build<'a> {
    pub(super) fn new(root: &'a Json) -> Build<'a> {
        let (grammar, pieces, named) = (Grammar::default(), Pieces::default(), BTreeMap::new());
        let mut build = Build { root, grammar, pieces, named, depth: 0 };
        build.pieces();
        build
    }

    fn pieces(&mut self) {
        let grammar = &mut self.grammar;
        let (nothing, blank, line) = (grammar.nothing(), grammar.text(" "), grammar.text("\n"));
        let indent = grammar.byte(&[(b' ', b' '), (b'\t', b'\t')]);
        let indent = grammar.times(indent, 0, INDENT);
        let line = grammar.row(&[line, indent]);
        self.pieces.space = grammar.one(&[nothing, blank, line]);
        let comma = grammar.text(",");
        self.pieces.comma = grammar.row(&[comma, self.pieces.space]);
        self.pieces.letter = letter(grammar);
        self.pieces.string = self.string_of(0, ENDLESS);
        self.pieces.value = self.grammar.reserve();
        self.pieces.object = self.map(self.pieces.value);
        self.pieces.array = self.list(self.pieces.value, 0, ENDLESS);
        let rest = [self.number(true), self.words(&["true", "false", "null"])];
        let Pieces { value, object, array, string, .. } = self.pieces;
        self.grammar.define(value, vec![object, array, string, rest[0], rest[1]]);
    }

    pub(super) fn words(&mut self, words: &[&str]) -> Id {
        self.grammar.words(words.iter().map(|word| (*word).into()))
    }

    pub(super) fn string_of(&mut self, least: u32, most: u32) -> Id {
        let letters = self.grammar.times(self.pieces.letter, least, most);
        self.quotes(letters)
    }

    pub(super) fn quotes(&mut self, of: Id) -> Id {
        let quote = self.grammar.text("\"");
        self.grammar.row(&[quote, of, quote])
    }

    /// A number, below 0 too if wanted; whole, or with a fraction.
    pub(super) fn number(&mut self, below: bool) -> Id {
        let whole = self.whole(below, false);
        let (point, digits) = (self.grammar.text("."), self.grammar.digits(1, DIGITS));
        let fraction = self.grammar.row(&[point, digits]);
        let fraction = self.grammar.maybe(fraction);
        let e = self.grammar.byte(&[(b'e', b'e'), (b'E', b'E')]);
        let sign = self.grammar.byte(&[(b'+', b'+'), (b'-', b'-')]);
        let (sign, digits) = (self.grammar.maybe(sign), self.grammar.digits(1, 2));
        let exponent = self.grammar.row(&[e, sign, digits]);
        let exponent = self.grammar.maybe(exponent);
        self.grammar.row(&[whole, fraction, exponent])
    }

    pub(super) fn whole(&mut self, below: bool, above: bool) -> Id {
        let (first, more) =
            (self.grammar.byte(&[(b'1', b'9')]), self.grammar.digits(0, DIGITS - 1));
        let digits = self.grammar.row(&[first, more]);
        let zero = self.grammar.text("0");
        let digits = if above { digits } else { self.grammar.one(&[zero, digits]) };
        if !below {
            return digits;
        }
        let sign = self.grammar.text("-");
        let sign = self.grammar.maybe(sign);
        self.grammar.row(&[sign, digits])
    }

    /// An object with any names.
    pub(super) fn map(&mut self, value: Id) -> Id {
        let colon = self.grammar.text(":");
        let Pieces { string, space, comma, .. } = self.pieces;
        let member = self.grammar.row(&[string, colon, space, value]);
        let more = self.grammar.row(&[comma, member]);
        let more = self.grammar.times(more, 0, ENDLESS);
        let members = self.grammar.row(&[member, more]);
        let members = self.grammar.maybe(members);
        self.brackets("{", members, "}")
    }

    pub(super) fn brackets(&mut self, open: &str, inner: Id, close: &str) -> Id {
        let (open, close) = (self.grammar.text(open), self.grammar.text(close));
        let space = self.pieces.space;
        self.grammar.row(&[open, space, inner, space, close])
    }

    pub(super) fn list(&mut self, item: Id, least: u32, most: u32) -> Id {
        if most == 0 {
            let nothing = self.grammar.nothing();
            return self.brackets("[", nothing, "]");
        }
        let more = self.grammar.row(&[self.pieces.comma, item]);
        let rest = if most == ENDLESS { ENDLESS } else { most - 1 };
        let more = self.grammar.times(more, least.saturating_sub(1), rest);
        let mut items = self.grammar.row(&[item, more]);
        if least == 0 {
            items = self.grammar.maybe(items);
        }
        self.brackets("[", items, "]")
    }

    /// No 29th of February: it is not in every year.
    pub(super) fn date(&mut self) -> Id {
        let year = self.grammar.digits(4, 4);
        let dash = self.grammar.text("-");
        let mut days = Vec::new();
        for (months, last) in [(&[1, 3, 5, 7, 8, 10, 12][..], 31), (&[4, 6, 9, 11], 30), (&[2], 28)]
        {
            let month = self.grammar.words(months.iter().map(|month| format!("{month:02}")));
            let day = self.grammar.words((1..=last).map(|day| format!("{day:02}")));
            days.push(self.grammar.row(&[month, dash, day]));
        }
        let days = self.grammar.one(&days);
        self.grammar.row(&[year, dash, days])
    }

    pub(super) fn time(&mut self) -> Id {
        let hour = self.grammar.words((0..24).map(|hour| format!("{hour:02}")));
        let sixty = self.grammar.words((0..60).map(|minute| format!("{minute:02}")));
        let (colon, point) = (self.grammar.text(":"), self.grammar.text("."));
        let digits = self.grammar.digits(1, 6);
        let part = self.grammar.row(&[point, digits]);
        let part = self.grammar.maybe(part);
        let (zulu, sign) = (self.grammar.text("Z"), self.words(&["+", "-"]));
        let shift = self.grammar.row(&[sign, hour, colon, sixty]);
        let zone = self.grammar.one(&[zulu, shift]);
        self.grammar.row(&[hour, colon, sixty, colon, sixty, part, zone])
    }

    pub(super) fn uuid(&mut self) -> Id {
        let hex = self.grammar.byte(&[(b'0', b'9'), (b'a', b'f')]);
        let dash = self.grammar.text("-");
        let mut row = Vec::new();
        for (at, count) in [8, 4, 4, 4, 12].into_iter().enumerate() {
            row.extend((at > 0).then_some(dash));
            row.push(self.grammar.times(hex, count, count));
        }
        self.grammar.row(&row)
    }
}

/// One character within quotes: whole by the rules of UTF-8, or escaped. Halves of pairs cannot be escaped: alone they
/// are no character.
fn letter(grammar: &mut Grammar) -> Id {
    const TAIL: (u8, u8) = (0x80, 0xbf);
    const PLAIN: [(u8, u8); 3] = [(0x20, 0x21), (0x23, 0x5b), (0x5d, 0x7f)];
    let mut each = vec![grammar.byte(&PLAIN)];
    for (first, second, tails) in [
        ((0xc2, 0xdf), TAIL, 0),
        ((0xe0, 0xe0), (0xa0, 0xbf), 1),
        ((0xe1, 0xec), TAIL, 1),
        ((0xed, 0xed), (0x80, 0x9f), 1),
        ((0xee, 0xef), TAIL, 1),
        ((0xf0, 0xf0), (0x90, 0xbf), 2),
        ((0xf1, 0xf3), TAIL, 2),
        ((0xf4, 0xf4), (0x80, 0x8f), 2),
    ] {
        let mut row = vec![grammar.byte(&[first]), grammar.byte(&[second])];
        row.extend((0..tails).map(|_| grammar.byte(&[TAIL])));
        each.push(grammar.row(&row));
    }
    let slash = grammar.text("\\");
    let short = b"\"\\/bfnrt".map(|byte| (byte, byte));
    let short = grammar.byte(&short);
    each.push(grammar.row(&[slash, short]));
    let (below, above) = ([(b'0', b'9'), (b'a', b'c'), (b'A', b'C')], [(b'e', b'f'), (b'E', b'F')]);
    let hex = grammar.byte(&[(b'0', b'9'), (b'a', b'f'), (b'A', b'F')]);
    let usual = grammar.byte(&[&below[..], &above[..]].concat());
    let usual = grammar.row(&[usual, hex]);
    let (d, low) = (grammar.byte(&[(b'd', b'd'), (b'D', b'D')]), grammar.byte(&[(b'0', b'7')]));
    let before = grammar.row(&[d, low]);
    let first = grammar.one(&[usual, before]);
    let u = grammar.text("\\u");
    each.push(grammar.row(&[u, first, hex, hex]));
    grammar.add(Node::One(each))
}
