//! Integer operations whose operands do not fit.

use super::{BEYOND, NONE, PAIRS, indices, int8s, key, refused};
use crate::integer::Votes;
use crate::ops::PerturbedOps;
use crate::ops::integer::{GatePrimitive, IntegerMembers, IntegerNoisePrimitive, IntegerOps};
use burn::backend::TensorMetadata;

/// Noise held for [`PAIRS`], behind that of `skip` pairs.
fn held<B: IntegerOps>(shape: &[usize], rank: usize, skip: usize) -> IntegerNoisePrimitive<B> {
    IntegerNoisePrimitive::Held(int8s::<B>(shape), IntegerMembers { skip, rank, shift: 8, pairs: PAIRS })
}

/// Held noise that is not that of [`PAIRS`], `elements` each; what the panic says.
fn bad_noise<B: IntegerOps>(elements: usize, rank: usize) -> Vec<(String, IntegerNoisePrimitive<B>)> {
    let with = |shape: &[usize], skip| (format!("{shape:?}"), held::<B>(shape, rank, skip));
    let of = |members| IntegerNoisePrimitive::Held(int8s::<B>(&[2, elements]), members);
    let members = IntegerMembers { skip: 0, rank, shift: 8, pairs: PAIRS };
    vec![
        with(&[2, elements - 1], 0),
        with(&[1, elements], 0),
        with(&[2, elements], 1),
        with(&[2, elements], usize::MAX),
        with(&[2 * elements], 0),
        ("shift".into(), of(IntegerMembers { shift: 32, ..members })),
        ("pairs".into(), of(IntegerMembers { pairs: NONE, ..members })),
    ]
}

