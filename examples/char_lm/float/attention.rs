//! Causal attention over a window of tokens, with rotary positions (Su et al., "RoFormer", arXiv 2104.09864).

use super::super::args::{ModelSettings, Settings};
use super::{FloatModel, Mix, linear, norm};
use burn::module::{Module, Param, ParamId};
use burn::nn::{RotaryEncoding, RotaryEncodingConfig};
use burn::tensor::activation::softmax;
use burn::tensor::{Bool, Device, Int, Tensor};
use eggroll::core::scope::acts_later;
use eggroll::nn::Linear;

/// Tokens of one forward at most, with those before: [`bits_per_byte`](eggroll::run::text::bits_per_byte) reads 128 at a time.
pub const LONGEST: usize = 1 << 13;

#[derive(Module, Debug)]
pub struct Attention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    positions: RotaryEncoding,
    heads: usize,
    context: usize,
}

impl Attention {
    fn forward(&self, z: Tensor<3>, mask: Tensor<4, Bool>) -> Tensor<3> {
        let [batch, steps, width] = z.dims();
        let each = width / self.heads;
        // [batch, heads, steps, width / heads]
        let heads = |x: Tensor<3>| x.reshape([batch, steps, self.heads, each]).swap_dims(1, 2);
        let query = self.positions.forward(heads(self.query.forward(z.clone())));
        let key = self.positions.forward(heads(acts_later(|| self.key.forward(z.clone()))));
        let value = heads(acts_later(|| self.value.forward(z)));
        let scores = query.matmul(key.transpose()) / (each as f64).sqrt();
        let weights = softmax(scores.mask_fill(mask, -1e9), 3);
        self.output.forward(weights.matmul(value).swap_dims(1, 2).reshape([batch, steps, width]))
    }

    /// True where a step (row) does not see another (column): later ones, and those before its window.
    fn mask(&self, steps: usize, device: &Device) -> Tensor<4, Bool> {
        let at = Tensor::<1, Int>::arange(0..steps as i64, device);
        let behind = at.clone().unsqueeze_dim::<2>(1) - at.unsqueeze_dim::<2>(0);
        let outside = behind.clone().lower_elem(0).bool_or(behind.greater_equal_elem(self.context as i64));
        outside.unsqueeze::<4>()
    }
}

impl Mix for Attention {
    const NAME: &'static str = "float-transformer";
    /// Tokens that the next ones still see, through all blocks: `[sequences, before]`.
    type State = Tensor<2, Int>;
    type Saved = SavedTokens;

    fn new(settings: &Settings, own: &ModelSettings, device: &Device) -> Self {
        let layer = || linear(settings.width, settings.width, device);
        Self {
            query: layer(),
            key: layer(),
            value: layer(),
            output: layer(),
            positions: RotaryEncodingConfig::new(LONGEST, settings.width / own.heads).init(device),
            heads: own.heads,
            context: own.context,
        }
    }

    fn initial_state(sequences: usize, _layers: usize, _width: usize, device: &Device) -> Tensor<2, Int> {
        Tensor::empty([sequences, 0], device)
    }

    fn forward(
        model: &FloatModel<Self>,
        tokens: Tensor<2, Int>,
        before: Tensor<2, Int>,
    ) -> (Tensor<3>, Tensor<2, Int>) {
        let ([_, steps], [_, seen]) = (tokens.dims(), before.dims());
        let tokens = if seen == 0 { tokens } else { Tensor::cat(vec![before, tokens], 1) };
        let context = model.blocks.first().map_or(1, |block| block.mix.context);
        let kept = (seen + steps).min((context - 1) * model.blocks.len());
        let mut x = model.embedding.forward(tokens.clone());
        for block in &model.blocks {
            let mask = block.mix.mask(seen + steps, &x.device());
            x = block.mlp(x.clone() + block.mix.forward(norm(x), mask));
        }
        let before = tokens.slice_dim(1, seen + steps - kept..seen + steps);
        (x.slice_dim(1, seen..seen + steps), before)
    }
}

/// Tokens as checkpoints save them.
#[derive(Module, Debug)]
pub struct SavedTokens {
    tokens: Param<Tensor<2, Int>>,
}

impl From<Tensor<2, Int>> for SavedTokens {
    fn from(tokens: Tensor<2, Int>) -> Self {
        Self { tokens: Param::initialized(ParamId::new(), tokens) }
    }
}

impl From<SavedTokens> for Tensor<2, Int> {
    fn from(saved: SavedTokens) -> Self {
        saved.tokens.val()
    }
}
