//! What operations cost on GPUs that are not here: launches and bytes as a recording device saw them, normals, and the least time that the
//! GPU's peaks allow. Nothing is timed.
//!
//! ```sh
//! cargo bench --workspace --features kernel-sources --bench cost_model
//! ```

use burn::tensor::DType;
use eggroll_kernels::costs::{Cost, CostLayer, CostModel, GPUS, NoiseOrigin};

const PAPER: CostLayer = CostLayer { pairs: 512, rank: 1, shape: [8192, 8192], dtype: DType::BF16 };
const PERCEPTRON: CostLayer = CostLayer { pairs: 1024, rank: 1, shape: [256, 2048], dtype: DType::BF16 };
const SQUARE: CostLayer = CostLayer { pairs: 1024, rank: 4, shape: [2048, 2048], dtype: DType::BF16 };

fn main() {
    println!("least times by the GPUs' peaks; share: of plain inference\n");
    for (index, gpu) in (0..).zip(GPUS) {
        let model = CostModel::new(gpu, index);
        let dtype = if model.supports(DType::BF16) { DType::BF16 } else { DType::F16 };
        println!("{}, {dtype:?}: {:.3} TB/s, {:.0} TFLOP/s", gpu.name, gpu.memory / 1e12, gpu.products / 1e12);
        println!("  operation                     launches      MB   GFLOP  normals/M       ms   share");
        for layer in [PAPER, SQUARE, PERCEPTRON] {
            layer_costs(&model, CostLayer { dtype, ..layer });
        }
        let (launches, steps) = model.cart_pole();
        println!("  CartPole, {steps} steps            {launches:>8}\n");
    }
}

fn layer_costs(model: &CostModel, layer: CostLayer) {
    let ([d_input, d_output], members) = (layer.shape, 2 * layer.pairs);
    println!("  {d_input} to {d_output}, {members} members, rank {}", layer.rank);
    let plain = model.inference(layer);
    let row = |name: &str, cost: Cost| {
        let Cost { launches, bytes, flops, normals, seconds } = cost;
        let (megabytes, normals, ms) = (bytes as f64 / 1e6, normals as f64 / 1e6, seconds * 1e3);
        let share = plain.seconds / seconds * 100.0;
        let name = format!("    {name:<27}");
        println!("{name} {launches:>8} {megabytes:>7.1} {:>7.1} {normals:>10.2} {ms:>8.4} {share:>6.1} %", flops / 1e9);
    };
    row("plain inference", plain);
    row("forward, on the fly", model.forward(layer, NoiseOrigin::OnTheFly));
    row("forward, held", model.forward(layer, NoiseOrigin::Held));
    row("estimate, on the fly", model.estimate(layer, NoiseOrigin::OnTheFly));
    row("estimate, held", model.estimate(layer, NoiseOrigin::Held));
}
