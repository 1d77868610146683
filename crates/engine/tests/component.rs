//! The same program as a module of preview 1 and as a component of preview 2: each gets the same, and ends the same way.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use shoal_engine::intake::wasi_program;
use shoal_engine::wasi::{Answer, Ended, Folder, Module, Run, Wasi};
use shoal_kinds::ProgramForm;
use shoal_kinds::form::End;
use shoal_protocol::{Failure, LimitKind, Limits, Micros};

const TARGETS: [(&str, ProgramForm); 2] =
    [("wasm32-wasip1", ProgramForm::Module), ("wasm32-wasip2", ProgramForm::Component)];

/// Both, compiled.
struct Both {
    wasi: Wasi,
    programs: [Module; 2],
}

fn both() -> &'static Both {
    static BOTH: OnceLock<Both> = OnceLock::new();
    BOTH.get_or_init(|| {
        let wasi = Wasi::new().expect("wasmtime");
        let programs = TARGETS.map(|(target, form)| {
            let wasm = std::fs::read(built(target)).expect("the program");
            assert_eq!(wasi_program(&wasm, 64 << 20).ok(), Some(form), "{target}");
            wasi.compile(&wasm).expect("it compiles")
        });
        Both { wasi, programs }
    })
}

fn built(target: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/component/program.rs");
    let wasm = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("component-{target}.wasm"));
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let options = ["--edition", "2024", "--crate-name", "program", "-O", "--target", target, "-o"];
    let status = Command::new(compiler).args(options).arg(&wasm).arg(&source).status();
    assert!(status.expect("a Rust compiler").success(), "the test program builds for {target}");
    wasm
}

fn run(mode: &str) -> Run {
    Run {
        item: 3,
        again: 0,
        ok: vec![0],
        args: vec![mode.into()],
        env: vec![("COLOUR".into(), "sea green".into())],
        input: Some("three".into()),
        stdin: "a word".into(),
        folder: None,
        leaves: true,
        limits: Limits { time: Micros::from_secs(20), memory: 64 << 20, output: 1 << 20 },
        clock: false,
        cancel: Arc::default(),
        give: None,
    }
}

/// What module and component answer to the same.
fn answers(make: impl Fn() -> Run) -> [Result<Answer, Ended>; 2] {
    let Both { wasi, programs } = both();
    programs.each_ref().map(|program| wasi.run(program, make()))
}

fn text(answer: &Result<Answer, Ended>) -> String {
    String::from_utf8(answer.clone().expect("an answer").stdout).expect("text")
}

/// What both say.
fn said(make: impl Fn() -> Run) -> String {
    let [module, component] = answers(make).map(|answer| text(&answer));
    assert_eq!(module, component);
    component
}

