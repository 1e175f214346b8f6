//! Axes: where a value stands, and what is written below it.

/// How values lie along an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Scale {
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

/// Widens a range by a share of its length, or to some length if it has none.
pub(super) fn padded((low, high): (f64, f64), share: f64) -> (f64, f64) {
    let least = 1e-3 * low.abs().max(high.abs()).max(1e-6);
    let room = if high - low > 1e-9 * least { share * (high - low) } else { 0.0 };
    match high - low + 2.0 * room > 0.0 {
        true => (low - room, high + room),
        false => (low - 100.0 * least, high + 100.0 * least),
    }
}

impl Scale {
    /// The place of a value, if it has one.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let place = if *self == Self::Log { value.log10() } else { value };
        place.is_finite().then_some(place)
    }

    /// What is written at a place.
    pub(super) fn label(&self, place: f64) -> String {
        match self {
            Self::Linear => short(place),
            Self::Log => short(10f64.powf(place)),
            Self::Names(names) => {
                let index = place.round();
                let named = (index - place).abs() < 1e-6 && index >= 0.0;
                names.get(index as usize).filter(|_| named).cloned().unwrap_or_default()
            }
        }
    }
}

/// Four digits, with powers of ten where there would be many zeros.
pub(super) fn short(number: f64) -> String {
    let size = number.abs();
    match number {
        _ if size < 1e-12 => "0".to_owned(),
        _ if !size.is_finite() => number.to_string(),
        _ if !(1e-4..1e9).contains(&size) => {
            let text = format!("{number:.3e}");
            let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
            let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
            format!("{digits}e{power}")
        }
        _ => {
            let decimals = (3 - size.log10().floor() as i32).clamp(0, 7) as usize;
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
        assert_eq!(Scale::Log.label(-3.0), "0.001");
        assert_eq!(Scale::Names(vec!["a".into(), "b".into()]).label(1.0), "b");
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
