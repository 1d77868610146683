//! What a run leaves in a folder, as bytes.

use shoal_kinds::exec::left;

use super::tree::{Body, Id, Tree};
use super::walk::MAX_PATH;

/// The regular files below a folder; none if they take more bytes than so many, have more names than a run may leave, or lie
/// deeper than paths reach.
pub(super) fn pack(tree: &Tree, folder: Id, most: u64) -> Option<Vec<u8>> {
    let (mut files, mut folders) = (Vec::new(), vec![(folder, String::new())]);
    let mut size = 0_u64;
    while let Some((folder, above)) = folders.pop() {
        for (_, name, id) in tree.list(folder, 0).ok()? {
            let path = if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") };
            if path.len() > MAX_PATH {
                return None;
            }
            match &tree.node(id).ok()?.body {
                Body::Folder(_) => folders.push((id, path)),
                Body::File(bytes) => {
                    // A file has all its names, however large it is: what they take is known before it is copied.
                    size = size.saturating_add(left::size(&path, bytes.len() as u64));
                    files.push((path, bytes));
                }
                Body::Shared { .. } | Body::Link(_) => {}
            }
            if size > most || files.len() > left::MAX_FILES {
                return None;
            }
        }
    }
    files.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut packed = Vec::with_capacity(usize::try_from(size).ok()?);
    for (path, bytes) in files {
        left::pack(&mut packed, &path, bytes);
    }
    Some(packed)
}
