//! From a checkpoint to plain Burn and to SafeTensors.

use burn::store::{BurnToPyTorchAdapter, ModuleSnapshot, PyTorchToBurnAdapter, SafetensorsStore};
use eggroll::prelude::*;

/// The model that is trained.
#[derive(Module, Debug)]
struct Trained {
    first: nn::Linear,
    second: nn::Linear,
}

/// The model that is deployed: plain Burn, without a dependency on eggroll. Fields have the same names.
#[derive(Module, Debug)]
struct Deployed {
    first: burn::nn::Linear,
    second: burn::nn::Linear,
}

impl Trained {
    fn new(device: &Device) -> Self {
        Self { first: nn::LinearConfig::new(3, 8).init(device), second: nn::LinearConfig::new(8, 2).init(device) }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(activation::relu(self.first.forward_shared(x)))
    }
}

impl Deployed {
    fn new(device: &Device) -> Self {
        let layer = |d_input, d_output| burn::nn::LinearConfig::new(d_input, d_output).init(device);
        Self { first: layer(3, 8), second: layer(8, 2) }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(activation::relu(self.first.forward(x)))
    }
}

#[test]
fn from_a_checkpoint_to_other_formats() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let folder = temporary.path();
    let device = Device::flex();
    let x = Tensor::<2>::from_floats([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]], &device);
    let model = Trained::new(&device);
    let expected = model.forward(x.clone()).into_data();
    let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).try_init(&model)?;

    let checkpoints = Checkpoints::new(folder.join("checkpoints"));
    let saved = checkpoints.save(&strategy, &model)?; // the folder generation-N
    drop(model);

    let (strategy, model) = checkpoints.load_latest(Trained::new(&device))?.expect("saved above");
    println!("continues at generation {}", strategy.generation());

    // ANCHOR: plain
    let deployed = Deployed::new(&device).load_file(saved.join("model.bpk"));
    assert_eq!(deployed.forward(x.clone()).into_data(), model.forward(x.clone()).into_data()); // bit for bit
    // ANCHOR_END: plain
    assert_eq!(deployed.forward(x.clone()).into_data(), expected);

    let deployed = Deployed { first: model.first.clone().into(), second: model.second.clone().into() };
    assert_eq!(deployed.forward(x.clone()).into_data(), expected);

    let file = folder.join("model.safetensors");
    model.save_into(&mut SafetensorsStore::from_file(&file))?;
    let mut deployed = Deployed::new(&device);
    deployed.load_from(&mut SafetensorsStore::from_file(&file))?;
    assert_eq!(deployed.forward(x.clone()).into_data(), expected);

    let file = folder.join("for-pytorch.safetensors");
    model.save_into(&mut SafetensorsStore::from_file(&file).with_to_adapter(BurnToPyTorchAdapter))?;
    let mut back = Trained::new(&device);
    back.load_from(&mut SafetensorsStore::from_file(&file).with_from_adapter(PyTorchToBurnAdapter))?;
    assert_eq!(back.forward(x).into_data(), expected);

    let store = &mut SafetensorsStore::from_file(folder.join("model.safetensors"));
    let model = nn::weights::load(Trained::new(&device), store, folder.join("model.safetensors"))?;
    assert_eq!(parameter_digest(&model), parameter_digest(&back));
    Ok(())
}
