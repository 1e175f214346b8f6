//! Inputs of the matrices in the model without noise, for estimates by part.

use crate::host::{Decoder, MemberTask, Noise, Sequence, run_parts};
use crate::items::Item;
use crate::run::DecoderRun;
use burn::module::ParamId;
use burn::tensor::{Device, Tensor, TensorData};
use eggroll_core::ParameterTable;

/// The rows of every trained matrix from which the tokens of completions are predicted.
pub(crate) struct CompletionRows(Vec<MatrixRows>);

struct MatrixRows {
    id: ParamId,
    width: usize,
    /// `[tokens, width]` of every item.
    items: Vec<Vec<f32>>,
}

impl CompletionRows {
    pub fn new<D: Decoder>(decoder: &D, table: &ParameterTable, items: &[Item]) -> Self {
        let matrices = decoder.matrices();
        let parts = run_parts(items, Item::tokens, |items| {
            let task = MemberTask::recording(Noise::record(table, &matrices));
            let given = DecoderRun::new(decoder, &task).given(items);
            let of_matrix =
                |(given, (_, [width, _])): (&Vec<f32>, &(ParamId, [usize; 2]))| of_completions(given, *width, items);
            given.iter().zip(&matrices).map(of_matrix).collect::<Vec<_>>()
        });
        let of_matrix = |(number, (id, [width, _])): (usize, &(ParamId, [usize; 2]))| {
            let items: Vec<Vec<f32>> = parts.iter().flat_map(|rows| &rows[number]).cloned().collect();
            (!items.is_empty()).then_some(MatrixRows { id: *id, width: *width, items })
        };
        Self(matrices.iter().enumerate().filter_map(of_matrix).collect())
    }

    /// With tokens as parts: `[tokens, d_input]`.
    pub fn by_token(self, device: &Device) -> Vec<(ParamId, Tensor<2>)> {
        self.0.into_iter().map(|rows| (rows.id, tensor(rows.items.concat(), rows.width, device))).collect()
    }

    /// With items as parts: `[items · k, d_input]` for the longest completion of `k` tokens; shorter ones are padded with rows of
    /// zeros.
    pub fn by_item(self, device: &Device) -> Vec<(ParamId, Tensor<2>)> {
        let padded = |MatrixRows { id, width, mut items }: MatrixRows| {
            let most = items.iter().map(Vec::len).max().unwrap_or(0);
            items.iter_mut().for_each(|rows| rows.resize(most, 0.0));
            (id, tensor(items.concat(), width, device))
        };
        self.0.into_iter().map(padded).collect()
    }
}

impl<D: Decoder> DecoderRun<'_, D> {
    /// The inputs of every recorded matrix for some items. Layers have rows for all tokens but the last, which is only predicted; an output layer has rows only
    /// for tokens that predict completions.
    fn given(&mut self, items: &[Item]) -> Vec<Vec<f32>> {
        let mut states: Vec<D::State> = items.iter().map(|item| self.decoder.state(item.tokens() - 1)).collect();
        let member = self.task.row(0);
        let mut sequences: Vec<_> = items
            .iter()
            .zip(&mut states)
            .map(|(item, state)| {
                let tokens = &item.all()[..item.tokens() - 1];
                Sequence { member, tokens, wanted: item.prompt().len() - 1..tokens.len(), state }
            })
            .collect();
        self.forward(&mut sequences);
        let Some(noise) = self.task.noise() else { return Vec::new() };
        if noise.lacks_rows() {
            self.logits(&vec![member; completion_tokens(items)], |_, _| {});
        }
        noise.take_rows()
    }
}

/// The rows of completions, by item: the last ones of each.
fn of_completions(rows: &[f32], width: usize, items: &[Item]) -> Vec<Vec<f32>> {
    let completions = completion_tokens(items);
    let mut behind = rows;
    let of_item = |item: &Item| {
        let completion = item.completion().len();
        let given = if rows.len() == completions * width { completion } else { item.tokens() - 1 };
        let (of_item, rest) = behind.split_at(given * width);
        behind = rest;
        of_item[(given - completion) * width..].to_vec()
    };
    if rows.is_empty() { Vec::new() } else { items.iter().map(of_item).collect() }
}

fn completion_tokens(items: &[Item]) -> usize {
    items.iter().map(|item| item.completion().len()).sum()
}

