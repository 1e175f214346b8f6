//! Which draw a member gets: `noise_index_map.npz`.

use crate::compare::values;
use crate::devices;
use crate::loader::Golden;
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use eggroll::core::ops::{DenseNoise, NoiseSource, PairRange, perturbed_vector};
use eggroll::core::{EggrollConfig, NoiseKey};
use eggroll::train::EvolutionStrategyConfig;

const PAIRS: u32 = 4;
const WIDTH: usize = 16;
const SEED: u64 = 7;

/// What is added to a vector for the members of `pairs`: `[members, WIDTH]`, flat.
fn noise(noise_generation: u32, pairs: PairRange, device: &Device) -> Vec<f64> {
    let noise = DenseNoise::new(NoiseKey::new(SEED, 0, noise_generation), 1.0);
    values(perturbed_vector(Tensor::zeros([WIDTH], device), noise, NoiseSource::Drawn, pairs))
}

/// Every draw that the file could mean, as noise epoch, pair, sign and values.
fn draws(noise_generations: u32, device: &Device) -> Vec<([i64; 3], Vec<f64>)> {
    let addresses = (0..noise_generations).flat_map(|t| (0..PAIRS).map(move |pair| (t, pair)));
    let signed = |(t, pair): (u32, u32)| {
        let draw = noise(t, PairRange::new(pair, 1), device)[..WIDTH].to_vec();
        let opposite = draw.iter().map(|value| -value).collect();
        [([t.into(), pair.into(), 1], draw), ([t.into(), pair.into(), -1], opposite)]
    };
    addresses.flat_map(signed).collect()
}

/// The member's noise, as a population of all pairs has it, is that of the golden generation, pair and sign, and of no
/// other: the other draws are the canary.
#[test]
fn members_get_the_noise_of_their_pair_and_generation() {
    let golden = Golden::open("noise_index_map.npz");
    let rows = golden.array("rows");
    assert_eq!(rows.shape, [120, 6]);
    for device in devices() {
        let draws = draws(11, &device);
        for row in rows.values.chunks_exact(6) {
            let [reuse, generation, member, t, pair, sign] =
                row.iter().map(|value| *value as i64).collect::<Vec<_>>()[..]
            else {
                unreachable!("rows of 6");
            };
            let config =
                EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_noise_reuse(reuse as u64);
            let noise_generation = config.noise_generation(generation as u64).expect("small");
            let all = noise(noise_generation, PairRange::new(0, PAIRS), &device);
            let found = &all[member as usize * WIDTH..][..WIDTH];
            let same: Vec<[i64; 3]> =
                draws.iter().filter(|(_, draw)| draw == found).map(|(address, _)| *address).collect();
            assert_eq!(same, [[t, pair, sign]], "reuse {reuse}, generation {generation}, member {member}");
        }
    }
}
