//! The parameter block: the user's values put in place by name, and where each unit writes its own.

use naga::{ArraySize, Handle, Module, Scalar, ScalarKind, Type, TypeInner, VectorSize};
use shoal_kinds::{Field, SimField};

use super::IntakeError;
use super::element;

/// A value of the user for a member of the parameter block.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamValue {
    Bool(bool),
    Int(i64),
    Float(f64),
    List(Vec<ParamValue>),
}

/// Names a unit's place goes by in a map.
pub(super) const MAP_FIELDS: &[(&str, Field)] =
    &[("offset", Field::Offset), ("length", Field::Length), ("total", Field::Total)];

/// The same for a tile of a render.
pub(super) const RENDER_FIELDS: &[(&str, Field)] = &[
    ("offset", Field::Offset),
    ("length", Field::Length),
    ("total", Field::Total),
    ("tile_x", Field::TileX),
    ("tile_y", Field::TileY),
    ("tile_width", Field::TileWidth),
    ("tile_height", Field::TileHeight),
    ("image_width", Field::ImageWidth),
    ("image_height", Field::ImageHeight),
    ("samples", Field::Samples),
    ("tile", Field::Tile),
    ("stride", Field::Stride),
];

/// A member that is filled at work.
pub(super) struct Filled<'a, F> {
    pub(super) name: &'a str,
    pub(super) field: F,
    pub(super) shape: TypeInner,
}

pub(super) const U32: TypeInner = TypeInner::Scalar(Scalar::U32);
const VEC2: TypeInner = TypeInner::Vector { size: VectorSize::Bi, scalar: Scalar::F32 };
const VEC4: TypeInner = TypeInner::Vector { size: VectorSize::Quad, scalar: Scalar::F32 };

/// The same for a band of a simulation.
pub(super) const SIM_FIELDS: &[Filled<'static, SimField>] = &[
    Filled { name: "width", field: SimField::Width, shape: U32 },
    Filled { name: "height", field: SimField::Height, shape: U32 },
    Filled { name: "first_row", field: SimField::FirstRow, shape: U32 },
    Filled { name: "rows", field: SimField::Rows, shape: U32 },
    Filled { name: "step", field: SimField::Step, shape: U32 },
    Filled { name: "poke", field: SimField::Poke, shape: VEC4 },
    Filled { name: "brush", field: SimField::Brush, shape: VEC2 },
];

struct Member<'a> {
    name: &'a str,
    ty: Handle<Type>,
    offset: u32,
}

/// The bytes of a parameter block, and where in it members lie that are filled at work.
pub(super) type Block<F> = (Vec<u8>, Vec<(F, u32)>);

/// Fills the block of type `ty`. A block that is no struct is one value, called as its variable.
pub(super) fn fill<F: Copy>(
    module: &Module,
    ty: Handle<Type>,
    variable: &str,
    fields: &[Filled<'_, F>],
    values: &[(String, ParamValue)],
) -> Result<Block<F>, IntakeError> {
    let (members, size) = members(module, ty, variable);
    let wanted = |member: &&Member<'_>| !fields.iter().any(|field| field.name == member.name);
    unknown(values, members.iter().filter(wanted), fields)?;
    let (mut bytes, mut places) = (vec![0; size as usize], Vec::new());
    let mut missing = Vec::new();
    for member in &members {
        if let Some(filled) = fields.iter().find(|field| field.name == member.name) {
            check_shape(module, member, filled)?;
            places.push((filled.field, member.offset));
            continue;
        }
        match values.iter().find(|(name, _)| name == member.name) {
            Some((name, value)) => {
                put(module, member.ty, value, &mut bytes, member.offset)
                    .map_err(|problem| bad(format!("parameter `{name}`: {problem}")))?;
            }
            // Names with an underscore in front are padding by custom.
            None if member.name.starts_with('_') => (),
            None => missing.push(describe(module, member)),
        }
    }
    if missing.is_empty() {
        return Ok((bytes, places));
    }
    Err(bad(format!("the kernel needs values for these parameters: {}", missing.join(", "))))
}

/// The error for values given to a kernel that has no parameter block, if there are any.
pub(super) fn none_wanted(values: &[(String, ParamValue)]) -> Result<(), IntakeError> {
    let names: Vec<_> = values.iter().map(|(name, _)| format!("`{name}`")).collect();
    if names.is_empty() {
        return Ok(());
    }
    let names = names.join(", ");
    Err(bad(format!("the kernel declares no parameter block, but values were given for {names}")))
}

fn members<'a>(module: &'a Module, ty: Handle<Type>, variable: &'a str) -> (Vec<Member<'a>>, u32) {
    match &module.types[ty].inner {
        TypeInner::Struct { members, span } => {
            let members = members.iter().map(|member| Member {
                name: member.name.as_deref().unwrap_or("_"),
                ty: member.ty,
                offset: member.offset,
            });
            (members.collect(), *span)
        }
        other => (vec![Member { name: variable, ty, offset: 0 }], other.size(module.to_ctx())),
    }
}

