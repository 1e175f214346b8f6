//! A custom observer of a run.

use burn::optim::AdamConfig;
use burn::train::logger::MetricLogger;
use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn::train::metric::{MetricDefinition, MetricId, NumericEntry};
use eggroll::nn::{Linear, LinearConfig};
use eggroll::prelude::*;
use eggroll::run::{Scalars, UserError, durable, print_note};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// The latest value of each metric, in a file that Prometheus' node exporter reads.
struct Prometheus {
    file: PathBuf,
    names: HashMap<MetricId, String>,
    values: BTreeMap<String, f64>,
}

impl MetricLogger for Prometheus {
    fn log_metric_definition(&mut self, metric: MetricDefinition) {
        let letters = metric.name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
        self.names.insert(metric.metric_id, letters.collect());
    }

    fn log(&mut self, update: MetricsUpdate, _epoch: usize, split: &Split) {
        for metric in update.entries_numeric {
            if let (Some(name), Some(number)) = (self.names.get(&metric.entry.metric_id), metric.numeric_entry) {
                if *split == Split::Train && matches!(number, NumericEntry::Final(_)) {
                    continue; // the mean of an epoch
                }
                self.values.insert(format!("eggroll_{name}{{split=\"{split}\"}}"), number.current());
            }
        }
        let lines: String = self.values.iter().map(|(key, value)| format!("{key} {value}\n")).collect();
        if let Err(error) = durable::replace(&self.file, lines.as_bytes()) {
            print_note!("{error}");
        }
    }

    fn log_epoch_summary(&mut self, _: EpochSummary) {}

    fn read_numeric(&mut self, _: &str, _: usize, _: &Split) -> Result<Vec<NumericEntry>, String> {
        Ok(Vec::new()) // the run asks its own log
    }
}

struct Ones;

impl EsTask<Linear> for Ones {
    type Output = Scalars;

    fn evaluate(&mut self, model: &Linear, population: &Population) -> Result<Fitness, UserError> {
        let x = Tensor::<2>::ones([1, 4], &Device::flex());
        Ok(population.evaluate(|members| members.mean(model.forward_shared(x.clone()))))
    }
}

#[test]
fn the_file_has_the_latest_values() -> Result<(), eggroll::Error> {
    let temporary = tempfile::tempdir().expect("a folder");
    let (folder, file) = (temporary.path().join("run"), temporary.path().join("eggroll.prom"));
    let model = LinearConfig::new(4, 1).init(&Device::flex());
    let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new());
    let config = EsTrainingConfig::new(strategy, 3).with_report_every(1);
    let metrics = || std::fs::read_to_string(&file).expect("a file");
    // ANCHOR: launch
    let observer = Prometheus { file: file.clone(), names: HashMap::new(), values: BTreeMap::new() };
    let outcome = EsTraining::new(&folder, config).with_metric_logger(observer).launch(model, &mut Ones)?;
    // ANCHOR_END: launch
    let report = outcome.strategy.report().expect("told");
    let line = format!("eggroll_fitness_mean{{split=\"train\"}} {}\n", report.fitness_mean);
    assert!(metrics().contains(&line), "{line}: {}", metrics());
    Ok(())
}
