//! Estimates of a generation, and their checks.

use super::EvolutionStrategy;
use crate::config::Credit;
use crate::error::{Error, TellError};
use crate::estimate::{self, Forecast, PairWeights};
use crate::fitness::Fitness;
use crate::population::{EstimatePlan, ParameterCredit, Population, plans};
use crate::update::Transformed;
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Int, Tensor};
use eggroll_core::numbers;
use eggroll_core::profile::{self, Component};
use eggroll_core::sync::locked;
use eggroll_core::{Field, NoiseSourceConfig, ParameterKind, ParameterTable, ParameterTensor, Role};

/// The largest number of half precision.
const F16_MAX: f32 = 65_504.0;

/// The largest noise scale for which f32 holds the squares of estimates, which optimizers compute.
const SIGMA_MAX: f64 = 1e15;

impl EvolutionStrategy {
    /// The gradient of `−fitness` by parameter, as [`tell`](Self::tell) hands it to the optimizer: clipped and [transformed](crate::GradientTransform) if so
    /// configured. `None` if all fitness is equal or the noiser perturbs nothing: `tell` then makes no step. The strategy does not change. Frozen parameters
    /// have no gradient, and integer parameters have votes instead. Half-precision parameters with [master
    /// weights](crate::EvolutionStrategyConfig::with_master_weights) have f32 gradients.
    ///
    /// [`gradient_cosine`](crate::gradient_cosine()) compares it with a true gradient.
    ///
    /// # Errors
    ///
    /// As [`tell`](Self::tell).
    pub fn gradient<M: Module>(
        &self,
        model: &M,
        population: &Population,
        fitness: &Fitness,
    ) -> Result<Option<GradientsParams>, Error> {
        Ok(self.transformed(model, population, fitness)?.map(|gradient| gradient.gradients))
    }

    /// The gradient, and the state of the transforms after it.
    pub(super) fn transformed<M: Module>(
        &self,
        model: &M,
        population: &Population,
        fitness: &Fitness,
    ) -> Result<Option<Transformed>, Error> {
        let _span = profile::span(Component::Estimate, 0);
        self.check(model, population, fitness)?;
        let plans = self.plans(population, fitness)?;
        let Some(weights) = self.pair_weights(population, fitness, &plans)? else {
            return Ok(None);
        };
        let estimate = estimate::gradients(model, population, &weights, &plans, &self.config);
        let transformed = self.chain.transformed(&self.config, &self.table, model, (estimate, plans));
        Ok(Some(transformed.map_err(TellError::Transform)?))
    }

    /// The weights of the pairs in an estimate, which are finite in the parameters' types too; `None` where there is nothing to estimate.
    fn pair_weights(
        &self,
        population: &Population,
        fitness: &Fitness,
        plans: &[EstimatePlan],
    ) -> Result<Option<PairWeights>, Error> {
        if self.noiser.properties().no_op {
            return Ok(None);
        }
        let sigma = population.perturbation.sigma;
        self.check_sigma(population.generation, sigma)?;
        let weights = self.config.weights(fitness, sigma, plans.iter().any(EstimatePlan::is_by_part));
        let in_f32 = self.config.master_weights && self.config.noise_source == NoiseSourceConfig::OnTheFly;
        let largest = if self.table.trains(DType::F16) && !in_f32 { F16_MAX } else { f32::MAX };
        let too_large = |weight: &f32| weight.is_nan() || weight.abs() > largest;
        let pairs = self.config.population_size / 2;
        let lost = weights.iter().flat_map(PairWeights::all).enumerate().find(|(_, weight)| too_large(weight));
        match lost {
            Some((pair, weight)) => {
                let pair = pair % pairs;
                Err(TellError::PairWeight { generation: population.generation, pair, weight, sigma }.into())
            }
            None => Ok(weights),
        }
    }

