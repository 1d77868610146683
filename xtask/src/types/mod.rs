//! TypeScript made from Rust: the types of the HTTP API (`crates/api`) and the constants that both languages must
//! have the same. What is made is committed, so that the SDK can be built without Rust; `test types` sees to it that
//! it is not stale.

mod constants;
mod names;
mod schema;
mod write;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::shell::{Outcome, cargo, output, read, root, write as store};

/// What `crates/api/examples/contract.rs` prints.
#[derive(Deserialize)]
struct Contract {
    /// Schemas by name.
    requests: Map<String, Value>,
    answers: Map<String, Value>,
    constants: Vec<constants::Constant>,
}

/// A file of the SDK that is made here.
struct Made {
    path: &'static str,
    text: String,
}

/// Writes what is stale.
pub(crate) fn run(args: &[String]) -> Outcome {
    if !args.is_empty() {
        return Err(format!("types takes no arguments, not {args:?}"));
    }
    for Made { path, text } in make()? {
        let file = root().join(path);
        if read(&file).ok().as_deref() != Some(&text) {
            store(&file, text)?;
            println!("types: {path} is new");
        }
    }
    Ok(())
}

/// An error if anything is stale.
pub(crate) fn check() -> Outcome {
    let mut stale = Vec::new();
    for Made { path, text } in make()? {
        if read(&root().join(path)).ok().as_deref() != Some(&text) {
            stale.push(path);
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    let stale = stale.join(", ");
    Err(format!("not what Rust says: {stale}; `cargo xtask types` writes it anew"))
}

fn make() -> Outcome<Vec<Made>> {
    // Alone, so that the example of CONTRIBUTING.md is not in it.
    let words = ["run", "--quiet", "--package", "shoal-api", "--features", "schema"];
    let text = output(cargo().args(words).args(["--example", "contract"]))?;
    let contract: Contract =
        serde_json::from_str(&text).map_err(|error| format!("what it printed: {error}"))?;
    let (requests, answers) = schema::types(contract.requests, contract.answers)?;
    let asked = write::types("What the coordinator's HTTP API takes.", &requests, &[]);
    let said = write::types("What the coordinator's HTTP API says.", &answers, &requests);
    Ok(vec![
        Made { path: "web/sdk/src/api/requests.ts", text: asked },
        Made { path: "web/sdk/src/api/answers.ts", text: said },
        Made { path: "web/sdk/src/constants.ts", text: constants::text(&contract.constants)? },
    ])
}
