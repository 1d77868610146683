//! Bad input, each with an error that names it, and nothing lost.

use crate::material::{example, floats, npy, npy_of, program};
use crate::world::{Folder, Pool};

const LENGTHS: &str = "
@group(0) @binding(0) var<storage, read> points: array<vec3<f32>>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&output) { output[id.x] = length(points[id.x]); }
}";

#[test]
fn arrays_that_do_not_fit() {
    let pool = Pool::start();
    let here = Folder::new();
    let wave = example("wave.wgsl");
    let out = here.path("out.npy").display().to_string();
    let ten = floats(&[1.0; 10]);
    let cases: [(&str, Vec<u8>, &[&str]); 9] = [
        ("double.npy", npy_of("<f8", "False", "(10,)", &[0; 80]), &["float64", "astype"]),
        (
            "int.npy",
            npy_of("<i4", "False", "(10,)", &ten),
            &["int32", "array<f32>", "astype('float32')"],
        ),
        ("big.npy", npy_of(">f4", "False", "(10,)", &ten), &["big-endian"]),
        ("fortran.npy", npy_of("<f4", "True", "(5, 2)", &ten), &["Fortran", "ascontiguousarray"]),
        ("cut.npy", npy_of("<f4", "False", "(11,)", &ten), &["cut short", "44 bytes"]),
        ("long.npy", npy_of("<f4", "False", "(9,)", &ten), &["4 bytes after"]),
        ("empty.npy", npy("(0,)", &[]), &["empty", "nothing to compute"]),
        ("text.npy", b"1 2 3".to_vec(), &["not a .npy file", "--raw"]),
        ("odd.npy", npy_of("<f4", "False", "(nan,)", &ten), &["broken .npy header"]),
    ];
    for (name, bytes, wanted) in cases {
        let input = here.file(name, bytes);
        pool.run(&["map", &wave, &input, "-o", &out]).fails(2, &[&[name], wanted].concat());
    }
    let odd = here.file("odd.f32", [0; 7]);
    pool.run(&["map", &wave, &odd, "--raw", "f32", "-o", &out])
        .fails(2, &["7 bytes", "does not divide"]);
    let none = here.file("none.f32", []);
    pool.run(&["map", &wave, &none, "--raw", "f32", "-o", &out]).fails(2, &["empty"]);
    pool.run(&["map", &wave, &odd, "--raw", "i32", "-o", &out])
        .fails(2, &["--raw i32", "array<f32>"]);
    pool.run(&["map", &wave, "-o", &out]).fails(2, &["one input array", "no input was given"]);
    pool.run(&["map", &wave, "missing.npy", "-o", &out]).fails(2, &["missing.npy", "no such file"]);
    let lengths = here.file("lengths.wgsl", LENGTHS);
    let rows = here.file("rows.npy", npy("(4, 3)", &[1.0; 12]));
    pool.run(&["map", &lengths, &rows, "-o", &out])
        .fails(2, &["rows of 3", "array<vec3<f32>>", "numpy.pad"]);
    let good = here.file("good.npy", npy("(10,)", &[1.0; 10]));
    pool.run(&["map", &wave, &good, "-o", "no/such/folder/o.npy"]).fails(2, &["does not exist"]);
    pool.run(&["map", &wave, &good, "-o", &out, "--whole", "nobody"]).fails(2, &["--whole nobody"]);
    assert!(!here.path("out.npy").exists());
    assert_eq!(pool.run(&["jobs", "--json"]).ok().json()["jobs"], serde_json::json!([]));
}

#[test]
fn kernels_that_are_none() {
    let pool = Pool::start();
    let here = Folder::new();
    let input = here.file("in.npy", npy("(10,)", &[1.0; 10]));
    let out = here.path("out.npy").display().to_string();
    let cases: [(&str, &str, &[&str]); 4] = [
        ("syntax.wgsl", "fn main( {", &["line 1", "^"]),
        ("types.wgsl", "fn f() -> f32 { return 1u; }", &["^"]),
        ("entry.wgsl", "fn f() -> f32 { return 1.0; }", &["entry point"]),
        ("empty.wgsl", "", &["entry point"]),
    ];
    for (name, text, wanted) in cases {
        let kernel = here.file(name, text);
        pool.run(&["map", &kernel, &input, "-o", &out]).fails(2, &[&[name], wanted].concat());
    }
    let binary = here.file("binary.wgsl", [0xff, 0xfe, 0]);
    pool.run(&["map", &binary, &input, "-o", &out]).fails(2, &["not text"]);
    let wave = example("wave.wgsl");
    let done = pool.run(&["map", &wave, &input, "-o", &out, "--param", "nosuch=1"]);
    done.fails(2, &["nosuch"]);
    let done = pool.run(&["map", &wave, &input, "-o", &out, "--param", "speed=fast"]);
    done.fails(2, &["speed=fast", "expected a number"]);
    let done = pool.run(&["map", "gone.wgsl", &input, "-o", &out, "--json"]);
    assert!(done.fails(2, &["\"bad_input\"", "gone.wgsl"]).stdout.is_empty());
}

