//! Constants that TypeScript must have the same as Rust.

use serde::Deserialize;
use serde_json::Value;

use super::write::comment;
use crate::shell::{Outcome, read, root};

#[derive(Deserialize)]
pub(super) struct Constant {
    /// In TypeScript.
    name: String,
    /// A number, a text, or what a function gives.
    value: Value,
    /// The file that has it, from the repository's root.
    file: String,
    /// The constant or function in that file.
    constant: String,
}

pub(super) fn text(constants: &[Constant]) -> Outcome<String> {
    let mut text = String::from(
        "/** What Rust and TypeScript must agree on.\n *\n \
         * Made by `cargo xtask types` of the constants in Rust: change them there. */\n",
    );
    for Constant { name, value, file, constant } in constants {
        let source = read(&root().join(file))?;
        let about = about(&source, constant)
            .ok_or_else(|| format!("there is no documented constant {constant} in {file}"))?;
        text.push('\n');
        text += &comment(Some(&about), "");
        text += &format!("export const {name} = {value:#};\n");
    }
    Ok(text)
}

/// What stands above a constant in Rust, on one line.
fn about(source: &str, constant: &str) -> Option<String> {
    let mut about: Vec<&str> = Vec::new();
    for line in source.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            about.push(words.trim());
            continue;
        }
        let after = |word, end| line.split_once(word).and_then(|(_, rest)| rest.split_once(end));
        let named = after("const ", ':').or_else(|| after("fn ", '('));
        if named.is_some_and(|(name, _)| name == constant) {
            return (!about.is_empty()).then(|| about.join(" "));
        }
        about.clear();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_constant_is_found() {
        let source = "/// Other.\npub const OTHER: u8 = 1;\n/// First line,\n/// second.\npub const IT: u8 = 2;\npub const BARE: u8 = 3;\n/// Third.\nfn third() {}\n";
        assert_eq!(about(source, "IT").as_deref(), Some("First line, second."));
        assert_eq!(about(source, "third").as_deref(), Some("Third."));
        assert_eq!(about(source, "BARE"), None);
        assert_eq!(about(source, "NONE"), None);
    }
}