pub(super) fn rows<B: PerturbedOps + IntegerOps>() {
    let none = || IntegerNoisePrimitive::None;
    let like = || int8s::<B>(&[1]);
    assert_eq!(B::integer_noise(like(), key(), PAIRS, 7).shape().to_vec(), [2, 7]);
    refused(&["integer noise", "pairs"], || B::integer_noise(like(), key(), BEYOND, 7));
    refused(&["integer noise", &usize::MAX.to_string()], || B::integer_noise(like(), key(), PAIRS, usize::MAX));

    let linear = |x: &[usize], weight: &[usize], noise| B::integer_linear(int8s::<B>(x), int8s::<B>(weight), noise);
    assert_eq!(linear(&[4, 3], &[3, 2], held::<B>(&[3, 10], 2, 1)).shape().to_vec(), [4, 2]);
    assert_eq!(linear(&[0, 3], &[3, 2], none()).shape().to_vec(), [0, 2]);
    assert_eq!(linear(&[4, 3], &[3, 0], none()).shape().to_vec(), [4, 0]);
    for (x, weight) in [([4, 3], [8, 2]), ([4, 8], [3, 2]), ([4, 0], [0, 2])] {
        refused(&["integer linear", &format!("{x:?}"), &format!("{weight:?}")], || linear(&x, &weight, none()));
    }
    refused(&["integer linear", "[12]"], || linear(&[12], &[3, 2], none()));
    refused(&["integer linear", "[6]"], || linear(&[4, 3], &[6], none()));
    refused(&["integer linear", "5 rows", "4 members"], || linear(&[5, 3], &[3, 2], held::<B>(&[2, 10], 2, 0)));
    refused(&["integer linear", "rank 0"], || linear(&[4, 3], &[3, 2], held::<B>(&[2, 0], 0, 0)));
    let huge = usize::MAX / 4;
    refused(&["integer linear", "rank"], || linear(&[4, 3], &[3, 2], held::<B>(&[2, 10], huge, 0)));
    for (found, noise) in bad_noise::<B>(10, 2) {
        refused(&["integer linear", &found], || linear(&[4, 3], &[3, 2], noise));
    }

    let embedding = |tokens: &[usize], weight: &[usize], noise| {
        B::integer_embedding(indices::<B>(tokens), int8s::<B>(weight), noise)
    };
    assert_eq!(embedding(&[4], &[3, 2], held::<B>(&[2, 10], 2, 0)).shape().to_vec(), [4, 2]);
    refused(&["integer embedding", "[6]"], || embedding(&[4], &[6], none()));
    refused(&["integer embedding", "[2, 2]"], || embedding(&[2, 2], &[3, 2], none()));
    refused(&["integer embedding", "token 1"], || embedding(&[4], &[1, 2], none()));
    refused(&["integer embedding", "5 rows"], || embedding(&[5], &[3, 2], held::<B>(&[2, 10], 2, 0)));
    refused(&["integer embedding", "rank 0"], || embedding(&[4], &[3, 2], held::<B>(&[2, 0], 0, 0)));
    for (found, noise) in bad_noise::<B>(10, 2) {
        refused(&["integer embedding", &found], || embedding(&[4], &[3, 2], noise));
    }

    let norm = |x: &[usize], weight: &[usize], noise| B::integer_layer_norm(int8s::<B>(x), int8s::<B>(weight), noise);
    assert_eq!(norm(&[4, 3], &[3], held::<B>(&[2, 6], 0, 0)).shape().to_vec(), [4, 3]);
    for (x, weight) in [([4, 3], 2), ([4, 3], 4), ([4, 0], 0)] {
        let words = ["integer layer norm", &format!("{x:?}"), &format!("[{weight}]")];
        refused(&words, || norm(&x, &[weight], none()));
    }
    refused(&["integer layer norm", "[12]"], || norm(&[12], &[3], none()));
    refused(&["integer layer norm", "[3, 1]"], || norm(&[4, 3], &[3, 1], none()));
    refused(&["integer layer norm", "5 rows"], || norm(&[5, 3], &[3], held::<B>(&[2, 6], 0, 0)));
    for (found, noise) in bad_noise::<B>(6, 0) {
        refused(&["integer layer norm", &found], || norm(&[4, 3], &[3], noise));
    }

    let add = |a: &[usize], b: &[usize]| B::integer_add(int8s::<B>(a), int8s::<B>(b));
    assert_eq!(add(&[2, 3], &[2, 3]).shape().to_vec(), [2, 3]);
    refused(&["integer add", "[2, 3]", "[3, 2]"], || add(&[2, 3], &[3, 2]));
    refused(&["integer add", "[2, 3]", "[6]"], || add(&[2, 3], &[6]));

    let likelihood = |logits: &[usize], targets: &[usize], members| {
        B::integer_log_likelihood(int8s::<B>(logits), indices::<B>(targets), members)
    };
    assert_eq!(likelihood(&[8, 3], &[8], 4).shape().to_vec(), [4]);
    assert_eq!(likelihood(&[0, 3], &[0], 4).shape().to_vec(), [4]);
    for (logits, targets, members) in [([8, 3], 7, 4), ([7, 3], 7, 4), ([8, 3], 8, 0), ([8, 0], 8, 4), ([8, 257], 8, 4)]
    {
        let words = [&format!("{logits:?}"), &format!("[{targets}]"), "integer log-likelihood"];
        refused(&words, || likelihood(&logits, &[targets], members));
    }
    refused(&["integer log-likelihood", "[24]"], || likelihood(&[24], &[8], 4));
    refused(&["integer log-likelihood", "target 1"], || likelihood(&[8, 1], &[8], 4));
}

/// A gate of width 3 over four members of two steps, each part as it should be or in another shape.
struct GateShapes {
    input: Vec<usize>,
    weight: Vec<usize>,
    bias: Vec<usize>,
}

impl GateShapes {
    fn new() -> Self {
        Self { input: vec![8, 3], weight: vec![3, 3], bias: vec![3] }
    }

    fn gate<B: IntegerOps>(&self) -> GatePrimitive<B> {
        GatePrimitive {
            input: int8s::<B>(&self.input),
            weight: int8s::<B>(&self.weight),
            weight_noise: held::<B>(&[2, 12], 2, 0),
            bias: int8s::<B>(&self.bias),
            bias_noise: held::<B>(&[2, 6], 0, 0),
        }
    }
}

