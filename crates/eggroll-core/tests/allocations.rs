//! What the CPU kernels allocate: the output, and nothing that grows with the population.

use burn::tensor::{Device, Distribution, Tensor};
use eggroll_core::ops::*;
use eggroll_core::{NoiseKey, PairRange};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts the bytes of allocations as large as noise would be.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
const LARGE: usize = 4096;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LARGE {
            ALLOCATED.fetch_add(layout.size(), Relaxed);
        }
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

/// Bytes allocated by one perturbed layer beyond its output.
fn beyond_output(members: usize, dense: bool, input: InputRows) -> usize {
    let (device, [d_input, d_output]) = (Device::flex(), [256, 256]);
    let rows = if input == InputRows::Shared { 3 } else { members };
    let x = Tensor::<2>::random([rows, d_input], Distribution::Default, &device);
    let weight = Tensor::<2>::random([d_input, d_output], Distribution::Default, &device);
    let run = || {
        let (key, pairs) = (NoiseKey::new(0, 0, 0), PairRange::new(0, members as u32 / 2));
        let (x, weight, members) = (x.clone(), weight.clone(), LinearMembers { pairs, input });
        match dense {
            false => low_rank_linear(
                x,
                weight,
                LinearBias::None,
                LowRankNoise::new(key, 1, 0.1),
                NoiseSource::Drawn,
                members,
            ),
            true => dense_linear(x, weight, LinearBias::None, DenseNoise::new(key, 0.1), NoiseSource::Drawn, members),
        }
    };
    run(); // every thread's scratch buffer is there now
    let before = ALLOCATED.load(Relaxed);
    let y = run();
    let output = y.shape().num_elements() * 4;
    (ALLOCATED.load(Relaxed) - before).saturating_sub(output)
}

#[test]
fn nothing_grows_with_the_population() {
    // The packed weight, the base product of shared rows, and scratch of a thread that had no work before.
    let constant = 2 * 256 * 256 * 4 + 64 * 1024 * 4 * rayon::current_num_threads();
    for input in [InputRows::PerMember, InputRows::Shared] {
        for (dense, members) in [(false, 2048), (true, 64)] {
            let (few, many) = (beyond_output(32, dense, input), beyond_output(members, dense, input));
            assert!(many <= constant, "{input:?}, dense {dense}: {many} bytes for {members} members");
            assert!(few <= constant, "{input:?}, dense {dense}: {few} bytes for 32 members");
            // Canary: the factors of all members would not fit into the bound.
            assert!(dense || members / 2 * 512 * 4 > 1024 * 1024, "the test would not notice");
        }
    }
}
