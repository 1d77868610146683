//! Says which of a line's words are in `/data/words.txt`: a program with shared, read-only data.
//!
//!     shoal exec examples/programs/target/lookup.wasm --lines --folder examples/programs/lookup/data < text.txt

use std::collections::BTreeSet;
use std::io::Read;
use std::process::ExitCode;

const LIST: &str = "/data/words.txt";

fn main() -> ExitCode {
    match run() {
        Ok(found) => {
            println!("{found}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("lookup: {why}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<String, String> {
    let list = std::fs::read_to_string(LIST).map_err(|error| format!("{LIST}: {error}"))?;
    let known: BTreeSet<&str> = list.lines().map(str::trim).collect();
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| error.to_string())?;
    let found: Vec<&str> = text.split_whitespace().filter(|word| known.contains(word)).collect();
    Ok(found.join(" "))
}
