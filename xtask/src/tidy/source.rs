//! Rust source with everything that is not code blanked out, so that rules see code only.

/// The same text, line for line and byte for byte, with comments and the insides of literals as spaces.
pub(crate) fn code_only(text: &str) -> String {
    blanked(text, |_| true)
}

/// The same with literals as they are, but for raw ones: those are texts in other languages.
pub(crate) fn uncommented(text: &str) -> String {
    blanked(text, |start| matches!(start, [b'/' | b'r', ..] | [b'b', b'r', ..]))
}

/// Blanks what is no code, where `is_blank` says so of what it begins with.
fn blanked(text: &str, is_blank: impl Fn(&[u8]) -> bool) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = skipped(bytes, at);
        if end > at {
            let line_breaks_stay = |byte: &mut u8| {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            };
            if is_blank(&bytes[at..]) {
                out[at..end].iter_mut().for_each(line_breaks_stay);
            }
            at = end;
        } else {
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Where the comment or literal that starts at `at` ends; `at` itself if none starts there.
fn skipped(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return at + block_comment(rest);
    }
    let word_before = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    match rest[0] {
        b'"' => at + quoted(rest, 1),
        b'b' if !word_before && rest.starts_with(b"b\"") => at + quoted(rest, 2),
        b'r' if !word_before => at + raw(rest, 1),
        b'b' if !word_before && rest.starts_with(b"br") => at + raw(rest, 2),
        b'\'' => at + character(rest),
        _ => at,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// The length of a string whose opening quote ends before `inside`.
fn quoted(rest: &[u8], inside: usize) -> usize {
    let mut at = inside;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a raw string with `prefix` letters before its hashes; 0 if it is none.
fn raw(rest: &[u8], prefix: usize) -> usize {
    let hashes = rest[prefix..].iter().take_while(|&&byte| byte == b'#').count();
    let inside = prefix + hashes + 1;
    if rest.get(inside - 1) != Some(&b'"') {
        return 0;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let found = rest[inside..].windows(close.len()).position(|window| window == close);
    found.map_or(rest.len(), |at| inside + at + close.len())
}

/// The length of a character literal; 0 for a lifetime.
fn character(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        let close = rest.iter().skip(3).position(|&byte| byte == b'\'');
        return close.map_or(rest.len(), |at| at + 4);
    }
    let width = rest.get(1).map_or(1, |&first| match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    });
    if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::{code_only, uncommented};

    fn check(text: &str, code: &str) {
        assert_eq!(code_only(text), code, "{text}");
    }

    #[test]
    fn literals_stay_where_only_comments_go() {
        assert_eq!(uncommented("f(\"// a\", r\"c\") // \"b\""), "f(\"// a\",     )       ");
    }

    #[test]
    fn comments_and_literals_are_blank() {
        check("a // b\nc", "a     \nc");
        check("a /* b /* c */ */ d", "a                 d");
        check(r#"f("x{", 1)"#, "f(    , 1)");
        check(r##"f(r#"a"b"#, 2)"##, "f(        , 2)");
        check("f('{', '\\'', '\\u{7d}')", "f(   ,     ,         )");
    }

    #[test]
    fn lifetimes_and_names_stay() {
        check("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}");
        check("for r in bar {}", "for r in bar {}");
    }
}
