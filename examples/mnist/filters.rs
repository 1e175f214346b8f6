//! The first layer as a picture: the weights of some units, and what a member's noise adds to them.

use burn::tensor::Tensor;
use eggroll::run::durable;
use eggroll_examples::Failure;
use std::fmt::Write;
use std::path::Path;

/// Units that are drawn.
const UNITS: usize = 12;
/// Side of a tile, and the room between two.
const TILE: usize = 84;
const GAP: usize = 6;
/// Room for the title of a row.
const TITLE: usize = 26;
/// Shades of each sign.
const SHADES: i32 = 8;

/// Draws rows of tiles: titles, and matrices `[pixels, units]`. Red is positive, blue negative; in each row, the
/// largest fiftieth of all values is darkest.
pub fn draw(path: &Path, [height, width]: [usize; 2], rows: [(&str, Tensor<2>); 2]) -> Result<(), Failure> {
    let (across, down) = (GAP + UNITS * (TILE + GAP), rows.len() * (TITLE + TILE + GAP));
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} {down}" width="{across}" height="{down}">
<rect width="{across}" height="{down}" fill="#fff"/>
"##
    );
    for (row, (title, matrix)) in rows.into_iter().enumerate() {
        let [_, units] = matrix.dims();
        let values: Vec<f32> = matrix.into_data().iter().collect();
        let mut sizes: Vec<f32> = values.iter().map(|value| value.abs()).collect();
        sizes.sort_by(f32::total_cmp);
        let darkest = sizes[sizes.len() * 49 / 50].max(f32::MIN_POSITIVE);
        let top = row * (TITLE + TILE + GAP);
        writeln!(svg, r#"<text x="{GAP}" y="{}" font-family="sans-serif" font-size="15">{title}</text>"#, top + 18)?;
        for unit in 0..units.min(UNITS) {
            let shade = |pixel: usize| {
                (values[pixel * units + unit] / darkest * SHADES as f32).round().clamp(-SHADES as f32, SHADES as f32)
                    as i32
            };
            let (left, top, scale) = (GAP + unit * (TILE + GAP), top + TITLE, TILE as f32 / height.max(width) as f32);
            writeln!(svg, r#"<g transform="translate({left} {top}) scale({scale})">"#)?;
            writeln!(svg, r##"<rect width="{width}" height="{height}" fill="#f4f4f4"/>"##)?;
            for wanted in (-SHADES..=SHADES).filter(|shade| *shade != 0) {
                let pixels = (0..height * width).filter(|pixel| shade(*pixel) == wanted);
                let mut squares = String::new();
                for pixel in pixels {
                    write!(squares, "M{} {}h1v1h-1z", pixel % width, pixel / width)?;
                }
                if !squares.is_empty() {
                    let faded = 244 - 244 * wanted.abs() / (SHADES + 2);
                    let color =
                        if wanted > 0 { format!("200,{faded},{faded}") } else { format!("{faded},{faded},200") };
                    writeln!(svg, r#"<path fill="rgb({color})" d="{squares}"/>"#)?;
                }
            }
            svg.push_str("</g>\n");
        }
    }
    svg.push_str("</svg>\n");
    Ok(durable::replace(path, svg.as_bytes())?)
}
