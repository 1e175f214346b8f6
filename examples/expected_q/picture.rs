//! One decision as a picture: a bar for each domino, its standard error, and what it is worth with all hands open.

use crate::shown::Shown;
use eggroll_examples::Failure;
use eggroll_examples::texas42::{Domino, HAND_POINTS};
use std::fmt::Write;
use std::fs;
use std::path::Path;

const WIDTH: f32 = 640.0;
/// Where bars begin and end, and the height of a row.
const LEFT: f32 = 96.0;
const RIGHT: f32 = 560.0;
const ROW: f32 = 56.0;
const TOP: f32 = 64.0;

/// Where pips are on half a domino, on a grid of three by three, by their number.
const PIPS: [&[(u8, u8)]; 7] = [
    &[],
    &[(1, 1)],
    &[(0, 0), (2, 2)],
    &[(0, 0), (1, 1), (2, 2)],
    &[(0, 0), (0, 2), (2, 0), (2, 2)],
    &[(0, 0), (0, 2), (1, 1), (2, 0), (2, 2)],
    &[(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (2, 2)],
];

pub fn write(shown: &Shown, file: &Path) -> Result<(), Failure> {
    fs::write(file, svg(shown)?).map_err(|error| format!("{}: {error}", file.display()).into())
}

fn svg(shown: &Shown) -> Result<String, Failure> {
    let rows = shown.rows();
    let height = TOP + ROW * rows.len() as f32 + 40.0;
    let most = rows
        .iter()
        .map(|row| (row.weighed.value + row.weighed.standard_error).max(row.exact as f32))
        .fold(1.0, f32::max)
        .min(f32::from(HAND_POINTS));
    let x = |points: f32| LEFT + (RIGHT - LEFT) * (points / most).clamp(0.0, 1.0);
    let mut svg = String::new();
    writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="14" fill="black">
<rect width="{WIDTH}" height="{height}" fill="white"/>
<text x="16" y="24" font-size="16">{heading}</text>
<text x="16" y="46" fill="gray">Expected points, with standard errors; circles: with all hands open</text>"#,
        heading = shown.heading()
    )?;
    for (row, top) in rows.iter().zip((0..).map(|row| TOP + ROW * row as f32)) {
        domino(&mut svg, row.domino, 16.0, top + 8.0)?;
        let (middle, fill) = (top + ROW / 2.0 - 4.0, if row.played { "steelblue" } else { "lightsteelblue" });
        let (value, error) = (row.weighed.value, row.weighed.standard_error);
        writeln!(
            svg,
            r#"<rect x="{LEFT}" y="{}" width="{}" height="24" fill="{fill}"/>
<path d="M{} {middle}H{}" stroke="black" stroke-width="2"/>
<circle cx="{}" cy="{middle}" r="5" fill="white" stroke="black" stroke-width="2"/>
<text x="{}" y="{}">{value:.1}</text>"#,
            middle - 12.0,
            x(value) - LEFT,
            x(value - error),
            x(value + error),
            x(row.exact as f32),
            RIGHT + 16.0,
            middle + 5.0,
        )?;
    }
    writeln!(svg, "</svg>")?;
    Ok(svg)
}

/// A domino of 64 by 32.
fn domino(svg: &mut String, domino: Domino, left: f32, top: f32) -> Result<(), Failure> {
    writeln!(
        svg,
        r#"<rect x="{left}" y="{top}" width="64" height="32" rx="4" fill="ivory" stroke="black"/>
<path d="M{} {}v24" stroke="gray"/>"#,
        left + 32.0,
        top + 4.0
    )?;
    for (number, half) in [domino.high(), domino.low()].into_iter().zip([0.0, 32.0]) {
        for &(column, row) in PIPS[usize::from(number)] {
            let (x, y) = (left + half + 7.0 + 9.0 * f32::from(row), top + 7.0 + 9.0 * f32::from(column));
            writeln!(svg, r#"<circle cx="{x}" cy="{y}" r="3"/>"#)?;
        }
    }
    Ok(())
}
