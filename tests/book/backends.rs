//! Devices, and how work is cut up.

use burn::optim::SgdConfig;
use eggroll::core::{InstructionSet, counters};
use eggroll::nn::LinearConfig;
use eggroll::prelude::*;

#[test]
fn a_device_is_chosen_at_run_time() {
    let device = Device::flex(); // or Device::ndarray(), Device::cuda(0), Device::wgpu(…), each behind its feature
    let model = LinearConfig::new(64, 8).init(&device);
    println!("kernels for {}", InstructionSet::detected().name());
    let x = Tensor::<2>::ones([4, 64], &device);
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(64);
    let small = config.clone().with_chunk_size(8).init(&model).ask();
    let whole = config.with_chunk_size(64).init(&model).ask();
    let score = |members: &MemberChunk| members.mean(model.forward_shared(x.clone()));
    assert_eq!(small.evaluate(score), whole.evaluate(score)); // bit for bit, on a CPU
    let before = counters::snapshot();
    whole.evaluate_mut(score); // on this thread: launches are counted by thread
    let work = counters::snapshot() - before;
    assert_eq!((work.host_reads, work.launches, work.noise_bytes), (1, 1, 0));
}