fn unknown<'a, F>(
    values: &[(String, ParamValue)],
    members: impl Iterator<Item = &'a Member<'a>>,
    fields: &[Filled<'_, F>],
) -> Result<(), IntakeError> {
    let names: Vec<_> = members.map(|member| member.name).collect();
    for (at, (name, _)) in values.iter().enumerate() {
        if fields.iter().any(|field| field.name == name) {
            return Err(bad(format!("parameter `{name}` is filled by Shoal and cannot be given")));
        }
        if !names.contains(&name.as_str()) {
            let known = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "none".to_owned() } else { known };
            return Err(bad(format!("the kernel has no parameter `{name}`; it takes: {known}")));
        }
        if values[..at].iter().any(|(earlier, _)| earlier == name) {
            return Err(bad(format!("parameter `{name}` is given twice")));
        }
    }
    Ok(())
}

/// Writes a value at a byte position, by the layout of its type.
fn put(
    module: &Module,
    ty: Handle<Type>,
    value: &ParamValue,
    bytes: &mut [u8],
    at: u32,
) -> Result<(), String> {
    match &module.types[ty].inner {
        TypeInner::Scalar(scalar) => put_scalar(*scalar, value, bytes, at),
        TypeInner::Vector { size, scalar } => {
            let items = list(value, *size as usize)?;
            items
                .iter()
                .zip((at..).step_by(4))
                .try_for_each(|(v, at)| put_scalar(*scalar, v, bytes, at))
        }
        TypeInner::Matrix { columns, rows, scalar } => {
            // A column of three takes as much room as one of four.
            let column = if *rows as u32 == 2 { 8 } else { 16 };
            for (items, at) in list(value, *columns as usize)?.iter().zip((at..).step_by(column)) {
                for (item, at) in list(items, *rows as usize)?.iter().zip((at..).step_by(4)) {
                    put_scalar(*scalar, item, bytes, at)?;
                }
            }
            Ok(())
        }
        TypeInner::Array { base, size: ArraySize::Constant(count), stride } => {
            let items = list(value, count.get() as usize)?;
            items
                .iter()
                .zip((at..).step_by(*stride as usize))
                .try_for_each(|(v, at)| put(module, *base, v, bytes, at))
        }
        _ => Err(format!("values of type {} cannot be given", element::name(module, ty))),
    }
}

fn list(value: &ParamValue, len: usize) -> Result<&[ParamValue], String> {
    match value {
        ParamValue::List(items) if items.len() == len => Ok(items),
        ParamValue::List(items) => {
            Err(format!("expected a list of {len} values, found {}", items.len()))
        }
        ParamValue::Bool(_) | ParamValue::Int(_) | ParamValue::Float(_) => {
            Err(format!("expected a list of {len} values, found one value"))
        }
    }
}

fn put_scalar(scalar: Scalar, value: &ParamValue, bytes: &mut [u8], at: u32) -> Result<(), String> {
    let number = match value {
        ParamValue::Bool(value) => f64::from(u8::from(*value)),
        ParamValue::Int(value) => *value as f64,
        ParamValue::Float(value) => *value,
        ParamValue::List(_) => return Err("expected one value, found a list".to_owned()),
    };
    let whole = |least: f64, most: f64| {
        if number.fract() == 0.0 && (least..=most).contains(&number) {
            return Ok(number);
        }
        let name = element::scalar_name(scalar);
        Err(format!("{number} does not fit {name}, a whole number from {least} to {most}"))
    };
    let word = match (scalar.kind, scalar.width) {
        (ScalarKind::Float, 4) => (number as f32).to_le_bytes(),
        (ScalarKind::Uint, 4) => (whole(0.0, f64::from(u32::MAX))? as u32).to_le_bytes(),
        (ScalarKind::Sint, 4) => {
            (whole(f64::from(i32::MIN), f64::from(i32::MAX))? as i32).to_le_bytes()
        }
        _ => return Err("its type cannot be given".to_owned()),
    };
    let at = at as usize;
    let place = bytes.get_mut(at..at + 4).ok_or("it lies outside the block")?;
    place.copy_from_slice(&word);
    Ok(())
}

fn check_shape<F>(
    module: &Module,
    member: &Member<'_>,
    filled: &Filled<'_, F>,
) -> Result<(), IntakeError> {
    if module.types[member.ty].inner == filled.shape {
        return Ok(());
    }
    let wanted = match &filled.shape {
        TypeInner::Vector { size, scalar } => {
            format!("vec{}<{}>", *size as u8, element::scalar_name(*scalar))
        }
        _ => "u32".to_owned(),
    };
    let (name, ty) = (filled.name, element::name(module, member.ty));
    Err(bad(format!("`{name}` is filled by Shoal and must be a {wanted}, not {ty}")))
}

fn describe(module: &Module, member: &Member<'_>) -> String {
    format!("`{}` ({})", member.name, element::name(module, member.ty))
}

fn bad(message: String) -> IntakeError {
    IntakeError::plain("bad_params", message)
}
