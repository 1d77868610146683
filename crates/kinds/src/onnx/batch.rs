//! A model over many inputs: which bytes an item has, what it gives, and how a unit's items are run together.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use serde::{Deserialize, Serialize};
use shoal_protocol::{Failure, Span};

use super::tensor::{Element, Head, Tensor, pack, unpack};
use crate::feed::Feed;

/// A model over the rows of arrays: item n has row n of each, and gives a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// The arrays, in the order of the model's inputs.
    pub feeds: Vec<Feed>,
    pub inputs: Vec<Column>,
    /// What a row of the result holds, in this order.
    pub outputs: Vec<Column>,
    /// Items that the model takes in one run. One, if it has no axis for more.
    pub at_once: u32,
}

/// What an item has of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    pub name: String,
    pub element: Element,
    /// Of one item.
    pub dims: Vec<u64>,
    /// Whether the model's tensor has an axis before them, which counts items.
    pub leads: bool,
}

impl Column {
    /// What so many items have together, as the model takes and gives it.
    pub(super) fn head(&self, items: u64) -> Head {
        let leading = self.leads.then_some(items);
        let dims = leading.into_iter().chain(self.dims.iter().copied()).collect();
        Head { name: self.name.clone(), element: self.element, dims }
    }

    /// Of one item; none if no memory could hold them.
    pub fn bytes(&self) -> Option<u64> {
        self.head(1).bytes().map(|bytes| bytes as u64)
    }

    /// Whether two devices may round it differently.
    fn is_rounded(&self) -> bool {
        matches!(self.element, Element::F32 | Element::F16 | Element::F64)
    }

    fn size(&self) -> usize {
        self.bytes().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0)
    }
}

impl Batch {
    /// Bytes of an item's result.
    pub fn row_bytes(&self) -> u64 {
        self.outputs.iter().filter_map(Column::bytes).sum()
    }

    pub fn is_rounded(&self) -> bool {
        self.outputs.iter().any(Column::is_rounded)
    }

    /// Whether two results of the same items are one: `near` says it of numbers that devices round, all else must be
    /// the same bits.
    pub fn agree(&self, a: &[u8], b: &[u8], near: impl Fn(&[u8], &[u8]) -> bool) -> bool {
        let Some(row) = usize::try_from(self.row_bytes()).ok().filter(|row| *row > 0) else {
            return a == b;
        };
        a.len() == b.len()
            && a.len().is_multiple_of(row)
            && a.chunks(row).zip(b.chunks(row)).all(|(mut a, mut b)| {
                self.outputs.iter().all(|column| {
                    let (a, b) = (cut(&mut a, column.size()), cut(&mut b, column.size()));
                    a == b || column.is_rounded() && near(a, b)
                })
            })
    }

    /// The request for some of a unit's items, whose bytes of each input are given.
    fn request(&self, inputs: &[impl AsRef<[u8]>], run: &Range<usize>) -> Option<Vec<u8>> {
        let columns = self.inputs.iter().zip(inputs).map(|(column, bytes)| {
            let size = column.size();
            let range = run.start.checked_mul(size)?..run.end.checked_mul(size)?;
            Some(Tensor { head: column.head(run.len() as u64), bytes: bytes.as_ref().get(range)? })
        });
        Some(pack(&columns.collect::<Option<Vec<_>>>()?))
    }

    /// Adds what the model answered for so many items, a row for each.
    fn take(&self, items: usize, answer: &[u8], rows: &mut Vec<u8>) -> Result<(), String> {
        let tensors = unpack(answer).map_err(|error| format!("the answer: {error}"))?;
        let mut found = Vec::with_capacity(self.outputs.len());
        for column in &self.outputs {
            let head = column.head(items as u64);
            let tensor = tensors.iter().find(|tensor| tensor.head.name == head.name);
            let tensor = tensor.ok_or_else(|| format!("the output {:?} is missing", head.name))?;
            if tensor.head != head {
                let (name, was) = (&head.name, &tensor.head);
                return Err(format!(
                    "the output {name:?} came out as {} {:?}: expected {} {:?}",
                    was.element, was.dims, head.element, head.dims
                ));
            }
            found.push((tensor.bytes, column.size()));
        }
        for item in 0..items {
            for (bytes, size) in &found {
                rows.extend_from_slice(&bytes[item * size..(item + 1) * size]);
            }
        }
        Ok(())
    }
}

fn cut<'a>(bytes: &mut &'a [u8], size: usize) -> &'a [u8] {
    let (first, rest) = bytes.split_at(size.min(bytes.len()));
    *bytes = rest;
    first
}

/// A unit of a batch on its way, run by run.
pub struct Unit<B> {
    span: Span,
    /// What its items have of each input.
    inputs: Vec<B>,
    /// Items in one run.
    at_once: usize,
    at: usize,
    rows: Vec<u8>,
}

impl<B: AsRef<[u8]>> Unit<B> {
    pub fn new(batch: &Batch, span: Span, inputs: Vec<B>) -> Unit<B> {
        Unit { span, inputs, at_once: batch.at_once.max(1) as usize, at: 0, rows: Vec::new() }
    }

    /// Whether items are left.
    pub fn goes_on(&self) -> bool {
        (self.at as u64) < self.span.len
    }

