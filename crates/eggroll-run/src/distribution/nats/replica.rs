//! A model that follows the run: the fitness of each generation, as it is published.

use super::collection::join;
use super::error::NatsError;
use super::protocol::ToldPart;
use crate::error::Error;
use crate::replay::Recorded;
use burn::module::Module;
use eggroll_train::{EvolutionStrategy, Population};

/// Puts the fitness of generations together from the parts that are published.
pub(super) struct Assembly {
    /// The generation that is due.
    due: u64,
    /// Scores of a generation.
    count: usize,
    /// Whose parts they are.
    life: u64,
    parts: Vec<Recorded>,
    /// Scores of the parts.
    held: usize,
}

impl Assembly {
    /// Nothing yet of a generation with so many scores.
    pub fn new(due: u64, count: usize) -> Self {
        Self { due, count, life: 0, parts: Vec::new(), held: 0 }
    }

    /// Takes a part; returns the generation's scores when all are there. A generation may begin anew, as after a coordinator has died while
    /// it published. More parts or scores than a generation has are not kept.
    ///
    /// # Errors
    ///
    /// [`NatsError::Gap`] if generations are left out.
    pub fn take(&mut self, part: ToldPart, life: u64) -> Result<Option<Recorded>, NatsError> {
        if part.generation > self.due {
            return Err(NatsError::Gap { due: self.due, first: part.generation });
        }
        if part.generation < self.due {
            return Ok(None);
        }
        if part.part == 0 {
            (self.life, self.held) = (life, 0);
            self.parts.clear();
        }
        if part.parts as usize > self.count || self.held + part.scores.len() > self.count || life != self.life {
            return Ok(None);
        }
        if part.part as usize == self.parts.len() {
            self.held += part.scores.len();
            self.parts.push(part.scores);
        }
        if self.parts.len() < part.parts as usize {
            return Ok(None);
        }
        (self.due, self.held) = (self.due + 1, 0);
        // Parts are runs of all values, whatever these are of.
        Ok(Some(join(std::mem::take(&mut self.parts), 1)))
    }
}

/// A strategy and its model at the beginning of a generation.
pub(super) struct Replica<M> {
    pub strategy: EvolutionStrategy,
    /// Between two generations only.
    model: Option<M>,
    /// The generation's members, once they are asked for.
    population: Option<Population>,
    /// The digest of the parameters, once it is asked for.
    digest: Option<String>,
    pub assembly: Assembly,
}

impl<M: Module> Replica<M> {
    /// A replica whose generations have so many scores.
    pub fn new(strategy: EvolutionStrategy, model: M, scores: usize) -> Self {
        let assembly = Assembly::new(strategy.generation(), scores);
        Self { strategy, model: Some(model), population: None, digest: None, assembly }
    }

    pub fn generation(&self) -> u64 {
        self.strategy.generation()
    }

    pub fn model(&self) -> &M {
        self.model.as_ref().expect("is there but while it is told")
    }

    /// All members of the generation.
    pub fn population(&mut self) -> &Population {
        let strategy = &self.strategy;
        self.population.get_or_insert_with(|| strategy.ask())
    }

    pub fn digest(&mut self) -> String {
        let model = self.model.as_ref().expect("is there but while it is told");
        self.digest.get_or_insert_with(|| crate::digest::portable_digest(model)).clone()
    }

    /// Makes the update of the generation.
    pub fn tell(&mut self, scores: Recorded) -> Result<(), Error> {
        let population = self.population.take().unwrap_or_else(|| self.strategy.ask());
        let model = self.model.as_mut().expect("is always there");
        self.digest = None;
        self.strategy.tell(model, population, scores.into_fitness())?;
        Ok(())
    }

    pub fn into_parts(self) -> (EvolutionStrategy, M) {
        (self.strategy, self.model.expect("is there but while it is told"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(generation: u64, part: u32, parts: u32) -> ToldPart {
        ToldPart { generation, part, parts, scores: Recorded::Integers(vec![part as i32]) }
    }

    fn take(assembly: &mut Assembly, generation: u64, number: u32, parts: u32) -> Option<Recorded> {
        assembly.take(part(generation, number, parts), 1).expect("no gap")
    }

    #[test]
    fn generations_are_put_together_in_order() {
        let mut assembly = Assembly::new(3, 4);
        assert_eq!(take(&mut assembly, 2, 0, 1), None, "one that is over");
        assert_eq!(take(&mut assembly, 3, 0, 3), None);
        assert_eq!(take(&mut assembly, 3, 1, 3), None);
        // The coordinator died here, and another begins the generation anew.
        assert_eq!(take(&mut assembly, 3, 0, 3), None);
        assert_eq!(take(&mut assembly, 3, 0, 3), None, "twice");
        assert_eq!(take(&mut assembly, 3, 1, 3), None);
        assert_eq!(take(&mut assembly, 3, 1, 3), None, "twice");
        assert_eq!(take(&mut assembly, 3, 2, 3), Some(Recorded::Integers(vec![0, 1, 2])));
        assert_eq!(take(&mut assembly, 3, 2, 3), None, "over");
        assert_eq!(take(&mut assembly, 4, 0, 1), Some(Recorded::Integers(vec![0])));
        assert!(matches!(assembly.take(part(6, 0, 1), 1), Err(NatsError::Gap { due: 5, first: 6 })));
    }
    #[test]
    fn parts_of_two_coordinators_are_not_mixed() {
        let mut assembly = Assembly::new(3, 4);
        let take = |assembly: &mut Assembly, number, life| assembly.take(part(3, number, 2), life).expect("no gap");
        assert_eq!(take(&mut assembly, 0, 1), None);
        assert_eq!(take(&mut assembly, 1, 2), None, "of another");
        assert_eq!(take(&mut assembly, 1, 1), Some(Recorded::Integers(vec![0, 1])));
    }

    #[test]
    fn what_is_held_is_bounded() {
        let mut assembly = Assembly::new(0, 4);
        for number in 0..100 {
            assert_eq!(take(&mut assembly, 0, number, u32::MAX), None);
        }
        assert!(assembly.parts.is_empty(), "more parts than scores");
        let many = |number| ToldPart { scores: Recorded::Integers(vec![7; 3]), ..part(0, number, 3) };
        for number in 0..3 {
            assert_eq!(assembly.take(many(number), 1).expect("no gap"), None);
        }
        assert_eq!(assembly.held, 3, "more scores than a generation has");
    }
}
