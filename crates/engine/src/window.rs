//! The text a kernel with windows is run as: what was signed, and at its marks calls of the few functions
//! below. The intake makes the same text to see that it is a kernel still.

use std::borrow::Cow;
use std::fmt::Write;

use shoal_kinds::kernel::{Addition, Argument, Builtin, Edge, Given, Mark, Windows};
use shoal_kinds::{Kernel, Slot};

/// What all names that Shoal adds begin with.
pub(crate) const PREFIX: &str = "shoal_";
/// `u32`s of the report: how often, which array, which index, and one to fill up.
pub(crate) const REPORT_WORDS: usize = 4;

/// The text to be compiled.
pub(crate) fn text(kernel: &Kernel) -> Result<Cow<'_, str>, String> {
    let Some(windows) = &kernel.windows else {
        return Ok(Cow::Borrowed(&kernel.source));
    };
    let source = &kernel.source;
    let mut text = String::with_capacity(source.len() * 2);
    let mut from = 0;
    for mark in &windows.marks {
        let at = mark.at as usize;
        let before = source.get(from..at).ok_or_else(|| format!("a mark at byte {at} is amiss"))?;
        text.push_str(before);
        from = at;
        add(&mut text, mark, windows)?;
    }
    text.push_str(source.get(from..).ok_or("the last mark is amiss")?);
    text.push('\n');
    declarations(&mut text, kernel.workgroup[0], windows);
    Ok(Cow::Owned(text))
}

fn add(text: &mut String, mark: &Mark, windows: &Windows) -> Result<(), String> {
    match &mark.add {
        Addition::Index(array) => write(text, format_args!("{PREFIX}at_{array}(u32(")),
        Addition::IndexEnd => text.push_str("))"),
        Addition::Length(array) => write(text, format_args!("{PREFIX}length_{array}(")),
        Addition::LengthEnd => text.push(')'),
        Addition::Argument => text.push_str("shoal_given_"),
        Addition::Body(arguments) => {
            for argument in arguments {
                named(text, argument, windows.may_return)?;
            }
        }
    }
    Ok(())
}

/// Gives an argument of the entry point its name back.
fn named(
    text: &mut String,
    Argument { name, given }: &Argument,
    may_return: bool,
) -> Result<(), String> {
    let members: &[_] = match given {
        Given::Builtin(_) => &[],
        Given::Members(members) => members,
    };
    let mut names = members.iter().map(|(name, _)| name).chain([name]);
    if let Some(odd) = names.find(|name| !is_name(name)) {
        return Err(format!("{odd:?} is no name"));
    }
    let given_as = format!("shoal_given_{name}");
    let leave = |text: &mut String, id: &str| {
        if may_return {
            write(text, format_args!(" if ({id}.x >= shoal_place[0].y) {{ return; }}"));
        }
    };
    match given {
        Given::Builtin(builtin) => {
            if *builtin == Builtin::GlobalInvocationId {
                leave(text, &given_as);
            }
            write(text, format_args!(" let {name} = {}({given_as});", function(*builtin)));
        }
        Given::Members(members) => {
            let ids = members.iter().filter(|(_, it)| *it == Builtin::GlobalInvocationId);
            for (member, _) in ids {
                leave(text, &format!("{given_as}.{member}"));
            }
            write(text, format_args!(" var shoal_own_{name} = {given_as};"));
            for (member, builtin) in members {
                let call = function(*builtin);
                let place = format!("shoal_own_{name}.{member}");
                write(text, format_args!(" {place} = {call}({place});"));
            }
            write(text, format_args!(" let {name} = shoal_own_{name};"));
        }
    }
    text.push(' ');
    Ok(())
}

fn function(builtin: Builtin) -> &'static str {
    match builtin {
        Builtin::GlobalInvocationId => "shoal_id",
        Builtin::WorkgroupId => "shoal_group",
        Builtin::NumWorkgroups => "shoal_groups",
    }
}

/// The first entry of the block is the unit's first item, its items, all items, and nothing; each other one
/// belongs to an array: the first element in the window, elements in the window, elements in all, and nothing.
fn declarations(text: &mut String, workgroup: u32, windows: &Windows) {
    let Windows { arrays, block, report, edge, .. } = windows;
    let (entries, size) = (arrays.len() + 1, workgroup.max(1));
    write(
        text,
        format_args!(
            "@group(0) @binding({block}) var<uniform> shoal_place: array<vec4<u32>, {entries}>;
@group(0) @binding({report}) var<storage, read_write> shoal_report: array<atomic<u32>, {REPORT_WORDS}>;
fn shoal_id(id: vec3<u32>) -> vec3<u32> {{ return vec3<u32>(id.x + shoal_place[0].x, id.y, id.z); }}
fn shoal_group(id: vec3<u32>) -> vec3<u32> {{ return vec3<u32>(id.x + shoal_place[0].x / {size}u, id.y, id.z); }}
fn shoal_groups(all: vec3<u32>) -> vec3<u32> {{
  return vec3<u32>((shoal_place[0].z + {size}u - 1u) / {size}u, all.y, all.z);
}}
fn shoal_outside(array: u32, index: u32) {{
  if (atomicAdd(&shoal_report[0], 1u) == 0u) {{
    atomicStore(&shoal_report[1], array);
    atomicStore(&shoal_report[2], index);
  }}
}}
"
        ),
    );
    for (number, window) in arrays.iter().enumerate() {
        let is_output = window.slot == Slot::Output;
        // What is written outside goes to one element behind the window, which nobody reads.
        let (beyond, nowhere) =
            if is_output { ("return it.y;", "it.y") } else { (beyond(*edge), "0u") };
        write(
            text,
            format_args!(
                "fn shoal_length_{number}(own: u32) -> u32 {{ return shoal_place[{entry}].z; }}
fn shoal_at_{number}(index: u32) -> u32 {{
  let it = shoal_place[{entry}];
  var at = index;
  if (at >= it.z) {{ {beyond} }}
  at -= it.x;
  if (at >= it.y) {{ shoal_outside({number}u, index); return {nowhere}; }}
  return at;
}}
",
                entry = number + 1
            ),
        );
    }
}

/// `at` is not in the array of `it.z` elements; from 2^31 on it lies before the start.
fn beyond(edge: Edge) -> &'static str {
    match edge {
        Edge::Clamp => "at = select(it.z - 1u, 0u, at > 0x7fffffffu);",
        Edge::Wrap => {
            "if (at > 0x7fffffffu) { at = it.z - 1u - (~at % it.z); } else { at = at % it.z; }"
        }
        Edge::Mirror => {
            "at = select(at, ~at, at > 0x7fffffffu) % (it.z * 2u); at = select(at, it.z * 2u - 1u - at, at >= it.z);"
        }
    }
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c == '_' || c.is_alphanumeric();
    !name.is_empty() && name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Writing to a string cannot fail.
fn write(text: &mut String, what: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(what);
}
