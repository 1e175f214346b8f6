//! What members of language models cost on GPUs that are not here: products as [`costs`](crate::costs) has them, and bounds for what is between them.

use crate::costs::{Cost, CostLayer, CostModel, NoiseOrigin};
use burn::tensor::DType;

/// Tokens that run through the layers together, as in eggroll-lm.
const TOKENS: usize = 1 << 15;

/// The sizes of a model of the Llama architecture.
#[derive(Clone, Copy, Debug)]
pub struct ModelSizes {
    /// Its name.
    pub name: &'static str,
    /// Elements of a hidden row.
    pub hidden: usize,
    /// Elements of a row inside the feed-forward part.
    pub intermediate: usize,
    /// Layers.
    pub layers: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Tokens.
    pub vocabulary: usize,
}

/// Two sizes by their configuration files.
pub const MODELS: [ModelSizes; 2] = [
    ModelSizes {
        name: "Qwen2.5-0.5B",
        hidden: 896,
        intermediate: 4864,
        layers: 24,
        heads: 14,
        kv_heads: 2,
        head_dim: 64,
        vocabulary: 151_936,
    },
    ModelSizes {
        name: "Qwen2.5-7B",
        hidden: 3584,
        intermediate: 18_944,
        layers: 28,
        heads: 28,
        kv_heads: 4,
        head_dim: 128,
        vocabulary: 152_064,
    },
];

/// Rows of all members, once through the model.
#[derive(Clone, Copy, Debug)]
pub struct ModelPass {
    /// Members, with low-rank noise of rank 1 on the matrices of the layers.
    pub members: usize,
    /// Tokens of each member.
    pub rows: usize,
    /// Tokens from which another is predicted.
    pub predicted: usize,
    /// Tokens that a token attends to, on average.
    pub seen: usize,
    /// Whether keys and values of earlier tokens are read, for one sequence of each member.
    pub keeps: bool,
    /// The type of activations and weights.
    pub dtype: DType,
}

impl ModelSizes {
    /// The matrices of a layer that noise is on, `[d_input, d_output]`.
    fn matrices(&self) -> [[usize; 2]; 7] {
        let (hidden, intermediate) = (self.hidden, self.intermediate);
        let [queries, keys] = [self.heads, self.kv_heads].map(|heads| heads * self.head_dim);
        [
            [hidden, queries],
            [hidden, keys],
            [hidden, keys],
            [queries, hidden],
            [hidden, intermediate],
            [hidden, intermediate],
            [intermediate, hidden],
        ]
    }

    /// Elements that a row moves between the products of a layer, once for each step. The steps are two norms and sums, rotations, the
    /// activation, and queries, keys, values and result of the attention.
    fn between(&self) -> usize {
        let [queries, keys] = [self.heads, self.kv_heads].map(|heads| heads * self.head_dim);
        2 * (2 + 3) * self.hidden + 2 * (queries + keys) + 3 * self.intermediate + 2 * (queries + keys)
    }
}

impl CostModel {
    /// A pass of members, or of the same rows without noise. Batches are the same as in eggroll-lm.
    pub fn pass(&self, sizes: &ModelSizes, pass: ModelPass, perturbed: bool) -> Cost {
        let together = (TOKENS / pass.rows).clamp(2, pass.members);
        let layer = |rows, shape| CostLayer { pairs: (together / 2) as u32, rows, rank: 1, shape, dtype: pass.dtype };
        let mut of_layer = self.between(sizes, pass, together);
        for shape in sizes.matrices() {
            let product = match perturbed {
                true => self.forward(layer(pass.rows, shape), NoiseOrigin::OnTheFly),
                false => self.inference(layer(pass.rows, shape)),
            };
            of_layer = of_layer.plus(product, 1);
        }
        let head = self.inference(layer(pass.predicted, [sizes.hidden, sizes.vocabulary]));
        let batch = Cost::default().plus(of_layer, sizes.layers).plus(head, 1);
        Cost::default().plus(batch, pass.members.div_ceil(together))
    }

    /// The update of all matrices from the scores of so many pairs: estimates, and each weight read and written.
    pub fn update(&self, sizes: &ModelSizes, pairs: u32, dtype: DType) -> Cost {
        let of_matrix = |shape: [usize; 2]| {
            let estimate = self.estimate(CostLayer { pairs, rows: 1, rank: 1, shape, dtype }, NoiseOrigin::OnTheFly);
            let bytes = (3 * shape[0] * shape[1] * dtype.size()) as u64;
            estimate.plus(Cost { launches: 1, bytes, seconds: bytes as f64 / self.gpu().memory, ..Cost::default() }, 1)
        };
        sizes.matrices().into_iter().fold(Cost::default(), |sum, shape| sum.plus(of_matrix(shape), sizes.layers))
    }

    /// What is between the products of a layer, in as few passes as there can be: no launches are counted, which Burn's Fusion decides.
    fn between(&self, sizes: &ModelSizes, pass: ModelPass, members: usize) -> Cost {
        let rows = members * pass.rows;
        let flops = 4.0 * (rows * pass.seen * sizes.heads * sizes.head_dim) as f64;
        let kept = if pass.keeps { 2 * members * pass.seen * sizes.kv_heads * sizes.head_dim } else { 0 };
        let bytes = ((rows * sizes.between() + kept) * pass.dtype.size()) as u64;
        let seconds = (bytes as f64 / self.gpu().memory).max(flops / self.gpu().products);
        Cost { bytes, flops, seconds, ..Cost::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::GPUS;

    #[test]
    fn members_cost_about_as_much_as_plain_rows() {
        let model = CostModel::new(GPUS[1], 110);
        let pass = ModelPass { members: 128, rows: 256, predicted: 32, seen: 128, keeps: false, dtype: DType::BF16 };
        for sizes in &MODELS {
            let [plain, members] = [false, true].map(|perturbed| model.pass(sizes, pass, perturbed));
            let share = plain.seconds / members.seconds;
            assert!((0.85..1.0).contains(&share), "{}: {share:.3}", sizes.name);
            // One more for each of seven matrices.
            assert_eq!(members.launches - plain.launches, 7 * sizes.layers, "{}", sizes.name);
            let parameters: usize = sizes.matrices().iter().map(|[a, b]| a * b).sum::<usize>() * sizes.layers;
            let products = 2.0 * (parameters * 128 * 256) as f64;
            assert!(plain.flops > products && plain.flops < 1.5 * products, "{}: {:e}", sizes.name, plain.flops);
        }
    }
}
