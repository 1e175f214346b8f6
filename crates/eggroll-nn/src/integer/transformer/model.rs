//! The language model.

use super::attention::KeysValues;
use super::state::Past;
use super::{
    Attention, AttentionConfig, FeedForward, FeedForwardConfig, MeanNorm, MeanNormConfig, Observe, TiedEmbedding,
    TiedEmbeddingConfig, TransformerState,
};
use crate::check::check;
use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::integer::transformer::MAX_CONTEXT;

/// Configuration of a [`Transformer`].
#[derive(Config, Debug)]
pub struct TransformerConfig {
    /// The number of tokens: bytes.
    #[config(default = 256)]
    pub vocab: usize,
    /// Blocks.
    #[config(default = 2)]
    pub layers: usize,
    /// The size of activations.
    #[config(default = 64)]
    pub width: usize,
    /// Heads of attention, each of an even size.
    #[config(default = 4)]
    pub heads: usize,
    /// The size between the layers of a feed-forward part: four times the width, if not given.
    pub hidden: Option<usize>,
    /// The most positions that attention reaches back over.
    #[config(default = 128)]
    pub context: usize,
}

impl TransformerConfig {
    /// A model with random weights.
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory. Also if the vocabulary is above 256, the context is above 2,048, or the
    /// width is not `heads` times an even number.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Transformer {
        let Self { vocab, layers, width, heads, hidden, context } = *self;
        let hidden = hidden.unwrap_or(width.saturating_mul(4));
        check("integer TransformerConfig", self, &[&[("width", width), ("hidden", hidden)]]);
        assert!(vocab <= 256, "integer TransformerConfig: a vocabulary of {vocab} is above 256");
        assert!(
            (1..=MAX_CONTEXT).contains(&context),
            "integer TransformerConfig: context must be at least 1 and at most {MAX_CONTEXT}, not {context}"
        );
        let feed_forward = || FeedForwardConfig::new(width, hidden).init(device);
        let block =
            || TransformerBlock { attention: AttentionConfig::new(width, heads).init(device), mlp: feed_forward() };
        Transformer {
            embedding: TiedEmbeddingConfig::new(vocab, width).init(device),
            mlp: feed_forward(),
            blocks: (0..layers).map(|_| block()).collect(),
            norm: MeanNormConfig::new(width).init(device),
            context,
        }
    }
}

/// Attention, then a feed-forward part.
#[derive(Module, Debug)]
pub struct TransformerBlock {
    /// The attending part.
    pub attention: Attention,
    /// The feed-forward part.
    pub mlp: FeedForward,
}

/// Embedding, a feed-forward part, blocks, norm, and the embedding as the head: a language model of bytes in int8, of the class of
/// Int8NativeFormer.
///
/// Every byte is predicted from at least half a [context](TransformerConfig::context) of bytes, once that many have come before it. A sequence
/// that fills the context is read again from its second half on.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use eggroll_nn::integer::transformer::{TransformerConfig, TransformerState};
///
/// let device = Device::flex();
/// let model = TransformerConfig::new().with_width(32).init(&device);
/// let tokens = Tensor::<2, Int>::from_ints([[104, 101, 108, 108]], &device);
/// let (logits, state) = model.forward(tokens, TransformerState::default());
/// assert_eq!(logits.dims(), [1, 4, 256]);
/// assert_eq!(state.positions(), 4);
/// ```
///
/// # References
///
/// Vaswani et al., "Attention Is All You Need", arXiv 1706.03762; Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652, for
/// the integer noise.
#[derive(Module, Debug)]
pub struct Transformer {
    /// `[vocab, width]`, also the head.
    pub embedding: TiedEmbedding,
    /// Before the blocks.
    pub mlp: FeedForward,
    /// The blocks.
    pub blocks: Vec<TransformerBlock>,
    /// Before the head.
    pub norm: MeanNorm,
    /// The most positions that attention reaches back over.
    pub context: usize,
}

