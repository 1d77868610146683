//! Which instructions compute: found once, when a model is loaded. All kernels give the same bits; the plain one is
//! the oracle of the others.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod plain;
mod tile;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;

use super::attention::{Heads, attend};
use super::lanes::Plain;
use super::math::{self, Quantised};
use super::matrix::Quants;
use plain::PlainDots;
pub(crate) use tile::{Number, Work};

/// A set of instructions that models are computed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Whatever the compiler makes of plain code.
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX2 with AVX-VNNI.
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    /// AVX-512 with VNNI.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// What every 64-bit ARM processor has.
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    Neon,
    /// NEON with the dot-product extension.
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    NeonDot,
    /// WebAssembly's SIMD: relaxed in modules that are built for it.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Wasm,
}

impl Kernel {
    /// The fastest this processor has.
    pub fn best() -> Kernel {
        Kernel::all().last().copied().unwrap_or(Kernel::Plain)
    }

    /// All that run on this processor, the fastest last.
    pub fn all() -> Vec<Kernel> {
        #[allow(unused_mut, reason = "some processors have no others")]
        let mut all = vec![Kernel::Plain];
        // A module with instructions that its host does not know does not load.
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        if wasm::WasmDots::are_right() {
            all.push(Kernel::Wasm);
        }
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        {
            all.push(Kernel::Neon);
            if std::arch::is_aarch64_feature_detected!("dotprod") {
                all.push(Kernel::NeonDot);
            }
        }
        #[cfg(target_arch = "x86_64")]
        {
            let has_256 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c");
            let has_512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vnni")
                && is_x86_feature_detected!("f16c");
            let has_vnni = has_256 && is_x86_feature_detected!("avxvnni");
            let seen =
                [(Kernel::Avx2, has_256), (Kernel::AvxVnni, has_vnni), (Kernel::Avx512, has_512)];
            all.extend(seen.into_iter().filter(|(_, has)| *has).map(|(kernel, _)| kernel));
        }
        all
    }

    pub fn name(self) -> &'static str {
        match self {
            Kernel::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kernel::AvxVnni => "avxvnni",
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => "avx512",
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Kernel::Neon => "neon",
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Kernel::NeonDot => "neon-dotprod",
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Kernel::Wasm if cfg!(target_feature = "relaxed-simd") => "relaxed-simd",
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Kernel::Wasm => "simd128",
        }
    }

    fn ops(self) -> &'static Ops {
        match self {
            Kernel::Plain => &plain_ops::OPS,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => &avx2_ops::OPS,
            #[cfg(target_arch = "x86_64")]
            Kernel::AvxVnni => &avx_vnni_ops::OPS,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => &avx512_ops::OPS,
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Kernel::Neon => &neon_ops::OPS,
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Kernel::NeonDot => &neon_dot_ops::OPS,
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Kernel::Wasm => &wasm_ops::OPS,
        }
    }
}

/// A kernel that this processor was seen to have.
#[derive(Clone, Copy)]
pub(crate) struct Seen(Kernel);

type Norm = unsafe fn(&[f32], &[f32], f32, &mut [f32]);

