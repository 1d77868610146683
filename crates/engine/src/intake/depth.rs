//! A bound on how deep an expression goes, found before the compiler, which would descend until its
//! stack is used up: it bounds brackets, but neither chains of operators nor of `else if`.

use naga::Span;

use super::IntakeError;
use super::source::error_at;

/// Operators in one expression, those around it included. People write dozens, and Chromium refuses
/// more than 512 levels.
const MOST: u32 = 2_000;

pub(super) fn check(source: &str) -> Result<(), IntakeError> {
    let mut depth = Depth::default();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let len = token(rest, first);
        let (token, after) = rest.split_at(len);
        depth.add(token);
        if depth.now > MOST {
            let at = (source.len() - rest.len()) as u32;
            let what = format!("an expression has more than {MOST} operators in a row");
            let span = Span::new(at, at + len as u32);
            return Err(error_at(source, Some(span), &what, "split it before here"));
        }
        rest = after;
    }
    Ok(())
}

/// How many operators stand around and before the current token in its expression. More than the true
/// depth, never less.
#[derive(Default)]
struct Depth {
    now: u32,
    /// Where an expression starts at the current bracket.
    base: u32,
    /// `now` before each open bracket, and `base` outside it.
    open: Vec<(u32, u32)>,
    /// What `now` becomes if an `else` follows.
    chained: u32,
}

impl Depth {
    fn add(&mut self, token: &str) {
        match token {
            "(" | "[" => {
                self.open.push((self.now + 1, self.base));
                self.now += 1;
                self.base = self.now;
            }
            "{" => {
                self.open.push((self.now, self.base));
                (self.now, self.base) = (0, 0);
            }
            ")" | "]" => (self.now, self.base) = self.open.pop().unwrap_or_default(),
            "}" => {
                (self.chained, self.base) = self.open.pop().unwrap_or_default();
                self.now = self.base;
            }
            "," | ";" => self.now = self.base,
            "else" => self.now = self.chained + 1,
            _ if token.starts_with(is_word) || token.trim().is_empty() => (),
            _ if token.starts_with("//") || token.starts_with("/*") => (),
            _ => self.now += 1,
        }
    }
}

/// The length of the token at the start of the text: a word or number, blanks, a comment, or a sign.
fn token(text: &str, first: char) -> usize {
    let run = |belongs: fn(char) -> bool| text.find(|c| !belongs(c)).unwrap_or(text.len());
    if is_word(first) {
        run(is_word)
    } else if first.is_whitespace() {
        run(char::is_whitespace)
    } else if text.starts_with("//") {
        text.find(ends_line).unwrap_or(text.len())
    } else if text.starts_with("/*") {
        block_comment(text)
    } else {
        first.len_utf8()
    }
}

/// Comments of this kind nest.
fn block_comment(text: &str) -> usize {
    let (mut open, mut at) = (0_usize, 0);
    while let Some(rest) = text.get(at..).and_then(|rest| rest.find(['/', '*']).map(|n| at + n)) {
        match text.as_bytes().get(rest..rest + 2) {
            Some(b"/*") => (open, at) = (open + 1, rest + 2),
            Some(b"*/") if open == 1 => return rest + 2,
            Some(b"*/") => (open, at) = (open - 1, rest + 2),
            _ => at = rest + 1,
        }
    }
    text.len()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Line ends of WGSL: a comment must not seem longer here than to the compiler.
fn ends_line(c: char) -> bool {
    matches!(c, '\u{a}'..='\u{d}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = MOST as usize + 1;

    fn refused(body: &str) -> bool {
        let kernel = format!("fn f(x: u32) {{ let a = {body}; }}");
        check(&kernel).is_err_and(|error| error.message.contains("in a row"))
    }

    #[test]
    fn chains_are_bounded() {
        for (first, link) in [("true", "&&true"), ("x", ".x"), ("x", "+ (x)"), ("x", "[0]")] {
            assert!(refused(&format!("{first}{}", link.repeat(MANY))), "{link}");
            assert!(!refused(&format!("{first}{}", link.repeat(MANY / 4))), "{link}");
        }
        assert!(refused(&format!("{}1", "- ".repeat(MANY))));
        assert!(refused(&format!("1; if x {{}} {}", "else if x {}".repeat(MANY))));
        assert!(refused(&format!("//\r{}1", "!".repeat(MANY))), "the comment ends with its line");
        assert!(refused(&format!("/*/**/*/{}1", "!".repeat(MANY))));
    }

    #[test]
    fn long_is_not_deep() {
        assert!(!refused(&format!("array({})", "-1.5, ".repeat(MANY))));
        assert!(!refused(&format!("1; {}", "a = b + c;".repeat(MANY))));
        assert!(!refused(&format!("1; {}", "if x { a = -b; } else { }".repeat(MANY))));
        assert!(!refused(&format!("1 // {}\n", "-".repeat(MANY))));
        assert!(!refused(&format!("1 /*/ {} /* */ */", "-".repeat(MANY))));
    }
}