#[test]
fn programs_that_are_none() {
    let pool = Pool::start();
    let here = Folder::new();
    let text = here.file("text.wasm", "hello");
    pool.run(&["exec", &text]).fails(2, &["text.wasm", "no WebAssembly"]);
    let cut = here.file("cut.wasm", &std::fs::read(program()).expect("the program")[..100]);
    pool.run(&["exec", &cut]).fails(2, &["cut.wasm"]);
    let empty = here.file("empty.wasm", b"\0asm\x01\0\0\0");
    pool.run(&["exec", &empty]).fails(2, &["_start"]);
    pool.run(&["exec", program(), "--lines"]).fails(2, &["stdin is empty"]);
    let a = here.file("a.txt", "a");
    pool.run(&["exec", program(), &a]).fails(2, &["-o DIR"]);
    std::fs::create_dir_all(here.path("b")).expect("a folder");
    let b = here.file("b/a.txt", "b");
    let out = here.path("out").display().to_string();
    pool.run(&["exec", program(), &a, &b, "-o", &out]).fails(2, &["a.txt", "both"]);
    pool.run(&["exec", program(), "--folder", &a]).fails(2, &["not a folder"]);
}

#[test]
fn answers_never_replace_their_inputs() {
    let pool = Pool::start();
    let here = Folder::new();
    std::fs::create_dir_all(here.path("b")).expect("a folder");
    let a = here.file("a.txt", "a");
    let b = here.file("b/b.txt", "b");
    let (top, deep) = (here.path("").display().to_string(), here.path("b").display().to_string());
    let around = format!("{deep}/..");
    for output in [&top, &around] {
        pool.run(&["exec", program(), &b, &a, "-o", output])
            .fails(2, &["a.txt", "overwrite the input"]);
    }
    let other = here.file("b.txt", "other");
    pool.run(&["exec", program(), &other, "--folder", &deep, "-o", &deep])
        .fails(2, &["b.txt", "overwrite the input"]);
    assert_eq!((here.read("a.txt"), here.read("b/b.txt")), (b"a".to_vec(), b"b".to_vec()));
    assert_eq!(pool.run(&["jobs", "--json"]).ok().json()["jobs"], serde_json::json!([]));
}

#[cfg(unix)]
#[test]
fn devices_and_pipes_are_no_files() {
    let pool = Pool::start();
    let here = Folder::new();
    let out = here.path("out").display().to_string();
    let folder = here.path("folder");
    std::fs::create_dir_all(&folder).expect("a folder");
    let pipe = folder.join("pipe").display().to_string();
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let folder = folder.display().to_string();
    for path in ["/dev/zero", &pipe] {
        pool.run(&["exec", program(), path, "-o", &out]).fails(2, &[path, "is not a regular file"]);
    }
    pool.run(&["exec", program(), "--folder", &folder])
        .fails(2, &["pipe", "is not a regular file"]);
    pool.run(&["map", &example("wave.wgsl"), "/dev/zero", "--raw", "f32", "-o", &out])
        .fails(2, &["/dev/zero", "is not a regular file"]);
}

#[test]
fn results_that_cannot_be_written() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let input = here.file("in.npy", npy("(10,)", &[1.0; 10]));
    let wave = example("wave.wgsl");
    if cfg!(target_os = "linux") {
        pool.run(&["map", &wave, &input, "-o", "/dev/full"]).fails(1, &["no space left"]);
    }
    let folder = here.path("").display().to_string();
    pool.run(&["map", &wave, &input, "-o", &folder]).fails(2, &["folder"]);
    let picture = here.path("x.jpg").display().to_string();
    pool.run(&["render", &example("path.wgsl"), "--size", "8x8", "-o", &picture])
        .fails(2, &["x.jpg", "PNG"]);
}
