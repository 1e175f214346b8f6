//! Replicas on devices of several kinds: refused where they would drift apart, equal where they cannot.

use crate::distribution::support::*;
use eggroll_run::Error;
use eggroll_run::distribution::{Communicator, Distribution, DistributionError};

/// Rank 1 says that it computes elsewhere.
#[test]
fn mixed_devices_are_refused() {
    let outcomes = replicas(3, |inner| {
        let rank = inner.rank();
        let out = move |words: &mut Vec<u32>| {
            let text: String = words.iter().filter_map(|word| char::from_u32(*word)).collect();
            if rank == 1 && text.chars().skip(1).collect::<String>().starts_with("Flex (") {
                words[1] = u32::from('C');
            }
        };
        run(&config(), &mut Distribution::new(Tampering { inner, out, into: |_: &mut _| {} }))
    });
    for outcome in outcomes {
        match outcome {
            Err(Error::Distribution(DistributionError::MixedDevices { rank: 1, found, expected })) => {
                assert!(found.starts_with("Clex (") && expected.starts_with("Flex ("), "{found}, {expected}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(replicas(3, |threads| run(&config(), &mut Distribution::new(threads))).into_iter().all(|run| run.is_ok()));
}

#[cfg(feature = "wgpu")]
mod cpu_and_gpu {
    use super::*;
    use crate::distribution::integers;
    use burn::module::Module;
    use burn::tensor::{Device, DeviceKind, Tensor};
    use eggroll_nn::LinearConfig;
    use eggroll_run::TrainingLoop;
    use eggroll_run::distribution::{Alone, on_devices};
    use eggroll_train::{GenerationReport, Population};
    use std::ops::ControlFlow;

    fn devices() -> [Device; 2] {
        [Device::flex(), Device::wgpu(DeviceKind::DefaultDevice)]
    }

    #[test]
    fn integers_are_equal() {
        let expected = integers::train(&mut Alone, &Device::flex(), 3);
        let digests = on_devices(&devices(), |mut threads, device| integers::train(&mut threads, device, 3));
        assert_eq!(digests, [expected.clone(), expected]);
    }

    #[test]
    fn floats_are_refused() {
        let model = LinearConfig::new(4, 2).init(&Device::flex());
        let outcomes = on_devices(&devices(), |threads, device| {
            let model = model.clone().to_device(device);
            let evaluate = |_: &_, population: &Population| {
                Ok(population.evaluate(|members| Tensor::<1>::ones([members.count()], device)))
            };
            let go_on = |_: &_, _: &GenerationReport| Ok(ControlFlow::Continue(()));
            let (mut strategy, training) = (config().init(&model), TrainingLoop::new(1));
            training.run_distributed(&mut Distribution::new(threads), &mut strategy, model, evaluate, go_on).map(drop)
        });
        for outcome in outcomes {
            let refused = matches!(outcome, Err(Error::Distribution(DistributionError::MixedDevices { rank: 1, .. })));
            assert!(refused, "{outcome:?}");
        }
    }
}
