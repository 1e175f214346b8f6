//! What tells parameters of one identifier apart: Burn keeps identifiers on `clone` and on loading.

use crate::work::sync::locked;
use burn::module::{Module, Param, Parameter};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The tensor of a parameter that a [`ParameterTable`](crate::ParameterTable) can have: of floats or of integers.
pub trait ParameterTensor: Parameter + Send + Sync + 'static {
    /// Whether the parameter is without gradient, as `no_grad()` makes it and `Param::initialized` of a plain tensor. Never for integers, of
    /// which Burn does not say.
    fn is_inactive(param: &Param<Self>) -> bool;

    /// Whether `other` has the values of this tensor, once it is cast to its type.
    fn equals(&self, other: &Self) -> bool;
}

impl<const D: usize> ParameterTensor for Tensor<D> {
    fn is_inactive(param: &Param<Self>) -> bool {
        if !matches!(param.dtype(), DType::QFloat(_)) && param.is_require_grad() {
            return false;
        }
        // Only `train` tells on a plain device.
        !param.clone().map(|_| leaf(&param.device())).train().is_require_grad()
    }

    fn equals(&self, other: &Self) -> bool {
        self.dims() == other.dims() && same_bits(&self.to_data(), &other.clone().cast(self.dtype()).to_data())
    }
}

/// A tensor that requires a gradient already, one for each rank: what asks for one is registered in Burn's graphs, which keep it until a
/// backward pass.
fn leaf<const D: usize>(device: &Device) -> Tensor<D> {
    static LEAVES: Mutex<BTreeMap<usize, Box<dyn Any + Send>>> = Mutex::new(BTreeMap::new());
    let mut leaves = locked(&LEAVES);
    let made = || -> Box<dyn Any + Send> { Box::new(Tensor::<D>::zeros([1; D], device).autodiff().require_grad()) };
    leaves.entry(D).or_insert_with(made).downcast_ref::<Tensor<D>>().expect("a tensor of this rank").clone()
}

impl<const D: usize> ParameterTensor for Tensor<D, Int> {
    fn is_inactive(_: &Param<Self>) -> bool {
        false
    }

    fn equals(&self, other: &Self) -> bool {
        self.dims() == other.dims() && same_bits(&self.to_data(), &other.clone().cast(self.dtype()).to_data())
    }
}

fn same_bits(a: &TensorData, b: &TensorData) -> bool {
    a.as_bytes() == b.as_bytes()
}

/// The field of a module that has a parameter.
#[derive(Clone)]
pub struct Field {
    /// Address of the field.
    place: usize,
    /// Address of the values, which clones share until they change.
    values: usize,
    /// Keeps the values, so that no others get their address.
    param: Arc<dyn Any + Send + Sync>,
}

impl Field {
    /// The field that is `param`.
    pub fn of<T: ParameterTensor>(param: &Param<T>) -> Self {
        Self { place: place(param), values: values(param), param: Arc::new(param.clone()) }
    }

    /// Whether it is `param`, with the values that it has now.
    pub fn is<T: ParameterTensor>(&self, param: &Param<T>) -> bool {
        self.place == place(param) && self.values == values(param)
    }

    /// Whether both have the same values, without reading them.
    pub fn shares(&self, other: &Self) -> bool {
        self.values == other.values
    }

    /// Whether `param` has the same values, in the type of this field. Reads them, unless they are shared.
    pub fn has_values_of<T: ParameterTensor>(&self, param: &Param<T>) -> bool {
        let own = || self.param.downcast_ref::<Param<T>>();
        self.values == values(param) || own().is_some_and(|own| own.equals(param))
    }
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Field").field("place", &self.place).field("values", &self.values).finish_non_exhaustive()
    }
}

fn place<T: ParameterTensor>(param: &Param<T>) -> usize {
    std::ptr::from_ref(param).addr()
}

fn values<T: ParameterTensor>(param: &Param<T>) -> usize {
    std::ptr::from_ref(&**param).addr()
}
