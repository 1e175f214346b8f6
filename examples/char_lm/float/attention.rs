//! Causal attention over a window of tokens, with rotary positions (Su et al., "RoFormer", arXiv 2104.09864).

use super::super::args::{CharLmSettings, ModelSettings};
use super::{FloatModel, Mix, linear, norm};
use burn::module::{Module, Param, ParamId};
use burn::tensor::{Device, Int, Tensor};
use eggroll::core::ops::{CausalAttention, causal_attention};
use eggroll::core::scope::acts_later;
use eggroll::nn::Linear;
use eggroll::prelude::MemberChunk;

/// The base of rotary angles.
const BASE: f32 = 10_000.0;

#[derive(Module, Debug)]
pub struct Attention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    heads: usize,
    context: usize,
}

impl Attention {
    fn forward(&self, z: Tensor<3>) -> Tensor<3> {
        let query = self.query.forward(z.clone());
        let key = acts_later(|| self.key.forward(z.clone()));
        let value = acts_later(|| self.value.forward(z));
        let attention = CausalAttention { heads: self.heads, window: self.context, rotary: Some(BASE) };
        self.output.forward(causal_attention(query, key, value, attention))
    }
}

impl Mix for Attention {
    const NAME: &'static str = "float-transformer";
    /// Tokens that the next ones still see, through all blocks: `[sequences, before]`.
    type State = Tensor<2, Int>;
    type Saved = SavedTokens;
    /// A forward through the tokens before would take as long again.
    const CONTINUES: bool = false;

    fn new(settings: &CharLmSettings, own: &ModelSettings, device: &Device) -> Self {
        let layer = || linear(settings.width, settings.width, device);
        Self { query: layer(), key: layer(), value: layer(), output: layer(), heads: own.heads, context: own.context }
    }

    fn initial_state(sequences: usize, _layers: usize, _width: usize, device: &Device) -> Tensor<2, Int> {
        Tensor::empty([sequences, 0], device)
    }

    fn repeated(state: &Tensor<2, Int>, members: &MemberChunk) -> Tensor<2, Int> {
        members.repeat(state.clone())
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
            x = block.mlp(x.clone() + block.mix.forward(norm(x)));
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
