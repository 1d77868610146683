//! What a simulation's file says in comment lines: `// passes: advect, jacobi*20, project`,
//! `// halo: 24` and `// params: feed=0.037, kill=0.06`.

use super::bad;
use crate::intake::{IntakeError, ParamValue};

#[derive(Debug, Default, PartialEq)]
pub(super) struct Notes<'a> {
    pub(super) passes: Option<&'a str>,
    pub(super) halo: Option<u32>,
    /// Values for parameters nobody gives.
    pub(super) params: Vec<(String, ParamValue)>,
}

impl<'a> Notes<'a> {
    pub(super) fn read(source: &'a str) -> Result<Notes<'a>, IntakeError> {
        let [passes, halo, params] = ["passes", "halo", "params"].map(|name| find(source, name));
        let halo = halo?.map(|text| {
            text.parse().map_err(|_| {
                bad(format!("the line `// halo: {text}` does not name a number of rows"))
            })
        });
        Ok(Notes {
            passes: passes?,
            halo: halo.transpose()?,
            params: params?.map_or(Ok(Vec::new()), values)?,
        })
    }
}

/// What stands behind `// name:` on a line of its own.
fn find<'a>(source: &'a str, name: &str) -> Result<Option<&'a str>, IntakeError> {
    let of_line = |line: &'a str| {
        let comment = line.trim_start().strip_prefix("//")?;
        let said = comment.trim_start_matches(['/', '!']).trim_start().strip_prefix(name)?;
        said.strip_prefix(':').map(str::trim)
    };
    let mut found = source.lines().filter_map(of_line);
    let first = found.next();
    match found.next() {
        None => Ok(first),
        Some(_) => Err(bad(format!("the file has two lines `// {name}: ..`; expected one"))),
    }
}

/// `a, b*10` as names with how many times each is run.
pub(super) fn passes(list: &str) -> Result<Vec<(&str, u32)>, IntakeError> {
    let wrong = |item: &str| {
        bad(format!("`{item}` in the passes is neither a name nor `name*times`, as in `jacobi*20`"))
    };
    list.split(',')
        .map(|item| {
            let item = item.trim();
            let (name, times) = match item.split_once('*') {
                None => (item, Some(1)),
                Some((name, times)) => (name.trim_end(), times.trim_start().parse().ok()),
            };
            match times {
                Some(times) if times > 0 && is_name(name) => Ok((name, times)),
                _ => Err(wrong(item)),
            }
        })
        .collect()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// `a=1, b=0.5`. Lists are too long for a comment: they are given with the job.
fn values(list: &str) -> Result<Vec<(String, ParamValue)>, IntakeError> {
    let value = |text: &str| {
        let int = text.parse().map(ParamValue::Int);
        int.or_else(|_| text.parse().map(ParamValue::Float)).ok()
    };
    list.split(',')
        .map(|item| {
            let pair = item.split_once('=').map(|(name, text)| (name.trim(), value(text.trim())));
            match pair {
                Some((name, Some(value))) if is_name(name) => Ok((name.to_owned(), value)),
                _ => Err(bad(format!(
                    "`{}` in the line `// params: ..` is not `name=number`",
                    item.trim()
                ))),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_how_it_is_run() {
        let source =
            "// A flow.\n//   passes: a, b * 3,c*2\r\n/// halo: 8\n// params: x=1, y=-0.5\n";
        let notes = Notes::read(source).expect("notes");
        assert_eq!(notes.halo, Some(8));
        assert_eq!(notes.params[0], ("x".to_owned(), ParamValue::Int(1)));
        assert_eq!(notes.params[1], ("y".to_owned(), ParamValue::Float(-0.5)));
        let found = passes(notes.passes.expect("passes")).expect("a list");
        assert_eq!(found, [("a", 1), ("b", 3), ("c", 2)]);
        assert_eq!(Notes::read("fn halo() {}"), Ok(Notes::default()));
    }

    #[test]
    fn what_it_says_wrongly_is_named() {
        for (source, part) in [
            ("// halo: many", "`// halo: many`"),
            ("// halo: 1\n// halo: 2", "two lines"),
            ("// params: a", "`a`"),
            ("// params: a=b", "`a=b`"),
        ] {
            let error = Notes::read(source).expect_err("wrong");
            assert!(error.message.contains(part), "{error}");
        }
        for list in ["", "a,,b", "a*0", "a*b", "a b", "a*-1", "*3"] {
            assert!(passes(list).is_err(), "{list}");
        }
    }
}
