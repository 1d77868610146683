//! The first state of a simulation, from a file.

use std::path::Path;

use shoal_engine::intake::ElementType;
use shoal_kinds::SimWork;

use super::file;
use crate::client::Source;
use crate::fail::Fail;

/// The cells of an .npy whose shape is the grid's: rows, columns and, if cells have several, numbers.
pub(crate) fn first_state(path: &Path, work: &SimWork) -> Result<Source, Fail> {
    let SimWork { width, height, lanes, cell_bytes, scalar, .. } = work;
    let element = ElementType {
        name: format!("{scalar} cells"),
        scalar: scalar.clone(),
        lanes: *lanes,
        stride: *cell_bytes,
    };
    let (source, shape) = file::open(path, None, "state", &element)?;
    let mut wanted = vec![u64::from(*height), u64::from(*width)];
    if *lanes > 1 {
        wanted.push(u64::from(*lanes));
    }
    let found = shape.unwrap_or_default();
    if found != wanted {
        return Err(Fail::input(format!(
            "{} has the shape {found:?}: expected {wanted:?}, the grid's rows and columns{}",
            path.display(),
            if *lanes > 1 { " and the numbers of a cell" } else { "" }
        )));
    }
    Ok(source)
}
