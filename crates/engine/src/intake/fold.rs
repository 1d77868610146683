//! The check of how a map's outputs are brought together.

use shoal_kinds::map::fold::{Fold, How};
use shoal_kinds::{ElementType, FoldPlan, IntakeError};
use shoal_protocol::limit::MAX_KERNEL_BYTES;

use super::depth;
use super::kernel::{Checked, validated};
use super::reach::check_names;
use super::source::error_at;
use crate::fold;

/// `output` is what the map writes, `out_per_item` elements of it for each of its `items`.
pub(super) fn check(
    how: &How,
    output: &ElementType,
    out_per_item: u32,
    items: u64,
) -> Result<FoldPlan, IntakeError> {
    let plain = |what: String| IntakeError::plain("bad_reduce", what);
    let item_bytes = output.stride.saturating_mul(out_per_item);
    let (element, columns, made, bytes, combine) = match how {
        How::Combine(source) => {
            own_words(source)?;
            let (name, stride) = (output.name.clone(), output.stride);
            (name.clone(), out_per_item, name, stride, source.clone())
        }
        How::Sum | How::Min | How::Max => {
            let parts = fold::parts(how, &output.scalar).ok_or_else(|| {
                plain(format!(
                    "array<{}> cannot be reduced so: sum, min, max and mean are for f32, i32 and u32, alone or \
                     in vectors. Give a file with `fn combine(a: {0}, b: {0}) -> {0}` instead",
                    output.name
                ))
            })?;
            let columns = output.lanes.saturating_mul(out_per_item);
            let (made, combine) = (parts.made.to_owned(), parts.combine.to_owned());
            (output.scalar.clone(), columns, made, parts.bytes, combine)
        }
    };
    let copy = fold::copy(how, &made, columns);
    let fold = Fold { how: how.clone(), element, columns, item_bytes, items };
    compiles(&fold, &combine)?;
    let output_bytes = bytes.checked_mul(columns);
    let output_bytes =
        output_bytes.ok_or_else(|| plain("one item's output is too large".into()))?;
    Ok(FoldPlan { fold, made, output_bytes, combine, copy })
}

/// What a file may say.
fn own_words(source: &str) -> Result<(), IntakeError> {
    if source.len() > MAX_KERNEL_BYTES {
        let what =
            format!("the file has {} bytes; at most {MAX_KERNEL_BYTES} are taken", source.len());
        return Err(IntakeError::plain("bad_reduce", what));
    }
    depth::check(source)?;
    let module = naga::front::wgsl::parse_str(source).map_err(|error| {
        let (span, label) = error.labels().next().unzip();
        error_at(source, span, error.message(), label.unwrap_or(""))
    })?;
    check_names(source, &module)?;
    if let Some((handle, _)) = module.global_variables.iter().find(|(_, it)| it.binding.is_some()) {
        let what = "a reduction has no bindings: it is given `a` and `b`";
        let span = module.global_variables.get_span(handle);
        return Err(error_at(source, Some(span), what, "not here"));
    }
    if let Some(entry) = module.entry_points.first() {
        let what = format!(
            "a reduction has no entry point such as `{}`: expected `fn combine(a: T, b: T) -> T`",
            entry.name
        );
        return Err(IntakeError::plain("bad_reduce", what));
    }
    Ok(())
}

/// The whole kernel is checked as any other; what is wrong with it is wrong with `combine`.
fn compiles(fold: &Fold, combine: &str) -> Result<(), IntakeError> {
    let text = fold::text(fold).unwrap_or_default();
    let lines = combine.lines().count() as u32;
    let result = validated(&text).and_then(|(module, info)| {
        Checked::new(&text, &module, &info, Some(fold::ENTRY)).map(drop)
    });
    result.map_err(|mut error| {
        if error.line.is_none_or(|line| line > lines) {
            let element = &fold.element;
            let what = format!(
                "expected a function `fn combine(a: {element}, b: {element}) -> {element}`: the kernel's output \
                 is array<{element}>"
            );
            error = IntakeError::plain("bad_reduce", what);
        }
        IntakeError { code: "bad_reduce", ..error }
    })
}
