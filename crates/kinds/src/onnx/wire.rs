//! How tensors travel between devices that each hold a slice of a model: as they are, as halves, or as bytes with a scale
//! for each few of them. The receiver knows from the model what each tensor is, so a tensor's own type says how it
//! came.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::sight::Seeking;
use super::tensor::{Element, Head, Tensor, TensorError, pack_behind, unpack_behind};
use super::{Port, Side};
pub use crate::wire::Wire;

/// Why bytes are not what crosses there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    Tensors(TensorError),
    Missing {
        name: String,
    },
    /// It is nothing that this tensor could have been made into.
    Form {
        name: String,
    },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Tensors(error) => write!(f, "{error}"),
            WireError::Missing { name } => {
                write!(f, "the tensor {name:?} did not come from the slice before")
            }
            WireError::Form { name } => {
                write!(f, "the tensor {name:?} is not as the slice before should send it")
            }
        }
    }
}

impl core::error::Error for WireError {}

/// All tensors as they travel, and what the last slice is to look for. A tensor with numbers that the form has no room for
/// travels as it is.
pub fn send(tensors: &[Tensor<'_>], wire: Wire, seeking: Option<&Seeking>) -> Vec<u8> {
    let made: Vec<Option<(Element, Vec<u8>)>> =
        tensors.iter().map(|tensor| formed(tensor, wire)).collect();
    let sent = tensors.iter().zip(&made).map(|(tensor, made)| match made {
        None => tensor.clone(),
        Some((element, bytes)) => {
            // Blocks are bytes, however many numbers they are of.
            let dims = if *element == Element::U8 {
                Vec::from([bytes.len() as u64])
            } else {
                tensor.head.dims.clone()
            };
            let head = Head { name: tensor.head.name.clone(), element: *element, dims };
            Tensor { head, bytes }
        }
    });
    let seeking = seeking.map(|seeking| postcard::to_allocvec(seeking).unwrap_or_default());
    pack_behind(&sent.collect::<Vec<_>>(), &seeking.unwrap_or_default())
}

/// What a slice gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrived<'a> {
    pub tensors: Vec<Received<'a>>,
    pub seeking: Option<Seeking>,
}

/// A tensor as the model has it; its bytes are copied only if they came in another form.
pub type Received<'a> = (Head, Cow<'a, [u8]>);

/// What was sent, as the model has it: each of these once, in their order, and no other.
pub fn receive<'a>(bytes: &'a [u8], ports: &[Port]) -> Result<Arrived<'a>, WireError> {
    let (tensors, behind) = unpack_behind(bytes).map_err(WireError::Tensors)?;
    let seeking = match behind {
        [] => None,
        behind => {
            let read = postcard::from_bytes(behind);
            Some(read.map_err(|_| WireError::Tensors(TensorError::Head))?)
        }
    };
    if let Some(other) = tensors.get(ports.len()) {
        return Err(WireError::Form { name: other.head.name.clone() });
    }
    let read = |port: &Port| {
        let sent = tensors.iter().find(|tensor| tensor.head.name == port.name);
        let sent = sent.ok_or_else(|| WireError::Missing { name: port.name.clone() })?;
        read(sent, port).ok_or_else(|| WireError::Form { name: port.name.clone() })
    };
    Ok(Arrived { tensors: ports.iter().map(read).collect::<Result<_, _>>()?, seeking })
}

/// What a tensor becomes; none if it stays as it is.
fn formed(tensor: &Tensor<'_>, wire: Wire) -> Option<(Element, Vec<u8>)> {
    if tensor.head.element != Element::F32 {
        return None;
    }
    let (numbers, _) = tensor.bytes.as_chunks::<4>();
    let element = match wire {
        Wire::F32 => return None,
        Wire::F16 => Element::F16,
        Wire::Int8 => Element::U8,
    };
    wire.narrow(numbers).map(|bytes| (element, bytes))
}

fn read<'a>(sent: &Tensor<'a>, port: &Port) -> Option<Received<'a>> {
    let Tensor { head, bytes } = sent;
    if head.element == port.element {
        return port.allows(&head.dims).then(|| (head.clone(), Cow::Borrowed(*bytes)));
    }
    if port.element != Element::F32 {
        return None;
    }
    let (dims, numbers) = if head.element == Element::F16 {
        (head.dims.clone(), Wire::F16.widen(bytes)?)
    } else if head.element == Element::U8 {
        (fixed(port)?, Wire::Int8.widen(bytes)?)
    } else {
        return None;
    };
    let head = Head { name: port.name.clone(), element: Element::F32, dims };
    let fits = port.allows(&head.dims) && head.bytes() == Some(numbers.len());
    fits.then_some((head, Cow::Owned(numbers)))
}

