//! The date, as templates ask for it.

use alloc::format;
use alloc::string::String;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// The time `seconds` after the beginning of 1970, in UTC, in the form that `strftime` names.
pub(crate) fn written(seconds: u64, form: &str) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (month_name, day_name) = (MONTHS[month - 1], DAYS[(days % 7) as usize]);
    let mut text = String::new();
    let mut letters = form.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        match letters.next() {
            Some('Y') => text += &format!("{year}"),
            Some('y') => text += &format!("{:02}", year % 100),
            Some('m') => text += &format!("{month:02}"),
            Some('d') => text += &format!("{day:02}"),
            Some('B') => text += month_name,
            Some('b') => text += &month_name[..3],
            Some('A') => text += day_name,
            Some('a') => text += &day_name[..3],
            Some('H') => text += &format!("{:02}", second / 3600),
            Some('M') => text += &format!("{:02}", second / 60 % 60),
            Some('S') => text += &format!("{:02}", second % 60),
            Some('F') => text += &format!("{year}-{month:02}-{day:02}"),
            Some('%') => text.push('%'),
            Some(other) => text.extend(['%', other]),
            None => text.push('%'),
        }
    }
    text
}

/// Year, month and day, so many days after the beginning of 1970.
fn civil(mut days: u64) -> (u64, usize, u64) {
    let leap = |year: u64| {
        (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
    };
    // In four hundred years the calendar repeats.
    let mut year = 1970 + days / 146_097 * 400;
    days %= 146_097;
    loop {
        let length = 365 + u64::from(leap(year));
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    for (month, length) in (1..).zip(lengths) {
        if days < length {
            return (year, month, days + 1);
        }
        days -= length;
    }
    (year, 12, 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_in_leap_years_too() {
        let form = "%A %a %d %b %B %Y-%m-%d %y %H:%M:%S %% %q %F %";
        assert_eq!(
            written(1_709_210_096, form),
            "Thursday Thu 29 Feb February 2024-02-29 24 12:34:56 % %q 2024-02-29 %"
        );
        assert_eq!(written(0, "%F"), "1970-01-01");
        assert_eq!(written(4_107_542_399, "%F %a"), "2100-02-28 Sun");
        assert_eq!(written(4_107_542_400, "%F"), "2100-03-01");
    }
}
