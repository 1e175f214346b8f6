//! The TOML file: what is run, over which settings, for how long.

use super::space::{Parameter, Value, uniform};
use super::template::Template;
use super::trial::Trial;
use crate::Failure;
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Draws of a random search for each configuration that is asked for, before it gives up finding new ones.
const DRAWS: usize = 1000;

/// A sweep as its file describes it.
#[derive(Debug)]
pub struct Plan {
    pub command: Vec<String>,
    pub objective: String,
    pub goal: Goal,
    pub budget: Budget,
    pub parameters: BTreeMap<String, Parameter>,
    search: Search,
    seeds: Vec<Option<u64>>,
    template: Template,
}

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    command: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    objective: String,
    #[serde(default)]
    goal: Goal,
    #[serde(default)]
    search: Search,
    seeds: Option<Vec<u64>>,
    #[serde(default)]
    budget: Budget,
    parameters: BTreeMap<String, toml::Value>,
}

/// Whether the objective is to be high or low.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    #[default]
    Maximize,
    Minimize,
}

/// Which configurations are run.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Search {
    /// Every combination.
    #[default]
    Grid,
    /// Combinations drawn at random: a pure function of the seed.
    Random { configurations: usize, seed: u64 },
}

/// What a sweep may take.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Trials side by side.
    pub jobs: usize,
    /// Seconds after which no trial is begun any more.
    pub seconds: Option<f64>,
    /// Seconds after which a trial is ended.
    pub trial_seconds: Option<f64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { jobs: 1, seconds: None, trial_seconds: None }
    }
}

impl Budget {
    /// The limit of the whole sweep.
    pub fn limit(&self) -> Option<Duration> {
        self.seconds.map(Duration::from_secs_f64)
    }

    /// The limit of one trial.
    pub fn trial_limit(&self) -> Option<Duration> {
        self.trial_seconds.map(Duration::from_secs_f64)
    }

    fn validate(&self) -> Result<(), Failure> {
        for (name, seconds) in [("seconds", self.seconds), ("trial_seconds", self.trial_seconds)] {
            if let Some(seconds) = seconds
                && !Duration::try_from_secs_f64(seconds).is_ok_and(|limit| !limit.is_zero())
            {
                return Err(format!("budget.{name} must be positive and finite, not {seconds}").into());
            }
        }
        Ok(())
    }
}

impl Goal {
    /// Whether `a` is better than `b`.
    pub fn is_better(self, a: f64, b: f64) -> bool {
        match self {
            Self::Maximize => a > b,
            Self::Minimize => a < b,
        }
    }
}

impl Plan {
    /// Reads and checks a sweep.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    fn parse(text: &str) -> Result<Self, Failure> {
        let file: File = toml::from_str(text)?;
        file.budget.validate()?;
        if file.command.is_empty() {
            return Err("the command is empty".into());
        }
        if file.parameters.is_empty() {
            return Err("there are no parameters: the grid is empty".into());
        }
        let read = |(name, value): (String, toml::Value)| {
            let parameter = Parameter::read(&value).map_err(|error| format!("parameters.{name}: {error}"))?;
            Ok((name, parameter))
        };
        let parameters = file.parameters.into_iter().map(read).collect::<Result<BTreeMap<_, _>, String>>()?;
        let seeds = seeds(file.seeds)?;
        let template = Template::new(&file.command, &file.environment);
        template.check(parameters.keys().map(String::as_str), seeds[0].is_some())?;
        let plan = Self {
            command: file.command,
            objective: file.objective,
            goal: file.goal,
            budget: file.budget,
            parameters,
            search: file.search,
            seeds,
            template,
        };
        plan.check_search()?;
        Ok(plan)
    }

    fn check_search(&self) -> Result<(), Failure> {
        let finite = self.parameters.iter().map(|(name, parameter)| (name, parameter.points()));
        match self.search {
            Search::Grid => match finite.into_iter().find(|(_, points)| points.is_none()) {
                Some((name, _)) => Err(format!("parameters.{name}: a range of a grid needs steps").into()),
                None => Ok(()),
            },
            Search::Random { configurations: 0, .. } => Err("a random search of 0 configurations is empty".into()),
            Search::Random { configurations, .. } => {
                let lengths = finite.map(|(_, points)| points.map(<[Value]>::len));
                let size =
                    lengths.collect::<Option<Vec<_>>>().map(|all| all.into_iter().fold(1, usize::saturating_mul));
                match size.filter(|size| *size < configurations) {
                    Some(size) => Err(format!(
                        "a random search of {configurations} configurations in a space of {size}: use the grid"
                    )
                    .into()),
                    None => Ok(()),
                }
            }
        }
    }

    /// All trials: every configuration with the first seed, then with the next, so that a sweep whose time is cut short has tried as
    /// much as possible.
    pub fn trials(&self) -> Result<Vec<Trial>, Failure> {
        let configurations = self.configurations()?;
        let mut keys = HashSet::new();
        let seeds = self.seeds.iter();
        let all = seeds
            .flat_map(|seed| configurations.iter().map(move |settings| Trial::new(&self.template, settings, *seed)));
        Ok(all.filter(|trial| keys.insert(trial.key.clone())).collect())
    }

    /// The settings of every configuration, by name.
    fn configurations(&self) -> Result<Vec<BTreeMap<String, Value>>, Failure> {
        match self.search {
            Search::Grid => Ok(self.grid()),
            Search::Random { configurations, seed } => self.draw(configurations, seed),
        }
    }

    fn grid(&self) -> Vec<BTreeMap<String, Value>> {
        self.parameters.iter().fold(vec![BTreeMap::new()], |configurations, (name, parameter)| {
            let points = parameter.points().expect("checked: a grid has points");
            let extend = |settings: BTreeMap<String, Value>| {
                points.iter().map(move |point| {
                    let mut settings = settings.clone();
                    settings.insert(name.clone(), point.clone());
                    settings
                })
            };
            configurations.into_iter().flat_map(extend).collect()
        })
    }

    /// Different configurations, drawn one after the other.
    fn draw(&self, count: usize, seed: u64) -> Result<Vec<BTreeMap<String, Value>>, Failure> {
        let mut found: Vec<BTreeMap<String, Value>> = Vec::with_capacity(count);
        for draw in 0..count.saturating_mul(DRAWS) as u64 {
            if found.len() == count {
                break;
            }
            let parameters = self.parameters.iter().enumerate();
            let settings = parameters
                .map(|(index, (name, parameter))| (name.clone(), parameter.draw(uniform(seed, draw, index as u32))));
            let settings = settings.collect();
            if !found.contains(&settings) {
                found.push(settings);
            }
        }
        if found.len() < count {
            return Err(format!("a random search found {} different configurations, not {count}", found.len()).into());
        }
        Ok(found)
    }
}

fn seeds(given: Option<Vec<u64>>) -> Result<Vec<Option<u64>>, Failure> {
    let Some(seeds) = given else {
        return Ok(vec![None]);
    };
    if seeds.is_empty() {
        return Err("seeds are empty: leave them out if the program has none".into());
    }
    match seeds.iter().enumerate().find(|(i, seed)| seeds[..*i].contains(seed)) {
        Some((_, seed)) => Err(format!("seeds {seeds:?}: {seed} is there twice").into()),
        None => Ok(seeds.into_iter().map(Some).collect()),
    }
}