    /// Runs the next items. If several fail together, each is tried alone, to find the one at fault.
    pub fn step(
        &mut self,
        batch: &Batch,
        run: impl FnOnce(&[u8]) -> Result<Vec<u8>, Failure>,
    ) -> Result<(), Failure> {
        let request = self.next(batch)?;
        self.took(batch, run(&request))
    }

    /// What a model is asked for the next items. [`Unit::took`] takes the answer.
    pub fn next(&self, batch: &Batch) -> Result<Vec<u8>, Failure> {
        let wrong = || Failure::Internal { message: "a unit without all of its inputs".into() };
        batch.request(&self.inputs, &(self.at..self.at + self.next_items())).ok_or_else(wrong)
    }

    /// What the model answered for them.
    pub fn took(
        &mut self,
        batch: &Batch,
        answered: Result<Vec<u8>, Failure>,
    ) -> Result<(), Failure> {
        let items = self.next_items();
        let taken = answered.and_then(|answer| {
            let taken = batch.take(items, &answer, &mut self.rows);
            taken.map_err(|message| Failure::Model { message })
        });
        match taken {
            Ok(()) => self.at += items,
            Err(Failure::Model { .. } | Failure::OutOfMemory { .. }) if items > 1 => {
                self.at_once = 1;
            }
            Err(Failure::Model { message }) => {
                let item = self.span.start + self.at as u64;
                return Err(Failure::Model { message: format!("item {item}: {message}") });
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    fn next_items(&self) -> usize {
        let left = usize::try_from(self.span.len).unwrap_or(usize::MAX) - self.at;
        self.at_once.min(left)
    }

    /// The rows of all items.
    pub fn into_rows(self) -> Vec<u8> {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn column(name: &str, element: Element, dims: &[u64]) -> Column {
        Column { name: name.into(), element, dims: dims.into(), leads: true }
    }

    /// Takes a byte and gives it as a float, and its double as a byte.
    fn doubles(at_once: u32) -> Batch {
        Batch {
            feeds: Vec::new(),
            inputs: vec![column("x", Element::U8, &[1])],
            outputs: vec![column("f", Element::F32, &[]), column("d", Element::U8, &[1])],
            at_once,
        }
    }

    fn run(request: &[u8]) -> Result<Vec<u8>, Failure> {
        let tensors = unpack(request).expect("a request");
        let bytes = tensors[0].bytes;
        if bytes.contains(&13) {
            return Err(Failure::Model { message: "no thirteens".into() });
        }
        let head = |name: &str, element, dims| Head { name: name.into(), element, dims };
        let count = bytes.len() as u64;
        let floats: Vec<u8> = bytes.iter().flat_map(|b| f32::from(*b).to_le_bytes()).collect();
        let doubles: Vec<u8> = bytes.iter().map(|byte| byte * 2).collect();
        // In another order than the rows are in.
        Ok(pack(&[
            Tensor { head: head("d", Element::U8, vec![count, 1]), bytes: &doubles },
            Tensor { head: head("f", Element::F32, vec![count]), bytes: &floats },
        ]))
    }

    fn rows(at_once: u32, items: &[u8]) -> Result<Vec<u8>, Failure> {
        let batch = doubles(at_once);
        let span = Span::new(100, items.len() as u64);
        let mut unit = Unit::new(&batch, span, vec![items]);
        while unit.goes_on() {
            unit.step(&batch, run)?;
        }
        Ok(unit.into_rows())
    }

    #[test]
    fn rows_are_the_same_however_many_items_run_at_once() {
        let expected: Vec<u8> = [3u8, 4, 5, 6, 7]
            .iter()
            .flat_map(|n| f32::from(*n).to_le_bytes().into_iter().chain([n * 2]))
            .collect();
        for at_once in [1, 2, 3, 5, 64] {
            assert_eq!(rows(at_once, &[3, 4, 5, 6, 7]), Ok(expected.clone()), "{at_once}");
        }
    }

    #[test]
    fn the_item_that_fails_is_named() {
        let failed = rows(4, &[1, 2, 3, 4, 5, 13, 7]);
        assert_eq!(failed, Err(Failure::Model { message: "item 105: no thirteens".into() }));
    }

    #[test]
    fn answers_of_another_shape_are_no_rows() {
        let mut batch = doubles(1);
        batch.outputs[1].dims = vec![2];
        let mut unit = Unit::new(&batch, Span::new(0, 1), vec![[1u8]]);
        let failed = unit.step(&batch, run).expect_err("two bytes were expected");
        assert!(alloc::format!("{failed}").contains("came out as uint8 [1, 1]: expected"));
    }

    #[test]
    fn only_floats_may_differ() {
        let batch = doubles(1);
        let row = |float: f32, byte: u8| {
            float.to_le_bytes().into_iter().chain([byte]).collect::<Vec<u8>>()
        };
        let (a, b) = ([row(1.0, 2), row(3.0, 6)].concat(), [row(1.0, 2), row(3.5, 6)].concat());
        assert!(batch.agree(&a, &a, |_, _| false));
        assert!(batch.agree(&a, &b, |_, _| true) && !batch.agree(&a, &b, |_, _| false));
        assert!(!batch.agree(&row(1.0, 2), &row(1.0, 3), |_, _| true));
        assert!(!batch.agree(&a, &a[..5], |_, _| true));
    }
}
