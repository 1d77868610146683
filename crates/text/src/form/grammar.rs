//! A grammar of bytes: nodes that name each other by number, so that one may hold itself.

use alloc::string::String;
use alloc::vec::Vec;

/// A node's number.
pub(super) type Id = u32;

/// No bound.
pub(super) const ENDLESS: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(super) enum Node {
    /// One byte of these.
    Byte(Bytes),
    /// These, one after another.
    Text(Vec<u8>),
    /// All of them, one after another.
    Row(Vec<Id>),
    /// One of them.
    One(Vec<Id>),
    /// The same, so often.
    Times { of: Id, least: u32, most: u32 },
}

/// A set of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bytes([u64; 4]);

impl Bytes {
    pub(super) fn of(ranges: &[(u8, u8)]) -> Bytes {
        let mut set = Bytes::default();
        for (from, to) in ranges {
            for byte in *from..=*to {
                set.0[usize::from(byte / 64)] |= 1 << (byte % 64);
            }
        }
        set
    }

    pub(super) fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte / 64)] >> (byte % 64) & 1 == 1
    }
}

/// The nodes, and where a text of the grammar begins.
#[derive(Debug, Default)]
pub(super) struct Grammar {
    pub(super) nodes: Vec<Node>,
    pub(super) start: Id,
}

impl Grammar {
    pub(super) fn add(&mut self, node: Node) -> Id {
        self.nodes.push(node);
        self.nodes.len() as Id - 1
    }

    /// A node that is said later.
    pub(super) fn reserve(&mut self) -> Id {
        self.add(Node::One(Vec::new()))
    }

    pub(super) fn define(&mut self, id: Id, as_one_of: Vec<Id>) {
        if let Some(node) = self.nodes.get_mut(id as usize) {
            *node = Node::One(as_one_of);
        }
    }

    pub(super) fn text(&mut self, text: impl Into<String>) -> Id {
        self.add(Node::Text(text.into().into_bytes()))
    }

    pub(super) fn byte(&mut self, ranges: &[(u8, u8)]) -> Id {
        self.add(Node::Byte(Bytes::of(ranges)))
    }

    pub(super) fn row(&mut self, row: &[Id]) -> Id {
        self.add(Node::Row(row.into()))
    }

    pub(super) fn one(&mut self, of: &[Id]) -> Id {
        self.add(Node::One(of.into()))
    }

    pub(super) fn times(&mut self, of: Id, least: u32, most: u32) -> Id {
        self.add(Node::Times { of, least, most })
    }

    pub(super) fn nothing(&mut self) -> Id {
        self.row(&[])
    }

    pub(super) fn maybe(&mut self, of: Id) -> Id {
        self.times(of, 0, 1)
    }

    /// Digits, so many.
    pub(super) fn digits(&mut self, least: u32, most: u32) -> Id {
        let digit = self.byte(&[(b'0', b'9')]);
        self.times(digit, least, most)
    }

    /// One of these texts.
    pub(super) fn words(&mut self, words: impl IntoIterator<Item = String>) -> Id {
        let words: Vec<Id> = words.into_iter().map(|word| self.text(word)).collect();
        self.one(&words)
    }
}
