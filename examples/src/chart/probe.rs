//! A probe of noise scales as a picture.

use super::{AxisScale, Color, LineChart, Picture, Series, grid};
use eggroll::train::{ProbedSigma, SigmaProbe};

/// What a [probe of noise scales](eggroll::train::EvolutionStrategy::probe_sigma) has measured: mean score, share of pairs that differ, and
/// signal-to-noise ratio of the scores, over sigma; a circle is at the recommended one.
///
/// # Example
///
/// ```
/// use eggroll_examples::chart::{Picture, sigma_probe};
/// use eggroll::train::{ProbedSigma, SigmaProbe};
///
/// let probed = |sigma| ProbedSigma {
///     sigma,
///     mean: -sigma,
///     deviation: 0.1,
///     non_finite: 0,
///     differing_pairs: 1.0,
///     signal_to_noise: 0.3,
/// };
/// let probe = SigmaProbe { sigmas: [0.01, 0.1, 1.0].map(probed).to_vec() };
/// assert!(sigma_probe("return", &probe).svg().unwrap().starts_with("<svg"));
/// ```
pub fn sigma_probe(title: &str, probe: &SigmaProbe) -> impl Picture + use<> {
    let chart = |name: &str, color: Color, value: fn(&ProbedSigma) -> f64| {
        let points = |all: bool| -> Vec<(f64, f64)> {
            let chosen = |probed: &&ProbedSigma| all || probe.recommended() == Some(probed.sigma);
            probe.sigmas.iter().filter(chosen).map(|probed| (probed.sigma, value(probed))).collect()
        };
        LineChart::new(format!("{title}: {name}"))
            .with_axes("sigma", "")
            .with_scales(AxisScale::Log, AxisScale::Linear)
            .with_size(420, 320)
            .with_series(Series::new("", color, points(true)).with_dots(3))
            .with_series(Series::new("", Color::Red, points(false)).without_line().hollow().with_dots(7))
    };
    grid(
        vec![
            chart("mean score", Color::Blue, |probed| probed.mean),
            chart("pairs that differ", Color::Green, |probed| probed.differing_pairs).with_y_range(0.0..1.02),
            chart("signal to noise", Color::Orange, |probed| probed.signal_to_noise)
                .with_scales(AxisScale::Log, AxisScale::Log),
        ],
        3,
    )
}
