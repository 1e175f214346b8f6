//! Curves.

use super::scale::{Axis, AxisScale, bounds, padded};
use super::{Area, Color, Drawn, Picture};
use plotters::prelude::*;
use plotters::style::Color as _;
use std::ops::Range;

const GREY: RGBColor = RGBColor(120, 120, 120);
const FONT: &str = "sans-serif";

type Canvas<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;

/// Where the names of curves stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Corner {
    UpperLeft,
    #[default]
    UpperRight,
    MiddleRight,
    LowerLeft,
    LowerRight,
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Series {
    label: String,
    color: Color,
    points: Vec<(f64, f64)>,
    line: bool,
    radius: i32,
    hollow: bool,
}

impl Series {
    /// A line through points, from left to right. Points that are not finite are left out. Curves of one label, which may be empty, share
    /// an entry of the legend.
    pub fn new(label: impl Into<String>, color: Color, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), color, points, line: true, radius: 0, hollow: false }
    }

    /// Marks every point.
    pub fn with_dots(mut self, radius: u32) -> Self {
        self.radius = radius as i32;
        self
    }

    /// Draws the points without a line.
    pub fn without_line(mut self) -> Self {
        self.line = false;
        self
    }

    /// Draws points as circles.
    pub fn hollow(mut self) -> Self {
        self.hollow = true;
        self
    }
}

/// Curves over one axis.
///
/// # Example
///
/// ```
/// use eggroll_examples::chart::{Color, LineChart, Picture, Series};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let points = vec![(0.0, 0.1), (100.0, 0.8), (200.0, 0.95)];
/// let chart = LineChart::new("accuracy").with_axes("generation", "accuracy").with_series(Series::new("", Color::Blue, points));
/// assert!(chart.svg()?.starts_with("<svg"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LineChart {
    title: String,
    axes: [String; 2],
    ranges: [Option<Range<f64>>; 2],
    scales: [AxisScale; 2],
    levels: Vec<(String, f64)>,
    series: Vec<Series>,
    legend: Corner,
    size: (u32, u32),
}

impl LineChart {
    /// A chart of 800 by 500 pixels without curves.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            axes: Default::default(),
            ranges: [None, None],
            scales: Default::default(),
            levels: Vec::new(),
            series: Vec::new(),
            legend: Corner::default(),
            size: (800, 500),
        }
    }

    /// Names the axes.
    pub fn with_axes(mut self, x: impl Into<String>, y: impl Into<String>) -> Self {
        self.axes = [x.into(), y.into()];
        self
    }

    /// Sets from where to where the horizontal axis goes: as far as the points, unless set.
    pub fn with_x_range(mut self, range: Range<f64>) -> Self {
        self.ranges[0] = Some(range);
        self
    }

    /// Sets from where to where the vertical axis goes: a little further than points and levels, unless set.
    pub fn with_y_range(mut self, range: Range<f64>) -> Self {
        self.ranges[1] = Some(range);
        self
    }

    /// Sets how values lie along the axes.
    pub fn with_scales(mut self, x: AxisScale, y: AxisScale) -> Self {
        self.scales = [x, y];
        self
    }

    /// Adds a horizontal line, with a name or an empty one.
    pub fn with_level(mut self, name: impl Into<String>, value: f64) -> Self {
        self.levels.push((name.into(), value));
        self
    }

    /// Adds a curve.
    pub fn with_series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Sets where the names of curves stand.
    pub fn with_legend(mut self, corner: Corner) -> Self {
        self.legend = corner;
        self
    }

    /// Sets the size in pixels.
    pub fn with_size(mut self, width: u32, height: u32) -> Self {
        self.size = (width, height);
        self
    }

    /// Places of a curve's points.
    fn places<'a>(&'a self, series: &'a Series) -> impl Iterator<Item = (f64, f64)> + Clone + 'a {
        let [x, y] = &self.scales;
        series.points.iter().filter_map(|point| Some((x.place(point.0)?, y.place(point.1)?)))
    }

    /// The range of an axis in places.
    fn range(&self, axis: usize, values: impl Iterator<Item = f64>) -> Range<f64> {
        let scale = &self.scales[axis];
        let set =
            self.ranges[axis].clone().and_then(|range| Some((scale.place(range.start)?, scale.place(range.end)?)));
        let (low, high) = match set.filter(|(low, high)| low < high) {
            Some(range) => range,
            None => {
                // Lines begin at the edge, points alone do not.
                let has_points = axis == 1 || self.series.iter().any(|series| !series.line);
                padded(bounds(values).unwrap_or((0.0, 1.0)), if has_points { 0.06 } else { 0.0 })
            }
        };
        low..high
    }

    fn draw_levels(&self, canvas: &mut Canvas<'_, '_>, x: &Range<f64>) -> Drawn {
        for (name, level) in &self.levels {
            let Some(level) = self.scales[1].place(*level) else { continue };
            canvas.draw_series(LineSeries::new([(x.start, level), (x.end, level)], GREY.stroke_width(1)))?;
            let place = (x.start + 0.01 * (x.end - x.start), level);
            let font = (FONT, 14).into_font().color(&GREY);
            canvas.draw_series((!name.is_empty()).then(|| Text::new(name.clone(), place, font)))?;
        }
        Ok(())
    }

    fn draw_series(&self, canvas: &mut Canvas<'_, '_>) -> Drawn {
        for (index, series) in self.series.iter().enumerate() {
            let (color, places) = (series.color.rgb(), self.places(series));
            let line = if series.line { places.clone().collect() } else { Vec::new() };
            let drawn = canvas.draw_series(LineSeries::new(line, color.stroke_width(2)))?;
            if !series.label.is_empty() && self.series[..index].iter().all(|before| before.label != series.label) {
                let sample = move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2));
                drawn.label(&series.label).legend(sample);
            }
            if series.radius > 0 {
                let style = if series.hollow { color.stroke_width(2) } else { color.filled() };
                canvas.draw_series(places.map(|at| Circle::new(at, series.radius, style)))?;
            }
        }
        Ok(())
    }
}

