//! Barriers that only some invocations of a workgroup reach: undefined on a GPU, an error in a
//! browser.

use std::collections::BTreeSet;

use naga::{Block, Function, Handle, Span, Statement};

use super::super::IntakeError;
use super::super::kernel::Checked;
use super::super::source::error_at;
use super::vary::Varying;
use super::{breaks, continues, each_statement, returns};

pub(super) fn check(kernel: &Checked<'_>) -> Result<(), IntakeError> {
    let functions = || kernel.module.functions.iter();
    let mut meeting = BTreeSet::new();
    // Functions stand behind those they call.
    for (handle, function) in functions() {
        if meets(function, &meeting) {
            meeting.insert(handle);
        }
    }
    let found = functions()
        .filter(|(handle, _)| meeting.contains(handle))
        .find_map(|(_, function)| split_barrier(kernel, function, false, &meeting))
        .or_else(|| split_barrier(kernel, &kernel.entry().function, true, &meeting));
    let Some(span) = found else {
        return Ok(());
    };
    let what = "a barrier must be reached by all invocations of a workgroup, but here it depends \
                on a value that differs between them";
    Err(error_at(kernel.source, Some(span), what, "reached by some invocations only"))
}

/// Whether a function holds a barrier or calls one that does.
fn meets(function: &Function, meeting: &BTreeSet<Handle<Function>>) -> bool {
    let mut found = false;
    each_statement(function, &mut |statement| found |= is_barrier(statement, meeting));
    found
}

fn is_barrier(statement: &Statement, meeting: &BTreeSet<Handle<Function>>) -> bool {
    match statement {
        Statement::ControlBarrier(_) | Statement::WorkGroupUniformLoad { .. } => true,
        Statement::Call { function, .. } => meeting.contains(function),
        _ => false,
    }
}

fn split_barrier(
    kernel: &Checked<'_>,
    function: &Function,
    is_entry: bool,
    meeting: &BTreeSet<Handle<Function>>,
) -> Option<Span> {
    let entry = is_entry.then(|| kernel.entry());
    let varying = Varying::new(kernel.module, function, entry);
    let mut walk = Walk { varying, meeting, found: None };
    walk.block(&function.body, false);
    walk.found
}

struct Walk<'a> {
    varying: Varying<'a>,
    meeting: &'a BTreeSet<Handle<Function>>,
    found: Option<Span>,
}

impl Walk<'_> {
    /// Walks a block that all invocations enter, or only some (`split`). Says whether only some go
    /// on behind it.
    fn block(&mut self, block: &Block, mut split: bool) -> bool {
        for (statement, span) in block.span_iter() {
            split = self.statement(statement, *span, split);
        }
        split
    }

    fn statement(&mut self, statement: &Statement, span: Span, split: bool) -> bool {
        if split && is_barrier(statement, self.meeting) {
            self.found.get_or_insert(span);
        }
        match statement {
            Statement::Block(block) => self.block(block, split),
            Statement::If { condition, accept, reject } => {
                let varies = self.varying.is(*condition);
                let inside = [accept, reject].map(|block| self.block(block, split || varies));
                let leaves = |block| returns(block) || breaks(block) || continues(block);
                split
                    || (varies && (leaves(accept) || leaves(reject)))
                    || (!varies && inside.contains(&true))
            }
            Statement::Switch { selector, cases } => {
                let varies = self.varying.is(*selector);
                let mut after = false;
                for case in cases {
                    let apart = self.block(&case.body, split || varies);
                    after |= apart && (returns(&case.body) || continues(&case.body));
                }
                split || after
            }
            Statement::Loop { body, continuing, break_if } => {
                let split_end = break_if.is_some_and(|condition| self.varying.is(condition));
                let inside = split || split_end || self.leaves_apart(body);
                self.block(body, inside);
                self.block(continuing, inside);
                split || (inside && returns(body))
            }
            _ => split,
        }
    }

    /// Whether some invocations leave a loop's rounds before others.
    fn leaves_apart(&self, block: &Block) -> bool {
        block.iter().any(|statement| match statement {
            Statement::If { condition, accept, reject } => {
                let goes = [accept, reject].into_iter().any(|it| breaks(it) || returns(it));
                (goes && self.varying.is(*condition))
                    || self.leaves_apart(accept)
                    || self.leaves_apart(reject)
            }
            Statement::Switch { selector, cases } => {
                self.varying.is(*selector) && cases.iter().any(|case| returns(&case.body))
            }
            Statement::Block(block) => self.leaves_apart(block),
            _ => false,
        })
    }
}
