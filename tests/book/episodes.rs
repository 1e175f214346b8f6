//! Episodes that are cut into generations.

use burn::optim::AdamConfig;
use eggroll::nn::{Linear, LinearConfig};
use eggroll::prelude::*;

#[test]
fn an_episode_in_unrolls() {
    let device = Device::flex();
    let model = LinearConfig::new(2, 1).init(&device);
    let score = |model: &Linear, members: &MemberChunk, mut state: Tensor<2>| {
        let one = Tensor::<2>::ones([members.count(), 1], &device);
        for _ in 0..5 {
            let step = model.forward(Tensor::cat(vec![state.clone(), one.clone()], 1)); // [members, 1]
            state = (state + step * 0.1).clamp(-5.0, 5.0);
        }
        (-members.mean((state.clone() - 1.0).square()), state)
    };
    let train = |mut model: Linear, generations: u64| -> Result<Linear, eggroll::train::Error> {
        // ANCHOR: episode
        let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
            .with_population_size(64)
            .with_unroll_horizon(8) // eight generations, each an unroll of the same episode
            .with_noise_reuse(8); // one draw for all of them: ES-Single; 1 would be PES
        let mut strategy = config.try_init(&model)?;
        let mut state = Tensor::<2>::zeros([64, 1], &device);
        while strategy.generation() < generations {
            let population = strategy.ask();
            if population.resets_state() {
                state = state.zeros_like();
            }
            let unroll = |members: &MemberChunk, state| score(&model, members, state);
            let (fitness, next) = population.evaluate_with_state(state, unroll);
            state = next;
            strategy.tell(&mut model, population, fitness)?;
        }
        // ANCHOR_END: episode
        Ok(model)
    };
    let before = parameter_digest(&model);
    assert_ne!(parameter_digest(&train(model, 16).expect("trains")), before);
}
