//! Memory that would not be enough: refused before it is taken, with what fits.

use crate::reliability::support::*;
use burn::module::Module;
use burn::optim::AdamConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::{EggrollConfig, NoiseSourceConfig, Role, counters};
use eggroll_nn::Linear;
use eggroll_train::*;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

const ROWS: usize = 100;

fn configured(limit: u64) -> EvolutionStrategyConfig {
    config(EggrollConfig::new(), AdamConfig::new()).with_population_size(4096).with_memory_limit(limit)
}

fn refused(config: EvolutionStrategyConfig, model: &impl Module) -> String {
    config.try_init(model).err().expect("refused").to_string()
}

/// The chunks of an evaluation of a layer of 8 × 16 on 100 rows, or the panic of it.
fn evaluate(config: &EvolutionStrategyConfig, layer: &Linear, parallel: bool) -> Result<Vec<usize>, String> {
    let population = config.init(layer).ask();
    let x = Tensor::<2>::ones([ROWS, 8], &Device::flex());
    let score = |members: &MemberChunk| members.mean(layer.forward_shared(x.clone()));
    let chunks = RefCell::new(Vec::new());
    let run = || match parallel {
        true => population.evaluate(score),
        false => population.evaluate_mut(|members| {
            chunks.borrow_mut().push(members.count());
            score(members)
        }),
    };
    let panicked = |panic: Box<dyn std::any::Any + Send>| panic.downcast_ref::<String>().expect("a message").clone();
    catch_unwind(AssertUnwindSafe(run)).map(|_| chunks.take()).map_err(panicked)
}

/// A member's layer returns 100 rows of 16 values.
const MEMBER: u64 = (ROWS * 16 * 4) as u64;

#[test]
fn a_chunk_that_does_not_fit_is_refused_with_one_that_does() {
    let layer = layer(8, 16);
    let limit = 100 * MEMBER + 5;
    let refused = evaluate(&configured(limit).with_chunk_size(1000), &layer, false).expect_err("refused");
    let message = format!(
        "a chunk of 1000 members takes about {} bytes, more than the {limit} that may be used: a chunk of 100 members fits",
        1000 * MEMBER
    );
    assert_eq!(refused, message);
    // The chunk that it proposes does fit, and is measured first.
    let chunks = evaluate(&configured(limit).with_chunk_size(100), &layer, false).expect("fits");
    assert_eq!((chunks[0], chunks[1], chunks.iter().sum::<usize>()), (32, 100, 4096));
    // Side by side all of them have to fit.
    let cores = rayon::current_num_threads().min(40);
    if cores > 1 {
        let refused = evaluate(&configured(limit).with_chunk_size(100), &layer, true).expect_err("refused");
        assert!(refused.contains("chunks at once") && refused.contains("members fits"), "{refused}");
    }
}

/// Where chunks are chosen by memory, they are chosen to fit.
#[test]
fn chosen_chunks_fit() {
    let layer = layer(8, 16);
    let chunks = evaluate(&configured(40 * MEMBER + 1), &layer, false).expect("fits");
    assert_eq!((chunks[0], chunks[1]), (32, 40));
    let ample = evaluate(&configured(1 << 40), &layer, false).expect("fits");
    assert!(ample[1] > 1000, "canary: the limit made the chunks small, {ample:?}");
    assert!(evaluate(&configured(rayon::current_num_threads() as u64 * 40 * MEMBER), &layer, true).is_ok());
    let message = evaluate(&configured(MEMBER), &layer, false).expect_err("refused");
    assert!(message.ends_with("not even a chunk of 2 members fits"), "{message}");
}

/// One row for every member is the least that an evaluation takes.
#[test]
fn a_chunk_that_cannot_fit_is_refused_at_once() {
    // Of 8 × 16 and its transpose, the smaller output.
    let message = refused(configured(1 << 10).with_chunk_size(1000), &layer(8, 16));
    assert!(message.contains("a chunk of 1000 members takes about 32000 bytes"), "{message}");
    assert!(message.contains("more than the 1024 that may be used: a chunk of 32 members fits"), "{message}");
    assert!(configured(32000).with_chunk_size(1000).try_init(&layer(8, 16)).is_ok());
}

#[test]
fn noise_that_does_not_fit_is_refused() {
    // Ranks 1 of 8 + 16, and a bias of 16: 40 elements of 4 bytes for each of 2048 pairs.
    let held = 2048 * 40 * 4;
    let cached = |limit| configured(limit).with_noise_source(NoiseSourceConfig::Cached);
    assert!(cached(held).try_init(&layer(8, 16)).is_ok());
    let expected = format!(
        "the noise that 2048 pairs hold takes {held} bytes, more than the {} that may be used: a population of 4094 fits; \
         on the fly, only integer parameters hold noise",
        held - 1
    );
    assert_eq!(refused(cached(held - 1), &layer(8, 16)), expected);
    assert!(cached(held - 1).with_population_size(4094).try_init(&layer(8, 16)).is_ok());
    // What it estimates is what is held.
    let strategy = cached(held).init(&layer(8, 16));
    let before = counters::snapshot();
    strategy.ask();
    assert_eq!((counters::snapshot() - before).noise_bytes, held);

    let table = configured(1 << 20).with_noise_source(NoiseSourceConfig::Table { len: (1 << 18) + 1 });
    let message = refused(table, &layer(8, 16));
    assert!(message.contains("the table alone takes 1048580"), "{message}");
    let integers = integer_config().with_population_size(1 << 20).with_memory_limit(1 << 20);
    let message = refused(integers, &IntegerNet::start());
    assert!(message.ends_with(&format!("a population of {} fits", (1 << 20) / 24 * 2)), "{message}");
    let rank = configured(1 << 20).with_roles([("weight", Role::LowRank { rank: 1 << 20 })]);
    let message = refused(rank, &layer(8, 16));
    assert!(message.starts_with("one pair's noise of \"weight\" takes 100663296 bytes"), "{message}");
}

/// On Linux there is a limit without one being configured: what is available.
#[test]
#[cfg(target_os = "linux")]
fn what_is_available_is_the_limit_by_default() {
    let config = config(EggrollConfig::new(), AdamConfig::new());
    let huge = config.clone().with_noise_source(NoiseSourceConfig::Cached).with_population_size(u32::MAX as usize - 1);
    // A terabyte.
    let message = refused(huge, &layer(16, 48));
    assert!(message.contains("that may be used: a population of"), "{message}");
    assert!(config.try_init(&layer(16, 48)).is_ok());
}
