//! Files that runs of a program left in `/out`, on the user's disk: where they go, which names can be files here, and
//! writing them without ever leaving their folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::client::Sink;
use crate::fail::Fail;

/// Behind an input's name: the folder of its files.
const OUT: &str = ".out";
/// Behind an input's name: the file with its stderr.
const STDERR: &str = ".stderr";
/// What Windows keeps for devices, whatever stands behind a dot.
const DEVICES: [&str; 22] = [
    "con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8",
    "com9", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

/// What is written beside the answers, by the name of its input. An answer has its input's name, so nothing else may.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutNames {
    out: BTreeMap<String, String>,
    stderr: BTreeMap<String, String>,
    /// Inputs are called "line 5", and names of files have no blanks then.
    dashes: bool,
}

impl OutNames {
    /// Of all inputs of the command.
    pub(crate) fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> OutNames {
        let names: BTreeSet<&str> = names.into_iter().collect();
        OutNames { out: exceptions(&names, OUT), stderr: exceptions(&names, STDERR), dashes: false }
    }

    pub(crate) fn of_lines() -> OutNames {
        OutNames { dashes: true, ..OutNames::default() }
    }

    /// The folder of an input's files.
    pub(crate) fn out(&self, name: &str) -> String {
        self.out.get(name).cloned().unwrap_or_else(|| self.usual(name, OUT))
    }

    /// The file with its stderr.
    pub(crate) fn stderr(&self, name: &str) -> String {
        self.stderr.get(name).cloned().unwrap_or_else(|| self.usual(name, STDERR))
    }

    fn usual(&self, name: &str, end: &str) -> String {
        let name = if self.dashes { name.replace(' ', "-") } else { name.to_owned() };
        name + end
    }
}

/// What inputs get of which the usual is the name of another input.
fn exceptions(names: &BTreeSet<&str>, end: &str) -> BTreeMap<String, String> {
    let is_taken = |wanted: &str, given: &BTreeMap<String, String>| {
        names.contains(wanted)
            || wanted.strip_suffix(end).is_some_and(|other| names.contains(other))
            || given.values().any(|other| other == wanted)
    };
    let mut given = BTreeMap::new();
    for name in names {
        let mut wanted = format!("{name}{end}");
        if !names.contains(wanted.as_str()) {
            continue;
        }
        while is_taken(&wanted, &given) {
            wanted.push_str(end);
        }
        given.insert((*name).to_owned(), wanted);
    }
    given
}

/// Where the files of one run are written.
pub(crate) struct Folder {
    root: PathBuf,
    /// Names that were written, where `A` and `a` are one file.
    lower: BTreeSet<String>,
}

impl Folder {
    /// `root` is in a folder of the user's; neither it nor what is in it may be a link to elsewhere.
    pub(crate) fn new(root: PathBuf) -> Folder {
        Folder { root, lower: BTreeSet::new() }
    }

    /// Writes a file. Gives its place; none if its name cannot be one here.
    pub(crate) fn write(&mut self, path: &str, bytes: &[u8]) -> Result<Option<PathBuf>, Fail> {
        let folds_case = cfg!(any(windows, target_os = "macos"));
        let is_new = !folds_case || self.lower.insert(path.to_lowercase());
        if !is_new || !can_be_file(path, cfg!(windows)) {
            return Ok(None);
        }
        let mut place = self.root.clone();
        if make_folder(&place)? == Made::Impossible {
            let place = place.display();
            return Err(Fail::input(format!(
                "cannot write {place}: it exists and is not a folder"
            )));
        }
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            place.push(part);
            if parts.peek().is_some() && make_folder(&place)? == Made::Impossible {
                return Ok(None);
            }
        }
        match fs::symlink_metadata(&place) {
            Ok(there) if there.is_dir() => return Ok(None),
            Ok(there) if !there.is_file() => {
                let place = place.display();
                return Err(Fail::input(format!(
                    "cannot write {place}: it exists and is not a regular file"
                )));
            }
            Err(error) if fits_not(&error) => return Ok(None),
            Ok(_) | Err(_) => {}
        }
        let mut sink = Sink::create(&place)?;
        sink.write(bytes)?;
        sink.finish()?;
        Ok(Some(place))
    }
}

