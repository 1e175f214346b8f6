//! The model of Burn's example: tokens and positions embedded, a transformer encoder under a causal mask, a linear layer.

use eggroll::nn::attention::generate_autoregressive_mask;
use eggroll::nn::transformer::{TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput};
use eggroll::prelude::*;

#[derive(Config, Debug)]
pub struct TextGenerationModelConfig {
    vocab_size: usize,
    max_seq_length: usize,
    #[config(default = 64)]
    d_model: usize,
}

#[derive(Module, Debug)]
pub struct TextGenerationModel {
    transformer: TransformerEncoder,
    embedding_token: nn::Embedding,
    embedding_pos: nn::Embedding,
    output: nn::Linear,
}

impl TextGenerationModelConfig {
    pub fn init(&self, device: &Device) -> TextGenerationModel {
        let transformer = TransformerEncoderConfig::new(self.d_model, 4 * self.d_model, 4, 2);
        TextGenerationModel {
            transformer: transformer.with_norm_first(true).with_dropout(0.0).init(device),
            embedding_token: nn::EmbeddingConfig::new(self.vocab_size, self.d_model).init(device),
            embedding_pos: nn::EmbeddingConfig::new(self.max_seq_length, self.d_model).init(device),
            output: nn::LinearConfig::new(self.d_model, self.vocab_size).init(device),
        }
    }
}

impl TextGenerationModel {
    /// Logits of what follows each token: `[sequences, steps]` to `[sequences, steps, vocab_size]`.
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let ([sequences, steps], device) = (tokens.dims(), tokens.device());
        let positions = Tensor::arange(0..steps as i64, &device).unsqueeze::<2>().repeat_dim(0, sequences);
        let x = self.embedding_token.forward(tokens) + self.embedding_pos.forward(positions);
        let causal = generate_autoregressive_mask(sequences, steps, &device);
        self.output.forward(self.transformer.forward(TransformerEncoderInput::new(x).mask_attn(causal)))
    }
}
