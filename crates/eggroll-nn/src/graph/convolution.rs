//! Convolutions under perturbed weights.

use super::error::GraphError;
use super::operation;
use super::program::ProgramStep;
use super::rewrite::{Rewrite, RowAxis, read};
use burn::backend::ir::{
    BaseOperationIr, ModuleOperationIr, NumericOperationIr, OperationIr, PadModeIr, PadOpIr, ScalarIr, SwapDimsOpIr,
    TensorIr, Unfold4dOpIr, Unfold4dOptionsIr,
};
use burn::tensor::TensorId;
use eggroll_core::ops::InputRows;
use std::collections::HashMap;

/// A convolution over one or two axes.
struct Convolution<'a> {
    x: &'a TensorIr,
    weight: &'a TensorIr,
    bias: Option<&'a TensorIr>,
    out: &'a TensorIr,
    /// How the kernel moves, if patches can be cut out: one group, not transposed.
    window: Option<Window>,
}

/// Rows first; a convolution over one axis has one row.
struct Window {
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    padding: [(usize, usize); 2],
}

impl Rewrite<'_> {
    /// Rewrites a convolution; `None` for other operations.
    pub(super) fn convolution(
        &mut self,
        operation: &OperationIr,
        module: &ModuleOperationIr,
    ) -> Option<Result<(), GraphError>> {
        use ModuleOperationIr::*;
        macro_rules! convolution {
            ($op:expr, $window:expr) => {
                Convolution { x: &$op.x, weight: &$op.weight, bias: $op.bias.as_ref(), out: &$op.out, window: $window }
            };
        }
        let convolution = match module {
            Conv1d(op) => {
                let options = &op.options;
                let window = Window {
                    kernel: [1, op.weight.shape[2]],
                    stride: [1, options.stride[0]],
                    dilation: [1, options.dilation[0]],
                    padding: [(0, 0), options.padding[0]],
                };
                convolution!(op, (options.groups == 1).then_some(window))
            }
            Conv2d(op) => {
                let options = &op.options;
                let window = Window {
                    kernel: [op.weight.shape[2], op.weight.shape[3]],
                    stride: options.stride,
                    dilation: options.dilation,
                    padding: options.padding,
                };
                convolution!(op, (options.groups == 1).then_some(window))
            }
            Conv3d(op) => convolution!(op, None),
            ConvTranspose1d(op) => convolution!(op, None),
            ConvTranspose2d(op) => convolution!(op, None),
            ConvTranspose3d(op) => convolution!(op, None),
            _ => return None,
        };
        let weight = self.view(convolution.weight).filter(|view| view.base).map(|view| view.parameter);
        Some(match (weight, &convolution.window) {
            (Some(weight), Some(window)) => self.patches(operation, &convolution, weight, window),
            _ => self.grouped(operation, &convolution),
        })
    }

    /// Patches times the weight as a matrix: no member's weight is formed.
    fn patches(
        &mut self,
        operation: &OperationIr,
        convolution: &Convolution,
        weight: usize,
        window: &Window,
    ) -> Result<(), GraphError> {
        let &Convolution { x, bias, out, .. } = convolution;
        let dtype = out.dtype;
        let (images, input) = match (self.once(x), self.batch(x.id)) {
            (Some(once), _) => (once, InputRows::Shared),
            (None, RowAxis::None) if self.is_plain(x) => (x.clone(), InputRows::Shared),
            _ => (self.lift_fully(operation, x)?, InputRows::PerMember),
        };
        let channels = x.shape[1];
        let [height, width] = if x.shape.num_dims() == 3 { [1, x.shape[2]] } else { [x.shape[2], x.shape[3]] };
        let count = images.shape.num_elements() / (channels * height * width);
        let images = self.reshape(&images, [count, channels, height, width]);
        let images = self.pad(&images, window.padding);
        let (size, d_output) = (channels * window.kernel[0] * window.kernel[1], out.shape[1]);
        let places = out.shape[2..].iter().product::<usize>();
        let columns = self.fresh([count, size, places], dtype);
        self.run(OperationIr::Module(ModuleOperationIr::Unfold4d(Unfold4dOpIr {
            x: read(&images),
            kernel_size: window.kernel,
            options: Unfold4dOptionsIr { stride: window.stride, padding: [0, 0], dilation: window.dilation },
            out: columns.clone(),
        })));
        let patches = self.swap(&columns, 1, 2); // [images, places, size]
        let images = if input == InputRows::Shared { self.members * count } else { count };
        let y = self.fresh([images, places, d_output], dtype);
        let fused = bias.and_then(|bias| self.view(bias)).filter(|view| view.base).map(|view| view.parameter);
        self.step(ProgramStep::Linear { x: read(&patches), input, weight, bias: fused, out: y.clone() });
        let y = self.swap(&y, 1, 2); // [images, d_output, places]
        let shape = self.lifted_shape(operation, out)?;
        let y = self.reshape(&y, shape);
        self.biased(operation, out, y, bias.filter(|_| fused.is_none()))
    }

    /// Every member's weight as a group of one convolution: for groups, three axes and transposed convolutions.
    fn grouped(&mut self, operation: &OperationIr, convolution: &Convolution) -> Result<(), GraphError> {
        let &Convolution { x, weight, bias, out, .. } = convolution;
        let members = self.members;
        let images = self.lift_fully(operation, x)?; // [members, images, channels, ...]
        let images = self.swap(&images, 0, 1);
        let shape = [&[images.shape[0], members * images.shape[2]], &images.shape[3..]].concat();
        let images = self.reshape(&images, shape); // [images, members · channels, ...]
        let weights = self.lift_fully(operation, weight)?;
        let shape = [&[members * weights.shape[1]], &weights.shape[2..]].concat();
        let weights = self.reshape(&weights, shape);
        let d_output = out.shape[1];
        let y = self.fresh([&[images.shape[0], members * d_output], &out.shape[2..]].concat(), out.dtype);
        let mut grouped = operation.clone();
        widen(&mut grouped, members);
        let tensors: HashMap<TensorId, TensorIr> =
            HashMap::from([(x.id, images.clone()), (weight.id, weights), (out.id, y.clone())]);
        operation::replace(&mut grouped, &tensors);
        self.run(grouped);
        let y = self.reshape(&y, [&[images.shape[0], members, d_output], &out.shape[2..]].concat());
        let y = self.swap(&y, 0, 1); // [members, images, d_output, ...]
        self.biased(operation, out, y, bias)
    }

    /// Adds a bias by members to `[members, images, channels, ...]` and hands the result over.
    fn biased(
        &mut self,
        operation: &OperationIr,
        out: &TensorIr,
        y: TensorIr,
        bias: Option<&TensorIr>,
    ) -> Result<(), GraphError> {
        let y = match bias {
            None => y,
            Some(bias) => {
                let bias = self.lift_vector(operation, bias, out.shape.num_dims(), 1)?;
                self.arithmetic(NumericOperationIr::Add, &y, &bias)
            }
        };
        self.land(out, y);
        Ok(())
    }

    /// Zeros around images `[images, channels, height, width]`.
    fn pad(&mut self, images: &TensorIr, [rows, columns]: [(usize, usize); 2]) -> TensorIr {
        if [rows, columns] == [(0, 0); 2] {
            return images.clone();
        }
        let padding = vec![(0, 0), (0, 0), rows, columns];
        let shape: Vec<usize> =
            images.shape.iter().zip(&padding).map(|(n, (before, after))| n + before + after).collect();
        let out = self.fresh(shape, images.dtype);
        let mode = PadModeIr::Constant(ScalarIr::Float(0.0));
        let op = PadOpIr { input: read(images), out: out.clone(), padding, mode };
        self.run(OperationIr::NumericFloat(images.dtype, NumericOperationIr::Pad(op)));
        out
    }

    fn swap(&mut self, tensor: &TensorIr, dim1: usize, dim2: usize) -> TensorIr {
        let mut shape = tensor.shape.to_vec();
        shape.swap(dim1, dim2);
        let out = self.fresh(shape, tensor.dtype);
        let op = SwapDimsOpIr { input: read(tensor), out: out.clone(), dim1, dim2 };
        self.run(OperationIr::BaseFloat(BaseOperationIr::SwapDims(op)));
        out
    }
}

/// Multiplies the groups of a convolution by `members`, and removes its bias.
fn widen(operation: &mut OperationIr, members: usize) {
    use ModuleOperationIr::*;
    macro_rules! widen {
        ($op:expr) => {{
            $op.bias = None;
            $op.options.groups *= members;
        }};
    }
    let OperationIr::Module(module) = operation else {
        return;
    };
    match module {
        Conv1d(op) => widen!(op),
        Conv2d(op) => widen!(op),
        Conv3d(op) => widen!(op),
        ConvTranspose1d(op) => widen!(op),
        ConvTranspose2d(op) => widen!(op),
        ConvTranspose3d(op) => widen!(op),
        _ => {}
    }
}
