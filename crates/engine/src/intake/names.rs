//! What a kernel calls its inputs.

use shoal_kinds::{Kernel, Slot};

/// The variables' names of the kernel's inputs, in order. The check has accepted the source, so a
/// plain scan for `@binding(N) var<…> NAME` finds them; one it misses is called by its number.
pub fn input_names(wgsl: &str, kernel: &Kernel) -> Vec<String> {
    let source = without_comments(wgsl);
    let mut inputs: Vec<(u32, u32)> = Vec::new();
    for binding in &kernel.bindings {
        match binding.slot {
            Slot::Input(position) => inputs.push((position, binding.index)),
            Slot::Output | Slot::Params | Slot::Place | Slot::Report => {}
        }
    }
    inputs.sort_unstable();
    inputs
        .iter()
        .map(|(position, index)| {
            variable(&source, *index).unwrap_or_else(|| format!("input {position}"))
        })
        .collect()
}

fn variable(source: &str, index: u32) -> Option<String> {
    let mut rest = source;
    while let Some((_, after)) = rest.split_once("@binding") {
        rest = after;
        let inside = after.trim_start().strip_prefix('(').and_then(|text| text.split_once(')'));
        let Some((number, after)) = inside else { continue };
        let number = number.trim().trim_end_matches(',').trim_end_matches(['u', 'i']);
        if number.trim().parse() != Ok(index) {
            continue;
        }
        let (_, after) = after.split_once("var")?;
        let after = after.trim_start();
        let after = if after.starts_with('<') { after.split_once('>')?.1 } else { after };
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let name: String = after.trim_start().chars().take_while(|c| is_name(*c)).collect();
        return Some(name).filter(|name| !name.is_empty());
    }
    None
}

fn without_comments(wgsl: &str) -> String {
    let lines = wgsl.lines().map(|line| line.split("//").next().unwrap_or_default());
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut parts = text.split("/*");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once("*/").map_or("", |(_, after)| after));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_by_their_binding() {
        let source = "
            // @binding(0) var<storage> wrong: u32;
            /* @binding(0) var<storage> wrong: u32; */
            @group(0) @binding( 0u ) var<storage, read> points : array<vec2<f32>>;
            @binding(12) @group(0)
            var<uniform> params: Params;
            var<workgroup> other: u32;";
        let source = without_comments(source);
        assert_eq!(variable(&source, 0).as_deref(), Some("points"));
        assert_eq!(variable(&source, 12).as_deref(), Some("params"));
        assert_eq!(variable(&source, 1), None);
    }
}
