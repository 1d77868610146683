//! Does what its first argument says; built as a module and as a component.

use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::time::{Duration, Instant, SystemTime};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    match args[1].as_str() {
        "upper" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).expect("text");
            print!("{}", text.to_uppercase());
        }
        "words" => {
            let mut names: Vec<_> = std::env::vars().collect();
            names.sort();
            println!("{args:?} {names:?}");
        }
        "chance" => println!("{:x}", RandomState::new().hash_one(1)),
        "clock" => {
            let (start, wall) = (Instant::now(), SystemTime::now());
            let since = wall.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
            println!("{} {}", since.as_micros() < 1_000, start.elapsed() < Duration::from_millis(1));
        }
        "sleep" => {
            let start = Instant::now();
            std::thread::sleep(Duration::from_secs(3_600));
            println!("{}", start.elapsed().as_secs());
        }
        "data" => {
            let read = std::fs::read_to_string("/data/a.txt");
            println!("{:?}", read.ok());
            let refused = [
                std::fs::write("/data/a.txt", "b").is_err(),
                std::fs::write("/data/new.txt", "b").is_err(),
                std::fs::remove_file("/data/a.txt").is_err(),
                std::fs::read("/data/../other/secret.txt").is_err(),
            ];
            println!("{refused:?}");
        }
        "files" => {
            let found = ["/", "/data", "/tmp", "."].map(|name| std::fs::read_dir(name).is_ok());
            println!("{found:?}");
        }
        "exit" => {
            eprintln!("seven");
            std::process::exit(7);
        }
        "panic" => panic!("no way"),
        "flood" => loop {
            std::io::stdout().write_all(&[b'x'; 1 << 16]).expect("room");
        },
        "grow" => {
            let all: Vec<Vec<u8>> = (0..64).map(|_| vec![1; 4 << 20]).collect();
            println!("{}", all.len());
        }
        "spin" => loop {
            std::hint::black_box(0);
        },
        other => panic!("{other}?"),
    }
}