pub(super) fn grus<B: PerturbedOps + IntegerOps>() {
    let name = "integer GRU";
    let gate = || GateShapes::new().gate::<B>();
    let run = |state: &[usize], starts: &[usize], forget, candidate| {
        B::integer_gru(int8s::<B>(state), indices::<B>(starts), forget, candidate).shape().to_vec()
    };
    assert_eq!(run(&[4, 3], &[8], gate(), gate()), [8, 3]);
    for (state, starts) in [([3, 3], 8), ([0, 3], 8), ([4, 0], 8), ([4, 2], 8), ([4, 3], 7), ([4, 3], 12), ([2, 3], 8)]
    {
        refused(&[name, &format!("{state:?}")], || run(&state, &[starts], gate(), gate()));
    }
    refused(&[name, "[12]"], || run(&[12], &[8], gate(), gate()));
    refused(&[name, "[4, 2]"], || run(&[4, 3], &[4, 2], gate(), gate()));
    let wrong: [fn(&mut GateShapes) -> &mut Vec<usize>; 3] = [|g| &mut g.input, |g| &mut g.weight, |g| &mut g.bias];
    for part in wrong {
        for shape in [vec![1], vec![2, 2], vec![3, 4], vec![24]] {
            let bad = || {
                let mut shapes = GateShapes::new();
                *part(&mut shapes) = shape.clone();
                shapes.gate::<B>()
            };
            let found = format!("{shape:?}");
            refused(&[name, "forget", &found], || run(&[4, 3], &[8], bad(), gate()));
            refused(&[name, "candidate", &found], || run(&[4, 3], &[8], gate(), bad()));
        }
    }
    for (found, noise) in bad_noise::<B>(12, 2) {
        refused(&[name, &found], || run(&[4, 3], &[8], GatePrimitive { weight_noise: noise, ..gate() }, gate()));
    }
    for (found, noise) in bad_noise::<B>(6, 0) {
        refused(&[name, &found], || run(&[4, 3], &[8], gate(), GatePrimitive { bias_noise: noise, ..gate() }));
    }
}

pub(super) fn votes<B: PerturbedOps + IntegerOps>() {
    let sum = |noise: &[usize], scores: &[usize], rank, [d_input, d_output]: [usize; 2]| {
        let (noise, scores) = (int8s::<B>(noise), int8s::<B>(scores));
        B::integer_sum_votes(noise, scores, rank, Votes::Values, d_input, d_output)
    };
    let update = |parameter: &[usize], noise: &[usize], scores: &[usize], rank| {
        let (noise, scores) = (int8s::<B>(noise), int8s::<B>(scores));
        B::integer_update(int8s::<B>(parameter), noise, scores, rank, Votes::Values, 1)
    };
    assert_eq!(sum(&[4, 10], &[4], 2, [3, 2]).shape().to_vec(), [3, 2]);
    assert_eq!(sum(&[4, 12], &[4], 0, [1, 6]).shape().to_vec(), [1, 6]);
    assert_eq!(update(&[3, 2], &[4, 10], &[4], 2).shape().to_vec(), [3, 2]);
    assert_eq!(update(&[3, 2], &[4, 12], &[4], 0).shape().to_vec(), [3, 2]);
    let wrong: [(&[usize], &[usize], usize); 6] = [
        (&[4, 9], &[4], 2),
        (&[4, 10], &[5], 2),
        (&[3, 10], &[4], 2),
        (&[4, 10], &[4], usize::MAX / 4),
        (&[40], &[4], 2),
        (&[4, 10], &[4, 1], 2),
    ];
    for (noise, scores, rank) in wrong {
        refused(&["sum of votes"], || sum(noise, scores, rank, [3, 2]));
        refused(&["integer update"], || update(&[3, 2], noise, scores, rank));
    }
    refused(&["sum of votes", "[4, 10]", "[3, 3]"], || sum(&[4, 10], &[4], 2, [3, 3]));
    refused(&["sum of votes", "[4, 12]", "[3, 2]"], || sum(&[4, 12], &[4], 0, [3, 2]));
    refused(&["integer update", "[4, 10]", "[3, 3]"], || update(&[3, 3], &[4, 10], &[4], 2));
    refused(&["integer update", "[6]"], || update(&[6], &[4, 10], &[4], 2));
}
