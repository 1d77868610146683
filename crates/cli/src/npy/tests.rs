//! What NumPy writes is read, what is broken is named.

use super::*;

fn file(text: &str) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

#[test]
fn what_is_written_reads_back() {
    for dtype in Dtype::ALL {
        for shape in [vec![], vec![0], vec![7], vec![3, 4], vec![2, 3, 5]] {
            let bytes = header(dtype, &shape);
            assert_eq!(bytes.len() % 64, 0);
            let data_start = bytes.len() as u64;
            assert_eq!(parse(&bytes), Ok(Header { dtype, shape, data_start }));
        }
    }
}

#[test]
fn numpys_own_headers_are_read() {
    let numpys = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }          \n";
    let header = parse(&file(numpys)).expect("NumPy's usual header");
    assert_eq!((header.dtype, header.shape), (Dtype::F32, vec![3, 4]));
    let other = "{\"shape\":(12L,),\"fortran_order\":True,\"descr\":\"<i4\"}";
    let header = parse(&file(other)).expect("other order, quotes and Python 2's long numbers");
    assert_eq!((header.dtype, header.shape), (Dtype::I32, vec![12]));
}

#[test]
fn versions_two_and_three_have_a_longer_length() {
    for major in [2, 3] {
        let text = "{'descr': '<u4', 'fortran_order': False, 'shape': (5,), }\n";
        let mut bytes = b"\x93NUMPY".to_vec();
        bytes.extend([major, 0]);
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
        let header = parse(&bytes).expect("a later version");
        assert_eq!(header.data_start, 12 + text.len() as u64);
    }
}

#[test]
fn each_fault_is_named() {
    let with = |descr: &str, fortran: &str, shape: &str| {
        let text =
            format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        parse(&file(&text)).expect_err("a fault").to_string()
    };
    let cases = [
        (with("'<f8'", "False", "(3,)"), "float64"),
        (with("'>f4'", "False", "(3,)"), "big-endian"),
        (with("'<f4'", "True", "(3, 2)"), "Fortran"),
        (with("[('a', '<f4')]", "False", "(3,)"), "structure"),
        (with("'<f4'", "Maybe", "(3,)"), "neither True nor False"),
        (with("'<f4'", "False", "(-3,)"), "not a tuple"),
        (with("'<f4'", "False", "3"), "not a tuple"),
        (with("<f4", "False", "(3,)"), "quoted"),
    ];
    for (text, wanted) in cases {
        assert!(text.contains(wanted), "{text:?} should speak of {wanted:?}");
    }
    assert_eq!(parse(b"PK\x03\x04"), Err(NpyError::NotNpy));
    assert_eq!(parse(b"\x93NUMPY\x01"), Err(NpyError::CutHeader));
    assert_eq!(parse(b"\x93NUMPY\x09\x00\x00\x00"), Err(NpyError::Version(9, 0)));
}

#[test]
fn the_array_must_fill_the_file_exactly() {
    let mut bytes = header(Dtype::F32, &[2]);
    bytes.extend([0; 7]);
    let short = read_header(&mut &bytes[..], bytes.len() as u64).expect("memory is readable");
    assert_eq!(short, Err(NpyError::Short { expected: 8, found: 7 }));
    bytes.extend([0; 2]);
    let long = read_header(&mut &bytes[..], bytes.len() as u64).expect("memory is readable");
    assert_eq!(long, Err(NpyError::Trailing { extra: 1 }));
    let huge = header(Dtype::F32, &[u64::MAX, 9]);
    let huge = read_header(&mut &huge[..], huge.len() as u64).expect("memory is readable");
    assert_eq!(huge, Err(NpyError::TooLarge));
}

#[test]
fn garbage_never_panics() {
    // A small generator keeps the cases the same everywhere without a dependency.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let good = header(Dtype::F32, &[3, 4]);
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..next() % 6 {
            let at = next() as usize % bytes.len();
            bytes[at] = next() as u8;
        }
        bytes.truncate(next() as usize % (bytes.len() + 1));
        let _ = parse(&bytes);
    }
}
