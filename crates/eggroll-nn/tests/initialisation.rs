//! Alone in its process: Burn's random numbers come from one global generator.

use burn::nn;
use burn::tensor::Device;
use eggroll_nn::LinearConfig;

#[test]
fn initializes_as_burn_does() {
    let device = Device::flex();
    device.seed(3);
    let burn_layer = nn::LinearConfig::new(6, 4).init(&device);
    let expected = burn_layer.weight.val().into_data();
    device.seed(3);
    let layer = LinearConfig::new(6, 4).init(&device);
    assert_eq!(layer.weight.val().into_data(), expected);
    assert_eq!(format!("{layer}"), format!("{burn_layer}"));
}
