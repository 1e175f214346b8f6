//! Bars: one panel for each figure, one bar for each thing that is compared.

use super::scale::short;
use super::{Area, Color, Drawn, Picture};
use plotters::prelude::*;
use plotters::style::Color as _;

const WIDTH: i32 = 900;
const MARGIN: i32 = 20;
const TITLE: i32 = 34;
const BAR: i32 = 24;
/// Room for names at the left and for values at the right of the bars.
const NAMES: i32 = 220;
const VALUES: i32 = 90;

/// Panels of bars, one below the other. Bars begin at zero, and the longest one is as long as there is room; the value stands next to each,
/// so there is no axis.
///
/// # Example
///
/// ```
/// use eggroll_examples::chart::{BarChart, Picture};
///
/// let chart = BarChart::new().with_panel("forward, ms", vec![("flex".into(), 2.5), ("cuda".into(), 0.3)]);
/// assert!(chart.svg().unwrap().contains("forward, ms"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct BarChart {
    panels: Vec<(String, Vec<(String, f64)>)>,
}

impl BarChart {
    /// A chart without panels.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a panel: its title, and values by name.
    pub fn with_panel(mut self, title: impl Into<String>, bars: Vec<(String, f64)>) -> Self {
        self.panels.push((title.into(), bars));
        self
    }
}

impl Picture for BarChart {
    fn size(&self) -> (u32, u32) {
        let height: i32 = self.panels.iter().map(|(_, bars)| TITLE + BAR * bars.len() as i32).sum();
        (WIDTH as u32, (2 * MARGIN + height) as u32)
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let mut top = MARGIN;
        for (title, bars) in &self.panels {
            area.draw(&Text::new(title.clone(), (MARGIN, top + TITLE / 4), ("sans-serif", 20)))?;
            top += TITLE;
            let longest = bars.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
            for ((name, value), color) in bars.iter().zip(Color::ALL.into_iter().cycle()) {
                let left = MARGIN + NAMES;
                let right = left + (f64::from(WIDTH - MARGIN - VALUES - left) * value / longest).max(1.0) as i32;
                area.draw(&Rectangle::new([(left, top + 3), (right, top + BAR - 3)], color.rgb().filled()))?;
                area.draw(&Text::new(name.clone(), (MARGIN, top + 4), ("sans-serif", 16)))?;
                area.draw(&Text::new(short(*value), (right + 6, top + 4), ("sans-serif", 16)))?;
                top += BAR;
            }
        }
        Ok(())
    }
}
