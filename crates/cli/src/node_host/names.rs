//! Names of files in a folder that came over the network.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use shoal_protocol::Failure;

/// A path below `folder`. Names come over the network: none may lead out of it.
pub(super) fn inside(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    let relative = Path::new(name);
    let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_plain || name.is_empty() {
        let message = format!("the folder has a file named {name:?}, which leads out of it");
        return Err(Failure::Fetch { message });
    }
    Ok(folder.join(relative))
}

/// Refuses `a` next to `a/b`, which no disk can hold.
pub(super) fn no_file_is_a_folder<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let paths: BTreeSet<&Path> = names.map(Path::new).collect();
    for path in &paths {
        if let Some(parent) = path.ancestors().skip(1).find(|parent| paths.contains(parent)) {
            let message = format!(
                "the folder has a file named {:?} and one named {:?}: the first cannot be a file \
                 and a folder at once",
                parent.display().to_string(),
                path.display().to_string()
            );
            return Err(Failure::Fetch { message });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_both_a_file_and_a_folder() {
        assert_eq!(no_file_is_a_folder(["a/b", "a/c", "ab", "b"].into_iter()), Ok(()));
        for bad in [["a", "a/b"], ["x/y/z", "x"], ["a//b/c", "a/b"]] {
            assert!(no_file_is_a_folder(bad.into_iter()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let folder = Path::new("f");
        assert_eq!(inside(folder, "a/b.txt"), Ok(folder.join("a/b.txt")));
        for bad in ["", "/etc/passwd", "../x", "a/../../x"] {
            assert!(inside(folder, bad).is_err(), "{bad:?}");
        }
    }
}
