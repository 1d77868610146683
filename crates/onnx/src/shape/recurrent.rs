//! RNN, GRU and LSTM: sequences in, sequences and last states out.

use alloc::format;
use alloc::vec;

use super::Fact;
use super::call::{Call, Told, wrong};
use crate::dtype::Dims;

pub(super) fn recurrent(call: &Call<'_>) -> Told {
    let (dims, weights) = (call.dims(0)?, call.ranked(2, 3)?);
    let [first, second, _] = dims else {
        return wrong(format!("its input is [{}], not a row of batches", Dims(dims)));
    };
    let dtype = call.dtype(0)?;
    let directions = weights[0];
    let hidden = call.int("hidden_size")?.and_then(|size| u64::try_from(size).ok());
    let hidden = hidden.unwrap_or(weights[2]);
    let is_batch_first = call.int_or("layout", 0)? == 1;
    let (all, last) = match is_batch_first {
        true => (vec![*first, *second, directions, hidden], vec![*first, directions, hidden]),
        false => (vec![*first, directions, *second, hidden], vec![directions, *second, hidden]),
    };
    let last = Fact::new(dtype, last);
    Ok(vec![Some(Fact::new(dtype, all)), Some(last.clone()), Some(last)])
}
