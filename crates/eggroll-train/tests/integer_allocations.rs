//! What a generation of the integer language model allocates: as often for many tokens as for few.

#![cfg(feature = "flex")]

use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll_core::QEggrollConfig;
use eggroll_core::ops::integer::{Rounding, log_likelihood};
use eggroll_nn::integer::{EggModel, EggModelConfig, EggState};
use eggroll_train::{EvolutionStrategy, EvolutionStrategyConfig, MemberChunk};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts allocations, of any size.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator. A reallocation comes in as an allocation, by the trait's default.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: by the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: by the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WIDTH: usize = 32;

/// A strategy and what its members read: one chunk.
struct IntegerRun {
    strategy: EvolutionStrategy,
    model: EggModel,
    state: EggState,
    /// `[members, steps + 1]`
    tokens: Tensor<2, Int>,
}

impl IntegerRun {
    fn new(members: usize, steps: usize) -> Self {
        let device = Device::flex();
        let model = EggModelConfig::new().with_layers(2).with_width(WIDTH).init(&device);
        let config = EvolutionStrategyConfig::integer(QEggrollConfig::new());
        let strategy = config.with_population_size(members).with_chunk_size(members).init(&model);
        let bytes: Vec<i32> = (0..members * (steps + 1)).map(|i| (i * 7919 % 256) as i32).collect();
        let tokens = Tensor::from_data(TensorData::new(bytes, [members, steps + 1]), &device);
        let state = model.initial_state(members);
        Self { strategy, model, state, tokens }
    }

    /// Allocations of the evaluation and of the whole of one generation; `each` is called for every token.
    fn generation(&mut self, each: impl Fn() + Sync) -> [usize; 2] {
        let [members, length] = self.tokens.dims();
        let steps = length - 1;
        let before = ALLOCATIONS.load(Relaxed);
        let population = self.strategy.ask();
        let asked = ALLOCATIONS.load(Relaxed);
        let score = |chunk: &MemberChunk, state: EggState| {
            assert_eq!(chunk.count(), members, "one chunk");
            (0..members * steps).for_each(|_| each());
            let rows = chunk.rows(self.tokens.clone());
            let (logits, state) = self.model.forward(rows.clone().slice([0..members, 0..steps]), state);
            let targets = rows.slice([0..members, 1..length]).flatten::<1>(0, 1); // [members · steps]
            (log_likelihood(logits.flatten::<2>(0, 1), targets, members, Rounding::Floor), state)
        };
        let (fitness, state) = population.evaluate_with_state(self.state.clone(), score);
        let evaluated = ALLOCATIONS.load(Relaxed);
        self.state = state;
        self.strategy.tell(&mut self.model, population, fitness).expect("they belong together");
        [evaluated - asked, ALLOCATIONS.load(Relaxed) - before]
    }
}

/// Allocations in the steady state: in every thread's scratch is room then.
fn steady(members: usize, steps: usize, each: impl Fn() + Copy + Sync) -> [usize; 2] {
    let mut run = IntegerRun::new(members, steps);
    for _ in 0..3 {
        run.generation(each);
    }
    run.generation(each)
}

#[test]
fn nothing_is_allocated_for_a_token() {
    // One thread: others would allocate when they take part for the first time.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started");
    pool.install(|| {
        let few = steady(8, 16, || ());
        for (members, steps) in [(8, 256), (32, 16), (32, 256)] {
            let many = steady(members, steps, || ());
            let tokens = members * steps;
            assert_eq!(many, few, "[evaluation, generation]: {tokens} tokens of {members} members against 128 of 8");
        }
        // Canary: one small allocation for every token.
        let [evaluation, _] = steady(8, 256, || drop(std::hint::black_box(Box::new(0u8))));
        assert_eq!(evaluation, few[0] + 8 * 256, "the test would not notice");
    });
}
