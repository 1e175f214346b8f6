//! Answers of all members: run together if their noise is of low rank, else as separate models.

use super::Finetune;
use crate::error::Error;
use crate::generation::{generate, generate_population};
use crate::host::Decoder;
use crate::items::{Item, Items};
use crate::language_model::{Generated, LanguageModel, Scored};
use crate::sampling::SamplingConfig;
use crate::scoring::{score, score_population};
use crate::tunable::Tunable;
use eggroll_train::Population;

impl<M: Tunable> Finetune<M> {
    /// Scores items with all members: `[members][items]`. On the host, members with noise of full rank or from a table are packed one after
    /// the other.
    ///
    /// # Errors
    ///
    /// [`Error::Items`] for items that do not fit the model or the population.
    pub fn score_members(&self, population: &Population, items: Items) -> Result<Vec<Vec<Scored>>, Error> {
        if let Some(model) = self.together(population) {
            return Ok(score_population(model, population, items)?);
        }
        self.each_member(population, items, |host, items| Ok(score(host, items)?))
    }

    /// Continues prompts with all members: `[members][prompts]`. On the host, members with noise of full rank or from a table are packed one
    /// after the other. All use the same draws in every step.
    ///
    /// # Errors
    ///
    /// [`Error::Items`] for prompts that do not fit the model or the population, [`Error::Sampling`] for invalid settings.
    pub fn generate_members(
        &self,
        population: &Population,
        prompts: Items,
        sampling: &SamplingConfig,
    ) -> Result<Vec<Vec<Generated>>, Error> {
        if let Some(model) = self.together(population) {
            return Ok(generate_population(model, population, prompts, sampling)?);
        }
        self.each_member(population, prompts, |host, prompts| Ok(generate(host, prompts, sampling)?))
    }

    /// The model that runs the members together: on its device, or on the host for noise of low rank.
    fn together(&self, population: &Population) -> Option<&dyn LanguageModel> {
        let perturbation = population.perturbation();
        let on_host = || {
            let host = self.host();
            host.can_perturb(perturbation).then_some(host as &dyn LanguageModel)
        };
        self.model.on_device().filter(|_| self.model.takes_on_device(perturbation)).or_else(on_host)
    }

    fn each_member<R>(
        &self,
        population: &Population,
        items: Items,
        run: impl Fn(&M::Host, &[Item]) -> Result<R, Error>,
    ) -> Result<Vec<R>, Error> {
        items.check_whole(population)?;
        items.check_groups(population.count())?;
        let answer = |(member, items): (usize, &[Item])| {
            run(&self.model.member(population, member, self.config.precision)?, items)
        };
        let results = items.of_members(&population.range(), population).into_iter().map(answer).collect();
        let parameters: Vec<_> = population.perturbation().table.entries().iter().map(|entry| entry.id).collect();
        population.note_used(&parameters);
        results
    }
}
