//! Follows a grammar byte by byte. Where a text is in its grammar is a set of stacks; each set that is reached becomes a
//! numbered state with a table of what follows each byte, made when it is first asked for. So a token that was tried once
//! costs a look for each of its bytes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use super::grammar::{ENDLESS, Grammar, Id, Node};

/// A state's number.
pub(super) type State = u32;
/// A stack's number.
type Stack = u32;

/// Nothing of the grammar begins like this.
const DEAD: State = 0;
const UNKNOWN: State = u32::MAX;
/// The stack of a text that may end.
const EMPTY: Stack = 0;
/// States are a kilobyte each.
const MOST_STATES: usize = 8192;
const MOST_STACKS: usize = 1 << 18;
/// Ways to read one text: more only where a schema has hundreds of alternatives that begin alike.
const MOST_WAYS: usize = 2048;

#[derive(Debug)]
pub(super) struct Machine {
    grammar: Grammar,
    /// What stands on each stack: a node, how far it is, and the stack below.
    stacks: Vec<(Id, u32, Stack)>,
    known_stacks: BTreeMap<(Id, u32, Stack), Stack>,
    /// The stacks of each state, ordered.
    states: Vec<Vec<Stack>>,
    known_states: BTreeMap<Vec<Stack>, State>,
    next: Vec<[State; 256]>,
}

impl Machine {
    /// With the state in which nothing was said.
    pub(super) fn new(grammar: Grammar) -> (Machine, State) {
        let mut machine = Machine {
            grammar,
            stacks: Vec::new(),
            known_stacks: BTreeMap::new(),
            states: Vec::new(),
            known_states: BTreeMap::new(),
            next: Vec::new(),
        };
        machine.clear();
        let start = machine.stack(machine.grammar.start, 0, EMPTY);
        let mut stacks = BTreeSet::new();
        machine.open(start, &mut stacks);
        let state = machine.state(stacks);
        (machine, state)
    }

    /// Where these bytes lead to; none if they may not stand there.
    pub(super) fn run(&mut self, from: State, bytes: &[u8]) -> Option<State> {
        let mut state = from;
        for byte in bytes {
            state = self.step(state, *byte);
            if state == DEAD {
                return None;
            }
        }
        Some(state)
    }

    pub(super) fn may_end(&self, state: State) -> bool {
        self.states.get(state as usize).is_some_and(|stacks| stacks.first() == Some(&EMPTY))
    }

    /// More is remembered than is good for a device's memory.
    pub(super) fn is_full(&self) -> bool {
        self.states.len() > MOST_STATES || self.stacks.len() > MOST_STACKS
    }

    /// Forgets all states but this one, which gets another number.
    pub(super) fn forget(&mut self, state: State) -> State {
        let stacks = core::mem::take(&mut self.stacks);
        let kept = self.states.get(state as usize).cloned().unwrap_or_default();
        self.clear();
        let mut copied = BTreeMap::from([(EMPTY, EMPTY)]);
        let mut own = BTreeSet::new();
        for stack in kept {
            // From the top down, then from the bottom up.
            let mut path = Vec::new();
            let mut at = stack;
            while !copied.contains_key(&at) {
                path.push(at);
                at = stacks[at as usize].2;
            }
            for old in path.into_iter().rev() {
                let (node, place, below) = stacks[old as usize];
                let new = self.stack(node, place, copied[&below]);
                copied.insert(old, new);
            }
            own.insert(copied[&stack]);
        }
        self.state(own)
    }

    fn clear(&mut self) {
        self.stacks = vec![(0, 0, EMPTY)];
        self.known_stacks.clear();
        self.states = vec![Vec::new()];
        self.known_states = BTreeMap::from([(Vec::new(), DEAD)]);
        self.next = vec![[DEAD; 256]];
    }

    fn step(&mut self, state: State, byte: u8) -> State {
        let known = self.next[state as usize][usize::from(byte)];
        if known != UNKNOWN {
            return known;
        }
        let stacks = self.states[state as usize].clone();
        let mut reached = BTreeSet::new();
        for stack in stacks {
            if stack == EMPTY {
                continue;
            }
            let (node, at, below) = self.stacks[stack as usize];
            match &self.grammar.nodes[node as usize] {
                Node::Byte(bytes) if bytes.has(byte) => self.open(below, &mut reached),
                Node::Text(text) if text.get(at as usize) == Some(&byte) => {
                    let is_over = at as usize + 1 == text.len();
                    let rest = if is_over { below } else { self.stack(node, at + 1, below) };
                    self.open(rest, &mut reached);
                }
                Node::Byte(_)
                | Node::Text(_)
                | Node::Row(_)
                | Node::One(_)
                | Node::Times { .. } => {}
            }
        }
        let reached = self.state(reached);
        self.next[state as usize][usize::from(byte)] = reached;
        reached
    }