/// The shape of a tensor between slices, of which every side is known.
fn fixed(port: &Port) -> Option<Vec<u64>> {
    let side = |side: &Side| match side {
        Side::Fixed(number) => Some(*number),
        Side::Open(_) => None,
    };
    port.dims.as_ref()?.iter().map(side).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sight::{Boxes, Placed};
    use super::super::tensor::pack;
    use super::*;
    use alloc::vec;

    fn port(name: &str, element: Element, dims: &[u64]) -> Port {
        let dims = dims.iter().map(|dim| Side::Fixed(*dim)).collect();
        Port { name: name.into(), element, dims: Some(dims) }
    }

    fn bytes(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// How far what comes is from what was sent, and how many bytes travelled.
    fn off(numbers: &[f32], wire: Wire) -> (f32, usize) {
        let ports = [port("a", Element::F32, &[1, numbers.len() as u64])];
        let head =
            Head { name: "a".into(), element: Element::F32, dims: vec![1, numbers.len() as u64] };
        let sent = send(&[Tensor { head: head.clone(), bytes: &bytes(numbers) }], wire, None);
        let came = receive(&sent, &ports).expect("it comes").tensors;
        assert_eq!(came[0].0, head);
        let (came, _) = came[0].1.as_chunks::<4>();
        let off = numbers.iter().zip(came).map(|(a, b)| (a - f32::from_le_bytes(*b)).abs());
        (off.fold(0.0, f32::max), sent.len())
    }

    #[test]
    fn numbers_come_as_near_as_their_form_allows() {
        let numbers: Vec<f32> =
            (0..1000u32).map(|n| (n * 37 % 1000) as f32 / 100.0 - 5.0).collect();
        let (exact, long) = off(&numbers, Wire::F32);
        assert_eq!(exact, 0.0);
        let (half, shorter) = off(&numbers, Wire::F16);
        assert!(half > 0.0 && half <= 5.0 / 2048.0, "{half}");
        let (byte, shortest) = off(&numbers, Wire::Int8);
        assert!(byte > 0.0 && byte <= 10.0 / 255.0 * 0.51, "{byte}");
        assert!(shorter < long * 6 / 10 && shortest < long * 4 / 10, "{long} {shorter} {shortest}");
        assert_eq!(off(&[2.5; 70], Wire::Int8).0, 0.0);
        assert_eq!(off(&[], Wire::Int8).0, 0.0);
        assert!(off(&[0.0, f32::MIN_POSITIVE], Wire::Int8).0 <= f32::MIN_POSITIVE);
    }

    #[test]
    fn what_a_form_has_no_room_for_travels_as_it_is() {
        let far = [1.0, 1e30, -3.5];
        assert_eq!(off(&far, Wire::F16).0, 0.0);
        assert_eq!(off(&[f32::MAX, f32::MIN], Wire::Int8).0, 0.0);
        let ports = [port("n", Element::F32, &[1]), port("i", Element::I64, &[1])];
        let head = |name: &str, element| Head { name: name.into(), element, dims: vec![1] };
        let none = bytes(&[f32::NAN]);
        let tensors = [
            Tensor { head: head("n", Element::F32), bytes: &none },
            Tensor { head: head("i", Element::I64), bytes: &[9; 8] },
        ];
        for wire in Wire::ALL {
            let sent = send(&tensors, wire, None);
            let came = receive(&sent, &ports).expect("they come").tensors;
            assert_eq!((&*came[0].1, &*came[1].1), (&none[..], &[9; 8][..]));
        }
    }

    #[test]
    fn what_does_not_belong_there_is_refused() {
        let ports = [port("a", Element::F32, &[2])];
        let head = |name: &str, element, dims: &[u64]| Head {
            name: name.into(),
            element,
            dims: dims.into(),
        };
        let says = |tensor: Tensor<'_>| receive(&pack(&[tensor]), &ports).map(drop);
        let missing = Err(WireError::Missing { name: "a".into() });
        assert_eq!(says(Tensor { head: head("b", Element::F32, &[2]), bytes: &[0; 8] }), missing);
        let form = Err(WireError::Form { name: "a".into() });
        assert_eq!(says(Tensor { head: head("a", Element::F32, &[3]), bytes: &[0; 12] }), form);
        assert_eq!(says(Tensor { head: head("a", Element::F16, &[3]), bytes: &[0; 6] }), form);
        assert_eq!(says(Tensor { head: head("a", Element::U8, &[11]), bytes: &[0; 11] }), form);
        assert_eq!(says(Tensor { head: head("a", Element::U8, &[5]), bytes: &[0; 5] }), form);
        assert_eq!(says(Tensor { head: head("a", Element::I64, &[2]), bytes: &[0; 16] }), form);
        let two = Tensor { head: head("a", Element::F32, &[2]), bytes: &[0; 8] };
        assert_eq!(receive(&pack(&[two.clone(), two]), &ports).map(drop), form);
        assert!(receive(&[1, 2, 3], &ports).is_err());
    }

    #[test]
    fn what_the_last_slice_looks_for_travels_along() {
        let ports = [port("a", Element::F32, &[1])];
        let head = Head { name: "a".into(), element: Element::F32, dims: vec![1] };
        let boxes = Boxes { score: 0.5, overlap: 0.25, classes: Some(3) };
        let (width, height, scale_x, scale_y) = (810, 1080, 0.5, 0.25);
        let placed = Placed { width, height, scale_x, scale_y, left: -3.0, top: 80.5 };
        let seeking = Seeking { boxes, placed };
        for wire in Wire::ALL {
            let tensors = [Tensor { head: head.clone(), bytes: &[0; 4] }];
            let sent = send(&tensors, wire, Some(&seeking));
            let came = receive(&sent, &ports).expect("it comes");
            assert_eq!((came.seeking, came.tensors.len()), (Some(seeking), 1));
        }
        let garbled = pack_behind(&[Tensor { head, bytes: &[0; 4] }], &[9]);
        assert!(receive(&garbled, &ports).is_err());
    }

    #[test]
    fn sizes_are_told_before_anything_is_sent() {
        assert_eq!((Wire::F32.bytes(400), Wire::F16.bytes(400)), (400, 200));
        assert_eq!(Wire::Int8.bytes(400), 100 + 16);
        assert_eq!(Wire::of("int8"), Some(Wire::Int8));
        assert_eq!(Wire::of("int4"), None);
    }
}
