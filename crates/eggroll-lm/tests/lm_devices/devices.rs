//! The devices that tests run on.

use burn::tensor::Device;
use eggroll_core::DeviceName;
use eggroll_core::sync::locked;
use std::sync::Mutex;

static ONE_TEST: Mutex<()> = Mutex::new(());

/// Runs a test on every device of the build; on those that `EGGROLL_CONFORMANCE` names, if it names any.
pub fn on_each(test: impl Fn(&Device)) {
    let _one = locked(&ONE_TEST);
    let named = std::env::var("EGGROLL_CONFORMANCE").unwrap_or_default();
    let is_meant = |name: &DeviceName| named.is_empty() || named.split(',').any(|one| one == name.to_string());
    let mut tested = 0;
    for name in DeviceName::compiled().filter(is_meant) {
        println!("on {name}");
        test(&name.device().unwrap_or_else(|error| panic!("{error}")));
        tested += 1;
    }
    assert!(tested > 0, "no device of the build is one of `{named}`");
}

/// Runs a test on every device that is not the host's.
pub fn on_each_gpu(test: impl Fn(&Device)) {
    on_each(|device| {
        if !eggroll_core::is_on_host(device) {
            test(device);
        }
    });
}