    /// Refuses a noise scale of a trained float parameter that does not fit f32 or is above [`SIGMA_MAX`].
    fn check_sigma(&self, generation: u64, sigma: f64) -> Result<(), TellError> {
        let mut trained = self.table.trained(ParameterKind::Float);
        let fits = |sigma: f64| numbers::holds(sigma) && sigma <= SIGMA_MAX;
        let lost = trained.find(|(at, _)| !fits(self.table.sigma_of(*at, sigma)));
        match lost {
            None => Ok(()),
            Some(_) if self.table.has_common_sigma() => Err(TellError::Sigma { generation, sigma }),
            Some((at, entry)) => {
                let factor = self.table.sigma_of(at, 1.0);
                Err(TellError::RelativeSigma { generation, sigma, path: entry.path.clone(), factor })
            }
        }
    }

    /// [`gradient`](Self::gradient) from the even pairs and from the odd pairs: two independent estimates. Up to rounding, they
    /// sum to `gradient` before clipping and transforms. [`SplitHalf`](crate::SplitHalf) compares them.
    ///
    /// # Errors
    ///
    /// As [`tell`](Self::tell).
    pub fn gradient_halves<M: Module>(
        &self,
        model: &M,
        population: &Population,
        fitness: &Fitness,
    ) -> Result<Option<[GradientsParams; 2]>, Error> {
        self.check(model, population, fitness)?;
        let plans = self.plans(population, fitness)?;
        let weights = self.pair_weights(population, fitness, &plans)?;
        let half = |weights: &PairWeights, odd: usize| {
            estimate::gradients(model, population, &weights.half(odd), &plans, &self.config)
        };
        Ok(weights.map(|weights| [half(&weights, 0), half(&weights, 1)]))
    }

    /// The expected quality of every float parameter's estimate, from one evaluation and before anything is trained; `None` if all members
    /// are equal. Makes four estimates, and reads them to the host.
    ///
    /// # Errors
    ///
    /// As [`tell`](Self::tell).
    ///
    /// # Example
    ///
    /// ```
    /// use burn::optim::AdamConfig;
    /// use burn::tensor::{Device, Distribution, Tensor};
    /// use eggroll_core::EggrollConfig;
    /// use eggroll_nn::LinearConfig;
    /// use eggroll_train::EvolutionStrategyConfig;
    ///
    /// # fn main() -> Result<(), eggroll_train::Error> {
    /// let device = Device::flex();
    /// let model = LinearConfig::new(16, 3).with_bias(false).init(&device);
    /// let images = Tensor::<2>::random([64, 16], Distribution::Default, &device);
    /// let labels = Tensor::from_ints([0, 2, 1, 0].repeat(16).as_slice(), &device);
    /// let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).try_init(&model)?;
    /// let population = strategy.ask();
    /// let fitness = population.evaluate(|members| {
    ///     -members.row_cross_entropy(model.forward_shared(images.clone()), labels.clone())
    /// });
    /// let forecast = strategy.forecast(&model, &population, &fitness)?.expect("members differ");
    /// println!("{forecast}");
    /// assert!(forecast.all.cosine > forecast.all.by_mean);
    /// # Ok(())
    /// # }
    /// ```
    pub fn forecast<M: Module>(
        &self,
        model: &M,
        population: &Population,
        fitness: &Fitness,
    ) -> Result<Option<Forecast>, Error> {
        self.check(model, population, fitness)?;
        let plans = self.plans(population, fitness)?;
        let Some(weights) = self.pair_weights(population, fitness, &plans)? else { return Ok(None) };
        let means: Vec<EstimatePlan> = plans.iter().map(|_| EstimatePlan::Mean(String::new())).collect();
        let halves = |plans: &[EstimatePlan]| {
            [0, 1].map(|odd| estimate::gradients(model, population, &weights.half(odd), plans, &self.config))
        };
        let credits: Vec<ParameterCredit> = plans.iter().map(EstimatePlan::credit).collect();
        let size = (&*self.table, self.config.population_size);
        Ok(Some(Forecast::new(model, size, &credits, &halves(&plans), &halves(&means))))
    }

    /// How the estimate of every parameter is made.
    pub(super) fn plans(&self, population: &Population, fitness: &Fitness) -> Result<Vec<EstimatePlan>, TellError> {
        let plans = plans(population, fitness);
        if population.credit == Credit::Parts && !plans.iter().any(EstimatePlan::is_by_part) {
            let entries = self.table.entries().iter().zip(&plans);
            let mut matrices = entries.filter(|(entry, _)| entry.role != Role::Frozen && entry.shape.len() > 1);
            if let Some((entry, EstimatePlan::Mean(because))) = matrices.next() {
                let (path, because) = (entry.path.clone(), because.clone());
                return Err(TellError::Parts { parts: fitness.tasks(), path, because });
            }
        }
        Ok(plans)
    }

