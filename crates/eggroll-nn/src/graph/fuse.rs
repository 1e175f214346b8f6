//! Reassembles linear operations: Burn records them as a product, a sum and changes of shape, which depend on the size of the
//! batch.

use super::operation::as_matmul;
use burn::backend::ir::{
    BaseOperationIr, LinearOpIr, ModuleOperationIr, NumericOperationIr, OperationIr, ShapeOpIr, TensorIr,
};
use burn::tensor::TensorId;
use std::collections::HashMap;

/// Producers and consumers of tensors.
struct Flow<'a> {
    operations: &'a [OperationIr],
    producer: HashMap<TensorId, usize>,
    /// All consumers; an output of the forward has one at the end.
    consumers: HashMap<TensorId, Vec<usize>>,
}

impl<'a> Flow<'a> {
    fn new(operations: &'a [OperationIr], outputs: &[TensorId]) -> Self {
        let mut consumers: HashMap<TensorId, Vec<usize>> = HashMap::new();
        let mut producer = HashMap::new();
        for (i, operation) in operations.iter().enumerate() {
            operation.inputs().for_each(|input| consumers.entry(input.id).or_default().push(i));
            producer.extend(operation.outputs().map(|out| (out.id, i)));
        }
        outputs.iter().for_each(|output| consumers.entry(*output).or_default().push(operations.len()));
        Self { operations, producer, consumers }
    }

    /// The change of shape that made the tensor.
    fn reshaped(&self, tensor: &TensorIr) -> Option<&'a ShapeOpIr> {
        as_reshape(&self.operations[*self.producer.get(&tensor.id)?])
    }

    /// The tensor's consumer, if there is only one.
    fn only_consumer(&self, tensor: &TensorIr) -> Option<(usize, &'a OperationIr)> {
        match self.consumers.get(&tensor.id).map(Vec::as_slice) {
            Some([only]) => Some((*only, self.operations.get(*only)?)),
            _ => None,
        }
    }

    /// The tensor itself if it has `rank` axes, or the tensor before leading axes of 1 were added.
    fn without_leading_ones(&self, tensor: &TensorIr, rank: usize) -> Option<TensorIr> {
        if tensor.shape.num_dims() == rank {
            return Some(tensor.clone());
        }
        let input = &self.reshaped(tensor)?.input;
        let (from, to) = (&input.shape[..], &tensor.shape[..]);
        let ones = to.len().checked_sub(rank)?;
        (from.len() == rank && to[ones..] == *from && to[..ones].iter().all(|n| *n == 1)).then(|| input.clone())
    }

    /// The linear operation that begins with the product at `i`, and where it ends.
    fn linear(&self, i: usize) -> Option<(LinearOpIr, Vec<usize>)> {
        let (x, weight, out) = as_matmul(&self.operations[i])?;
        let weight = self.without_leading_ones(weight, 2)?;
        let mut linear = LinearOpIr { x: x.clone(), weight, bias: None, out: out.clone() };
        let mut parts = vec![i];
        if let Some((at, OperationIr::NumericFloat(_, NumericOperationIr::Add(add)))) = self.only_consumer(out)
            && add.lhs.id == out.id
            && add.out.shape == out.shape
            && let Some(bias) = self.without_leading_ones(&add.rhs, 1)
            && bias.shape[0] == linear.weight.shape[1]
        {
            linear.bias = Some(bias);
            linear.out = add.out.clone();
            parts.push(at);
        }
        if let Some(before) = self.reshaped(x)
            && let Some((at, operation)) = self.only_consumer(&linear.out)
            && let Some(after) = as_reshape(operation)
            && let ([leading @ .., d_input], [same @ .., d_output]) = (&before.input.shape[..], &after.out.shape[..])
            && leading == same
            && [*d_input, *d_output] == linear.weight.shape[..]
        {
            linear.x = before.input.clone();
            linear.out = after.out.clone();
            parts.push(at);
        }
        Some((linear, parts))
    }
}

fn as_reshape(operation: &OperationIr) -> Option<&ShapeOpIr> {
    match operation {
        OperationIr::BaseFloat(BaseOperationIr::Reshape(op)) => Some(op),
        _ => None,
    }
}

/// The operations, with every linear operation as a whole at the position of its last part.
pub(super) fn fuse(operations: &[OperationIr], outputs: &[TensorId]) -> Vec<OperationIr> {
    let flow = Flow::new(operations, outputs);
    let mut fused: Vec<Option<OperationIr>> = operations.iter().cloned().map(Some).collect();
    for i in 0..operations.len() {
        if let Some((linear, parts)) = flow.linear(i) {
            parts.iter().for_each(|part| fused[*part] = None);
            let last = *parts.last().expect("the product at least");
            fused[last] = Some(OperationIr::Module(ModuleOperationIr::Linear(linear)));
        }
    }
    fused.into_iter().flatten().collect()
}
