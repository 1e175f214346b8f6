//! The number type of the physics: all forms of an environment share one text, and the two of CPUs round alike.

use burn::tensor::{Bool, Tensor};
use eggroll_core::device_rollout::Symbol;
use std::ops::{Add, Div, Mul, Sub};

/// A float of one environment, the column `[environments, 1]` of a batch, or a symbol that stands for either.
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
    /// The answer to a question about the number.
    type Flag: Flag<Self>;

    /// The sine.
    fn sin(self) -> Self;
    /// The cosine.
    fn cos(self) -> Self;
    /// The largest integer that is not above it.
    fn floor(self) -> Self;
    /// The size without the sign.
    fn abs(self) -> Self;
    /// The number, or the bound that it is beyond.
    fn clamp(self, low: f32, high: f32) -> Self;
    /// `value`, as often as this number is there.
    fn filled(&self, value: f32) -> Self;
    /// Whether it is below `limit`.
    fn less(&self, limit: f32) -> Self::Flag;
    /// Whether it is at most `limit`.
    fn less_equal(&self, limit: f32) -> Self::Flag;
    /// Whether it is above `limit`.
    fn greater(&self, limit: f32) -> Self::Flag;
    /// Whether it is at least `limit`.
    fn greater_equal(&self, limit: f32) -> Self::Flag;
}

/// Yes or no, for each of the numbers.
pub trait Flag<N>: Clone {
    /// Whether both are yes.
    fn and(self, other: Self) -> Self;
    /// Whether one is yes.
    fn or(self, other: Self) -> Self;
    /// `then` where it is yes, else `otherwise`.
    fn select(self, then: N, otherwise: N) -> N;
    /// 1 for yes, 0 for no.
    fn number(self) -> N;
}

/// Numbers that belong together: an array.
pub trait Numbers<N>: AsRef<[N]> + Into<Vec<N>> {
    /// How many.
    const COUNT: usize;

    /// Each by its place.
    fn from_fn(number: impl FnMut(usize) -> N) -> Self;
}

impl<N, const COUNT: usize> Numbers<N> for [N; COUNT] {
    const COUNT: usize = COUNT;

    #[inline]
    fn from_fn(number: impl FnMut(usize) -> N) -> Self {
        std::array::from_fn(number)
    }
}

impl Number for f32 {
    type Flag = bool;

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
    fn abs(self) -> Self {
        f32::abs(self)
    }

    #[inline]
    fn clamp(self, low: f32, high: f32) -> Self {
        f32::clamp(self, low, high)
    }

    #[inline]
    fn filled(&self, value: f32) -> Self {
        value
    }

    #[inline]
    fn less(&self, limit: f32) -> bool {
        *self < limit
    }

    #[inline]
    fn less_equal(&self, limit: f32) -> bool {
        *self <= limit
    }

    #[inline]
    fn greater(&self, limit: f32) -> bool {
        *self > limit
    }

    #[inline]
    fn greater_equal(&self, limit: f32) -> bool {
        *self >= limit
    }
}

impl Flag<f32> for bool {
    #[inline]
    fn and(self, other: Self) -> Self {
        self && other
    }

    #[inline]
    fn or(self, other: Self) -> Self {
        self || other
    }

    #[inline]
    fn select(self, then: f32, otherwise: f32) -> f32 {
        if self { then } else { otherwise }
    }

    #[inline]
    fn number(self) -> f32 {
        f32::from(u8::from(self))
    }
}

impl Number for Tensor<2> {
    type Flag = Tensor<2, Bool>;

    fn sin(self) -> Self {
        Tensor::sin(self)
    }

    fn cos(self) -> Self {
        Tensor::cos(self)
    }

    fn floor(self) -> Self {
        Tensor::floor(self)
    }

    fn abs(self) -> Self {
        Tensor::abs(self)
    }

    fn clamp(self, low: f32, high: f32) -> Self {
        Tensor::clamp(self, low, high)
    }

    fn filled(&self, value: f32) -> Self {
        self.full_like(value)
    }

    fn less(&self, limit: f32) -> Self::Flag {
        self.clone().lower_elem(limit)
    }

    fn less_equal(&self, limit: f32) -> Self::Flag {
        self.clone().lower_equal_elem(limit)
    }

    fn greater(&self, limit: f32) -> Self::Flag {
        self.clone().greater_elem(limit)
    }

    fn greater_equal(&self, limit: f32) -> Self::Flag {
        self.clone().greater_equal_elem(limit)
    }
}

impl Flag<Tensor<2>> for Tensor<2, Bool> {
    fn and(self, other: Self) -> Self {
        self.bool_and(other)
    }

    fn or(self, other: Self) -> Self {
        self.bool_or(other)
    }

    fn select(self, then: Tensor<2>, otherwise: Tensor<2>) -> Tensor<2> {
        otherwise.mask_where(self, then)
    }

    fn number(self) -> Tensor<2> {
        self.float()
    }
}

/// Flags of symbols are numbers, 1 and 0.
impl Number for Symbol {
    type Flag = Self;

    fn sin(self) -> Self {
        Symbol::sin(self)
    }

    fn cos(self) -> Self {
        Symbol::cos(self)
    }

    fn floor(self) -> Self {
        Symbol::floor(self)
    }

    fn abs(self) -> Self {
        Symbol::abs(self)
    }

    fn clamp(self, low: f32, high: f32) -> Self {
        Symbol::clamp(self, low, high)
    }

    fn filled(&self, value: f32) -> Self {
        self.constant(value)
    }

    fn less(&self, limit: f32) -> Self {
        Symbol::less(self, &self.constant(limit))
    }

    fn less_equal(&self, limit: f32) -> Self {
        Symbol::less_equal(self, &self.constant(limit))
    }

    fn greater(&self, limit: f32) -> Self {
        Symbol::less(&self.constant(limit), self)
    }

    fn greater_equal(&self, limit: f32) -> Self {
        Symbol::less_equal(&self.constant(limit), self)
    }
}

impl Flag<Symbol> for Symbol {
    fn and(self, other: Self) -> Self {
        self * other
    }

    fn or(self, other: Self) -> Self {
        let yes = self.constant(1.0);
        Symbol::select(&self, yes, other)
    }

    fn select(self, then: Symbol, otherwise: Symbol) -> Symbol {
        Symbol::select(&self, then, otherwise)
    }

    fn number(self) -> Symbol {
        self
    }
}

/// An angle less whole turns: `x − 2π·⌊x/2π + ½⌋`, in `[−π, π]`.
#[inline]
pub fn wrapped<N: Number>(angle: N) -> N {
    const TURN: f32 = std::f32::consts::TAU;
    const HALF: f32 = 0.5;
    angle.clone() - (angle * (1.0 / TURN) + HALF).floor() * TURN
}
