//! A line plot as SVG.

use super::page::escaped;
use std::fmt::Write;

const SIZE: [f64; 2] = [480.0, 300.0];
/// Left, right, top and bottom of the plane.
const PLANE: [f64; 4] = [86.0, 450.0, 34.0, 256.0];
/// Told apart without seeing red or green (after Okabe and Ito).
const COLORS: [&str; 6] = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"];
/// Curves of so few points have dots.
const DOTTED: usize = 60;
/// Sizes from here on are drawn as gaps: differences of smaller numbers are finite.
const LARGEST: f64 = 1e300;

/// Curves over generations.
pub(super) struct Plot {
    pub title: String,
    pub curves: Vec<Curve>,
}

/// Points from left to right, with a gap at each that is not finite. The label may be empty.
pub(super) struct Curve {
    pub label: String,
    pub points: Vec<(f64, f64)>,
}

/// The range of an axis, and the distance of its marks.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// The axis of these values. Values that differ by less than `least`, relative to their size, are level: roundings are not drawn as a
    /// curve. Their range is a tenth of the size around them, or from -1 to 1 around 0.
    fn of(values: impl Iterator<Item = f64>, least: f64) -> Self {
        let drawn = values.filter(|value| value.abs() < LARGEST).map(|value| (value, value));
        let (low, high) =
            drawn.reduce(|(low, high), (value, _)| (low.min(value), high.max(value))).unwrap_or((0.0, 1.0));
        let size = low.abs().max(high.abs());
        let is_level = high - low <= (least * size).max(1e-290);
        let room = match is_level {
            true if size < 1e-290 => 1.0,
            true => 0.1 * size,
            false => 0.0,
        };
        let (low, high) = (low - room, high + room);
        let rough = (high - low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
        Self { low, high, step: step.unwrap_or(10.0 * power) }
    }

    /// Marks at whole numbers only, from 0 on.
    fn whole(mut self) -> Self {
        (self.low, self.step) = (self.low.max(0.0), self.step.max(1.0));
        self
    }

    /// The range from mark to mark.
    fn widened(mut self) -> Self {
        (self.low, self.high) =
            ((self.low / self.step).floor() * self.step, (self.high / self.step).ceil() * self.step);
        self
    }

    fn marks(&self) -> impl Iterator<Item = f64> + '_ {
        let [first, last] = [(self.low / self.step - 1e-6).ceil(), (self.high / self.step + 1e-6).floor()];
        (first as i64..=last as i64).map(|index| index as f64 * self.step)
    }

    /// A mark's label, with as many digits as tell marks apart.
    fn label(&self, mark: f64) -> String {
        let power = |number: f64| (number.log10() + 1e-9).floor() as i32;
        match mark.abs() {
            0.0 => "0".to_owned(),
            size if size >= 1e6 || self.step < 1e-4 => {
                format!("{mark:.*e}", (power(size) - power(self.step)).max(0) as usize)
            }
            _ => format!("{mark:.*}", -power(self.step).min(0) as usize),
        }
    }

    /// Where a value stands between two edges.
    fn place(&self, value: f64, [from, to]: [f64; 2]) -> f64 {
        from + (to - from) * (value - self.low) / (self.high - self.low)
    }
}

impl Plot {
    /// The plot as text.
    pub fn svg(&self) -> String {
        let points = || self.curves.iter().flat_map(|curve| &curve.points).filter(|point| is_drawn(point));
        let x = Axis::of(points().map(|point| point.0), 0.0).whole();
        // Numbers of f32 that should be equal differ by less.
        let y = Axis::of(points().map(|point| point.1), 1e-6).widened();
        let ([width, height], [left, right, top, bottom]) = (SIZE, PLANE);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
        );
        let mut add = |element: std::fmt::Arguments<'_>| writeln!(svg, "{element}").expect("a string grows");
        let middle = f64::midpoint(left, right);
        let title = escaped(&self.title);
        add(format_args!("<text x=\"{middle}\" y=\"22\" text-anchor=\"middle\" font-size=\"15\">{title}</text>"));
        add(format_args!("<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">generation</text>", height - 8.0));
        for mark in y.marks() {
            let (at, label) = (y.place(mark, [bottom, top]), y.label(mark));
            add(format_args!("<path d=\"M{left} {at:.1}H{right}\" stroke=\"#ddd\"/>"));
            add(format_args!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", left - 6.0, at + 4.0));
        }
        for mark in x.marks() {
            let (at, label) = (x.place(mark, [left, right]), x.label(mark));
            add(format_args!("<path d=\"M{at:.1} {bottom}V{}\" stroke=\"#333\"/>", bottom + 4.0));
            add(format_args!("<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>", bottom + 17.0));
        }
        add(format_args!("<path d=\"M{left} {top}V{bottom}H{right}\" stroke=\"#333\" fill=\"none\"/>"));
        for (index, (Curve { label, points }, color)) in self.curves.iter().zip(COLORS.iter().cycle()).enumerate() {
            let place = |point: &(f64, f64)| (x.place(point.0, [left, right]), y.place(point.1, [bottom, top]));
            for part in points.split(|point| !is_drawn(point)).filter(|part| !part.is_empty()) {
                let line: String = part.iter().map(place).map(|(x, y)| format!("{x:.1},{y:.1} ")).collect();
                let line = line.trim_end();
                add(format_args!(
                    "<polyline points=\"{line}\" stroke=\"{color}\" stroke-width=\"1.6\" fill=\"none\"/>"
                ));
                if part.len() == 1 || points.len() <= DOTTED {
                    for (x, y) in part.iter().map(place) {
                        add(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\" fill=\"{color}\"/>"));
                    }
                }
            }
            if !label.is_empty() {
                let (x, y, label) = (right - 4.0, top + 14.0 * (index as f64 + 1.0), escaped(label));
                add(format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\" fill=\"{color}\">{label}</text>"));
            }
        }
        svg.push_str("</svg>");
        svg
    }
}

