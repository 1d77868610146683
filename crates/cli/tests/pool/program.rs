//! A WASI program that misbehaves on request.

use std::io::{Read, Write};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|mode| mode == "raw") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).expect("bytes on stdin");
        return std::io::stdout().write_all(&bytes).expect("room");
    }
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).expect("text on stdin");
    let mode = args.get(1).map_or("upper", String::as_str);
    match mode {
        "upper" => print!("{}", input.to_uppercase()),
        "bare" => print!("<{}>", input.trim()),
        "name" => print!("{}:{}", std::env::var("SHOAL_INPUT").unwrap_or_default(), input.len()),
        "env" => println!("{}", std::env::var(&args[2]).unwrap_or_default()),
        "args" => println!("{}", args[2..].join("|")),
        "data" => print!("{}", std::fs::read_to_string(&args[2]).expect("a shared file")),
        "work" => println!("{} {}", input.trim(), work(input.trim())),
        "talk" => loop {
            println!("{} {}", input.trim(), work(input.trim()));
        },
        "spin" if input.trim() == "7" => loop {
            std::hint::black_box(0);
        },
        "trap" if input.trim() == "3" => panic!("no threes"),
        "exit" if input.trim() == "5" => {
            eprintln!("five is too much");
            std::process::exit(9);
        }
        // Files of three names and a word on stderr; nothing of it for an empty input.
        "leave" if input.trim().is_empty() => {}
        "leave" => {
            std::fs::write("/tmp/draft", input.to_uppercase()).expect("a file");
            std::fs::rename("/tmp/draft", "/out/loud").expect("moved");
            std::fs::create_dir_all("/out/deep/er").expect("folders");
            std::fs::write("/out/deep/er/size", input.len().to_string()).expect("a file");
            for name in &args[2..] {
                std::fs::write(format!("/out/{name}"), "x").expect("a file");
            }
            eprintln!("left {}", input.trim());
            print!("{input}");
        }
        "chance" => {
            let state = std::collections::hash_map::RandomState::new();
            let chance = std::hash::BuildHasher::hash_one(&state, 1_u8);
            std::process::exit(i32::from(chance % 4 != 0));
        }
        "limits" if input.trim() == "2" => loop {
            std::hint::black_box(0);
        },
        "grow" | "limits" if mode != "limits" || input.trim() == "3" => {
            let all: Vec<Vec<u8>> = (0..64).map(|_| vec![1; 16 << 20]).collect();
            println!("{}", all.len());
        }
        "flood" | "limits" if mode != "limits" || input.trim() == "4" => {
            let line = [b'x'; 1 << 16];
            for _ in 0..1024 {
                std::io::stdout().write_all(&line).expect("room");
            }
        }
        _ => print!("{input}"),
    }
}

/// Some tens of milliseconds of arithmetic whose answer depends on every step.
fn work(seed: &str) -> u64 {
    let mut state = seed.parse::<u64>().unwrap_or(1) + 1;
    for _ in 0..20_000_000 {
        state = std::hint::black_box(state.wrapping_mul(6364136223846793005).wrapping_add(1));
    }
    state
}
