//! Deals with the exact values of their decisions.

use burn::tensor::{Bool, Device, Element, Int, Tensor, TensorData};
use eggroll::rl::WorldKey;
use eggroll_examples::interrupt::Signals;
use eggroll_examples::texas42::{
    Bid, Contract, Deal, HAND, HAND_POINTS, HandState, POSITION_SIZE, Solver, Trumps, position, uniform_below,
};
use rand::Rng;
use std::thread;

/// Positions in which the mover has a choice, and the value of each domino of its hand to its side.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    /// With zeros at the end: `[positions, POSITION_SIZE]`
    positions: Vec<i32>,
    /// Points over all points by place in the hand, 0 for dominoes that may not be played: `[positions, 7]`
    values: Vec<f32>,
    /// Whether a domino may be played.
    legal: Vec<bool>,
}

/// Decisions as tensors.
pub struct Batch {
    /// `[rows, POSITION_SIZE]`
    pub positions: Tensor<2, Int>,
    /// `[rows, 7]`
    pub values: Tensor<2>,
    /// `[rows, 7]`
    pub legal: Tensor<2, Bool>,
}

impl Decisions {
    /// Plays deals, on all cores: half of the moves are the best, by the solver, half are random, so that positions are
    /// not all of good play. The trumps are the suit of which the declarer has most, in every fourth deal any. A signal
    /// ends it.
    pub fn of_deals(seed: u64, deals: u32, signals: &Signals) -> Self {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let mut parts = thread::scope(|scope| {
            let work = |worker: usize| {
                let mut solver = Solver::default();
                let deals = (worker as u32..deals).step_by(workers).take_while(|_| !signals.came());
                deals.map(|deal| Self::of_deal(&mut solver, WorldKey::new(seed, deal, 0))).collect::<Vec<_>>()
            };
            let handles: Vec<_> = (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
            let of =
                |handle: thread::ScopedJoinHandle<'_, Vec<Self>>| handle.join().expect("a worker panicked").into_iter();
            handles.into_iter().map(of).collect::<Vec<_>>()
        });
        // In the order of deals, for any number of workers.
        let mut all = Self::default();
        for part in (0..deals as usize).map_while(|deal| parts[deal % workers].next()) {
            all.positions.extend(part.positions);
            all.values.extend(part.values);
            all.legal.extend(part.legal);
        }
        all
    }

    fn of_deal(solver: &mut Solver, key: WorldKey) -> Self {
        let mut decisions = Self::default();
        let mut rng = key.rng(0);
        let mut words = || rng.next_u32();
        let deal = Deal::random(&mut words);
        let declarer = uniform_below(4, &mut words) as usize;
        let trumps = match uniform_below(4, &mut words) {
            0 => Trumps::ALL[uniform_below(Trumps::ALL.len() as u64, &mut words) as usize],
            _ => Trumps::longest(deal.hands()[declarer]),
        };
        let contract = Contract::new(declarer, trumps, Bid::LOWEST);
        let mut state = HandState::new(deal, contract);
        while !state.is_over() {
            let legal = state.legal_moves();
            let mut chosen = legal.iter().nth(uniform_below(legal.len() as u64, &mut words) as usize);
            if legal.len() > 1 {
                let values = solver.action_values(&state);
                let mut position = position(&state);
                position.resize(POSITION_SIZE, 0);
                decisions.positions.extend(position);
                let places = state.hands()[state.mover()].iter().map(|domino| values[domino.index()]);
                for value in places.chain(std::iter::repeat(None)).take(HAND) {
                    decisions.values.push(value.unwrap_or(0) as f32 / f32::from(HAND_POINTS));
                    decisions.legal.push(value.is_some());
                }
                if words() % 2 == 0 {
                    chosen = legal.iter().max_by_key(|domino| values[domino.index()]);
                }
            }
            state.play(chosen.expect("a hand that is not over")).expect("a legal domino");
        }
        decisions
    }

    pub fn len(&self) -> usize {
        self.positions.len() / POSITION_SIZE
    }

    /// Decisions by number.
    pub fn batch(&self, numbers: &[usize], device: &Device) -> Batch {
        fn pick<T: Element>(rows: &[T], numbers: &[usize], width: usize) -> TensorData {
            let picked =
                numbers.iter().flat_map(|&number| rows[number * width..][..width].iter().copied()).collect::<Vec<T>>();
            TensorData::new(picked, [numbers.len(), width])
        }
        Batch {
            positions: Tensor::from_data(pick(&self.positions, numbers, POSITION_SIZE), device),
            values: Tensor::from_data(pick(&self.values, numbers, HAND), device),
            legal: Tensor::from_data(pick(&self.legal, numbers, HAND), device),
        }
    }

    /// Points by which the choice of the highest of these values is worse than the best, and the same for a random
    /// choice, on average: values of `[positions, 7]`.
    pub fn regret(&self, values: &[f32]) -> Regret {
        let mut regret = Regret { chosen: 0.0, random: 0.0 };
        let rows = self.values.chunks_exact(HAND).zip(self.legal.chunks_exact(HAND)).zip(values.chunks_exact(HAND));
        for ((exact, legal), values) in rows {
            let legal: Vec<usize> = (0..HAND).filter(|&place| legal[place]).collect();
            let highest =
                |of: &[f32]| legal.iter().copied().max_by(|&a, &b| of[a].total_cmp(&of[b])).expect("a choice");
            let best = exact[highest(exact)];
            let mean = legal.iter().map(|&place| exact[place]).sum::<f32>() / legal.len() as f32;
            regret.chosen += f64::from(best - exact[highest(values)]);
            regret.random += f64::from(best - mean);
        }
        let points = f64::from(HAND_POINTS) / self.len() as f64;
        Regret { chosen: regret.chosen * points, random: regret.random * points }
    }
}

/// Points lost per decision.
#[derive(Clone, Copy, Debug)]
pub struct Regret {
    pub chosen: f64,
    pub random: f64,
}

impl Regret {
    /// 0 for the solver, 1 for random choices.
    pub fn ratio(&self) -> f64 {
        self.chosen / self.random
    }
}
