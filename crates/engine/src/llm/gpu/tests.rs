//! Each kernel against plain arithmetic, for every type of weights. Whole models are in `tests/llm/gpu.rs`.

use shoal_gguf::Type;

use super::card::{Card, Dispatch};
use super::layer::{Kernels, bits};
use super::product::{Into, Matrix, Raw, Work};
use super::whole::waited;
use crate::llm::testing::{Draw, tensor};

fn card() -> Card {
    waited(Card::open()).expect("a GPU, if only of software")
}

/// Runs kernels for so many rows; the first numbers of a buffer.
fn run(card: &Card, list: &[Dispatch], rows: u32, from: &wgpu::Buffer, count: usize) -> Vec<f32> {
    let bytes = count as u64 * 4;
    let readback = card.readback(bytes);
    let scopes = card.scopes();
    let mut encoder = card.device().create_command_encoder(&Default::default());
    super::stage::dispatch(&mut encoder, list.iter(), rows);
    encoder.copy_buffer_to_buffer(from, 0, &readback, 0, bytes);
    let index = card.queue().submit([encoder.finish()]);
    let numbers = waited(card.read(&index, &readback, bytes)).expect("numbers");
    waited(scopes.close()).expect("no error");
    numbers
}

fn norm(x: &[f32], weights: &[f32], eps: f32) -> Vec<f32> {
    let square: f32 = x.iter().map(|x| x * x).sum::<f32>() / x.len() as f32;
    x.iter().zip(weights).map(|(x, weight)| x / (square + eps).sqrt() * weight).collect()
}

fn assert_near(found: &[f32], wanted: &[f32], what: &str) {
    assert_eq!(found.len(), wanted.len());
    let size = wanted.iter().fold(0.0f32, |size, it| size.max(it.abs()));
    for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let off = (found - wanted).abs();
        assert!(off <= 2e-5 * size, "{what}, {at}: {found}, not {wanted}");
    }
}

#[test]
fn matrices_of_all_types_are_multiplied_right_by_few_rows_and_by_many() {
    let (card, mut draw) = (card(), Draw::new(17));
    // Whole blocks of all types; rows that fill no tile.
    let (columns, outputs, eps) = (512, 38, 1e-5);
    for ty in Type::ALL {
        let (_, bytes) = tensor(&mut draw, ty, columns, outputs);
        let numbers = ty.numbers(&bytes).expect("numbers");
        let rows = bytes.chunks_exact(bytes.len() / outputs).collect();
        let matrix = Matrix::new(&card, &Raw { ty, columns, rows });
        let (weights, bias) = (draw.numbers(columns), draw.numbers(outputs));
        for (into, is_normed, is_biased) in [
            (Into::Stored, true, true),
            (Into::Added, false, false),
            (Into::Silu, true, false),
            (Into::Gelu, false, false),
        ] {
            for count in [1, 3, 45] {
                let x = draw.numbers(columns * count);
                let before = draw.numbers(outputs * count);
                let is_gated = matches!(into, Into::Silu | Into::Gelu);
                let mut wanted = Vec::new();
                for (x, before) in x.chunks_exact(columns).zip(before.chunks_exact(outputs)) {
                    let x = if is_normed { norm(x, &weights, eps) } else { x.to_vec() };
                    let dot = |row: &[f32]| row.iter().zip(&x).map(|(a, b)| a * b).sum::<f32>();
                    let mut results: Vec<f32> = numbers.chunks_exact(columns).map(dot).collect();
                    if is_biased {
                        results.iter_mut().zip(&bias).for_each(|(it, bias)| *it += bias);
                    }
                    if into == Into::Added {
                        results.iter_mut().zip(before).for_each(|(it, before)| *it += before);
                    }
                    if is_gated {
                        results = results.chunks_exact(2).map(|it| gated(into, it)).collect();
                    }
                    wanted.extend(results);
                }
                let input = card.kept(&bits(&x));
                let normed: Vec<f32> =
                    x.chunks_exact(columns).flat_map(|x| norm(x, &weights, eps)).collect();
                let (normed, out) = (card.kept(&bits(&normed)), card.kept(&bits(&before)));
                let extra = card.kept(&bits(&[&weights[..], &bias].concat()));
                let work = Work {
                    input: &input,
                    normed: is_normed.then_some(&normed),
                    extra: &extra,
                    is_biased,
                    eps,
                    out: &out,
                    first: 0,
                    stride: (outputs / if is_gated { 2 } else { 1 }) as u32,
                    into,
                    run: &card.settings(&[count as u32, 0, 0, 0]),
                };
                for (list, how) in matrix.dispatches(&card, &work).iter().zip(["few", "many"]) {
                    card.write(&out, &bits(&before));
                    let found = run(&card, list, count as u32, &out, wanted.len());
                    let what = format!("{} {into:?} {count} rows as {how}", ty.name());
                    assert_near(&found, &wanted, &what);
                }
            }
        }
    }
}

fn gated(into: Into, two: &[f32]) -> f32 {
    let (gate, up) = (two[0], two[1]);
    let gelu = |x: f32| 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh());
    let silu = |x: f32| x / (1.0 + (-x).exp());
    up * if into == Into::Silu { silu(gate) } else { gelu(gate) }
}

#[test]
fn rows_of_an_embedding_of_all_types_are_what_the_file_says() {
    let (card, mut draw) = (card(), Draw::new(23));
    let (columns, words) = (256, 50);
    for ty in Type::ALL {
        let (_, bytes) = tensor(&mut draw, ty, columns, words);
        let numbers = ty.numbers(&bytes).expect("numbers");
        let rows = bytes.chunks_exact(bytes.len() / words).collect();
        let matrix = Matrix::new(&card, &Raw { ty, columns, rows });
        let tokens = [49, 0, 17];
        let rows = card.kept(&tokens.map(|token| [0, 0, token, 0]).concat());
        let out = card.room((tokens.len() * columns) as u64 * 4);
        let list = matrix.embedding(&card, &rows, 3.0, &out, &card.settings(&[3, 0, 0, 0]));
        let found = run(&card, &list, 3, &out, tokens.len() * columns);
        let wanted: Vec<f32> = tokens
            .iter()
            .flat_map(|token| &numbers[*token as usize * columns..][..columns])
            .map(|it| it * 3.0)
            .collect();
        assert_near(&found, &wanted, ty.name());
    }
}

#[test]
fn rows_are_normed_and_added() {
    let (card, mut draw) = (card(), Draw::new(29));
    let (width, count) = (96, 5);
    let (x, weights, before) =
        (draw.numbers(width * count), draw.numbers(width), draw.numbers(width * count));
    for is_joined in [false, true] {
        let (input, out) = (card.kept(&bits(&x)), card.kept(&bits(&before)));
        let mut kernels = Kernels::default();
        kernels.norm_of(&card, (width as u32, 1e-6), &input, &weights, &out, is_joined);
        let found = run(&card, &kernels.many, count as u32, &out, width * count);
        let mut wanted: Vec<f32> =
            x.chunks_exact(width).flat_map(|x| norm(x, &weights, 1e-6)).collect();
        if is_joined {
            wanted.iter_mut().zip(&before).for_each(|(it, before)| *it += before);
        }
        assert_near(&found, &wanted, "norm");
    }
}