#[test]
fn it_gets_stdin_arguments_and_environment() {
    assert_eq!(said(|| run("upper")), "A WORD");
    let words = said(|| run("words"));
    assert!(
        words.contains(r#"["program", "words"]"#) && words.contains(r#""sea green""#),
        "{words}"
    );
    assert!(words.contains(r#"("SHOAL_INPUT", "three")"#), "{words}");
}

#[test]
fn time_and_chance_are_those_of_the_item() {
    assert_eq!(said(|| run("clock")), "true true\n");
    let chance = |item, again| {
        let [_, component] = answers(|| Run { item, again, ..run("chance") });
        text(&component)
    };
    assert_eq!(chance(3, 0), chance(3, 0));
    assert_ne!(chance(3, 0), chance(4, 0));
    assert_ne!(chance(3, 0), chance(3, 1), "a second try has other luck");
    let began = Instant::now();
    assert_eq!(said(|| run("sleep")), "3600\n");
    assert!(began.elapsed() < Duration::from_secs(20), "an hour passes at once");
}

#[test]
fn real_time_ends_with_the_run() {
    let limits = Limits { time: Micros::from_millis(300), ..run("sleep").limits };
    for ended in answers(|| Run { limits, clock: true, ..run("sleep") }) {
        let Err(Ended { failure: Failure::Limit { which, .. }, told }) = ended else {
            panic!("an hour in less than a second: {ended:?}")
        };
        assert_eq!((which, told), (LimitKind::Time, None));
    }
    let [_, component] = answers(|| Run { clock: true, ..run("clock") });
    assert!(text(&component).starts_with("false"), "it is after 1970");
}

#[test]
fn a_component_finds_no_files() {
    let folder = std::env::temp_dir().join(format!("shoal-component-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("data")).expect("a folder");
    std::fs::create_dir_all(folder.join("other")).expect("a folder");
    std::fs::write(folder.join("data/a.txt"), "shared").expect("a file");
    std::fs::write(folder.join("other/secret.txt"), "secret").expect("a file");
    let data = Arc::new(Folder::new(&folder.join("data"), vec![("a.txt".to_owned(), 6)]));
    let [module, component] = answers(|| Run { folder: Some(data.clone()), ..run("data") });
    assert_eq!(text(&module), "Some(\"shared\")\n[true, true, true, true]\n");
    assert_eq!(text(&component), "None\n[true, true, true, true]\n");
    let [_, component] = answers(|| Run { folder: Some(data.clone()), ..run("files") });
    assert_eq!(text(&component), "[false, false, false, false]\n");
    assert_eq!(std::fs::read(folder.join("data/a.txt")).expect("it is there"), b"shared");
    std::fs::remove_dir_all(folder).expect("it can go");
}

#[test]
fn runs_that_fail_say_how() {
    // Of its exit code, a component says only whether it is 0.
    for (ended, expected) in answers(|| run("exit")).into_iter().zip([7, 1]) {
        let Err(Ended { failure: Failure::Exit { item, code, stderr }, told }) = ended else {
            panic!("it should have failed: {ended:?}")
        };
        assert_eq!((item, code, stderr.as_str()), (3, expected, "seven\n"));
        assert_eq!(told.map(|told| told.end), Some(End::Exit(expected)));
    }
    assert!(answers(|| Run { ok: vec![7, 1], ..run("exit") }).iter().all(Result::is_ok));
    for ended in answers(|| run("panic")) {
        let Err(Ended { failure: Failure::Trap { stderr, .. }, told }) = ended else {
            panic!("it should have failed: {ended:?}")
        };
        assert!(stderr.contains("no way"), "{stderr}");
        assert_eq!(told.map(|told| told.end), Some(End::Trap));
    }
}

#[test]
fn limits_hold() {
    for (mode, limit) in [("flood", LimitKind::Output), ("grow", LimitKind::Memory)] {
        for ended in answers(|| run(mode)) {
            let Err(Ended { failure: Failure::Limit { item, which, .. }, told }) = ended else {
                panic!("{mode}: {ended:?}")
            };
            assert_eq!((item, which), (Some(3), limit));
            assert_eq!(told.map(|told| told.end), Some(End::Limit(limit)));
        }
    }
    let limits = Limits { time: Micros::from_millis(200), ..run("spin").limits };
    for ended in answers(|| Run { limits, ..run("spin") }) {
        let Err(Ended { failure: Failure::Limit { which, .. }, .. }) = ended else {
            panic!("it spins for ever: {ended:?}")
        };
        assert_eq!(which, LimitKind::Time);
    }
}

#[test]
fn a_run_that_is_cancelled_ends_and_what_it_wrote_is_given_while_it_writes() {
    let Both { wasi, programs } = both();
    let cancel = Arc::new(AtomicBool::new(false));
    let given = Arc::new(Mutex::new(0));
    let (sum, enough) = (given.clone(), cancel.clone());
    let give = move |part: Vec<u8>| {
        let mut sum = sum.lock().expect("nobody panics");
        *sum += part.len();
        enough.store(*sum > 4 << 20, Ordering::Relaxed);
    };
    let limits = Limits { output: u64::MAX, ..run("flood").limits };
    let flood = Run { limits, cancel, give: Some(Box::new(give)), ..run("flood") };
    let Err(Ended { failure, told: None }) = wasi.run(&programs[1], flood) else {
        panic!("it floods for ever")
    };
    assert!(failure.to_string().contains("cancelled"), "{failure}");
    assert!(*given.lock().expect("nobody panics") > 4 << 20);
}
