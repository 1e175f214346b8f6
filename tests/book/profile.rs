//! A trace of your own program.

use burn::optim::SgdConfig;
use eggroll::nn::LinearConfig;
use eggroll::prelude::*;
use eggroll::run::profile::TraceConfig;

#[test]
fn a_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    let traced = || -> Result<(), eggroll::Error> {
        let trace = TraceConfig::new(&path).with_generations(20).start()?;
        train();
        println!("{}", trace.finish()?); // what each component took; the file opens in Perfetto
        Ok(())
    };
    traced().expect("a trace");
    let text = std::fs::read_to_string(&path).expect("a file");
    assert!(text.contains("\"name\":\"estimate\""), "{}", &text[..text.len().min(500)]);
}

fn train() {
    let model = LinearConfig::new(4, 2).init(&Device::flex());
    let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).init(&model);
    let population = strategy.ask();
    let x = Tensor::<2>::ones([1, 4], &Device::flex());
    let fitness = population.evaluate(|members| members.mean(model.forward_shared(x.clone())));
    strategy.tell(&mut model.clone(), population, fitness).expect("a generation");
}
