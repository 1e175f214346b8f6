//! Axes: where a value stands, and what is written below it.

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use std::ops::Range;

/// How values lie along an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AxisScale {
    /// As they are.
    #[default]
    Linear,
    /// By their logarithm, if all are positive.
    Log,
    /// 0, 1, … are names.
    Names(Vec<String>),
}

/// Least and greatest of the finite values, if there are any.
pub(super) fn bounds(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.filter(|value| value.is_finite());
    finite.map(|value| (value, value)).reduce(|(low, high), (value, _)| (low.min(value), high.max(value)))
}

/// Widens a range by a share of its length, or to some length if it has none but that of rounding.
pub(super) fn padded((low, high): (f64, f64), share: f64) -> (f64, f64) {
    /// Of the greatest value; numbers of f32 that should be equal differ by less.
    const ROUNDING: f64 = 1e-6;
    let size = low.abs().max(high.abs());
    match high - low > ROUNDING * size {
        true => (low - share * (high - low), high + share * (high - low)),
        false => (low - 0.1 * size.max(1e-6), high + 0.1 * size.max(1e-6)),
    }
}

impl AxisScale {
    /// The place of a value, if it has one.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let place = if *self == Self::Log { value.log10() } else { value };
        place.is_finite().then_some(place)
    }

    /// What is written at a place of an axis of this length: with as many digits as tell two marks apart.
    pub(super) fn label(&self, place: f64, length: f64) -> String {
        /// More than there are marks on an axis.
        const MARKS: f64 = 20.0;
        let digits = |number: f64, step: f64| match number == 0.0 {
            true => DIGITS,
            false => (number.abs().log10().floor() - step.log10()).ceil().clamp(DIGITS as f64 - 1.0, 14.0) as i32 + 1,
        };
        match self {
            Self::Linear => rounded(place, digits(place, length / MARKS)),
            Self::Log => {
                let number = 10f64.powf(place);
                let label = |number: f64| rounded(number, digits(number, number * (10f64.powf(length / MARKS) - 1.0)));
                if (1e6..1e12).contains(&number) { label(number / 1e6) + "M" } else { label(number) }
            }
            Self::Names(names) => {
                let index = place.round();
                let named = (index - place).abs() < 1e-6 && index >= 0.0;
                names.get(index as usize).filter(|_| named).cloned().unwrap_or_default()
            }
        }
    }
}

/// An axis in places.
pub(super) struct Axis {
    places: RangedCoordf64,
    /// Where marks stand, if not at equal distances.
    marks: Vec<f64>,
}

