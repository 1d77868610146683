//! What programs are made of is bounded, since only their memories count against the limit of a job: tables are host memory
//! too, and instances and memories are taken from what all runs share.

use std::sync::Arc;

use shoal_engine::intake::wasi_program;
use shoal_engine::wasi::{Answer, Ended, Run, Wasi};
use shoal_kinds::ProgramForm;
use shoal_protocol::{Failure, Limits, Micros};

const MEMORY: u64 = 1 << 20;

fn run() -> Run {
    Run {
        item: 0,
        again: 0,
        ok: vec![0],
        args: Vec::new(),
        env: Vec::new(),
        input: None,
        stdin: Default::default(),
        folder: None,
        leaves: false,
        limits: Limits { time: Micros::from_secs(60), memory: MEMORY, output: 1 << 20 },
        clock: false,
        cancel: Arc::default(),
        give: None,
    }
}

/// A command that has `count` instances of a module, and runs `does` of a last one, which finds the first as "one".
fn component(count: usize, module: &str, imports: &str, does: &str) -> Vec<u8> {
    let instances: String =
        (0..count).map(|at| format!("(core instance $i{at} (instantiate $part))")).collect();
    let text = format!(
        "(component
           (core module $part {module})
           {instances}
           (core module $last {imports} (func (export \"run\") (result i32) {does}))
           (core instance $l (instantiate $last (with \"one\" (instance $i0)) (with \"two\" (instance $i1))))
           (func $run (result (result)) (canon lift (core func $l \"run\")))
           (instance (export \"wasi:cli/run@0.2.0\") (export \"run\" (func $run))))"
    );
    wat::parse_str(text).expect("a component")
}

/// What becomes of it. Intake says of it what the engine says. Where wasmtime has no pool, it is refused when it starts.
fn outcome(wasm: &[u8]) -> Result<Vec<u8>, String> {
    let checked = wasi_program(wasm, MEMORY);
    let outcome = run_it(wasm);
    match (&checked, &outcome) {
        (Ok(ProgramForm::Component), Ok(_)) => {}
        (Err(error), Err(_)) => {
            assert!(error.message.contains("nodes run at most"), "{}", error.message)
        }
        _ => panic!("intake says {checked:?}, the engine {outcome:?}"),
    }
    outcome
}

fn run_it(wasm: &[u8]) -> Result<Vec<u8>, String> {
    let wasi = Wasi::new().expect("wasmtime");
    let program = wasi.compile(wasm).map_err(|failure| failure.to_string())?;
    let ended = wasi.run(&program, run());
    ended.map(|answer| answer.stdout).map_err(|Ended { failure, .. }| failure.to_string())
}

#[test]
fn a_component_has_a_bounded_number_of_instances_memories_and_tables() {
    let with = |count, module| outcome(&component(count, module, "", "i32.const 0"));
    assert_eq!(with(15, ""), Ok(Vec::new()));
    assert_eq!(with(2, "(memory 0)"), Ok(Vec::new()));
    assert_eq!(with(4, "(table 1 funcref) (table 1 funcref) (table 1 funcref)"), Ok(Vec::new()));
    for (count, module, what) in [
        (16, "", "instance"),
        (3, "(memory 0)", "memor"),
        (6, "(table 1 funcref) (table 1 funcref) (table 1 funcref)", "table"),
    ] {
        let refused = with(count, module).expect_err(what);
        assert!(refused.contains(what), "{refused}");
    }
}

#[test]
fn tables_of_a_component_grow_up_to_one_sum() {
    let part = "(table (export \"t\") 0 funcref)";
    let imports =
        "(import \"one\" \"t\" (table $a 0 funcref)) (import \"two\" \"t\" (table $b 0 funcref))";
    let grow = |table: &str, entries: u32| {
        format!("(table.grow {table} (ref.null func) (i32.const {entries}))")
    };
    // An error of the command unless both calls come to what they must.
    let does = |first: i32, second: i32| {
        format!(
            "(i32.ne (i32.const 1) (i32.and
               (i32.eq (i32.const {first}) {}) (i32.eq (i32.const {second}) {})))",
            grow("$a", 600_000),
            grow("$b", 600_000)
        )
    };
    assert_eq!(outcome(&component(2, part, imports, &does(0, -1))), Ok(Vec::new()));
}

#[test]
fn tables_of_a_module_grow_up_to_one_sum() {
    let wasm = wat::parse_str(
        "(module (memory (export \"memory\") 1) (table $a 0 funcref) (table $b 0 funcref)
           (func (export \"_start\")
             (if (table.grow $a (ref.null func) (i32.const 600000)) (then unreachable))
             (if (i32.ne (i32.const -1) (table.grow $b (ref.null func) (i32.const 600000)))
               (then unreachable))))",
    );
    let wasi = Wasi::new().expect("wasmtime");
    let program = wasi.compile(&wasm.expect("a module")).expect("it compiles");
    let ended = wasi.run(&program, run());
    assert!(!matches!(ended, Err(Ended { failure: Failure::Trap { .. }, .. })), "{ended:?}");
    assert_eq!(ended, Ok(Answer::default()));
}
