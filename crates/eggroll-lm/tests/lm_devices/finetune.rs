//! Fine-tuning of a model on a device, against one on the host.

use crate::devices::on_each_gpu;
use crate::made::filled;
use crate::small::{config, tokenizer};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};
use eggroll_core::transformer::Precision;
use eggroll_lm::reward::Prompt;
use eggroll_lm::{Finetune, FinetuneConfig, Items, Llama, SamplingConfig};
use eggroll_train::Credit;

fn finetune(credit: Credit, device: &Device) -> Finetune<Llama> {
    let folder = tempfile::tempdir().expect("a folder");
    let model = filled(Llama::new(&config(), &Device::flex())).to_device(device);
    let settings = FinetuneConfig::new().with_population_size(8).with_sigma(0.1).with_precision(Precision::F32);
    settings.with_credit(credit).init_with(model, tokenizer(folder.path(), false), None).expect("settings")
}

#[derive(Default)]
struct Values(Vec<f32>);

impl ModuleVisitor for Values {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.extend(param.val().into_data().try_to_vec::<f32>().expect("f32"));
    }
}

fn values(finetune: &Finetune<Llama>) -> Vec<f32> {
    let mut values = Values::default();
    finetune.model().visit(&mut values);
    values.0
}

fn largest(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn steps_are_those_of_the_host() {
    on_each_gpu(|device| {
        for credit in [Credit::Mean, Credit::Auto] {
            let [mut host, mut on_device] = [&Device::flex(), device].map(|device| finetune(credit, device));
            let before = values(&host);
            for finetune in [&mut host, &mut on_device] {
                let items = [finetune.item("ab", "cd").expect("tokens"), finetune.item("q", "rst").expect("tokens")];
                finetune.learn(Items::Shared(&items)).expect("a step");
                finetune.learn(Items::Shared(&items)).expect("a step");
            }
            let (host, on_device) = (values(&host), values(&on_device));
            let moved = largest(&before, &host);
            assert!(largest(&host, &on_device) < 0.01 * moved, "{credit:?}: {} of {moved}", largest(&host, &on_device));
            assert!(moved > 0.0, "a canary: nothing was learned");
        }
    });
}

#[test]
fn texts_are_those_of_the_host() {
    on_each_gpu(|device| {
        let [mut host, mut on_device] = [&Device::flex(), device].map(|device| finetune(Credit::Mean, device));
        let prompts = [Prompt::new("ab"), Prompt::new("cde")];
        let reward = |_: &Prompt, text: &str| text.matches('a').count() as f32 - text.len() as f32 / 7.0;
        let sampling = SamplingConfig::greedy(6).with_temperature(1.0).with_answers(2, 1);
        let [a, b] = [&mut host, &mut on_device].map(|finetune| {
            let report = finetune.learn_from(&reward, &prompts, &sampling).expect("a step");
            (report.tokens, finetune.complete(&prompts, &SamplingConfig::greedy(6)).expect("texts"))
        });
        assert_eq!(a.0, b.0);
        assert_eq!(format!("{:?}", a.1), format!("{:?}", b.1));
    });
}