/// Removes files of a run whose answer was taken back, and what folders are empty then.
pub(crate) fn remove(root: &Path, files: &[PathBuf]) -> Result<(), Fail> {
    for file in files {
        match fs::remove_file(file) {
            Err(error)
                if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Err(Fail::writing(file, &error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    // Those that others put something into stay.
    for file in files {
        for folder in file.ancestors().skip(1).take_while(|folder| folder.starts_with(root)) {
            let _ = fs::remove_dir(folder);
        }
    }
    Ok(())
}

/// Where a file of a run lies if it was written; none if its name cannot be one here.
pub(crate) fn place(root: &Path, path: &str) -> Option<PathBuf> {
    can_be_file(path, cfg!(windows))
        .then(|| path.split('/').fold(root.into(), |at: PathBuf, part| at.join(part)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    Folder,
    /// Its name cannot be one here, or a file has it.
    Impossible,
}

/// A folder that is no link.
fn make_folder(place: &Path) -> Result<Made, Fail> {
    match fs::create_dir(place) {
        Ok(()) => return Ok(Made::Folder),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) if fits_not(&error) => return Ok(Made::Impossible),
        Err(error) => return Err(Fail::writing(place, &error)),
    }
    let there = fs::symlink_metadata(place).map_err(|error| Fail::writing(place, &error))?;
    if there.is_dir() {
        return Ok(Made::Folder);
    }
    if there.is_file() {
        return Ok(Made::Impossible);
    }
    let place = place.display();
    Err(Fail::input(format!("cannot write {place}: it exists and is not a folder")))
}

/// Whether the disk has no such names.
fn fits_not(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidFilename | ErrorKind::NotADirectory)
}

/// Paths come from programs, and from strangers' devices: none may lead anywhere else, and none may be a device of Windows.
fn can_be_file(path: &str, on_windows: bool) -> bool {
    path.split('/').all(|part| {
        let is_name = !matches!(part, "" | "." | "..")
            && !part.contains(|c: char| c == '\\' || c.is_control());
        is_name && !(on_windows && is_no_name_on_windows(part))
    })
}

fn is_no_name_on_windows(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part).trim_end().to_lowercase();
    part.ends_with(['.', ' '])
        || part.contains(['<', '>', ':', '"', '|', '?', '*'])
        || DEVICES.contains(&stem.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_folder_has_the_name_of_an_answer_or_of_another_folder() {
        let usual = OutNames::of(["a", "b.txt"]);
        assert_eq!(
            (usual.out("a"), usual.stderr("b.txt")),
            ("a.out".into(), "b.txt.stderr".into())
        );
        let names = ["a", "a.out", "a.out.out", "b"];
        let beside = OutNames::of(names);
        let folders: BTreeSet<String> = names.iter().map(|name| beside.out(name)).collect();
        assert_eq!(folders.len(), names.len(), "{folders:?}");
        assert!(names.iter().all(|name| !folders.contains(*name)), "{folders:?}");
        assert_eq!(beside.out("b"), "b.out");
        assert_eq!(OutNames::of_lines().out("lines 1 to 9"), "lines-1-to-9.out");
    }

    #[test]
    fn only_names_that_stay_inside_are_files() {
        for good in ["a", "a/b.txt", ".hidden", "a b/c", "...", "ä"] {
            assert!(can_be_file(good, false), "{good:?}");
        }
        let bad = [
            "",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a//b",
            "a/",
            "./a",
            "a\\b",
            "..\\x",
            "a\0",
            "a\u{1b}[2J",
            "a\nb",
        ];
        for bad in bad {
            assert!(!can_be_file(bad, false) && !can_be_file(bad, true), "{bad:?}");
        }
        for bad in ["nul", "COM1.txt", "a/aux", "con .x", "c:x", "x.", "x ", "a?"] {
            assert!(can_be_file(bad, false) && !can_be_file(bad, true), "{bad:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_written_through_a_link() {
        let here = std::env::temp_dir().join(format!("shoal-beside-{}", std::process::id()));
        let _ = fs::remove_dir_all(&here);
        fs::create_dir_all(here.join("elsewhere")).expect("made");
        let root = here.join("x.out");
        let mut folder = Folder::new(root.clone());
        assert_eq!(folder.write("d/a", b"1").expect("written"), Some(root.join("d/a")));
        assert_eq!(fs::read(root.join("d/a")).expect("there"), b"1");
        assert_eq!(folder.write("../a", b"1").expect("left out"), None);
        std::os::unix::fs::symlink(here.join("elsewhere"), root.join("l")).expect("linked");
        assert!(folder.write("l/a", b"1").is_err() && folder.write("l", b"1").is_err());
        let linked = here.join("y.out");
        std::os::unix::fs::symlink(here.join("elsewhere"), &linked).expect("linked");
        assert!(Folder::new(linked).write("a", b"1").is_err());
        assert_eq!(fs::read_dir(here.join("elsewhere")).expect("there").count(), 0);
        fs::remove_dir_all(&here).expect("removed");
    }

    #[cfg(unix)]
    #[test]
    fn names_that_do_not_fit_are_left_out_and_what_was_taken_back_gives_way() {
        let here = std::env::temp_dir().join(format!("shoal-names-{}", std::process::id()));
        let _ = fs::remove_dir_all(&here);
        fs::create_dir_all(&here).expect("made");
        let root = here.join("x.out");
        let mut folder = Folder::new(root.clone());
        let long = "l".repeat(256);
        for name in [long.clone(), format!("{long}/a")] {
            assert_eq!(folder.write(&name, b"1").expect("left out"), None);
        }
        let fits = folder.write(&"l".repeat(255), b"1").expect("written").expect("its place");
        let file = folder.write("d/e/f", b"1").expect("written").expect("its place");
        assert_eq!(folder.write("d/e", b"1").expect("left out"), None, "a folder has its name");
        assert_eq!(folder.write("d/e/f/g", b"1").expect("left out"), None, "a file has its name");
        fs::write(root.join("mine"), b"2").expect("written");
        remove(&root, &[file.clone(), fits, file.join("gone"), root.join("never")])
            .expect("removed");
        assert!(!root.join("d").exists() && root.join("mine").exists());
        let file = Folder::new(root.clone()).write("d", b"3").expect("written").expect("its place");
        fs::remove_file(root.join("mine")).expect("removed");
        remove(&root, &[file]).expect("removed");
        assert!(!root.exists() && here.exists());
        fs::remove_dir_all(&here).expect("removed");
    }
}
