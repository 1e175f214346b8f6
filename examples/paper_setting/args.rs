//! The command line.

use burn::tensor::DType;
use clap::{Parser, ValueEnum};
use eggroll::core::DeviceName;
use eggroll_examples::bounds::{self, MEMBERS, RANK, WIDTH, at_most};
use eggroll_examples::options::Given;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Type {
    Bf16,
    F16,
    F32,
}

/// What is timed next to plain inference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Column {
    /// EGGROLL, noise drawn in every pass.
    Fly,
    /// EGGROLL, noise kept.
    Cached,
    /// EGGROLL, noise out of a table.
    Table,
    /// EGGROLL's gradient estimate, noise drawn in every pass.
    Estimate,
    /// OpenES, noise drawn in every pass: a value for every weight and pair, which a CPU has no time for.
    OpenEs,
}

/// Times one wide linear layer as a population against plain inference.
#[derive(Parser, Debug)]
pub struct PaperSettingArgs {
    /// Inputs and outputs of the layer.
    #[arg(long, default_value_t = 8192, value_parser = at_most(WIDTH))]
    pub width: usize,
    /// Members, even, with one row each.
    #[arg(long, default_value_t = 1024, value_parser = at_most(MEMBERS))]
    pub batch: usize,
    /// Rank of the noise.
    #[arg(long, default_value_t = 1, value_parser = at_most(RANK))]
    pub rank: usize,
    /// Type of input, weights and stored noise.
    #[arg(long, value_enum, default_value_t = Type::Bf16)]
    pub dtype: Type,
    /// What is timed: fly, cached, table, estimate, open-es (slow on CPUs).
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "fly,cached,table,estimate",
        hide_possible_values = true
    )]
    pub columns: Vec<Column>,
    /// Seconds of repetition, at least 5 rounds.
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// Passes between synchronizations; too few let a fast device wait.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub passes: u32,
    /// Backend: flex, ndarray, cuda, rocm, vulkan, metal or wgpu, if compiled in; cuda:1 is the second card.
    #[arg(long, default_value_t)]
    pub backend: DeviceName,
}

impl PaperSettingArgs {
    pub fn dtype(&self) -> DType {
        match self.dtype {
            Type::Bf16 => DType::BF16,
            Type::F16 => DType::F16,
            Type::F32 => DType::F32,
        }
    }

    pub fn type_name(&self) -> String {
        format!("{:?}", self.dtype).to_lowercase()
    }

    /// Refuses a rank for noise that has none.
    pub fn refuse_unused(&self, given: &Given) -> Result<(), String> {
        match self.columns.iter().all(|column| *column == Column::OpenEs) {
            true => given.refuse(&["rank"], "with open-es alone"),
            false => Ok(()),
        }
    }

    pub fn validate(&self) -> Result<(), String> {
        if self.batch < 2 || !self.batch.is_multiple_of(2) {
            return Err(format!("the batch must be even and at least 2, not {}", self.batch));
        }
        for (name, value) in [("width", self.width), ("rank", self.rank), ("passes", self.passes as usize)] {
            if value == 0 {
                return Err(format!("{name} must be at least 1, not 0"));
            }
        }
        bounds::seconds(self.seconds)?;
        if !(self.seconds >= 0.0 && self.seconds.is_finite()) {
            return Err(format!("seconds must not be negative, {} is", self.seconds));
        }
        Ok(())
    }
}