impl Axis {
    pub(super) fn new(scale: &AxisScale, range: Range<f64>) -> Self {
        let decades = range.end - range.start;
        let digits: &[f64] = match decades {
            // So short that marks at equal distances fit better, or so long that powers of ten would.
            _ if *scale != AxisScale::Log || !(0.7..8.0).contains(&decades) => &[],
            ..1.5 => &[1.0, 2.0, 5.0],
            ..5.0 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let marks = digits.iter().flat_map(|digit| {
            let powers = range.start.floor() as i32..=range.end.ceil() as i32;
            powers.map(|power| f64::from(power) + digit.log10())
        });
        let mut marks: Vec<f64> = marks.filter(|mark| range.contains(mark)).collect();
        marks.sort_by(f64::total_cmp);
        Self { marks, places: range.into() }
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, limit: (i32, i32)) -> i32 {
        self.places.map(place, limit)
    }

    fn key_points<H: KeyPointHint>(&self, hint: H) -> Vec<f64> {
        if self.marks.is_empty() { self.places.key_points(hint) } else { self.marks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.places.range()
    }
}

/// Digits of a number in a table.
const DIGITS: i32 = 4;

/// Four digits, with powers of ten where there would be many zeros.
pub(super) fn short(number: f64) -> String {
    rounded(number, DIGITS)
}

fn rounded(number: f64, digits: i32) -> String {
    let size = number.abs();
    match number {
        _ if size < 1e-12 => "0".to_owned(),
        _ if !size.is_finite() => number.to_string(),
        _ if !(1e-4..1e9).contains(&size) => {
            let text = format!("{number:.*e}", digits as usize - 1);
            let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
            let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
            format!("{digits}e{power}")
        }
        _ => {
            let decimals = (digits - 1 - size.log10().floor() as i32).clamp(0, digits + 3) as usize;
            let text = format!("{number:.decimals$}");
            let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases =
            [(0.0, "0"), (0.02, "0.02"), (1234.5, "1234"), (22_000.0, "22000"), (1e-5, "1e-5"), (2.5e12, "2.5e12")];
        for (number, text) in cases {
            assert_eq!(short(number), text);
        }
        assert_eq!(short(-0.123_45), "-0.1235");
        assert_eq!(AxisScale::Log.label(-3.0, 2.0), "0.001");
        assert_eq!(AxisScale::Log.label(7.5, 3.0), "31.62M");
        assert_eq!(AxisScale::Log.label(15.0, 3.0), "1e15");
        assert_eq!(AxisScale::Names(vec!["a".into(), "b".into()]).label(1.0, 1.0), "b");
    }

    /// Two marks of an axis never have the same label, and what differs by rounding only is level.
    #[test]
    fn marks_are_told_apart() {
        assert_eq!(AxisScale::Linear.label(0.02, 0.004), "0.02");
        let marks = |scale: AxisScale, low: f64, high: f64| {
            let places = (0..=10).map(|mark| low + (high - low) * f64::from(mark) / 10.0);
            places.map(|place| scale.label(place, high - low)).collect::<Vec<_>>()
        };
        for (low, high) in
            [(0.985_1, 0.985_3), (1.0, 1.000_01), (-3.000_02, -3.0), (0.02, 0.020_000_1), (1e6, 1e6 + 3.0)]
        {
            let (linear, log) = (marks(AxisScale::Linear, low, high), marks(AxisScale::Log, low, high));
            let different = |labels: &[String]| labels.windows(2).all(|pair| pair[0] != pair[1]);
            assert!(different(&linear) && (high > 100.0 || different(&log)), "{linear:?} {log:?}");
        }
        let sigma = 0.02f64;
        let (low, high) = padded((sigma - 3e-18, sigma + 1e-9), 0.06);
        assert!(low < 0.0185 && high > 0.0215, "{low} {high}");
        assert!(padded((0.985_1, 0.985_3), 0.0) == (0.985_1, 0.985_3));
    }

    /// Marks of a logarithmic axis stand at numbers that one would say.
    #[test]
    fn marks_of_logarithms() {
        let labels = |low: f64, high: f64| {
            let axis = Axis::new(&AxisScale::Log, low.log10()..high.log10());
            let marks = axis.key_points(10);
            marks.into_iter().map(|mark| AxisScale::Log.label(mark, high.log10() - low.log10())).collect::<Vec<_>>()
        };
        assert_eq!(labels(0.19, 60.0), ["0.3", "1", "3", "10", "30"]);
        assert_eq!(labels(7_600.0, 3.3e7), ["10000", "30000", "100000", "300000", "1M", "3M", "10M", "30M"]);
        assert_eq!(labels(0.012, 0.21), ["0.02", "0.05", "0.1", "0.2"]);
        assert_eq!(labels(1e-3, 1e4).len(), 7);
        assert!(labels(0.02, 0.021).len() > 3);
    }

    /// Plotters does not end on a range of no length.
    #[test]
    fn every_range_has_a_length() {
        for (low, high) in [(0.0, 0.0), (5.0, 5.0), (-1e-300, 1e-300), (1e300, 1e300), (0.1, 0.2)] {
            let (below, above) = padded((low, high), 0.05);
            assert!(below < above && below.is_finite() && above.is_finite(), "{low} {high}: {below} {above}");
        }
        assert_eq!(bounds([f64::NAN, 2.0, f64::INFINITY, 1.0].into_iter()), Some((1.0, 2.0)));
    }
}
