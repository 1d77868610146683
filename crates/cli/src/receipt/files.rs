//! Files held against a receipt: what was computed, by what, from what.

use std::path::{Path, PathBuf};

use shoal_protocol::Hash;

use super::{Check, Output, Receipt, Unit, Verdict};
use crate::fail::Fail;
use crate::{keys, npy};

/// What the reader has.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) result: Option<PathBuf>,
    pub(crate) code: Option<PathBuf>,
    pub(crate) inputs: Vec<PathBuf>,
}

impl Receipt {
    pub(super) fn files(&self, files: &Files) -> Result<Vec<Check>, Fail> {
        let mut checks = vec![self.result(files.result.as_deref())?];
        checks.extend(self.units_of(files.result.as_deref())?);
        checks.push(self.code_file(files.code.as_deref())?);
        if files.inputs.is_empty() && !self.inputs.is_empty() {
            let text =
                format!("the receipt names {}; pass files with --input FILE", self.inputs.len());
            checks.push(Check::new("input", Verdict::Unknown, text));
        }
        for path in &files.inputs {
            checks.push(self.input(path)?);
        }
        Ok(checks)
    }

    fn result(&self, path: Option<&Path>) -> Result<Check, Fail> {
        let (Some(output), Some(path)) = (&self.output, path) else {
            let (verdict, text) = match (&self.output, path) {
                (Some(_), _) => {
                    (Verdict::Unknown, "no file to check: pass --result FILE".to_owned())
                }
                (None, Some(path)) => {
                    (Verdict::Fails, format!("{}: the job has no result", path.display()))
                }
                (None, None) => (Verdict::Holds, "none".to_owned()),
            };
            return Ok(Check::new("result", verdict, text));
        };
        let outcome = output.bytes_of(path)?.and_then(|bytes| output.compare(&bytes));
        let named = |text: String| format!("{} {text}", path.display());
        Ok(Check::of("result", outcome.map(named).map_err(named)))
    }

    /// A map's result is its units' answers one after the other, so that each can be looked up.
    fn units_of(&self, path: Option<&Path>) -> Result<Option<Check>, Fail> {
        let (Some(output), Some(path), "map") = (&self.output, path, self.kind.as_str()) else {
            return Ok(None);
        };
        let Ok(bytes) = output.bytes_of(path)? else { return Ok(None) };
        let per_item = (bytes.len() as u64).checked_div(self.items).unwrap_or_default();
        if bytes.len() as u64 != output.size
            || per_item.checked_mul(self.items) != Some(output.size)
        {
            return Ok(None);
        }
        if let Some(unit) = self.units.iter().find(|unit| unit.within(per_item, &bytes).is_none()) {
            let text = format!(
                "the unit of {} items from item {} is outside a result of {} items",
                unit.len, unit.start, self.items
            );
            return Ok(Some(Check::new("answers", Verdict::Fails, text)));
        }
        let wrong = self.units.iter().find(|unit| {
            let part = unit.within(per_item, &bytes);
            part.map(|part| keys::hash(part).to_string()) != unit.hash
        });
        let outcome = match wrong {
            None => Ok(format!("it holds the answers of all {} units", self.units.len())),
            Some(unit) => Err(format!(
                "the {} items from item {} are not what node {} answered",
                unit.len, unit.start, unit.node
            )),
        };
        Ok(Some(Check::of("answers", outcome)))
    }

    fn code_file(&self, path: Option<&Path>) -> Result<Check, Fail> {
        let (code, path) = match (&self.code, path) {
            (Some(code), Some(path)) => (code, path),
            (Some(_), None) => {
                return Ok(Check::new(
                    "code file",
                    Verdict::Unknown,
                    "no file to check: pass --code FILE",
                ));
            }
            (None, Some(path)) => {
                let text = format!("{}: the job ran no code", path.display());
                return Ok(Check::new("code file", Verdict::Fails, text));
            }
            (None, None) => return Ok(Check::new("code file", Verdict::Holds, "none")),
        };
        let bytes = std::fs::read(path).map_err(|error| Fail::reading(path, &error))?;
        let outcome = if keys::hash(&bytes).to_string() == code.hash {
            Ok(format!("{} is the code that ran", path.display()))
        } else {
            Err(format!("{} is not the code that ran", path.display()))
        };
        Ok(Check::of("code file", outcome))
    }

    fn input(&self, path: &Path) -> Result<Check, Fail> {
        let bytes = std::fs::read(path).map_err(|error| Fail::reading(path, &error))?;
        // A map takes the array of an .npy, a program the file as it is.
        let array = is_npy(path).then(|| array_of(&bytes)).and_then(Result::ok);
        let hashes = [Some(bytes.as_slice()), array].map(|bytes| bytes.map(keys::hash));
        let is_it = |hash: &str| {
            let hash = hash.parse::<Hash>().ok();
            hash.is_some() && hashes.contains(&hash)
        };
        let outcome = match self.inputs.iter().find(|input| is_it(&input.hash)) {
            Some(input) => {
                let name = input.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
                Ok(format!("{} is the job's {}{name}", path.display(), input.role))
            }
            None => Err(format!("{} is not an input of the job", path.display())),
        };
        Ok(Check::of("input", outcome))
    }
}

impl Unit {
    /// The unit's part of a result. Its numbers are a stranger's.
    fn within<'a>(&self, per_item: u64, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let start = self.start.checked_mul(per_item)?;
        let end = self.start.checked_add(self.len)?.checked_mul(per_item)?;
        bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }
}

impl Output {
    /// What the file holds, as the receipt counts it: an array's numbers, a picture's pixels, or all.
    fn bytes_of(&self, path: &Path) -> Result<Result<Vec<u8>, String>, Fail> {
        let bytes = std::fs::read(path).map_err(|error| Fail::reading(path, &error))?;
        if self.what == "pixels" {
            let picture = image::load_from_memory_with_format(&bytes, image::ImageFormat::Png);
            let pixels = picture.map(|picture| picture.into_rgba8().into_raw());
            return Ok(pixels.map_err(|error| format!("is not a PNG picture: {error}")));
        }
        if is_npy(path) {
            return Ok(array_of(&bytes).map(<[u8]>::to_vec));
        }
        Ok(Ok(bytes))
    }

    fn compare(&self, bytes: &[u8]) -> Result<String, String> {
        let (size, wanted) = (bytes.len() as u64, self.size);
        if size != wanted {
            return Err(format!("has {size} bytes, but the job's result has {wanted}"));
        }
        if keys::hash(bytes).to_string() != self.hash {
            return Err("is not the job's result".into());
        }
        Ok(format!("is the job's result, {size} bytes"))
    }
}

fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"))
}

fn array_of(bytes: &[u8]) -> Result<&[u8], String> {
    let header = npy::read_header(&mut &bytes[..], bytes.len() as u64)
        .map_err(|error| error.to_string())?
        .map_err(|error| error.to_string())?;
    Ok(bytes.get(header.data_start as usize..).unwrap_or_default())
}
