//! Charts as SVG: curves, bars, and grids of them.

mod bars;
mod lines;
mod probe;
mod scale;

pub use bars::BarChart;
pub use lines::{Corner, LineChart, Series};
pub use probe::sigma_probe;
pub use scale::AxisScale;

use eggroll::run::{Error, durable};
use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, IntoDrawingArea, RGBColor, SVGBackend, WHITE};
use std::io;
use std::path::Path;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// What plotters may fail with.
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A color that is told from the others without seeing red or green (after Okabe and Ito).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Color {
    Blue,
    Orange,
    Green,
    Red,
    Purple,
    Cyan,
    Black,
}

impl Color {
    /// All that tell curves apart, in the order in which they are taken.
    pub const ALL: [Self; 6] = [Self::Blue, Self::Orange, Self::Green, Self::Red, Self::Purple, Self::Cyan];

    fn rgb(self) -> RGBColor {
        match self {
            Self::Blue => RGBColor(0, 114, 178),
            Self::Orange => RGBColor(230, 159, 0),
            Self::Green => RGBColor(0, 158, 115),
            Self::Red => RGBColor(213, 94, 0),
            Self::Purple => RGBColor(204, 121, 167),
            Self::Cyan => RGBColor(86, 180, 233),
            Self::Black => RGBColor(40, 40, 40),
        }
    }
}

/// Something that can be drawn.
pub trait Picture {
    /// Width and height in pixels.
    fn size(&self) -> (u32, u32);

    #[doc(hidden)]
    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), Box<dyn std::error::Error>>;

    /// The picture as text.
    ///
    /// # Errors
    ///
    /// What cannot be drawn.
    fn svg(&self) -> io::Result<String> {
        let mut svg = String::new();
        let root = SVGBackend::with_string(&mut svg, self.size()).into_drawing_area();
        let drawn = root.fill(&WHITE).map_err(Into::into).and_then(|()| self.draw(&root));
        let drawn = drawn.and_then(|()| Ok(root.present()?)).map_err(|error| io::Error::other(error.to_string()));
        drop(root);
        drawn.map(|()| svg)
    }

    /// Writes the picture, completely or not at all.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the file.
    fn write(&self, path: impl AsRef<Path>) -> Result<(), Error>
    where
        Self: Sized,
    {
        let path = path.as_ref();
        let svg = self.svg().map_err(|source| Error::Io { path: path.to_owned(), source })?;
        durable::replace(path, svg.as_bytes())
    }
}

/// Pictures of one size in rows of `columns`.
pub fn grid<P: Picture>(pictures: Vec<P>, columns: usize) -> impl Picture {
    Grid { columns: columns.clamp(1, pictures.len().max(1)), pictures }
}

struct Grid<P> {
    pictures: Vec<P>,
    columns: usize,
}

impl<P: Picture> Picture for Grid<P> {
    fn size(&self) -> (u32, u32) {
        let (width, height) = self.pictures.first().map_or((1, 1), Picture::size);
        (width * self.columns as u32, height * self.pictures.len().div_ceil(self.columns) as u32)
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let rows = self.pictures.len().div_ceil(self.columns).max(1);
        let panels = area.split_evenly((rows, self.columns));
        panels.iter().zip(&self.pictures).try_for_each(|(panel, picture)| picture.draw(panel))
    }
}
