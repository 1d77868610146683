//! All files below a folder, as a program finds them in `/data`.

use std::fs;
use std::path::Path;

use crate::client::Source;
use crate::fail::Fail;

/// Files one folder may hold: each is stored and laid out on every node.
const MAX_FILES: usize = 10_000;

/// Every file with its name relative to the folder, in order, `/` between the parts.
pub(crate) fn files(folder: &Path) -> Result<Vec<(String, Source)>, Fail> {
    let about = fs::metadata(folder).map_err(|error| Fail::reading(folder, &error))?;
    if !about.is_dir() {
        return Err(Fail::input(format!("{} is no folder", folder.display())));
    }
    let mut found = Vec::new();
    let mut waiting = vec![(folder.to_owned(), String::new())];
    while let Some((path, prefix)) = waiting.pop() {
        let entries = fs::read_dir(&path).map_err(|error| Fail::reading(&path, &error))?;
        for entry in entries {
            let path = entry.map_err(|error| Fail::reading(&path, &error))?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                return Err(Fail::input(format!("the name of {} is not UTF-8", path.display())));
            };
            let name = format!("{prefix}{name}");
            let about = fs::metadata(&path).map_err(|error| Fail::reading(&path, &error))?;
            if about.is_dir() {
                // Links may lead in a circle: no real tree is this deep.
                if name.matches('/').count() > 64 {
                    return Err(Fail::input(format!("{} is nested too deep", path.display())));
                }
                waiting.push((path, format!("{name}/")));
            } else {
                found.push((name, Source::File { path, start: 0, size: about.len() }));
            }
            if found.len() > MAX_FILES {
                let folder = folder.display();
                return Err(Fail::input(format!("{folder} has more than {MAX_FILES} files")));
            }
        }
    }
    if found.is_empty() {
        return Err(Fail::input(format!("{} has no files", folder.display())));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_relative_to_the_folder() {
        let folder = std::env::temp_dir().join(format!("shoal-folder-{}", std::process::id()));
        fs::create_dir_all(folder.join("b/c")).expect("folders");
        fs::write(folder.join("z.txt"), "z").expect("a file");
        fs::write(folder.join("b/c/d.txt"), "dd").expect("a file");
        let found = files(&folder).expect("files");
        let names: Vec<_> =
            found.iter().map(|(name, source)| (name.as_str(), source.size())).collect();
        assert_eq!(names, [("b/c/d.txt", 2), ("z.txt", 1)]);
        fs::remove_dir_all(&folder).expect("removed");
        assert!(files(&folder).is_err());
    }
}
