//! The recurrence of the minimal GRU.

use super::{HostNoise, NOISES, SIZES, found, integers, transposed, with_portable_devices};
use crate::arithmetic::integer::Rounding;
use crate::ops::integer::{Gate, IntegerNoise, gru};
use crate::rng::key::PairRange;
use crate::testing::conformance::{Implementation, implementations};
use crate::testing::reference::integer as oracle;

/// One gate's operands and noise on the host.
struct HostGate {
    input: Vec<i8>,
    weight: Vec<i8>,
    bias: Vec<i8>,
    noise: Option<[HostNoise; 2]>,
}

struct GruCase {
    state: Vec<i8>,
    starts: Vec<i32>,
    width: usize,
    sequences: usize,
    /// That each member reads.
    each: usize,
    gates: [HostGate; 2],
}

#[derive(Clone, Copy, Debug)]
struct GruNoise {
    rank: usize,
    sigma_shift: u32,
}

impl GruCase {
    /// A sequence for each member.
    fn new(width: usize, pairs: u32, steps: usize, noise: Option<GruNoise>) -> Self {
        Self::of_members(1, width, pairs, steps, noise)
    }

    /// Members that read `each` sequences.
    fn of_members(each: usize, width: usize, pairs: u32, steps: usize, noise: Option<GruNoise>) -> Self {
        let sequences = 2 * pairs as usize * each;
        let rows = sequences * steps;
        let gate = |salt: u32| HostGate {
            input: integers(rows * width, 70, 10 + salt),
            weight: integers(width * width, 100, 20 + salt),
            bias: integers(width, 30, 30 + salt),
            noise: noise.map(|GruNoise { rank, sigma_shift }| {
                let pairs = PairRange::new(2, pairs);
                let of_weight = HostNoise::new(10 + salt, 2 * rank * width, rank, sigma_shift, pairs);
                [of_weight, HostNoise::new(20 + salt, 2 * width, 1, sigma_shift, pairs)]
            }),
        };
        let starts = (0..rows).map(|r| i32::from(r % 5 == 2)).collect();
        let state = integers(sequences * width, 127, 8);
        Self { state, starts, width, sequences, each, gates: [gate(0), gate(1)] }
    }

    fn expected(&self) -> Vec<i8> {
        (0..self.sequences).flat_map(|sequence| self.sequence(sequence)).collect()
    }

    fn sequence(&self, m: usize) -> Vec<i8> {
        let (width, steps) = (self.width, self.starts.len() / self.sequences);
        let member = m / self.each;
        let noise = |gate: usize, of: usize| self.gates[gate].noise.as_ref().map(|noise| noise[of].member(member));
        let bias = |gate: usize| oracle::vector(&self.gates[gate].bias, noise(gate, 1), Rounding::Floor);
        let biases = [bias(0), bias(1)];
        let mut state = self.state[m * width..(m + 1) * width].to_vec();
        let mut outputs = Vec::new();
        for row in m * steps..(m + 1) * steps {
            if self.starts[row] != 0 {
                state.fill(0);
            }
            let input = |gate: usize| &self.gates[gate].input[row * width..(row + 1) * width];
            let product = |gate: usize, v: &[i8]| {
                oracle::linear(v, &self.gates[gate].weight, noise(gate, 0), None, false, Rounding::Floor)
            };
            state = oracle::gru_step([input(0), input(1)], &state, [&biases[0], &biases[1]], product);
            outputs.extend(&state);
        }
        outputs
    }

    fn gate(&self, on: &Implementation, gate: usize, shifted: bool) -> Gate {
        let (host, width) = (&self.gates[gate], self.width);
        let noise = |of: usize| {
            let noise = host.noise.as_ref().map(|noise| &noise[of]);
            noise.map(|noise| if shifted { noise.shifted().on(on) } else { noise.on(on) })
        };
        Gate {
            input: on.ints(&host.input, [self.starts.len(), width]),
            weight: on.ints(&host.weight, [width, width]),
            weight_noise: noise(0),
            bias: on.ints(&host.bias, [width]),
            bias_noise: noise(1),
        }
    }

    fn found(&self, on: &Implementation, [forget, candidate]: [Gate; 2]) -> Vec<i8> {
        let state = on.ints(&self.state, [self.sequences, self.width]);
        found(on.integer_gru(state, on.indices(&self.starts), forget, candidate))
    }
}

#[test]
fn equals_oracle() {
    for (index, width) in SIZES.into_iter().enumerate() {
        let [a, b] = NOISES.map(|(rank, sigma_shift)| Some(GruNoise { rank, sigma_shift }));
        for noise in [None, a, b] {
            // One step, and steps after a start in between.
            let case = GruCase::new(width, 1 + index as u32 % 3, [1, 7][index % 2], noise);
            let expected = case.expected();
            for on in implementations() {
                let gates = [case.gate(&on, 0, false), case.gate(&on, 1, false)];
                assert!(case.found(&on, gates) == expected, "{}, {width}, {noise:?}", on.name);
            }
        }
    }
}

/// Members that read several sequences, more than a block together.
#[test]
fn several_sequences() {
    let case = GruCase::of_members(3, 19, 5, 4, Some(GruNoise { rank: 2, sigma_shift: 1 }));
    for on in implementations() {
        let gates = [0, 1].map(|gate| case.gate(&on, gate, false));
        assert!(case.found(&on, gates) == case.expected(), "{}", on.name);
    }
}

