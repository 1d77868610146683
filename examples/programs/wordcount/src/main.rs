//! Counts lines, words and bytes of a file, and names its most frequent words.
//!
//!     shoal exec examples/programs/target/wordcount.wasm README.md LICENSE-* -o counts/ -- --top 3

use std::collections::BTreeMap;
use std::io::Read;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("wordcount: {why}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<String, String> {
    let top = top(&std::env::args().skip(1).collect::<Vec<_>>())?;
    let name = std::env::var("SHOAL_INPUT").unwrap_or_else(|_| "stdin".into());
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
    let words = text.split_whitespace().count();
    let mut report = format!("{lines} {words} {} {name}\n", bytes.len());
    for (word, count) in frequent(&text, top) {
        report.push_str(&format!("{count} {word}\n"));
    }
    Ok(report)
}

/// How many words to name: `--top N`, else none.
fn top(args: &[String]) -> Result<usize, String> {
    match args {
        [] => Ok(0),
        [flag, count] if flag == "--top" => {
            count.parse().map_err(|_| format!("--top takes a number, not `{count}`"))
        }
        _ => Err(format!("only --top N is known, not {args:?}")),
    }
}

/// The most frequent words, then by alphabet.
fn frequent(text: &str, most: usize) -> Vec<(String, usize)> {
    let mut counts = BTreeMap::new();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    for word in words {
        *counts.entry(word.to_lowercase()).or_insert(0) += 1;
    }
    let mut sorted: Vec<(String, usize)> = counts.into_iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sorted.truncate(most);
    sorted
}
