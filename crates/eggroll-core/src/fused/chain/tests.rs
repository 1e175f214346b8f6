//! Chains against the operations, bit for bit, and what they refuse.

use super::{Chain, ChainActivation, ChainBuffers, ChainLayer, ChainRow};
use crate::model::table::ParameterTable;
use crate::noise::noiser::{EggrollConfig, NoiserConfig, OpenEsConfig};
use crate::ops::InputRows;
use crate::rng::key::PairRange;
use crate::scope::{Perturbation, active};
use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData, activation::relu};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

type ChainLayers = (Vec<Param<Tensor<2>>>, Vec<Param<Tensor<1>>>);

const PAIRS: PairRange = PairRange { first: 3, count: 3 };
const SIZES: [usize; 4] = [5, 37, 20, 3];

fn values(len: usize, salt: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 7919 + salt * 104_729) % 1009) as f32 / 504.5 - 1.0).collect()
}

fn tensor<const D: usize>(shape: [usize; D], salt: usize) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values(shape.iter().product(), salt), shape), &Device::flex())
}

fn net(sizes: &[usize]) -> ChainLayers {
    let layers = || sizes.windows(2).enumerate();
    let weights = layers().map(|(i, size)| Param::from_tensor(tensor([size[0], size[1]], i)));
    let biases = layers().map(|(i, size)| Param::from_tensor(tensor([size[1]], 10 + i)));
    (weights.collect(), biases.collect())
}

fn noisers() -> [NoiserConfig; 3] {
    [EggrollConfig::new().into(), EggrollConfig::new().with_rank(3).into(), OpenEsConfig::new().into()]
}

fn perturbation(net: &ChainLayers, noiser: &NoiserConfig) -> Perturbation {
    let noiser = noiser.init().expect("valid");
    let table = Arc::new(ParameterTable::new(net, noiser.as_ref(), &[]).expect("valid"));
    Perturbation { noiser, table, seed: 9, generation: 4, sigma: 0.25, held: Arc::default() }
}

fn chain(net: &ChainLayers, noiser: &NoiserConfig) -> Chain {
    let layers = net.0.iter().zip(&net.1).enumerate().map(|(i, (weight, bias))| {
        let activation = if i + 1 == net.0.len() { ChainActivation::Identity } else { ChainActivation::Relu };
        ChainLayer { weight, bias: Some(bias), activation }
    });
    Chain::new(&perturbation(net, noiser), &layers.collect::<Vec<_>>()).expect("can be run on the host")
}

#[test]
fn equals_the_operations() {
    for noiser in noisers() {
        let net = net(&SIZES);
        let chain = chain(&net, &noiser);
        let [inputs, outputs] = chain.shape();
        let rows = PAIRS.members();
        let x = tensor([rows, inputs], 20);
        let (expected, _) = perturbation(&net, &noiser).run(PAIRS, || {
            net.0.iter().zip(&net.1).enumerate().fold(x.clone(), |x, (i, (weight, bias))| {
                let parameter = active(weight).expect("in scope");
                let y = parameter.linear(x, weight.val(), Some(bias), InputRows::PerMember);
                if i + 1 == net.0.len() { y } else { relu(y) }
            })
        });
        let mut buffers = chain.buffers(PAIRS.count as usize, rows);
        (0..PAIRS.count).for_each(|pair| chain.draw(PAIRS.first + pair, pair, &mut buffers));
        let of_members: Vec<_> =
            (0..rows).map(|row| ChainRow { slot: row as u32 / 2, minus: !row.is_multiple_of(2) }).collect();
        let mut y = vec![0.0; rows * outputs];
        chain.forward(&of_members, &values(rows * inputs, 20), &mut buffers, &mut y);
        assert_eq!(y, expected.into_data().try_to_vec::<f32>().expect("f32"), "{noiser:?}");
    }
}

/// A row that is not a number stays one behind ReLU, as in tensors, and does not reach others.
#[test]
fn not_a_number_stays() {
    for noiser in noisers() {
        let chain = chain(&net(&SIZES), &noiser);
        let [inputs, outputs] = chain.shape();
        let rows = [false, true].map(|minus| ChainRow { slot: 0, minus });
        let mut buffers = chain.buffers(1, rows.len());
        chain.draw(PAIRS.first, 0, &mut buffers);
        let mut y = |x: &[f32]| {
            let mut y = vec![0.0; rows.len() * outputs];
            chain.forward(&rows, x, &mut buffers, &mut y);
            y
        };
        let mut x = values(rows.len() * inputs, 20);
        let expected = y(&x);
        x[1] = f32::NAN;
        let found = y(&x);
        assert!(found[..outputs].iter().all(|y| y.is_nan()), "{noiser:?}: {found:?}");
        assert_eq!(found[outputs..], expected[outputs..], "{noiser:?}");
    }
}

/// What one row of a slot panics with, if it does.
fn refusal(chain: &Chain, slot: u32, buffers: &mut ChainBuffers) -> Option<String> {
    let [inputs, outputs] = chain.shape();
    let (x, mut y) = (vec![0.0; inputs], vec![0.0; outputs]);
    let row = ChainRow { slot, minus: false };
    let panic = catch_unwind(AssertUnwindSafe(|| chain.forward(&[row], &x, buffers, &mut y))).err()?;
    Some(panic.downcast_ref::<String>().expect("a text with values").clone())
}

/// Panics unless all are refusals with `words`: after all have been tried, so that a checker of memory sees them all.
fn assert_refused(refusals: &[Option<String>], words: &[&str]) {
    let good = |text: &String| words.iter().all(|word| text.contains(word));
    assert!(refusals.iter().all(|refusal| refusal.as_ref().is_some_and(good)), "{words:?}: {refusals:?}");
}

#[test]
fn slots_that_buffers_do_not_have() {
    let mut refusals = Vec::new();
    for noiser in noisers() {
        let chain = chain(&net(&[9, 40, 2]), &noiser);
        let mut buffers = chain.buffers(2, 1);
        refusals.extend([2, 3, u32::MAX].map(|slot| refusal(&chain, slot, &mut buffers)));
        for slot in [2, 3, u32::MAX] {
            let draw = catch_unwind(AssertUnwindSafe(|| chain.draw(0, slot, &mut buffers)));
            assert!(draw.is_err(), "noise drawn into slot {slot}");
        }
    }
    assert_refused(&refusals, &["slot ", "2 slots"]);
}

/// The slack behind the noise is no slot.
#[test]
fn noise_that_would_fit_the_slack() {
    let chain = chain(&net(&[2, 2, 1]), &OpenEsConfig::new().into());
    let mut buffers = chain.buffers(2, 1);
    assert!(catch_unwind(AssertUnwindSafe(|| chain.draw(0, 2, &mut buffers))).is_err());
}

#[test]
fn buffers_of_another_chain() {
    let mut refusals = Vec::new();
    for noiser in noisers() {
        let (small, large) = (chain(&net(&[2, 2, 2]), &noiser), chain(&net(&[2, 200, 2]), &noiser));
        refusals.extend(
            [(&small, &large), (&large, &small)].map(|(chain, other)| refusal(chain, 0, &mut other.buffers(1, 1))),
        );
    }
    assert_refused(&refusals, &["another chain"]);
}