fn is_drawn(point: &(f64, f64)) -> bool {
    [point.0, point.1].into_iter().all(|number| number.abs() < LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn svg(points: &[(f64, f64)]) -> String {
        Plot { title: "<&>".into(), curves: vec![Curve { label: "a".into(), points: points.to_vec() }] }.svg()
    }

    /// All numbers of an attribute.
    fn numbers(svg: &str, attribute: &str) -> Vec<f64> {
        let opening = format!(" {attribute}=\"");
        let values = svg.split(&opening).skip(1).filter_map(|after| after.split('"').next());
        values.flat_map(|value| value.split([',', ' '])).filter_map(|number| number.parse().ok()).collect()
    }

    #[test]
    fn every_plot_is_inside_its_picture() {
        let big = f64::MAX;
        let all: [&[(f64, f64)]; 9] = [
            &[],
            &[(0.0, 0.0)],
            &[(7.0, -3.0)],
            &[(0.0, 0.02), (1.0, 0.02), (2.0, 0.020_000_000_1)],
            &[(0.0, f64::NAN), (1.0, f64::INFINITY)],
            &[(0.0, big), (1.0, -big), (2.0, 1.0)],
            &[(0.0, 0.0), (1.0, 5e-324), (2.0, 1e-300)],
            &[(0.0, -1e299), (1.0, 1e299)],
            &[(0.0, 1e6), (1e9, 1e6 + 3.0)],
        ];
        for points in all {
            let svg = svg(points);
            assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.contains("&lt;&amp;&gt;"), "{svg}");
            let tags = |name: &str| svg.matches(&format!("<{name}")).count();
            assert!(tags("text") >= 3 && tags("text") < 30 && tags("text") == tags("/text"), "{points:?} {svg}");
            for (attribute, size) in [("x", SIZE[0]), ("cx", SIZE[0]), ("y", SIZE[1]), ("cy", SIZE[1])] {
                assert!(
                    numbers(&svg, attribute).iter().all(|number| (0.0..=size).contains(number)),
                    "{points:?} {svg}"
                );
            }
        }
    }

    #[test]
    fn what_is_not_finite_is_a_gap() {
        let svg = svg(&[(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 4.0)]);
        assert_eq!((svg.matches("<polyline").count(), svg.matches("<circle").count()), (2, 3), "{svg}");
        // A third of the way from the first point to the last one, which is behind the gap.
        assert_eq!(numbers(&svg, "cx"), [PLANE[0], 207.3, PLANE[1]]);
    }

    /// A constant with the noise of roundings is a level line, in a range that shows its size.
    #[test]
    fn constants_are_level() {
        for (constant, room) in [(0.05, 0.005), (-3.0, 0.3), (0.0, 1.0), (1e-9, 1e-10), (2e6, 2e5)] {
            let values = || (0..9).map(|step| constant * (1.0 + f64::EPSILON * f64::from(step % 3)));
            let axis = Axis::of(values(), 1e-6).widened();
            let [below, above] = [constant - axis.low, axis.high - constant];
            let is_near = |distance: f64| (0.99 * room..2.1 * room).contains(&distance);
            assert!(is_near(below) && is_near(above), "{constant}: from {} to {}", axis.low, axis.high);
            let places = values().map(|value| axis.place(value, [PLANE[3], PLANE[2]]));
            let drawn: Vec<String> = places.map(|place| format!("{place:.1}")).collect();
            assert!(drawn.iter().all(|place| *place == drawn[0]), "{constant}: {drawn:?}");
        }
        // Generations do not begin below 0.
        let axis = Axis::of([0.0].into_iter(), 0.0).whole();
        assert_eq!(axis.marks().map(|mark| axis.label(mark)).collect::<Vec<_>>(), ["0", "1"]);
    }

    /// Two marks of an axis never have the same label.
    #[test]
    fn marks_are_told_apart() {
        for (low, high) in
            [(0.985_1, 0.985_3), (1.0, 1.000_01), (-3.000_02, -3.0), (1e6, 1e6 + 3.0), (0.0, 1e12), (-0.5, 7.0)]
        {
            let axis = Axis::of([low, high].into_iter(), 1e-6).widened();
            let labels: Vec<String> = axis.marks().map(|mark| axis.label(mark)).collect();
            assert!((3..10).contains(&labels.len()) && labels.windows(2).all(|pair| pair[0] != pair[1]), "{labels:?}");
        }
        let axis = Axis::of([0.0, 0.3].into_iter(), 1e-6);
        assert_eq!(axis.marks().map(|mark| axis.label(mark)).collect::<Vec<_>>(), ["0", "0.1", "0.2", "0.3"]);
    }
}
