//! What numbers a kernel reads and writes: told to clients before they send any, and held against what
//! they say they sent.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::id::clip;

use super::{ArrayJson, KernelJson, KernelNeedsJson, KernelRequest, MapError, MapPlan};
use crate::kernel::ElementType;
use crate::plan::{Intake, PlanError, check_kernel_size};

/// A type's name in an error: longer ones are no types.
const MAX_TYPE_BYTES: usize = 80;

/// Refuses an input that is said to be something else than the kernel reads. Nothing said is fine: the
/// bytes are taken as they are.
pub(super) fn check(
    input: usize,
    given: Option<&str>,
    element: &ElementType,
) -> Result<(), PlanError> {
    let Some(given) = given else { return Ok(()) };
    if given == element.scalar && is_plain(element) || given == element.name {
        return Ok(());
    }
    let advice = if is_plain(element) {
        format!("convert the numbers to {}", element.scalar)
    } else {
        format!("give {} as it is in memory", element.name)
    };
    let given = clip(given.to_owned(), MAX_TYPE_BYTES);
    Err(MapError::WrongType { input, given, element: element.name.clone(), advice }.into())
}

/// Whether an element is made of one kind of number.
fn is_plain(element: &ElementType) -> bool {
    matches!(element.scalar.as_str(), "f32" | "i32" | "u32" | "f16")
}

/// Checks a map kernel as for a job, and says what it reads and writes.
pub fn describe(request: &KernelRequest, intake: &dyn Intake) -> Result<KernelJson, PlanError> {
    check_kernel_size(&request.wgsl)?;
    let plan = intake.map_kernel(&request.wgsl, request.entry.as_deref(), &request.params)?;
    let names = intake.input_names(&request.wgsl, &plan.kernel);
    Ok(described(plan, names))
}

fn described(plan: MapPlan, names: Vec<String>) -> KernelJson {
    let mut names = names.into_iter();
    let inputs = plan.inputs.into_iter().enumerate().map(|(position, element)| {
        let name = names.next().unwrap_or_else(|| format!("input {position}"));
        array(name, element)
    });
    KernelJson {
        entry: plan.kernel.entry,
        inputs: inputs.collect(),
        output: array("output".into(), plan.output),
        workgroup: plan.kernel.workgroup,
        needs: KernelNeedsJson {
            workgroup_invocations: plan.needs.workgroup_invocations,
            workgroup_bytes: plan.needs.workgroup_bytes,
            storage_buffers: plan.needs.storage_buffers,
        },
    }
}

fn array(name: String, element: ElementType) -> ArrayJson {
    let ElementType { name: kind, stride, scalar, lanes } = element;
    ArrayJson { name, element: kind, scalar, lanes, stride }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn element(name: &str, scalar: &str, lanes: u32) -> ElementType {
        ElementType { name: name.into(), stride: 4 * lanes, scalar: scalar.into(), lanes }
    }

    #[test]
    fn an_input_is_what_the_kernel_reads_or_refused_with_both_types() {
        let points = element("vec2<f32>", "f32", 2);
        for fits in [None, Some("f32"), Some("vec2<f32>")] {
            assert!(check(0, fits, &points).is_ok(), "{fits:?}");
        }
        for unfit in ["f64", "u32", "vec4<f32>", ""] {
            let error = check(1, Some(unfit), &points).expect_err("refused").to_string();
            let both = format!(
                "the request says that input 1 holds {unfit}, but the kernel reads array<vec2<f32>>"
            );
            assert!(error.starts_with(&both), "{error}");
            assert!(error.contains("convert the numbers to f32"), "{error}");
        }
    }

    #[test]
    fn a_struct_of_several_kinds_has_only_its_own_name() {
        let star = element("Star", "mixed", 3);
        assert!(check(0, Some("Star"), &star).is_ok());
        assert!(check(0, Some("mixed"), &star).is_err());
        let error = check(0, Some("f32"), &star).expect_err("refused").to_string();
        assert!(error.contains("array<Star>") && error.contains("as it is in memory"), "{error}");
    }
}
