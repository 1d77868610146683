//! All files below a folder, as a program finds them in `/data`.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::client::Source;
use crate::fail::Fail;

/// Files one folder may hold: each is stored and laid out on every node.
const MAX_FILES: usize = 10_000;

/// Folders within folders: no real tree is this deep.
const MAX_DEPTH: usize = 64;

/// A folder still to be listed.
struct Waiting {
    path: PathBuf,
    /// What its files' names begin with.
    prefix: String,
    /// The real folders on the way to it, itself last.
    way: Vec<PathBuf>,
}

/// Every file with its name relative to the folder, in order, `/` between the parts. Links are
/// followed within the folder only: what lies outside was not asked for.
pub(crate) fn files(folder: &Path) -> Result<Vec<(String, Source)>, Fail> {
    let about = fs::metadata(folder).map_err(|error| Fail::reading(folder, &error))?;
    if !about.is_dir() {
        return Err(Fail::input(format!("{} is not a folder", folder.display())));
    }
    let root = folder.canonicalize().map_err(|error| Fail::reading(folder, &error))?;
    let mut found = Vec::new();
    let mut waiting =
        vec![Waiting { path: folder.to_owned(), prefix: String::new(), way: vec![root] }];
    while let Some(next) = waiting.pop() {
        let cannot = |error: io::Error| Fail::reading(&next.path, &error);
        for entry in fs::read_dir(&next.path).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                return Err(Fail::input(format!("the name of {} is not UTF-8", path.display())));
            };
            let name = format!("{}{name}", next.prefix);
            let real = inside(&path, &next.way[0])?;
            let about = fs::metadata(&real).map_err(|error| Fail::reading(&path, &error))?;
            if about.is_dir() {
                waiting.push(next.within(path, &name, real)?);
            } else if about.is_file() {
                found.push((name, Source::File { path, start: 0, size: about.len() }));
            } else {
                return Err(Fail::irregular(&path));
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

impl Waiting {
    fn within(&self, path: PathBuf, name: &str, real: PathBuf) -> Result<Waiting, Fail> {
        if self.way.contains(&real) {
            let path = path.display();
            return Err(Fail::input(format!("{path} is a link to a folder that contains it")));
        }
        if self.way.len() > MAX_DEPTH {
            return Err(Fail::input(format!("{} is nested too deeply", path.display())));
        }
        let way = self.way.iter().cloned().chain([real]).collect();
        Ok(Waiting { path, prefix: format!("{name}/"), way })
    }
}

/// Where a path really leads, if that is below `root`.
fn inside(path: &Path, root: &Path) -> Result<PathBuf, Fail> {
    let real = path.canonicalize().map_err(|error| Fail::reading(path, &error))?;
    if real.starts_with(root) {
        return Ok(real);
    }
    let (path, real) = (path.display(), real.display());
    Err(Fail::input(format!(
        "{path} points outside the folder, to {real}: copy the file into the folder instead"
    )))
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
    #[cfg(unix)]
    #[test]
    fn links_stay_inside_and_lead_in_no_circle() {
        use std::os::unix::fs::symlink;
        let folder = std::env::temp_dir().join(format!("shoal-links-{}", std::process::id()));
        fs::create_dir_all(folder.join("a")).expect("folders");
        fs::create_dir_all(folder.join("b")).expect("folders");
        fs::write(folder.join("a/x.txt"), "x").expect("a file");
        let link = folder.join("b/link");
        symlink("../a", &link).expect("a link");
        let names: Vec<_> = files(&folder).expect("files").into_iter().map(|it| it.0).collect();
        assert_eq!(names, ["a/x.txt", "b/link/x.txt"]);
        let bad = [
            ("..", "a folder that contains it"),
            (".", "a folder that contains it"),
            ("/etc", "points outside"),
            ("/etc/passwd", "points outside"),
            ("/dev/zero", "points outside"),
            ("../..", "points outside"),
            ("link", "cannot read"),
        ];
        for (target, wanted) in bad {
            fs::remove_file(&link).expect("removed");
            symlink(target, &link).expect("a link");
            let Err(Fail::Input { message, .. }) = files(&folder) else { panic!("{target}") };
            assert!(message.contains(wanted), "{target}: {message}");
        }
        fs::remove_file(&link).expect("removed");
        symlink("../a", &link).expect("a link");
        symlink("../b", folder.join("a/back")).expect("a link");
        let Err(Fail::Input { message, .. }) = files(&folder) else { panic!("two links") };
        assert!(message.contains("a folder that contains it"), "{message}");
        fs::remove_dir_all(&folder).expect("removed");
    }
}
