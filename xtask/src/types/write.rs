//! Types as the text of a TypeScript file.

use super::names::by_hand;
use super::schema::{Body, Field, Type};

/// As wide as the SDK is written.
const COLUMNS: usize = 120;

/// The file of these types, which may use those of `requests.ts` too.
pub(super) fn types(about: &str, types: &[Type], requests: &[Type]) -> String {
    let mut text = format!(
        "/** {about}\n *\n \
         * Made from `crates/api` and `crates/kinds` by `cargo xtask types`: change it there. */\n\n",
    );
    text += &import(types, &by_hand(), "../types.js");
    let requests: Vec<&str> = requests.iter().map(|request| request.name.as_str()).collect();
    text += &import(types, &requests, "./requests.js");
    for Type { name, about, body } in types {
        text.push('\n');
        text += &comment(about.as_deref(), "");
        match body {
            Body::Is(is) => text += &format!("export type {name} = {is};\n"),
            Body::Fields(fields) => {
                text += &format!("export interface {name} {{\n");
                for Field { name, about, optional, is } in fields {
                    text += &comment(about.as_deref(), "  ");
                    text += &format!("  {name}{}: {is};\n", if *optional { "?" } else { "" });
                }
                text += "}\n";
            }
        }
    }
    text
}

/// What types use of another file; nothing if they do not.
fn import(types: &[Type], names: &[&str], from: &str) -> String {
    let uses = |name: &str| types.iter().flat_map(Type::names).any(|used| used == name);
    let used: Vec<&str> = names.iter().copied().filter(|name| uses(name)).collect();
    if used.is_empty() {
        return String::new();
    }
    format!("import type {{ {} }} from \"{from}\";\n", used.join(", "))
}

/// A comment before something that stands behind `indent`; nothing if there is nothing to say.
pub(super) fn comment(about: Option<&str>, indent: &str) -> String {
    let Some(about) = about else { return String::new() };
    let mut lines = vec![String::from("/**")];
    for word in about.split(' ') {
        let full = lines.last().is_some_and(|line| {
            // Room for the end of the comment.
            indent.len() + line.len() + 1 + word.len() + 3 > COLUMNS
        });
        if full {
            lines.push(" *".into());
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(word);
        }
    }
    let lines: Vec<String> = lines.iter().map(|line| format!("{indent}{line}")).collect();
    format!("{} */\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_comments_are_broken() {
        assert_eq!(comment(Some("Short."), "  "), "  /** Short. */\n");
        assert_eq!(comment(None, ""), "");
        let long = comment(Some("word ".repeat(40).trim_end()), "  ");
        assert!(long.lines().count() == 2 && long.lines().all(|line| line.len() <= COLUMNS));
        assert!(long.ends_with("word */\n"), "{long}");
    }
}
