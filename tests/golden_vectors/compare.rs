//! Comparisons and their tolerances.

use burn::tensor::Tensor;

/// Everything that one side or both compute in f32, a whole generation included: absolute, plus relative to the expected
/// value. Ten times the worst difference seen (5e-7, three steps of Adam).
pub const ROUNDING: f64 = 5e-6;
/// Schedules, which both sides compute in f64.
pub const SCHEDULE: f64 = 1e-12;

/// How many tolerances a wrong computation must at least be off.
const CANARY: f64 = 10.0;

/// The values of a tensor in row-major order.
pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    let values: Vec<f32> = tensor.into_data().try_to_vec().expect("an f32 tensor");
    values.into_iter().map(f64::from).collect()
}

/// Largest difference in tolerances; infinite if anything found is not a number.
#[track_caller]
fn distance(what: &str, found: &[f64], expected: &[f64], tolerance: f64) -> f64 {
    assert_eq!(found.len(), expected.len(), "{what}: number of values");
    assert!(!expected.is_empty(), "{what}: nothing to compare");
    let each = |(found, expected): (&f64, &f64)| (found - expected).abs() / (tolerance * (1.0 + expected.abs()));
    let worst = |worst: f64, each: f64| if each.is_nan() { f64::INFINITY } else { worst.max(each) };
    found.iter().zip(expected).map(each).fold(0.0, worst)
}

/// Asserts that all values are within the tolerance.
#[track_caller]
pub fn assert_close(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    let distance = distance(what, found, expected, tolerance);
    assert!(distance <= 1.0, "{what}: {distance:.2} tolerances of {tolerance:e} off\n{found:?}\n{expected:?}");
}

/// Asserts that some value is far outside the tolerance: for canaries.
#[track_caller]
pub fn assert_differs(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    let distance = distance(what, found, expected, tolerance);
    assert!(distance >= CANARY, "{what}: must differ, but is only {distance:.2} tolerances of {tolerance:e} off");
}

#[test]
fn not_a_number_is_never_close() {
    assert_eq!(distance("NaN", &[0.0, f64::NAN, 0.0], &[0.0; 3], ROUNDING), f64::INFINITY);
    assert_eq!(distance("equal", &[1.0], &[1.0], ROUNDING), 0.0);
}