impl Picture for LineChart {
    fn size(&self) -> (u32, u32) {
        self.size
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let places = || self.series.iter().flat_map(|series| self.places(series));
        let levels = self.levels.iter().filter_map(|(_, level)| self.scales[1].place(*level));
        let x = self.range(0, places().map(|place| place.0));
        let y = self.range(1, places().map(|place| place.1).chain(levels));
        let small = self.size.0 < 600;
        let mut canvas = ChartBuilder::on(area)
            .caption(&self.title, (FONT, if small { 17 } else { 22 }))
            .margin(if small { 12 } else { 15 })
            .x_label_area_size(if small { 38 } else { 45 })
            .y_label_area_size(if small { 62 } else { 70 })
            .build_cartesian_2d(Axis::new(&self.scales[0], x.clone()), Axis::new(&self.scales[1], y.clone()))?;
        let lengths = [&x, &y].map(|range| range.end - range.start);
        let [x_label, y_label] = [0, 1].map(|axis| move |place: &f64| self.scales[axis].label(*place, lengths[axis]));
        let marks = match &self.scales[0] {
            AxisScale::Names(names) => names.len() + 2,
            _ if small => 6,
            _ => 10,
        };
        let mut mesh = canvas.configure_mesh();
        mesh.x_labels(marks)
            .y_labels(if small { 6 } else { 10 })
            .x_label_formatter(&x_label)
            .y_label_formatter(&y_label);
        mesh.light_line_style(TRANSPARENT).bold_line_style(BLACK.mix(0.12)).label_style((FONT, 13));
        mesh.x_desc(&self.axes[0]).y_desc(&self.axes[1]).axis_desc_style((FONT, 14)).draw()?;
        self.draw_levels(&mut canvas, &x)?;
        self.draw_series(&mut canvas)?;
        if self.series.iter().any(|series| !series.label.is_empty()) {
            let corner = match self.legend {
                Corner::UpperLeft => SeriesLabelPosition::UpperLeft,
                Corner::UpperRight => SeriesLabelPosition::UpperRight,
                Corner::MiddleRight => SeriesLabelPosition::MiddleRight,
                Corner::LowerLeft => SeriesLabelPosition::LowerLeft,
                Corner::LowerRight => SeriesLabelPosition::LowerRight,
            };
            let mut labels = canvas.configure_series_labels();
            labels
                .position(corner)
                .border_style(GREY)
                .background_style(WHITE.mix(0.9))
                .label_font((FONT, 13))
                .draw()?;
        }
        Ok(())
    }
}
