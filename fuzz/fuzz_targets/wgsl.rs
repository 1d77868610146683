//! Kernels that strangers submit. The compiler's own faults count too: the check contains them, but each
//! would be an error that helps nobody.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use shoal_engine::intake::{InputAsk, MapAsk, map_kernel, map_reading, render_kernel};
use shoal_kinds::Kernel;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(source) = std::str::from_utf8(bytes) else { return Corpus::Reject };
    if let Ok(plan) = map_kernel(source, None, &[]) {
        check(source, &plan.kernel);
        // Whatever a kernel does, somebody can say where it looks, or that nobody can.
        let input = InputAsk { whole: false, per_item: 1, overlap: None };
        let inputs = vec![input; plan.inputs.len()];
        let ask = MapAsk { inputs, out_per_item: 1, ..MapAsk::default() };
        match map_reading(source, None, &[], &ask) {
            Ok(reading) => assert_eq!(reading.inputs.len(), ask.inputs.len()),
            Err(error) => assert!(!error.message.contains("the check itself failed"), "{error}"),
        }
    }
    if let Ok(plan) = render_kernel(source, None, &[]) {
        check(source, &plan.kernel);
    }
    Corpus::Keep
});

/// What was understood is understood in the same way where the entry point is named.
fn check(source: &str, kernel: &Kernel) {
    let [x, y, z] = kernel.workgroup;
    assert!((1..=256).contains(&(u64::from(x) * u64::from(y) * u64::from(z))));
    assert!(source.contains(&kernel.entry));
    let named = Some(kernel.entry.as_str());
    let again = map_kernel(source, named, &[]).map(|plan| plan.kernel);
    let again = again.or_else(|_| render_kernel(source, named, &[]).map(|plan| plan.kernel));
    assert_eq!(again.as_ref(), Ok(kernel));
}
