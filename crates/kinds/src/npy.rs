//! The head of NumPy's `.npy` files, which results are handed out as.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// What every such file begins with.
pub const MAGIC: &[u8] = b"\x93NUMPY";
/// NumPy aligns the data to this, so that it can be mapped into memory.
const ALIGN: usize = 64;
/// Before the header's text: magic, version, length.
const PREFIX: usize = 10;

/// The bytes before an array in C order; `descr` is NumPy's word for its type, such as `<f4`.
pub fn head(descr: &str, shape: &[u64]) -> Vec<u8> {
    let axes: Vec<String> = shape.iter().map(u64::to_string).collect();
    let comma = if axes.len() == 1 { "," } else { "" };
    let axes = axes.join(", ");
    let text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({axes}{comma}), }}");
    let whole = (PREFIX + text.len() + 1).next_multiple_of(ALIGN);
    let mut head = MAGIC.to_vec();
    head.extend([1, 0]);
    head.extend(((whole - PREFIX) as u16).to_le_bytes());
    head.extend(text.as_bytes());
    head.resize(whole - 1, b' ');
    head.push(b'\n');
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_type_and_shape_and_ends_at_a_multiple() {
        for (shape, words) in
            [(&[3][..], "(3,)"), (&[2, 3, 4], "(2, 3, 4)"), (&[5, 6], "(5, 6)"), (&[], "()")]
        {
            let head = head("<f4", shape);
            assert_eq!(head.len() % ALIGN, 0);
            let text = String::from_utf8_lossy(&head[PREFIX..]).into_owned();
            assert!(text.contains(&format!("'shape': {words}, }}")), "{text}");
            assert!(text.ends_with('\n'));
            assert_eq!(usize::from(u16::from_le_bytes([head[8], head[9]])), head.len() - PREFIX);
        }
    }
}