    /// All stacks that this one stands for and that have bytes on top, or nothing.
    fn open(&mut self, stack: Stack, into: &mut BTreeSet<Stack>) {
        let mut seen = BTreeSet::new();
        let mut open = vec![stack];
        while let Some(stack) = open.pop() {
            if !seen.insert(stack) {
                continue;
            }
            if stack == EMPTY {
                into.insert(EMPTY);
                continue;
            }
            let (node, at, below) = self.stacks[stack as usize];
            match &self.grammar.nodes[node as usize] {
                Node::Byte(_) => _ = into.insert(stack),
                Node::Text(text) if text.is_empty() => open.push(below),
                Node::Text(_) => _ = into.insert(stack),
                Node::Row(row) => match row.get(at as usize).copied() {
                    None => open.push(below),
                    Some(first) => {
                        let is_last = at as usize + 1 == row.len();
                        let rest = if is_last { below } else { self.stack(node, at + 1, below) };
                        open.push(self.stack(first, 0, rest));
                    }
                },
                Node::One(of) => {
                    for each in of.clone() {
                        open.push(self.stack(each, 0, below));
                    }
                }
                &Node::Times { of, least, most } => {
                    if at >= least {
                        open.push(below);
                    }
                    if at < most {
                        // Without an end it is all the same how often it was.
                        let more = if most == ENDLESS && at >= least { at } else { at + 1 };
                        let rest = self.stack(node, more, below);
                        open.push(self.stack(of, 0, rest));
                    }
                }
            }
        }
    }

    fn stack(&mut self, node: Id, at: u32, below: Stack) -> Stack {
        let stacks = &mut self.stacks;
        *self.known_stacks.entry((node, at, below)).or_insert_with(|| {
            stacks.push((node, at, below));
            stacks.len() as Stack - 1
        })
    }

    fn state(&mut self, stacks: BTreeSet<Stack>) -> State {
        if stacks.len() > MOST_WAYS {
            return DEAD;
        }
        let stacks: Vec<Stack> = stacks.into_iter().collect();
        if let Some(state) = self.known_states.get(&stacks) {
            return *state;
        }
        let state = self.states.len() as State;
        self.states.push(stacks.clone());
        self.known_states.insert(stacks, state);
        self.next.push([UNKNOWN; 256]);
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(machine: &mut Machine, start: State, text: &str) -> bool {
        machine.run(start, text.as_bytes()).is_some_and(|state| machine.may_end(state))
    }

    /// Brackets in each other, with an `x` or more inside.
    fn brackets() -> Grammar {
        let mut grammar = Grammar::default();
        let whole = grammar.reserve();
        let (open, close, x) = (grammar.text("("), grammar.text(")"), grammar.text("x"));
        let inner = grammar.row(&[open, whole, close]);
        let many = grammar.times(x, 1, ENDLESS);
        grammar.define(whole, vec![inner, many]);
        grammar.start = whole;
        grammar
    }

    #[test]
    fn what_holds_itself_is_followed_to_any_depth() {
        let (mut machine, start) = Machine::new(brackets());
        for text in ["x", "xxx", "(x)", "((xx))"] {
            assert!(accepts(&mut machine, start, text), "{text}");
        }
        for text in ["", "(", "(x", "x)", "()", "(x))"] {
            assert!(!accepts(&mut machine, start, text), "{text}");
        }
    }

    #[test]
    fn what_is_forgotten_is_found_again() {
        let (mut machine, start) = Machine::new(brackets());
        let state = machine.run(start, b"((((x").unwrap();
        let kept = machine.forget(state);
        assert!(accepts(&mut machine, kept, "x))))"));
        assert!(!accepts(&mut machine, kept, ")))"));
    }

    #[test]
    fn bounds_are_kept() {
        let mut grammar = Grammar::default();
        grammar.start = grammar.digits(2, 4);
        let (mut machine, start) = Machine::new(grammar);
        let found: Vec<bool> = ["1", "12", "1234", "12345", "1a"]
            .map(|text| accepts(&mut machine, start, text))
            .into();
        assert_eq!(found, [false, true, true, false, false]);
    }

    #[test]
    fn a_grammar_that_only_names_itself_ends() {
        let mut grammar = Grammar::default();
        let it = grammar.reserve();
        grammar.define(it, vec![it]);
        grammar.start = it;
        let (mut machine, start) = Machine::new(grammar);
        assert_eq!((machine.run(start, b"x"), machine.may_end(start)), (None, false));
    }
}