/// More columns than the units of a cube sum at a time.
#[test]
fn high_rank() {
    let case = GruCase::new(17, 2, 3, Some(GruNoise { rank: 5, sigma_shift: 0 }));
    for on in implementations() {
        let gates = [case.gate(&on, 0, false), case.gate(&on, 1, false)];
        assert!(case.found(&on, gates) == case.expected(), "{}", on.name);
    }
}

/// More turns of a unit's loops than Mesa's software driver runs.
#[test]
fn long_sequences() {
    let case = GruCase::new(256, 1, 160, Some(GruNoise { rank: 1, sigma_shift: 0 }));
    let expected = case.expected();
    for on in implementations() {
        let gates = [case.gate(&on, 0, false), case.gate(&on, 1, false)];
        assert!(case.found(&on, gates) == expected, "{}", on.name);
    }
}

#[test]
fn canary_other_noise_fails() {
    let case = GruCase::new(32, 2, 3, Some(GruNoise { rank: 1, sigma_shift: 0 }));
    let expected = case.expected();
    for on in implementations() {
        for shifted in [[true, false], [false, true]] {
            let gates = [case.gate(&on, 0, shifted[0]), case.gate(&on, 1, shifted[1])];
            assert!(case.found(&on, gates) != expected, "{}: neighboring pairs", on.name);
        }
        let plain = |gate| Gate { bias_noise: None, ..case.gate(&on, gate, false) };
        assert!(case.found(&on, [plain(0), plain(1)]) != expected, "{}: no noise of the bias", on.name);
        let swapped = [case.gate(&on, 1, false), case.gate(&on, 0, false)];
        assert!(case.found(&on, swapped) != expected, "{}: gates swapped", on.name);
    }
}

#[test]
fn chunks_change_no_bit() {
    let case = GruCase::new(17, 4, 5, Some(GruNoise { rank: 4, sigma_shift: 0 }));
    for on in implementations() {
        let chunk = |first: u32| {
            let members = 2 * first as usize..2 * (first as usize + 2);
            let rows = 5 * members.start..5 * members.end;
            let pairs = PairRange::new(2 + first, 2);
            let some = |noise: Option<IntegerNoise>| noise.map(|noise| IntegerNoise { pairs, ..noise });
            let gate = |gate| {
                let whole = case.gate(&on, gate, false);
                let (weight_noise, bias_noise) = (some(whole.weight_noise), some(whole.bias_noise));
                Gate { input: whole.input.slice(rows.clone()), weight_noise, bias_noise, ..whole }
            };
            let state = on.ints(&case.state, [8, 17]).slice(members.clone());
            found(on.integer_gru(state, on.indices(&case.starts[rows.clone()]), gate(0), gate(1)))
        };
        assert!([chunk(0), chunk(2)].concat() == case.expected(), "{}", on.name);
    }
}

/// Sequences in parts, the state handed on, give the same bits.
#[test]
fn state_goes_on() {
    let case = GruCase::new(17, 1, 6, Some(GruNoise { rank: 1, sigma_shift: 0 }));
    let expected = case.expected();
    for on in implementations() {
        let mut state = on.ints(&case.state, [2, 17]);
        let mut outputs: [Vec<i8>; 2] = [Vec::new(), Vec::new()];
        for part in [0..2, 2..6] {
            let rows: Vec<i32> = [0, 6].iter().flat_map(|m| part.clone().map(move |step| m + step)).collect();
            let starts: Vec<i32> = rows.iter().map(|row| case.starts[*row as usize]).collect();
            let gate = |gate| {
                let whole = case.gate(&on, gate, false);
                Gate { input: whole.input.select(0, on.indices(&rows)), ..whole }
            };
            let output = on.integer_gru(state, on.indices(&starts), gate(0), gate(1));
            let steps = part.len();
            state = output.clone().reshape([2, steps, 17]).slice([0..2, steps - 1..steps]).reshape([2, 17]);
            for (output, all) in found(output).chunks(steps * 17).zip(&mut outputs) {
                all.extend(output);
            }
        }
        assert!(outputs.concat() == expected, "{}", on.name);
    }
}

#[test]
fn strided_operands() {
    let case = GruCase::new(17, 2, 3, Some(GruNoise { rank: 4, sigma_shift: 4 }));
    let expected = case.expected();
    for on in with_portable_devices() {
        let strided = |values: &[i8]| on.ints(&transposed(values, 17), [17, values.len() / 17]).transpose();
        let gate = |gate: usize| {
            let host = &case.gates[gate];
            let noise = host.noise.as_ref().map(|noise| noise[0].strided_on(&on));
            let plain = case.gate(&on, gate, false);
            Gate { input: strided(&host.input), weight: strided(&host.weight), weight_noise: noise, ..plain }
        };
        let output = on.integer_gru(strided(&case.state), on.indices(&case.starts), gate(0), gate(1));
        assert!(found(output) == expected, "{}", on.name);
    }
}

fn call(states: usize, rows: usize) {
    let case = GruCase::new(3, 2, 2, Some(GruNoise { rank: 1, sigma_shift: 0 }));
    let on = &implementations()[0];
    let zeros = |rows: usize| on.ints(&vec![0; rows * 3], [rows, 3]);
    let gate = |gate| Gate { input: zeros(rows), ..case.gate(on, gate, false) };
    gru(zeros(states), on.indices(&vec![0; rows]), gate(0), gate(1));
}

#[test]
#[should_panic(expected = "7 rows are not whole sequences of the states [4, 3]")]
fn refuses_uneven_rows() {
    call(4, 7);
}

#[test]
#[should_panic(expected = "2 states for 4 members")]
fn refuses_other_members() {
    call(2, 8);
}