fn tensor(values: Vec<f32>, width: usize, device: &Device) -> Tensor<2> {
    let shape = [values.len() / width, width];
    Tensor::from_data(TensorData::new(values, shape), device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causal::CausalModel;
    use crate::llama::Llama;
    use crate::load::{LlamaConfig, RopeScaling, Rwkv7Config};
    use crate::rwkv7::Rwkv7;
    use burn::tensor::Int;
    use eggroll_core::transformer::Precision;
    use eggroll_core::{EggrollConfig, Role};
    use eggroll_train::EvolutionStrategyConfig;

    const VOCABULARY: usize = 31;

    /// Rows of several items equal the inputs of the module's layers for each of them alone.
    fn rows_are_those_of_the_module<M: CausalModel>(model: &M, logits: impl Fn(Tensor<2, Int>) -> Tensor<3> + Sync) {
        let roles = M::PERTURBED.iter().chain(&["*head*"]).map(|path| (*path, Role::LowRank { rank: 1 }));
        let config = EvolutionStrategyConfig::new(EggrollConfig::new(), burn::optim::SgdConfig::new());
        let strategy = config.with_roles(roles.chain([("*", Role::Frozen)])).try_init(model).expect("a strategy");
        let items = [(&[3u32, 4, 5][..], &[6u32, 7][..]), (&[8], &[9, 1, 2, 3]), (&[3, 3, 3, 9, 1], &[2])];
        let items = items.map(|(prompt, completion)| Item::new(prompt, completion));
        let rows = CompletionRows::new(&model.to_host(Precision::F32), strategy.parameters(), &items);
        assert_eq!(rows.0.len(), strategy.parameters().entries().iter().filter(|it| it.role != Role::Frozen).count());
        let mut compared = 0;
        for (number, item) in items.iter().enumerate() {
            let population = strategy.ask();
            population.observe_inputs();
            let tokens: Vec<i32> = item.all()[..item.tokens() - 1].iter().map(|token| *token as i32).collect();
            let read = tokens.len();
            let tokens = Tensor::<2, Int>::from_data(TensorData::new(tokens, [1, read]), &Device::flex());
            population.evaluate(|members| {
                members.mean(logits(members.repeat(tokens.clone())).reshape([-1, VOCABULARY as i32]))
            });
            for (path, expected) in population.layer_inputs() {
                let of = strategy.parameters().entries().iter().find(|entry| entry.path == path).map(|entry| entry.id);
                let found = rows.0.iter().find(|rows| Some(rows.id) == of).map(|rows| &rows.items[number]);
                let Some(found) = found else { continue };
                let expected: Vec<f32> =
                    expected.slice_dim(0, item.prompt().len() - 1..read).into_data().iter().collect();
                assert_eq!(found.len(), expected.len(), "{path} of item {number}");
                let away = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(away < 1e-4, "{path} of item {number}: {away}");
                compared += 1;
            }
        }
        assert_eq!(compared, items.len() * rows.0.len());
        // As tensors: 7 tokens, or three items of at most four.
        let heights = |rows: Vec<(ParamId, Tensor<2>)>| rows.iter().map(|(_, rows)| rows.dims()[0]).collect::<Vec<_>>();
        let count = rows.0.len();
        let anew = CompletionRows::new(&model.to_host(Precision::F32), strategy.parameters(), &items);
        assert_eq!(
            [heights(rows.by_token(&Device::flex())), heights(anew.by_item(&Device::flex()))],
            [vec![7; count], vec![12; count]]
        );
    }

    #[test]
    fn llama() {
        let config = LlamaConfig {
            vocab_size: VOCABULARY,
            hidden_size: 32,
            intermediate_size: 48,
            layers: 2,
            heads: 4,
            kv_heads: 2,
            head_dim: 8,
            rope_theta: 1e4,
            rope_scaling: RopeScaling::None,
            rms_norm_eps: 1e-5,
            context_length: 32,
            tied_head: false,
            attention_bias: false,
            qk_norm: false,
            window: None,
            attention: Vec::new(),
            gemma: None,
        };
        let model = Llama::new(&config, &Device::flex());
        rows_are_those_of_the_module(&model, |tokens| model.forward(tokens));
    }

    #[test]
    fn rwkv7() {
        let [decay_rank, a_rank, v_rank, gate_rank] = [4, 5, 6, 7];
        let (hidden_size, intermediate_size, layers, head_dim) = (32, 48, 2, 16);
        let model = Rwkv7::new(
            &Rwkv7Config {
                vocab_size: VOCABULARY,
                hidden_size,
                intermediate_size,
                layers,
                head_dim,
                decay_rank,
                a_rank,
                v_rank,
                gate_rank,
                norm_eps: 1e-5,
                tied_head: false,
            },
            &Device::flex(),
        );
        rows_are_those_of_the_module(&model, |tokens| model.forward(tokens));
    }
}
