//! Where a path leads. It starts at a folder and never leaves it: not by `..`, not by a link, not by a leading `/`.

use super::tree::{Body, Id, Tree};
use super::{Done, Errno};

/// Longest path, as on Linux, which counts the zero at its end.
pub(super) const MAX_PATH: usize = shoal_kinds::exec::left::MAX_PATH;
/// Links followed on one way, as on Linux.
const MAX_LINKS: usize = 40;

/// Where a path ends.
pub(super) struct End {
    /// The last folder on the way.
    pub(super) folder: Id,
    pub(super) last: Last,
    /// It ends with `/`: only a folder will do.
    pub(super) slash: bool,
}

pub(super) enum Last {
    /// `.` or `..`: the folder itself.
    Itself,
    /// A name in it, and what it leads to, if there is anything.
    Name(String, Option<Id>),
}

impl End {
    /// What is there.
    pub(super) fn node(&self) -> Done<Id> {
        match &self.last {
            Last::Itself => Ok(self.folder),
            Last::Name(_, Some(node)) => Ok(*node),
            Last::Name(_, None) => Err(Errno::NOENT),
        }
    }
}

/// What a call that makes, moves or takes away works on: a name in a folder.
pub(super) enum Base {
    /// The path ended with `.`, `..` or `/`: the folder itself.
    Itself,
    Name(String),
}

/// Follows a path; the last link of it only if asked to, or if `/` stands behind it.
pub(super) fn walk(tree: &Tree, start: Id, path: &str, follow: bool) -> Done<End> {
    check(path)?;
    let mut way = vec![start];
    let mut rest: Vec<String> = Vec::new();
    let mut slash = push(&mut rest, path)?;
    let mut links = 0;
    loop {
        let folder = *way.last().unwrap_or(&start);
        let Some(part) = rest.pop() else {
            return Ok(End { folder, last: Last::Itself, slash });
        };
        let is_last = rest.is_empty();
        if part == "." {
            continue;
        }
        if part == ".." {
            way.pop();
            if way.is_empty() {
                return Err(Errno::PERM);
            }
            continue;
        }
        let child = tree.child(folder, &part)?;
        let Some(node) = child else {
            return match is_last {
                true => Ok(End { folder, last: Last::Name(part, None), slash }),
                false => Err(Errno::NOENT),
            };
        };
        if let Body::Link(target) = &tree.node(node)?.body
            && (!is_last || follow || slash)
        {
            links += 1;
            if links > MAX_LINKS {
                return Err(Errno::LOOP);
            }
            let ends = push(&mut rest, target)?;
            slash |= is_last && ends;
            continue;
        }
        if is_last {
            return Ok(End { folder, last: Last::Name(part, Some(node)), slash });
        }
        if !tree.is_folder(node) {
            return Err(Errno::NOTDIR);
        }
        way.push(node);
    }
}

/// A folder that a path leads to.
fn folder(tree: &Tree, start: Id, path: &str) -> Done<Id> {
    let node = walk(tree, start, path, true)?.node()?;
    if tree.is_folder(node) { Ok(node) } else { Err(Errno::NOTDIR) }
}

/// The folder in which the last name of a path is, and that name.
pub(super) fn parent(tree: &Tree, start: Id, path: &str) -> Done<(Id, Base)> {
    check(path)?;
    if path == "." {
        return Ok((start, Base::Itself));
    }
    let itself = path.ends_with('/') || path.ends_with("/.");
    let (before, name) = path.rsplit_once('/').unwrap_or(("", path));
    if itself || name == ".." {
        return Ok((folder(tree, start, path)?, Base::Itself));
    }
    let above = match (path.rfind('/'), before) {
        (None, _) => start,
        (Some(_), "") => folder(tree, start, "/")?,
        (Some(_), before) => folder(tree, start, before)?,
    };
    Ok((above, Base::Name(name.to_owned())))
}

/// Whether the path is one name alone, whatever slashes and dots stand behind it.
pub(super) fn lone_name(path: &str) -> Option<&str> {
    let mut parts = path.split('/');
    let first = parts.next().filter(|first| !["", ".", ".."].contains(first))?;
    parts.all(|part| part.is_empty() || part == ".").then_some(first)
}

fn check(path: &str) -> Done {
    if path.contains('\0') {
        return Err(Errno::INVAL);
    }
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    if path.len() > MAX_PATH {
        return Err(Errno::NAMETOOLONG);
    }
    Ok(())
}

/// Puts the parts of a path on a stack, the first on top. Says whether it ends with `/`.
fn push(rest: &mut Vec<String>, path: &str) -> Done<bool> {
    if path.starts_with('/') {
        return Err(Errno::PERM);
    }
    let parts = path.split('/').rev().filter(|part| !part.is_empty());
    rest.extend(parts.map(str::to_owned));
    Ok(path.ends_with('/'))
}
