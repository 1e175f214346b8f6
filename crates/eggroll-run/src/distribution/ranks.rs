//! Replicas that are the ranks of a communicator: each evaluates a fixed share of every population.

use super::exchange::{Exchange, RunStart, Score};
use crate::error::Error;
use eggroll_train::{Communicator, DistributionError, Fitness, Population, gather_fitness, own_members};

/// One of the ranks of a communicator, see [`Distribution::new`](super::Distribution::new).
///
/// All begin alike (data, generation, configuration, parameters, kind of device), which is checked. Replicas that continue from a checkpoint all
/// read it: their file system is shared. A rank that fails says so to the others, and all stop.
pub struct Ranks {
    communicator: Box<dyn Communicator>,
    digest_every: u64,
}

impl Ranks {
    /// The replica of this communicator.
    pub fn new(communicator: impl Communicator + 'static) -> Self {
        Self { communicator: Box::new(communicator), digest_every: 100 }
    }

    /// Sets the number of generations between comparisons of all parameters' digests; 0 for never. Each comparison reads all parameters.
    /// 100 by default.
    pub fn with_digest_every(mut self, generations: u64) -> Self {
        self.digest_every = generations;
        self
    }

    fn is_alone(&self) -> bool {
        self.communicator.size() == 1
    }

    fn same(&mut self, what: &'static str, text: &str) -> Result<(), DistributionError> {
        match self.first_difference(text)? {
            None => Ok(()),
            Some((rank, found, expected)) => Err(DistributionError::Start { rank, what, found, expected }),
        }
    }

    /// The first rank whose text differs from that of rank 0, with both.
    fn first_difference(&mut self, text: &str) -> Result<Option<(usize, String, String)>, DistributionError> {
        let texts = self.communicator.all_gather_text(text)?;
        let found = texts.iter().enumerate().find(|(_, text)| **text != texts[0]);
        Ok(found.map(|(rank, found)| (rank, found.clone(), texts[0].clone())))
    }
}

impl Exchange for Ranks {
    fn leads(&self) -> bool {
        self.communicator.rank() == 0
    }

    fn begin(&mut self, start: &RunStart<'_>) -> Result<(), Error> {
        if self.is_alone() {
            return Ok(());
        }
        for (what, text) in &start.of_run {
            self.same(what, text)?;
        }
        self.same("generation", &start.generation.to_string())?;
        if let Some(arithmetic) = &start.arithmetic
            && let Some((rank, found, expected)) = self.first_difference(arithmetic)?
        {
            return Err(DistributionError::MixedDevices { rank, found, expected }.into());
        }
        for (what, text) in (start.of_generation)() {
            self.same(what, &text)?;
        }
        Ok(())
    }

    fn evaluate(
        &mut self,
        population: &Population,
        _digest: &dyn Fn() -> String,
        score: Score<'_>,
    ) -> Result<Option<Fitness>, Error> {
        let communicator = &mut *self.communicator;
        let fitness = score(&population.slice(own_members(population, communicator)))?;
        Ok(Some(gather_fitness(population, communicator, fitness)?))
    }

    fn after(&mut self, generation: u64, digest: &dyn Fn() -> String) -> Result<(), Error> {
        let due = self.digest_every > 0 && generation.is_multiple_of(self.digest_every);
        if !due || self.is_alone() {
            return Ok(());
        }
        Ok(self.communicator.check_digest(generation, &digest())?)
    }

    fn any_stops(&mut self, this: bool) -> Result<bool, Error> {
        let wishes = self.communicator.all_gather_words(&[u32::from(this)])?;
        Ok(wishes.iter().any(|wish| wish.first().is_some_and(|stops| *stops != 0)))
    }

    fn wait(&mut self) -> Result<(), Error> {
        self.communicator.all_gather_words(&[])?;
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        self.wait()
    }

    fn fail(&mut self) {
        self.communicator.fail();
    }
}
