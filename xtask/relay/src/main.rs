//! The two clients of `bench relay`, and what is between them.
//!
//!     xtask-relay measure PYTHON SCRIPT FOLDER   prints what was found, as JSON
//!     xtask-relay stalled FOLDER                 the same for fifty receivers of which one stalls
//!     xtask-relay sealing                        what sealing costs the two ends
//!     xtask-relay allreduce FOLDER               four members that sum numbers over it, as JSON
//!     xtask-relay serve FOLDER [quic]            a coordinator whose relay takes orders from its input
//!     xtask-relay copy                           a bare TCP relay
#![allow(clippy::print_stdout, reason = "a command-line tool talks on stdout")]

mod copy;
mod flow;
mod member;
mod middle;
mod quic;
mod ring;
mod sealing;
mod serve;
mod stalled;
mod wire;

use std::path::Path;

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["measure", python, script, folder] => {
            println!("{}", flow::measure(python, script, Path::new(folder))?);
            Ok(())
        }
        ["stalled", folder] => {
            println!("{}", stalled::measure(Path::new(folder))?);
            Ok(())
        }
        ["sealing"] => {
            println!("{}", sealing::measure()?);
            Ok(())
        }
        ["allreduce", folder] => {
            println!("{}", ring::measure(Path::new(folder))?);
            Ok(())
        }
        ["serve", folder] => serve::run(Path::new(folder), false),
        ["serve", folder, "quic"] => serve::run(Path::new(folder), true),
        ["copy"] => copy::run(),
        _ => Err("usage: xtask-relay measure PYTHON SCRIPT FOLDER | stalled FOLDER | sealing | allreduce FOLDER | serve FOLDER [quic] | copy".into()),
    }
}
