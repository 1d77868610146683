//! Tiny models with drawn weights, one of each architecture, against numpy (`conformance/llm/tiny.py`), and against
//! themselves: whole and in stages, in one run and in many, with every kernel and number of threads.

use shoal_engine::llm::{Input, Kernel, Output, RunError};

use crate::material::{
    File, all_logits, assert_same, case, cases, numbers, options, rows, run, tokens, with,
};

const NAMES: [&str; 4] = ["llama", "qwen2", "qwen3", "gemma3"];

fn file(name: &str) -> File {
    File::open(&cases().join(format!("{name}.gguf")))
}

#[test]
fn every_architecture_says_what_numpy_says() {
    for name in NAMES {
        let (file, case) = (file(name), case(name));
        let tokens = tokens(&case["tokens"]);
        let vocab = file.model.config().vocab as usize;
        let logits = all_logits(&mut file.stages(None, &options()), &tokens, tokens.len());
        let tolerance = case["tolerance"].as_f64().expect("a tolerance");
        let wanted = case["logits"].as_array().expect("rows");
        for (row, wanted) in numbers(&case["rows"]).into_iter().zip(wanted) {
            let found = &logits[row as usize * vocab..][..vocab];
            for (at, (found, wanted)) in found.iter().zip(numbers(wanted)).enumerate() {
                let off = (f64::from(*found) - wanted).abs();
                assert!(off < tolerance, "{name}, row {row}, token {at}: {found}, not {wanted}");
            }
        }
    }
}

#[test]
fn the_same_bits_however_it_is_computed() {
    for name in NAMES {
        let (file, case) = (file(name), case(name));
        let tokens = tokens(&case["tokens"]);
        let whole = all_logits(&mut file.stages(None, &with(Kernel::Plain, 1)), &tokens, 20);
        for kernel in Kernel::all() {
            for threads in [1, 2, 3] {
                let options = with(kernel, threads);
                for (cut, at_once) in [(None, 1), (Some(1), 20), (Some(1), 7)] {
                    let mut stages = file.stages(cut, &options);
                    let found = all_logits(&mut stages, &tokens, at_once);
                    let what = format!("{name} {kernel:?} {threads} {cut:?} {at_once}");
                    assert_same(&whole, &found, &what);
                }
            }
        }
    }
}

#[test]
fn sequences_do_not_see_each_other() {
    let (file, case) = (file("gemma3"), case("gemma3"));
    let tokens = tokens(&case["tokens"]);
    let vocab = file.model.config().vocab as usize;
    let alone = all_logits(&mut file.stages(None, &options()), &tokens, 20);
    let mut stages = file.stages(None, &options());
    // Two sequences in one run, one three tokens ahead.
    run(&mut stages, &rows(1, 0, 3, false), &tokens[..3]);
    for at in 0..10 {
        let both = [rows(1, at + 3, 1, true), rows(2, at, 1, true)].concat();
        let found = run(&mut stages, &both, &[tokens[at + 3], tokens[at]]);
        assert_same(&found[..vocab], &alone[(at + 3) * vocab..][..vocab], "the first");
        assert_same(&found[vocab..], &alone[at * vocab..][..vocab], "the second");
    }
    // A copy of a beginning goes on as if it had been computed.
    stages[0].copy_prefix(1, 3, 8).expect("a copy");
    let found = run(&mut stages, &rows(3, 8, 1, true), &tokens[8..9]);
    assert_same(&found, &alone[8 * vocab..][..vocab], "the copy");
    // And so does one that was cut.
    stages[0].truncate(1, 5).expect("cut");
    let found = run(&mut stages, &rows(1, 5, 2, true), &tokens[5..7]);
    assert_same(&found, &alone[5 * vocab..][..2 * vocab], "cut");
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let file = file("llama");
    let mut stages = file.stages(Some(1), &options());
    let first = &mut stages[0];
    let hole = first.run(&rows(1, 1, 1, false), Input::Tokens(&[3]));
    assert_eq!(hole, Err(RunError::Hole { sequence: 1, length: 0, position: 1 }));
    let token = first.run(&rows(1, 0, 1, false), Input::Tokens(&[40]));
    assert_eq!(token, Err(RunError::Token { token: 40, vocab: 40 }));
    let hidden = first.run(&rows(1, 0, 1, false), Input::Hidden(&[0.0; 32]));
    assert_eq!(hidden, Err(RunError::Kind { expected: "tokens" }));
    let short = first.run(&rows(1, 0, 2, false), Input::Tokens(&[1]));
    assert!(matches!(short, Err(RunError::Input { .. })), "{short:?}");
    assert!(matches!(first.run(&[], Input::Tokens(&[])), Err(RunError::Rows { .. })));
    assert_eq!(first.length(1), 0);
    assert!(first.run(&rows(1, 0, 1, false), Input::Tokens(&[3])).is_ok());
    let second = &mut stages[1];
    let broken = second.run(&rows(1, 0, 1, true), Input::Hidden(&[f32::NAN; 32]));
    assert_eq!(broken, Err(RunError::NotFinite));
    // Finite, but too large to stay so.
    let broken = second.run(&rows(1, 0, 1, true), Input::Hidden(&[3e38; 32]));
    assert_eq!(broken, Err(RunError::NotFinite));
    assert_eq!(second.length(1), 0);
    let fine = second.run(&rows(1, 0, 1, false), Input::Hidden(&[0.5; 32]));
    assert_eq!(fine, Ok(Output::Logits(vec![])));
}
