//! Numbers in words, and other people's words made harmless.

/// A count with at most four digits: `950`, `12.3 k`, `4.56 M`.
pub(crate) fn count(number: f64) -> String {
    scaled(number, 1000.0, &["", " k", " M", " G", " T"])
}

/// Bytes in powers of 1024.
pub(crate) fn size(bytes: u64) -> String {
    scaled(bytes as f64, 1024.0, &[" B", " KiB", " MiB", " GiB", " TiB"])
}

/// Seconds as people say them.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..10 if seconds < 0.0995 => format!("{:.0} ms", (seconds * 1000.0).max(0.0)),
        0..10 => format!("{seconds:.1} s"),
        10..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..86400 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {} h", whole / 86400, whole % 86400 / 3600),
    }
}

/// Text of programs and of other machines: control characters could move the cursor of this
/// terminal, or worse.
pub(crate) fn harmless(text: &str) -> String {
    let is_harmful = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    text.chars().map(|c| if is_harmful(c) { '?' } else { c }).collect()
}

fn scaled(number: f64, base: f64, units: &[&str]) -> String {
    let (mut value, mut unit) = (number, 0);
    while value >= base * 0.9995 && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    let digits = match value {
        _ if unit == 0 && value.fract() == 0.0 => 0,
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_newlines_and_tabs_reach_the_terminal() {
        assert_eq!(harmless("a\x1b[2J\tb\r\nc\u{9b}ä"), "a?[2J\tb?\nc?ä");
    }

    #[test]
    fn numbers_read_well() {
        let counts =
            [(0.0, "0"), (0.5, "0.50"), (950.0, "950"), (12_345.0, "12.3 k"), (4.56e6, "4.56 M")];
        for (number, text) in counts {
            assert_eq!(count(number), text);
        }
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1536), "1.50 KiB");
        assert_eq!(size(256 << 20), "256 MiB");
        let times = [
            (0.012, "12 ms"),
            (3.21, "3.2 s"),
            (42.0, "42 s"),
            (62.0, "1 min 2 s"),
            (7300.0, "2 h 1 min"),
        ];
        for (seconds, text) in times {
            assert_eq!(duration(seconds), text);
        }
    }
}