/// The functions of one kernel. None may be called where its instructions are missing.
struct Ops {
    norm: Norm,
    norm_in_place: unsafe fn(&mut [f32], &[f32], f32),
    add: unsafe fn(&mut [f32], &[f32]),
    silu_times: unsafe fn(&mut [f32], &[f32]),
    gelu_times: unsafe fn(&mut [f32], &[f32]),
    soft_cap: unsafe fn(&mut [f32], f32),
    quantise: unsafe fn(&[f32], &mut [Quantised]),
    quants: unsafe fn(&Work<'_>, Quants, &[Quantised]),
    numbers: unsafe fn(&Work<'_>, Number, &[f32]),
    attend: unsafe fn(&Heads<'_>, &mut Vec<f32>, &mut [f32]),
}

/// Makes the generic functions once more, for one kernel's instructions.
macro_rules! ops {
    ($module:ident, $lanes:ty, $dots:ty, $(#[$feature:meta])?) => {
        mod $module {
            use super::*;

            pub(super) static OPS: Ops = Ops {
                norm, norm_in_place, add, silu_times, gelu_times, soft_cap, quantise, quants,
                numbers, attend,
            };

            ops!(@each $lanes, $dots, $(#[$feature])?);
        }
    };
    (@each $lanes:ty, $dots:ty, $(#[$feature:meta])?) => {
        $(#[$feature])?
        fn norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
            math::norm::<$lanes>(x, weight, eps, out);
        }
        $(#[$feature])?
        fn norm_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
            math::norm_in_place::<$lanes>(x, weight, eps);
        }
        $(#[$feature])?
        fn add(x: &mut [f32], other: &[f32]) {
            math::add::<$lanes>(x, other);
        }
        $(#[$feature])?
        fn silu_times(gate: &mut [f32], up: &[f32]) {
            math::silu_times::<$lanes>(gate, up);
        }
        $(#[$feature])?
        fn gelu_times(gate: &mut [f32], up: &[f32]) {
            math::gelu_times::<$lanes>(gate, up);
        }
        $(#[$feature])?
        fn soft_cap(x: &mut [f32], cap: f32) {
            math::soft_cap::<$lanes>(x, cap);
        }
        $(#[$feature])?
        fn quantise(x: &[f32], into: &mut [Quantised]) {
            math::quantise::<$lanes>(x, into);
        }
        $(#[$feature])?
        fn quants(work: &Work<'_>, form: Quants, x: &[Quantised]) {
            tile::quants::<$dots>(work, form, x);
        }
        $(#[$feature])?
        fn numbers(work: &Work<'_>, form: Number, x: &[f32]) {
            tile::numbers::<$lanes>(work, form, x);
        }
        $(#[$feature])?
        fn attend(heads: &Heads<'_>, scores: &mut Vec<f32>, out: &mut [f32]) {
            super::attend::<$lanes>(heads, scores, out);
        }
    };
}

ops!(plain_ops, Plain, PlainDots,);
#[cfg(target_arch = "x86_64")]
ops!(
    avx2_ops,
    super::avx2::Avx2,
    super::avx2::Avx2Dots<false>,
    #[target_feature(enable = "avx2,f16c")]
);
#[cfg(target_arch = "x86_64")]
ops!(
    avx_vnni_ops,
    super::avx2::Avx2,
    super::avx2::Avx2Dots<true>,
    #[target_feature(enable = "avx2,f16c,avxvnni")]
);
#[cfg(target_arch = "x86_64")]
ops!(
    avx512_ops,
    super::avx512::Avx512,
    super::avx512::Avx512Dots,
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c")]
);
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
ops!(neon_ops, super::neon::Neon, super::neon::WithoutDotprod,);
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
ops!(
    neon_dot_ops,
    super::neon::Neon,
    super::neon::WithDotprod,
    #[target_feature(enable = "dotprod")]
);
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
ops!(wasm_ops, super::wasm::Wasm, super::wasm::WasmDots,);

/// The functions behind safe doors.
#[allow(unsafe_code)]
impl Seen {
    /// None if this processor lacks it.
    pub(crate) fn new(kernel: Kernel) -> Option<Seen> {
        Kernel::all().contains(&kernel).then_some(Seen(kernel))
    }

    pub(crate) fn kernel(self) -> Kernel {
        self.0
    }

    pub(crate) fn norm(self, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        // SAFETY: `new` saw that the processor has the instructions; so below.
        unsafe { (self.0.ops().norm)(x, weight, eps, out) }
    }

    pub(crate) fn norm_in_place(self, x: &mut [f32], weight: &[f32], eps: f32) {
        // SAFETY: see `norm`.
        unsafe { (self.0.ops().norm_in_place)(x, weight, eps) }
    }

    pub(crate) fn add(self, x: &mut [f32], other: &[f32]) {
        // SAFETY: see `norm`.
        unsafe { (self.0.ops().add)(x, other) }
    }

    pub(crate) fn silu_times(self, gate: &mut [f32], up: &[f32]) {
        // SAFETY: see `norm`.
        unsafe { (self.0.ops().silu_times)(gate, up) }
    }

    pub(crate) fn gelu_times(self, gate: &mut [f32], up: &[f32]) {
        // SAFETY: see `norm`.
        unsafe { (self.0.ops().gelu_times)(gate, up) }
    }

    pub(crate) fn soft_cap(self, x: &mut [f32], cap: f32) {
        // SAFETY: see `norm`.
        unsafe { (self.0.ops().soft_cap)(x, cap) }
    }

    pub(crate) fn quantise(self, x: &[f32], into: &mut [Quantised]) {
        // SAFETY: see `norm`.
        unsafe { (self.0.ops().quantise)(x, into) }
    }

    /// # Safety
    /// Nobody else may write the outputs of the groups.
    pub(crate) unsafe fn quants(self, work: &Work<'_>, form: Quants, x: &[Quantised]) {
        // SAFETY: see `norm`.
        unsafe { (self.0.ops().quants)(work, form, x) }
    }

    /// # Safety
    /// As for quants.
    pub(crate) unsafe fn numbers(self, work: &Work<'_>, form: Number, x: &[f32]) {
        // SAFETY: see `norm`.
        unsafe { (self.0.ops().numbers)(work, form, x) }
    }

    pub(crate) fn attend(self, heads: &Heads<'_>, scores: &mut Vec<f32>, out: &mut [f32]) {
        // SAFETY: see `norm`.
        unsafe { (self.0.ops().attend)(heads, scores, out) }
    }
}
