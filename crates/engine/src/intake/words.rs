//! The validator's words made plain: it speaks of handles, flags and its own types, which mean
//! nothing to whoever wrote the kernel.

use std::error::Error;

/// What went wrong, without the shells around it: the spot is shown anyway.
pub(super) fn reasons(error: &dyn Error) -> String {
    let mut parts = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        parts.push(plain(&error.to_string()));
        next = error.source();
    }
    let shells = parts.len() - 1;
    let inner: Vec<_> =
        parts.iter().take(shells).filter(|part| !part.ends_with(" is invalid")).collect();
    let inner = inner.into_iter().chain(parts.last()).map(String::as_str);
    inner.collect::<Vec<_>>().join(": ")
}

/// A label the validator wrote for people, as opposed to one that names its own type.
pub(super) fn label(label: &str) -> &str {
    if label.starts_with("naga::") { "" } else { label }
}

fn plain(text: &str) -> String {
    if let Some(feature) = between(text, "Capabilities(", ")") {
        return format!("this needs {feature}, which not every device has");
    }
    if let Some((before, feature)) = text.split_once("requires the `naga::valid::Capabilities::") {
        let feature = feature.split('`').next().unwrap_or(feature);
        return format!("{}needs {feature}, which not every device has", before.to_lowercase());
    }
    without_handles(&types(text))
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(open)?;
    rest.split_once(close).map(|(inner, _)| inner)
}

/// `Scalar(Scalar { kind: Float, width: 4 })` is an `f32`.
fn types(text: &str) -> String {
    let scalars =
        [("Float", 4, "f32"), ("Uint", 4, "u32"), ("Sint", 4, "i32"), ("Bool", 1, "bool")];
    let sizes = [("Bi", 2), ("Tri", 3), ("Quad", 4)];
    let mut text = text.to_owned();
    for (kind, width, name) in scalars {
        text = text.replace(&format!("Scalar {{ kind: {kind}, width: {width} }}"), name);
        text = text.replace(&format!("Scalar({name})"), name);
        for (size, count) in sizes {
            let vector = format!("Vector {{ size: {size}, scalar: {name} }}");
            text = text.replace(&vector, &format!("vec{count}<{name}>"));
        }
    }
    text
}

/// Takes out handles such as `[9]`, and `[9] (of type f32)` becomes `f32`.
fn without_handles(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        let (before, handle) = rest.split_at(at);
        plain.push_str(before);
        let digits = handle[1..].bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 || handle.as_bytes().get(digits + 1) != Some(&b']') {
            plain.push('[');
            rest = &handle[1..];
            continue;
        }
        rest = &handle[digits + 2..];
        if let Some((ty, after)) = rest.strip_prefix(" (of type ").and_then(|it| it.split_once(')'))
        {
            plain.push_str(ty);
            rest = after;
        } else if plain.ends_with(" for ") || plain.ends_with(" by ") {
            plain.push_str("it");
        } else if plain.ends_with(' ') {
            rest = rest.strip_prefix(' ').unwrap_or(rest);
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_and_types_become_words() {
        let text = "can't add [9] (of type Scalar(Scalar { kind: Float, width: 4 })) and \
                    [10] (of type Vector { size: Tri, scalar: Scalar { kind: Uint, width: 4 } })";
        assert_eq!(plain(text), "can't add f32 and vec3<u32>");
        assert_eq!(plain("The pointer [3] is odd"), "The pointer is odd");
        assert_eq!(plain("not met by [1]: too small"), "not met by it: too small");
        assert_eq!(plain("array[x] and [1"), "array[x] and [1");
    }
}
