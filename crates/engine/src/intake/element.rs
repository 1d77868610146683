//! Types as WGSL writes them, and what arrays of them look like in memory.

use naga::{Handle, Module, Scalar, ScalarKind, Type, TypeInner};

use super::ElementType;

pub(super) fn element(module: &Module, ty: Handle<Type>, stride: u32) -> ElementType {
    let scalar = scalar(module, ty);
    ElementType {
        name: name(module, ty),
        stride,
        lanes: stride / 4,
        scalar: scalar.map_or("mixed", scalar_name).to_owned(),
    }
}

/// The one scalar a type is made of, if there is one. Types come after those they are made of, so one pass
/// over them is enough; descending from the outermost would take ages where structs nest and repeat.
fn scalar(module: &Module, wanted: Handle<Type>) -> Option<Scalar> {
    let mut found: Vec<Option<Scalar>> = Vec::new();
    for (_, ty) in module.types.iter().take(wanted.index() + 1) {
        let of = |inner: Handle<Type>| found.get(inner.index()).copied().flatten();
        let scalar = match &ty.inner {
            TypeInner::Scalar(scalar)
            | TypeInner::Atomic(scalar)
            | TypeInner::Vector { scalar, .. }
            | TypeInner::Matrix { scalar, .. } => Some(*scalar),
            TypeInner::Array { base, .. } => of(*base),
            TypeInner::Struct { members, .. } => {
                let first = members.first().and_then(|member| of(member.ty));
                first.filter(|_| members.iter().all(|member| of(member.ty) == first))
            }
            _ => None,
        };
        found.push(scalar);
    }
    found.pop().flatten()
}

/// Numbers in a type of known size, gaps not counted; one pass, as above.
pub(super) fn scalars(module: &Module, wanted: Handle<Type>) -> u64 {
    let mut found: Vec<u64> = Vec::new();
    for (_, ty) in module.types.iter().take(wanted.index() + 1) {
        let of = |inner: Handle<Type>| found.get(inner.index()).copied().unwrap_or(0);
        let count = match &ty.inner {
            TypeInner::Scalar(_) | TypeInner::Atomic(_) => 1,
            TypeInner::Vector { size, .. } => *size as u64,
            TypeInner::Matrix { columns, rows, .. } => *columns as u64 * *rows as u64,
            TypeInner::Array { base, size: naga::ArraySize::Constant(count), .. } => {
                of(*base).saturating_mul(u64::from(count.get()))
            }
            TypeInner::Struct { members, .. } => {
                members.iter().fold(0, |sum: u64, member| sum.saturating_add(of(member.ty)))
            }
            _ => 0,
        };
        found.push(count);
    }
    found.pop().unwrap_or(0)
}

pub(super) fn name(module: &Module, ty: Handle<Type>) -> String {
    let ty = &module.types[ty];
    match &ty.inner {
        TypeInner::Scalar(scalar) => scalar_name(*scalar).to_owned(),
        TypeInner::Atomic(scalar) => format!("atomic<{}>", scalar_name(*scalar)),
        TypeInner::Vector { size, scalar } => {
            format!("vec{}<{}>", *size as u8, scalar_name(*scalar))
        }
        TypeInner::Matrix { columns, rows, scalar } => {
            format!("mat{}x{}<{}>", *columns as u8, *rows as u8, scalar_name(*scalar))
        }
        TypeInner::Array { base, size, .. } => match size {
            naga::ArraySize::Constant(count) => format!("array<{}, {count}>", name(module, *base)),
            naga::ArraySize::Pending(_) => format!("array<{}, override>", name(module, *base)),
            naga::ArraySize::Dynamic => format!("array<{}>", name(module, *base)),
        },
        TypeInner::Image { .. } => "a texture".to_owned(),
        TypeInner::Sampler { .. } => "a sampler".to_owned(),
        _ => ty.name.clone().unwrap_or_else(|| "another type".to_owned()),
    }
}

pub(super) fn scalar_name(scalar: Scalar) -> &'static str {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Float, 4) => "f32",
        (ScalarKind::Float, 2) => "f16",
        (ScalarKind::Sint, 4) => "i32",
        (ScalarKind::Uint, 4) => "u32",
        (ScalarKind::Bool, _) => "bool",
        _ => "another scalar",
    }
}
