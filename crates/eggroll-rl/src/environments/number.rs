//! The number type of the physics: both forms of an environment share one text and round alike.

use burn::tensor::Tensor;
use std::ops::{Add, Div, Mul, Sub};

/// A float of one environment, or the column `[environments, 1]` of a batch.
pub trait Number:
    Clone
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Add<f32, Output = Self>
    + Sub<f32, Output = Self>
    + Mul<f32, Output = Self>
{
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn floor(self) -> Self;
    fn clamp(self, low: f32, high: f32) -> Self;
}

impl Number for f32 {
    #[inline]
    fn sin(self) -> Self {
        f32::sin(self)
    }

    #[inline]
    fn cos(self) -> Self {
        f32::cos(self)
    }

    #[inline]
    fn floor(self) -> Self {
        f32::floor(self)
    }

    #[inline]
    fn clamp(self, low: f32, high: f32) -> Self {
        f32::clamp(self, low, high)
    }
}

impl Number for Tensor<2> {
    fn sin(self) -> Self {
        Tensor::sin(self)
    }

    fn cos(self) -> Self {
        Tensor::cos(self)
    }

    fn floor(self) -> Self {
        Tensor::floor(self)
    }

    fn clamp(self, low: f32, high: f32) -> Self {
        Tensor::clamp(self, low, high)
    }
}

/// An angle less whole turns: `x − 2π·⌊x/2π + ½⌋`, in `[−π, π]`.
#[inline]
pub fn wrapped<N: Number>(angle: N) -> N {
    const TURN: f32 = std::f32::consts::TAU;
    const HALF: f32 = 0.5;
    angle.clone() - (angle * (1.0 / TURN) + HALF).floor() * TURN
}