    pub(super) fn check_generation(&self, population: &Population, fitness: &Fitness) -> Result<(), TellError> {
        let (found, expected) = (population.generation, self.generation);
        if found != expected {
            return Err(TellError::Generation { found, expected });
        }
        let (found, tasks, population) = (fitness.values().len(), fitness.tasks(), self.config.population_size);
        match found == population * tasks {
            true => Ok(()),
            false => Err(TellError::FitnessLength { found, tasks, population }),
        }
    }

    pub(super) fn check_model<M: Module>(&self, model: &M) -> Result<(), Error> {
        let table = ParameterTable::with_roles(model, self.noiser.as_ref(), &self.config.roles, &self.config.frozen)?;
        if table.entries() != self.table.entries() {
            return Err(TellError::OtherModel(difference(&self.table, &table)).into());
        }
        let fields = |table: &ParameterTable, position| table.fields(position);
        let mut positions = 0..table.entries().len();
        if let Some(position) = positions.find(|at| fields(&table, *at) != fields(&self.table, *at)) {
            let [expected, found] = [&*self.table, &table].map(|table| fields(table, position));
            let path = &table.entries()[position].path;
            return Err(
                TellError::OtherModel(format!("expected \"{path}\" in {expected} fields, found {found}")).into()
            );
        }
        Ok(())
    }

    fn check<M: Module>(&self, model: &M, population: &Population, fitness: &Fitness) -> Result<(), Error> {
        self.check_generation(population, fitness)?;
        self.check_model(model)?;
        let never: Vec<String> = match &*locked(&population.uses) {
            None => Vec::new(),
            Some(uses) => self
                .table
                .entries()
                .iter()
                .zip(uses)
                .filter(|(entry, used)| entry.role != Role::Frozen && !used.is_used())
                .map(|(entry, _)| entry.path.clone())
                .collect(),
        };
        if !never.is_empty() {
            return Err(TellError::NeverPerturbed(never).into());
        }
        match self.other_values(model, population) {
            None => Ok(()),
            Some(path) => Err(TellError::OtherValues(path).into()),
        }
    }

    /// The first trained parameter whose values in the evaluation differ from `model`.
    fn other_values<M: Module>(&self, model: &M, population: &Population) -> Option<String> {
        let fields = locked(&population.fields);
        let mut values = OtherValues { table: &self.table, fields: &fields, found: None };
        model.visit(&mut values);
        values.found
    }
}

struct OtherValues<'a> {
    table: &'a ParameterTable,
    /// The fields that were evaluated, by position.
    fields: &'a [Vec<Field>],
    found: Option<String>,
}

impl OtherValues<'_> {
    fn compare<T: ParameterTensor>(&mut self, param: &Param<T>) {
        let trained = self.table.position(param.id).filter(|_| self.found.is_none() && self.table.is_trained(param.id));
        if let Some(position) = trained
            && let Some(fields) = self.fields.get(position)
            && !fields.iter().all(|field| field.has_values_of(param))
        {
            self.found = Some(self.table.entries()[position].path.clone());
        }
    }
}

impl ModuleVisitor for OtherValues<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.compare(param);
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.compare(param);
    }
}

fn difference(expected: &ParameterTable, found: &ParameterTable) -> String {
    let (a, b) = (expected.entries(), found.entries());
    match a.iter().zip(b).find(|(a, b)| a != b) {
        Some((a, b)) if (a.id, &a.path, &a.shape) == (b.id, &b.path, &b.shape) => {
            format!("expected {} as {:?}, found it as {:?}, as no_grad() makes it", a.path, a.role, b.role)
        }
        Some((a, b)) => {
            format!("expected {} {:?} ({}), found {} {:?} ({})", a.path, a.shape, a.id, b.path, b.shape, b.id)
        }
        None => format!("expected {} parameters, found {}", a.len(), b.len()),
    }
}
