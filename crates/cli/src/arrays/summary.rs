//! What an array is like, for whoever only wants to see it: its shape, its least, mean and largest number, and the first ones.

use std::fmt;

use half::f16;
use serde_json::{Value, json};

use crate::npy::Dtype;

/// Numbers that are shown.
const FIRST: usize = 8;

pub(crate) struct Summary {
    dtype: Dtype,
    shape: Vec<u64>,
    /// Numbers of each element in memory, and how many of them count: vectors of three take four places.
    lanes: (u64, u64),
    count: u64,
    nans: u64,
    sum: f64,
    least: f64,
    most: f64,
    first: Vec<f64>,
    /// The start of a number.
    held: Vec<u8>,
    at: u64,
}

impl Summary {
    pub(crate) fn new(dtype: Dtype, shape: &[u64], lanes: (u64, u64)) -> Summary {
        Summary {
            dtype,
            shape: shape.to_vec(),
            lanes,
            count: 0,
            nans: 0,
            sum: 0.0,
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
            first: Vec::new(),
            held: Vec::new(),
            at: 0,
        }
    }

    /// The next bytes, however they come.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        let size = self.dtype.bytes() as usize;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(size - self.held.len()));
            self.held.extend_from_slice(now);
            bytes = later;
            if self.held.len() == size {
                let number = number(self.dtype, &self.held);
                self.held.clear();
                self.add(number);
            }
        }
    }

    fn add(&mut self, number: f64) {
        let (places, used) = self.lanes;
        let place = self.at % places.max(1);
        self.at += 1;
        if place >= used {
            return;
        }
        if self.first.len() < FIRST {
            self.first.push(number);
        }
        self.count += 1;
        if number.is_nan() {
            self.nans += 1;
            return;
        }
        self.sum += number;
        self.least = self.least.min(number);
        self.most = self.most.max(number);
    }

    fn mean(&self) -> f64 {
        self.sum / (self.count - self.nans) as f64
    }

    /// As NumPy writes it.
    fn shape(&self) -> String {
        match self.shape.as_slice() {
            [one] => format!("({one},)"),
            all => {
                let all: Vec<_> = all.iter().map(u64::to_string).collect();
                format!("({})", all.join(", "))
            }
        }
    }

    pub(crate) fn json(&self) -> Value {
        let number = |it: f64| if it.is_finite() { json!(it) } else { Value::Null };
        json!({
            "shape": self.shape,
            "dtype": self.dtype.numpy(),
            "min": number(self.least),
            "mean": number(self.mean()),
            "max": number(self.most),
            "nans": self.nans,
            "first": self.first.iter().map(|it| number(*it)).collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |it: f64| match self.dtype {
            // The shortest text that is this number of single precision.
            Dtype::F16 | Dtype::F32 => (it as f32).to_string(),
            Dtype::I32 | Dtype::U32 => it.to_string(),
        };
        writeln!(f, "shape  {}", self.shape())?;
        writeln!(f, "dtype  {}", self.dtype.numpy())?;
        if self.count > self.nans {
            writeln!(f, "min    {}", shown(self.least))?;
            writeln!(f, "mean   {}", (self.mean() as f32))?;
            writeln!(f, "max    {}", shown(self.most))?;
        }
        if self.nans > 0 {
            writeln!(f, "NaN    {} of {} numbers", self.nans, self.count)?;
        }
        let first: Vec<_> = self.first.iter().map(|it| shown(*it)).collect();
        let more = if self.count > FIRST as u64 { " …" } else { "" };
        write!(f, "first  {}{more}", first.join(" "))
    }
}

fn number(dtype: Dtype, bytes: &[u8]) -> f64 {
    let four = || [bytes[0], bytes[1], bytes[2], bytes[3]];
    match dtype {
        Dtype::F16 => f16::from_le_bytes([bytes[0], bytes[1]]).to_f64(),
        Dtype::F32 => f32::from_le_bytes(four()).into(),
        Dtype::I32 => i32::from_le_bytes(four()).into(),
        Dtype::U32 => u32::from_le_bytes(four()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: &[f32], piece: usize, lanes: (u64, u64)) -> Summary {
        let bytes: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
        let mut summary = Summary::new(Dtype::F32, &[numbers.len() as u64], lanes);
        bytes.chunks(piece).for_each(|piece| summary.push(piece));
        summary
    }

    #[test]
    fn an_array_is_summed_up_however_its_bytes_come() {
        let numbers = [0.1, 4.0, -2.5, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0];
        for piece in 1..10 {
            let text = of(&numbers, piece, (1, 1)).to_string();
            let expected = "shape  (9,)\ndtype  float32\nmin    -2.5\nmean   0.73333335\nmax    4\n\
                            first  0.1 4 -2.5 0 1 1 1 1 …";
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn what_is_no_number_is_counted_and_fillers_are_not() {
        let summary = of(&[1.0, f32::NAN, 3.0, 99.0], 16, (4, 3));
        let text = summary.to_string();
        assert!(
            text.contains("mean   2\nmax    3\nNaN    1 of 3 numbers\nfirst  1 NaN 3"),
            "{text}"
        );
        assert_eq!(summary.json()["first"], json!([1.0, null, 3.0]));
        let nothing = of(&[f32::NAN], 4, (1, 1));
        assert!(!nothing.to_string().contains("mean"));
        assert_eq!(nothing.json()["mean"], Value::Null);
    }
}
