//! What a product's sums become when they are written.

use super::arithmetic::{MaterializedNoise, clip, floor_div, noise_start, shift_rounded, sign};
use crate::arithmetic::integer::FIXED_POINT;
use crate::arithmetic::integer::transformer::{GELU_DOWN, GELU_UP, LARGEST_LOGIT};
use crate::backend::cube::BiasKind;
use cubecl::prelude::*;

/// Which operation a product is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Epilogue {
    /// Floor of a quotient: the recurrent model's.
    Divide,
    /// Rounded to nearest: the transformer's.
    Round { bias: BiasKind, activate: bool },
    /// Rounded to nearest, in int32: the transformer's logits.
    Logits,
}

impl Epilogue {
    /// Whether `x·B` is rounded to the input's fixed point before it is multiplied on.
    pub(crate) const fn rounds(self) -> bool {
        !matches!(self, Self::Divide)
    }

    const fn bias(self) -> BiasKind {
        match self {
            Self::Round { bias, .. } => bias,
            Self::Divide | Self::Logits => BiasKind::None,
        }
    }

    const fn activates(self) -> bool {
        matches!(self, Self::Round { activate: true, .. })
    }
}

/// `round(x·B / 16)`
#[cube]
pub(crate) fn rounded_projection(sum: i32) -> i32 {
    shift_rounded(sum, comptime!(FIXED_POINT as i32).runtime())
}

/// An element of the output, from the elements of `x·W` and `(x·B)·Aᵀ`; the latter is 0 without noise.
#[cube]
pub(crate) fn finished<I: Int>(
    sum: i32,
    second: i32,
    noise: &MaterializedNoise,
    bias: &[I],
    bias_held: &[I],
    bias_noise: &MaterializedNoise,
    member: usize,
    column: usize,
    divisor: i32,
    #[comptime] epilogue: Epilogue,
) -> i32 {
    let direction = sign(member);
    if comptime!(epilogue == Epilogue::Divide) {
        clip(floor_div(sum + ((second * direction) >> noise.shift), divisor))
    } else {
        // Without noise there is nothing to shift.
        let bits = (noise.shift - comptime!(FIXED_POINT as i32)).max(0i32);
        let value = shift_rounded(sum + direction * shift_rounded(second, bits), divisor);
        if comptime!(epilogue == Epilogue::Logits) {
            value.clamp(-LARGEST_LOGIT, LARGEST_LOGIT)
        } else {
            let value = clip(
                value + bias_element::<I>(bias, bias_held, bias_noise, member, column, comptime!(epilogue.bias())),
            );
            if comptime!(epilogue.activates()) { gelu(value) } else { value }
        }
    }
}

/// An element of a bias, as a member sees it.
#[cube]
fn bias_element<I: Int>(
    bias: &[I],
    held: &[I],
    noise: &MaterializedNoise,
    member: usize,
    element: usize,
    #[comptime] kind: BiasKind,
) -> i32 {
    if comptime!(kind == BiasKind::None) {
        0i32.runtime()
    } else {
        let value = i32::cast_from(bias[element]);
        if comptime!(kind == BiasKind::Perturbed) {
            let at = noise_start(noise, member) + element;
            let product = i32::cast_from(held[at]) * i32::cast_from(held[at + noise.elements / 2]);
            clip(value + sign(member) * shift_rounded(product, noise.shift))
        } else {
            value
        }
    }
}

/// [`gelu`](crate::arithmetic::integer::transformer::gelu)
#[cube]
fn gelu(x: i32) -> i32 {
    let magnitude = x.abs();
    let mut value = x.max(0i32);
    #[unroll]
    for k in 0..comptime!(GELU_DOWN.len()) {
        value -= select(magnitude >= comptime!(GELU_DOWN[k] as i32), 1i32, 0i32);
        value += select(magnitude >= comptime!(GELU_UP[k] as i32), 1i32, 0i32);
    }
    value
}