impl Transformer {
    /// The logits of the next token after every token, in 1/256 bit, and the state to continue from.
    ///
    /// # Shapes
    ///
    /// - tokens: `[batch, steps]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - output: `[batch, steps, vocab]`, of type I32
    ///
    /// # Panics
    ///
    /// Panics, with the shapes, if they do not fit, or if the state has another number of sequences or blocks.
    #[track_caller]
    pub fn forward(&self, tokens: Tensor<2, Int>, state: TransformerState) -> (Tensor<3, Int>, TransformerState) {
        let [batch, steps] = tokens.dims();
        assert!(self.context > 0, "integer transformer: a context of 0 positions");
        if let Some(past) = &state.past {
            let ([of_state, _], blocks) = (past.tokens.dims(), past.blocks.len());
            assert!(
                of_state == batch && blocks == self.blocks.len(),
                "integer transformer: a state of {of_state} sequences and {blocks} blocks for {batch} sequences and {} blocks",
                self.blocks.len()
            );
        }
        if steps > 0 && steps <= self.context - state.positions().min(self.context) {
            let (x, past) = self.read(tokens, state.past, &mut |_, _| {});
            return (self.logits(x), TransformerState { past: Some(past) });
        }
        let (mut past, mut logits) = (state.past, Vec::new());
        let mut read = 0;
        while read < steps {
            let held = past.as_ref().map_or(0, |past| past.tokens.dims()[1]);
            if held >= self.context {
                past = past.and_then(|past| self.reread(past));
                continue;
            }
            let next = steps.min(read + self.context - held);
            let (x, all) = self.read(tokens.clone().slice([0..batch, read..next]), past, &mut |_, _| {});
            logits.push(self.logits(x));
            (past, read) = (Some(all), next);
        }
        let vocab = self.embedding.weight.dims()[0];
        let logits = match logits.is_empty() {
            true => Tensor::zeros([batch, 0, vocab], (&tokens.device(), burn::tensor::DType::I32)),
            false => Tensor::cat(logits, 1),
        };
        (logits, TransformerState { past })
    }

    /// The second half of a context, read as if nothing had come before it.
    fn reread(&self, past: Past) -> Option<Past> {
        let ([batch, held], keep) = (past.tokens.dims(), self.context / 2);
        (keep > 0).then(|| self.read(past.tokens.slice([0..batch, held - keep..held]), None, &mut |_, _| {}).1)
    }

    /// All activations of a text that is read from the beginning, in order; for statistics.
    ///
    /// They are named by parts: `embedding`, `mlp.norm`, `mlp.expand`, `mlp.contract`, `mlp.sum` after the residual connection. Blocks follow:
    /// `blocks.0.attention.norm`, `….query` and `….key` (turned and rescaled), `….value`, `….attended`, `….output`, `….sum`, and so on to `norm`.
    ///
    /// # Shapes
    ///
    /// - tokens: `[batch, steps]`, at most as many steps as the context
    /// - output: `[batch, steps, …]` each
    ///
    /// # Panics
    ///
    /// Panics for more steps than the context.
    #[track_caller]
    pub fn activations(&self, tokens: Tensor<2, Int>) -> Vec<(String, Tensor<3, Int>)> {
        let [_, steps] = tokens.dims();
        assert!(
            steps <= self.context,
            "integer transformer: activations of {steps} steps in a context of {}",
            self.context
        );
        let mut all = Vec::new();
        let (x, _) = self.read(tokens, None, &mut |name, x| all.push((name.to_owned(), x.clone())));
        all.push(("norm".into(), self.norm.forward(x)));
        all
    }

    /// Activations after the blocks, and what is held of all positions.
    #[track_caller]
    fn read(&self, tokens: Tensor<2, Int>, past: Option<Past>, observe: Observe<'_, 3>) -> (Tensor<3, Int>, Past) {
        let embedded = self.embedding.forward(tokens.clone()); // [batch, steps, width]
        observe("embedding", &embedded);
        let mut x = self.mlp.observed(embedded, &mut |name, x| observe(&format!("mlp.{name}"), x));
        let (tokens, mut held) = match past {
            None => (tokens, Vec::new()),
            Some(Past { tokens: earlier, blocks }) => (Tensor::cat(vec![earlier, tokens], 1), blocks),
        };
        let mut held = held.drain(..);
        let mut blocks: Vec<KeysValues> = Vec::with_capacity(self.blocks.len());
        for (index, block) in self.blocks.iter().enumerate() {
            let all;
            let attention = &mut |name: &str, x: &_| observe(&format!("blocks.{index}.attention.{name}"), x);
            (x, all) = block.attention.attend(x, held.next(), attention);
            x = block.mlp.observed(x, &mut |name, x| observe(&format!("blocks.{index}.mlp.{name}"), x));
            blocks.push(all);
        }
        (x, Past { tokens, blocks })
    }

    fn logits(&self, x: Tensor<3, Int>) -> Tensor<3, Int> {
        self.embedding.logits(self.norm.forward(x))
    }
}
