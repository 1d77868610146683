//! Files that call themselves `.gguf`: read by their first bytes, cut into layers, weights read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal_gguf::{Model, ReadError, Type};

fuzz_target!(|bytes: &[u8]| {
    weights(bytes);
    // A head may speak of more weights than are here.
    for size in [bytes.len() as u64, 1 << 40] {
        let model = match Model::read(bytes.to_vec(), size) {
            Ok(model) => model,
            Err(ReadError::Short { needed }) => {
                assert!(needed > bytes.len() as u64 && needed <= size);
                continue;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        let head = model.head_bytes().clone();
        assert_eq!(Model::read(head, size).as_ref(), Ok(&model), "a head reads as its file does");
        let layers = model.whole();
        for part in [layers.clone(), 0..1, layers.end - 1..layers.end] {
            let part = match model.part(part) {
                Ok(part) => part,
                Err(error) => panic!("layers of the model: {error}"),
            };
            assert!(part.ranges.iter().all(|range| range.start < range.end && range.end <= size));
            assert!(part.ranges.windows(2).all(|two| two[0].end < two[1].start));
        }
        for key in model.head().keys() {
            if let Ok(Some(list)) = model.head().list(key) {
                let texts = list.texts().map(|texts| texts.count());
                assert!(texts.is_none_or(|count| count == list.len()));
            }
        }
    }
});

/// Any bytes of the right length are weights.
fn weights(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let ty = Type::ALL[usize::from(*first) % Type::ALL.len()];
    let whole = rest.len() / ty.block_bytes() * ty.block_bytes();
    match ty.numbers(&rest[..whole]) {
        Some(numbers) => assert_eq!(numbers.len(), whole / ty.block_bytes() * ty.block()),
        None => panic!("whole blocks are numbers"),
    }
}
