//! Errors in a kernel's text, with the line and a caret under the spot.

use naga::Span;

use super::IntakeError;

/// Longest part of a source line that is shown.
const SHOWN_CHARS: usize = 160;

/// An error at a spot, such as
///
/// ```text
/// expected `;`, found `}`
///   --> line 3, column 14
///    |
///  3 |     let x = 1
///    |              ^ expected `;`
/// ```
pub(super) fn error_at(source: &str, span: Option<Span>, what: &str, label: &str) -> IntakeError {
    let range = span.and_then(Span::to_range);
    let Some(spot) = range.and_then(|range| Spot::new(source, range.start, range.end)) else {
        return IntakeError::plain("bad_kernel", what);
    };
    IntakeError {
        code: "bad_kernel",
        message: format!("{}\n{}", what.trim_end(), spot.draw(label)),
        line: Some(spot.line),
        column: Some(spot.column),
    }
}

struct Spot<'a> {
    /// Both count from 1; columns are characters.
    line: u32,
    column: u32,
    text: &'a str,
    width: usize,
}

impl<'a> Spot<'a> {
    fn new(source: &'a str, start: usize, end: usize) -> Option<Spot<'a>> {
        let before = source.get(..start)?;
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_end = source[start..].find('\n').map_or(source.len(), |at| start + at);
        let marked = source.get(start..end.clamp(start, line_end)).unwrap_or("");
        Some(Spot {
            line: before.matches('\n').count() as u32 + 1,
            column: source[line_start..start].chars().count() as u32 + 1,
            text: source[line_start..line_end].trim_end(),
            width: marked.chars().count().max(1),
        })
    }

    fn draw(&self, label: &str) -> String {
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        // Of a long line only the part around the spot is shown.
        let before = self.column as usize - 1;
        let skipped = if before > SHOWN_CHARS / 2 { before - SHOWN_CHARS / 4 } else { 0 };
        let shown = || self.text.chars().skip(skipped).take(SHOWN_CHARS);
        let line: String = shown().map(|c| if is_plain(c) { c } else { '?' }).collect();
        // Tabs stay tabs below the line, so that the caret stands where the eye expects it.
        let indent: String = shown()
            .chain(std::iter::repeat(' '))
            .take(before - skipped)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let carets = "^".repeat(self.width.min(SHOWN_CHARS));
        let lines = [
            format!(" {gutter} --> line {number}, column {}", self.column),
            format!(" {gutter} |"),
            format!(" {number} | {line}"),
            format!(" {gutter} | {indent}{carets} {label}"),
        ];
        lines.join("\n").trim_end().to_owned()
    }
}

fn is_plain(c: char) -> bool {
    c == '\t' || !c.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_spot() {
        let source = "fn main() {\n\tlet ü = x;\n}";
        let at = source.find('x').map(|at| Span::new(at as u32, at as u32 + 1));
        let error = error_at(source, at, "no such thing", "here");
        assert_eq!((error.line, error.column), (Some(2), Some(10)));
        let wanted = [
            "no such thing",
            "   --> line 2, column 10",
            "   |",
            " 2 | \tlet ü = x;",
            "   | \t        ^ here",
        ];
        assert_eq!(error.message, wanted.join("\n"));
    }

    #[test]
    fn of_a_long_line_the_part_around_the_spot_is_shown() {
        let source = format!("{}@{}", "a".repeat(5000), "b".repeat(5000));
        let error = error_at(&source, Some(Span::new(5000, 5001)), "what", "here");
        assert_eq!(error.column, Some(5001));
        assert!(error.message.contains("aaa@bbb") && error.message.len() < 500);
    }

    #[test]
    fn a_spot_outside_the_text_is_left_out() {
        let error = error_at("abc", Some(Span::new(7, 9)), "what", "");
        assert_eq!((error.message.as_str(), error.line), ("what", None));
    }
}
