//! A part of a population, to be evaluated on its own.

use super::Population;
use std::ops::Range;

impl Population {
    /// The population of these members only, with their noise. Every evaluation returns the fitness of these members, in their order,
    /// with the same bits as in the whole population. [`MemberChunk`](crate::MemberChunk) keep their numbers in the generation, and the
    /// [state](Self::evaluate_with_state) has rows for these members only.
    ///
    /// An evaluation records the use of parameters in the whole population: give that to `tell`, with the fitness of all members. A
    /// process that evaluates no slice of a generation has no such record. For [credit by part](crate::Credit) it has to evaluate
    /// one, for example the first pair.
    ///
    /// # Panics
    ///
    /// Panics if the members are not whole pairs, one at least, of this population.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::optim::SgdConfig;
    /// use burn::tensor::{Device, Tensor};
    /// use eggroll_core::EggrollConfig;
    /// use eggroll_nn::LinearConfig;
    /// use eggroll_train::{EvolutionStrategyConfig, Fitness, Population};
    ///
    /// # fn main() -> Result<(), eggroll_train::Error> {
    /// let model = LinearConfig::new(2, 1).init(&Device::flex());
    /// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(8);
    /// let mut strategy = config.try_init(&model)?;
    /// let population = strategy.ask();
    /// let x = Tensor::<2>::ones([1, 2], &Device::flex());
    /// let evaluate =
    ///     |members: &Population| members.evaluate(|members| members.mean(model.forward_shared(x.clone())));
    /// let parts = [0..6, 6..8].map(|members| evaluate(&population.slice(members)));
    /// let fitness = Fitness::from([parts[0].values(), parts[1].values()].concat());
    /// assert_eq!(fitness, evaluate(&population));
    /// strategy.tell(&mut model.clone(), population, fitness)?;
    /// # let _ = model;
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn slice(&self, members: Range<usize>) -> Self {
        let (Range { start, end }, all) = (members, self.range());
        assert!(
            start < end && start.is_multiple_of(2) && end.is_multiple_of(2) && all.start <= start && end <= all.end,
            "slice: members {start}..{end} are not whole pairs of members {}..{}",
            all.start,
            all.end
        );
        Self {
            generation: self.generation,
            resets_state: self.resets_state,
            size: self.size,
            first: start,
            members: end - start,
            perturbation: self.perturbation.clone(),
            settings: self.settings,
            chunk_size: self.chunk_size,
            member_bytes: self.member_bytes.clone(),
            memory_limit: self.memory_limit,
            uses: self.uses.clone(),
            fields: self.fields.clone(),
            credit: self.credit,
            moves_integers: self.moves_integers,
            observes: self.observes.clone(),
            inputs: self.inputs.clone(),
            knows_rows: self.knows_rows,
            rows: self.rows.clone(),
        }
    }
}
