//! Cases as they lie on disk.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use shoal_engine::intake::{IntakeError, ParamValue};

pub(crate) struct Case {
    /// Folder and name, such as `kernels/wave`.
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) json: Value,
}

impl Case {
    pub(crate) fn all() -> Vec<Case> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
        let mut cases = Vec::new();
        for kind in folders(&root) {
            for folder in folders(&kind) {
                let file = folder.join("case.json");
                let text = fs::read_to_string(&file)
                    .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                let json = serde_json::from_str(&text)
                    .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                let name = folder.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
                cases.push(Case { name, folder, json });
            }
        }
        cases.sort_by(|a, b| a.name.cmp(&b.name));
        cases
    }

    pub(crate) fn kind(&self) -> &str {
        self.json["kind"].as_str().unwrap_or("")
    }

    pub(crate) fn is_outside(&self) -> bool {
        self.name.starts_with("outside/")
    }

    /// The bytes of a file beside the case, or of `{"outside": ID, "path": PATH}`.
    pub(crate) fn file(&self, at: &Value) -> Vec<u8> {
        let path = match at {
            Value::String(name) => self.folder.join(name),
            other => outside()
                .unwrap()
                .join(other["outside"].as_str().unwrap())
                .join(other["path"].as_str().unwrap()),
        };
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn text(&self, at: &Value) -> String {
        String::from_utf8(self.file(at)).unwrap()
    }

    pub(crate) fn entry(&self) -> Option<&str> {
        self.json["entry"].as_str()
    }

    pub(crate) fn params(&self) -> Vec<(String, ParamValue)> {
        let members = self.json["params"].as_object();
        members.into_iter().flatten().map(|(name, it)| (name.clone(), param(it))).collect()
    }

    pub(crate) fn number(&self, name: &str, default: u64) -> u64 {
        self.json[name].as_u64().unwrap_or(default)
    }

    /// Compares an intake's answer with what the case expects of it. `None` if the case goes on
    /// from there.
    pub(crate) fn judge_intake<T>(
        &self,
        answer: Result<T, IntakeError>,
    ) -> Result<Option<T>, String> {
        let expected = &self.json["expect"]["error"];
        match (answer, expected.is_null()) {
            (Ok(plan), true) => Ok(Some(plan)),
            (Ok(_), false) => Err("was taken, but should have been refused".to_owned()),
            (Err(error), true) => Err(format!("was refused: {error}")),
            (Err(error), false) => same_error(&error, expected).map(|()| None),
        }
    }
}

fn same_error(error: &IntakeError, expected: &Value) -> Result<(), String> {
    let parts = expected["contains"].as_array().into_iter().flatten();
    let missing: Vec<_> =
        parts.map(|part| part.as_str().unwrap()).filter(|it| !error.message.contains(it)).collect();
    let differs = |name: &str, found: Option<u32>| {
        !expected[name].is_null() && expected[name].as_u64() != found.map(u64::from)
    };
    if expected["code"] != error.code
        || !missing.is_empty()
        || differs("line", error.line)
        || differs("column", error.column)
    {
        return Err(format!("refused otherwise (lacks {missing:?}): {error:#?}\n{error}"));
    }
    Ok(())
}

fn param(value: &Value) -> ParamValue {
    match value {
        Value::Bool(it) => ParamValue::Bool(*it),
        Value::Number(it) => match it.as_i64() {
            Some(it) => ParamValue::Int(it),
            None => ParamValue::Float(it.as_f64().unwrap()),
        },
        Value::Array(items) => ParamValue::List(items.iter().map(param).collect()),
        other => panic!("no parameter: {other}"),
    }
}

fn outside() -> Option<PathBuf> {
    std::env::var_os("SHOAL_OUTSIDE").map(PathBuf::from).filter(|folder| folder.is_dir())
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

pub(crate) fn outside_is_there() -> bool {
    let there = outside().is_some();
    let required = all_are_required();
    assert!(there || !required, "SHOAL_REQUIRE_ALL=1, but SHOAL_OUTSIDE names no folder");
    there
}

pub(crate) fn all_are_required() -> bool {
    std::env::var("SHOAL_REQUIRE_ALL").is_ok_and(|it| it == "1")
}
