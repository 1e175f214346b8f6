//! A made Llama of two layers, and what tests ask of it.

use burn::module::{Module, ModuleMapper, Param};
use burn::optim::SgdConfig;
use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll_core::transformer::MemberRow;
use eggroll_core::{EggrollConfig, rng::philox::philox4x32};
use eggroll_lm::host::{Decoder, Sequence};
use eggroll_lm::load::{LlamaConfig, RopeScaling};
use eggroll_lm::{HostLlama, Item, Llama};
use eggroll_train::{EvolutionStrategy, EvolutionStrategyConfig};

pub const VOCABULARY: usize = 97;

pub fn config(tied_head: bool, attention_bias: bool) -> LlamaConfig {
    LlamaConfig {
        vocab_size: VOCABULARY,
        hidden_size: 48,
        intermediate_size: 80,
        layers: 2,
        heads: 6,
        kv_heads: 2,
        head_dim: 8,
        rope_theta: 10_000.0,
        rope_scaling: RopeScaling::None,
        rms_norm_eps: 1e-5,
        context_length: 64,
        tied_head,
        attention_bias,
        qk_norm: false,
        window: None,
        attention: Vec::new(),
        gemma: None,
    }
}

/// All four kinds.
pub fn configs() -> [LlamaConfig; 4] {
    [config(false, false), config(false, true), config(true, false), config(true, true)]
}

fn uniform(salt: u32, index: u32) -> f32 {
    (philox4x32([index, salt, 0, 77], [0; 2])[0] >> 8) as f32 / (1u32 << 23) as f32 - 1.0
}

/// Gives every parameter values that depend on its place only.
struct FillByPlace {
    seed: u32,
    parameter: u32,
}

impl ModuleMapper for FillByPlace {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.parameter += 1;
        let salt = 1000 * self.seed + self.parameter;
        param.map(|value| {
            let dims = value.dims();
            let count = dims.iter().product::<usize>() as u32;
            let of = |index| if D == 1 { 0.9 + 0.3 * uniform(salt, index) } else { 0.3 * uniform(salt, index) };
            Tensor::from_data(TensorData::new((0..count).map(of).collect::<Vec<f32>>(), dims), &value.device())
        })
    }
}

pub fn model_with_seed(config: &LlamaConfig, seed: u32) -> Llama {
    Llama::new(config, &Device::flex()).map(&mut FillByPlace { seed, parameter: 0 })
}

/// Any model with such values.
pub fn filled<M: Module>(model: M) -> M {
    model.map(&mut FillByPlace { seed: 1, parameter: 0 })
}

pub fn model(config: &LlamaConfig) -> Llama {
    model_with_seed(config, 1)
}

/// Tokens, other ones for every salt.
pub fn tokens(len: usize, salt: u32) -> Vec<u32> {
    (0..len as u32).map(|index| philox4x32([index, salt, 1, 78], [0; 2])[0] % VOCABULARY as u32).collect()
}

/// Items of several lengths; all begin with the same three tokens.
pub fn items(count: usize, salt: u32) -> Vec<Item> {
    let item = |index: usize| {
        let prompt = [vec![5, 6, 7], tokens(1 + index * 3 % 8, salt + index as u32)].concat();
        Item::new(&prompt, &tokens(1 + index % 4, 1000 + salt + index as u32))
    };
    (0..count).map(item).collect()
}

/// Logits `[tokens, vocabulary]` of the tensors.
pub fn tensor_logits(model: &Llama, tokens: &[u32]) -> Vec<f32> {
    let ids: Vec<i32> = tokens.iter().map(|token| *token as i32).collect();
    let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [1, tokens.len()]), &Device::flex());
    model.forward(ids).into_data().try_to_vec().expect("f32")
}

/// Logits `[tokens, vocabulary]` of the host.
pub fn host_logits(host: &HostLlama, tokens: &[u32]) -> Vec<f32> {
    let (mut state, mut buffers) = (host.state(tokens.len()), host.buffers());
    let (mut hidden, mut logits) = (Vec::new(), Vec::new());
    let member = MemberRow { slot: 0, minus: false };
    let sequence = Sequence { member, tokens, wanted: 0..tokens.len(), state: &mut state };
    host.forward(None, &mut [sequence], &mut buffers, &mut hidden);
    host.logits(None, &vec![member; tokens.len()], &hidden, &mut buffers, &mut logits);
    logits
}

pub fn strategy_config(members: usize) -> EvolutionStrategyConfig {
    let noiser = EggrollConfig::new().with_rank(2).with_freeze_non_matrix(true);
    EvolutionStrategyConfig::new(noiser, SgdConfig::new())
        .with_population_size(members)
        .with_sigma(0.05)
        .with_learning_rate(0.05)
        .with_frozen(["embed_tokens"])
}

pub fn strategy(model: &Llama, members: usize) -> EvolutionStrategy {
    strategy_config(members).try_init(model).expect("a strategy")
}

pub fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| if (a - b).is_nan() { f32::INFINITY } else { (a - b).abs() }).fold(0.0, f32::max)
}
