//! A self-contained HTML page.

use crate::durable;
use crate::error::Error;
use std::fmt::Write;
use std::path::Path;

/// Light and dark, and narrow: a table that is too wide scrolls in its own frame, not the page.
const STYLE: &str = include_str!("page.css");

/// A page in one file: style and pictures are inside, there is no script, and nothing is loaded. Text is escaped: none of it is read
/// as HTML.
///
/// # Example
///
/// ```
/// use eggroll_run::report::Page;
///
/// let page = Page::new("Three runs").with_table("Results", &["run", "accuracy"], &[vec!["<first>".into(), "0.97".into()]]);
/// assert!(page.html().contains("&lt;first&gt;"));
/// ```
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    /// A page with nothing but its title.
    pub fn new(title: impl Into<String>) -> Self {
        let title = title.into();
        let body = format!("<h1>{}</h1>\n", escaped(&title));
        Self { title, body }
    }

    /// Adds a paragraph.
    pub fn with_text(mut self, text: &str) -> Self {
        self.add(format_args!("<p>{}</p>", escaped(text)));
        self
    }

    /// Adds a heading.
    pub fn with_heading(mut self, heading: &str) -> Self {
        self.add(format_args!("<h2>{}</h2>", escaped(heading)));
        self
    }

    /// Adds the most important numbers, each with its name.
    pub fn with_figures(mut self, figures: &[(String, String)]) -> Self {
        let tile = |(name, value): &(String, String)| format!("<div><b>{}</b>{}</div>", escaped(value), escaped(name));
        self.add(format_args!("<div class=\"figures\">{}</div>", figures.iter().map(tile).collect::<String>()));
        self
    }

    /// Adds warnings in a frame; nothing if there are none.
    pub fn with_warnings(mut self, warnings: &[String]) -> Self {
        if !warnings.is_empty() {
            let items: String = warnings.iter().map(|warning| format!("<li>{}</li>", escaped(warning))).collect();
            self.add(format_args!("<ul class=\"warnings\">{items}</ul>"));
        }
        self
    }

    /// Adds a table below a heading. Cells that are numbers stand at the right.
    pub fn with_table(mut self, heading: &str, titles: &[&str], rows: &[Vec<String>]) -> Self {
        self = self.with_heading(heading);
        let is_of_numbers = |column: usize| {
            let mut cells =
                rows.iter().filter_map(|cells| cells.get(column)).filter(|cell| !cell.is_empty()).peekable();
            cells.peek().is_some() && cells.all(|cell| is_number(cell))
        };
        let title = |(column, title): (usize, &&str)| {
            let class = if is_of_numbers(column) { " class=\"number\"" } else { "" };
            format!("<th{class}>{}</th>", escaped(title))
        };
        let titles: String = titles.iter().enumerate().map(title).collect();
        let rows: String = rows.iter().map(|cells| row(cells)).collect();
        self.add(format_args!(
            "<div class=\"frame\"><table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table></div>"
        ));
        self
    }

    /// Adds names with their values below a heading.
    pub fn with_facts(mut self, heading: &str, facts: &[(String, String)]) -> Self {
        self = self.with_heading(heading);
        let line = |(name, value): &(String, String)| {
            format!("<div><dt>{}</dt><dd>{}</dd></div>", escaped(name), escaped(value))
        };
        self.add(format_args!("<dl>{}</dl>", facts.iter().map(line).collect::<String>()));
        self
    }

    /// Adds pictures in SVG, side by side where there is room. Unlike other text they are taken as they are.
    pub fn with_pictures(mut self, pictures: &[String]) -> Self {
        let figures: String = pictures.iter().map(|svg| format!("<figure>{svg}</figure>\n")).collect();
        self.add(format_args!("<div class=\"pictures\">{figures}</div>"));
        self
    }

    /// Adds the texts of SVG files as images, each with its name: what is inside cannot change the page.
    pub fn with_images(mut self, images: &[(String, String)]) -> Self {
        let figure = |(name, svg): &(String, String)| {
            let name = escaped(name);
            format!(
                "<figure><img alt=\"{name}\" src=\"data:image/svg+xml,{}\"><figcaption>{name}</figcaption></figure>\n",
                percent(svg)
            )
        };
        self.add(format_args!("<div class=\"images\">{}</div>", images.iter().map(figure).collect::<String>()));
        self
    }

    /// The page as text.
    pub fn html(&self) -> String {
        let Self { title, body } = self;
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
             <link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
            escaped(title)
        )
    }

    /// Writes the page, completely or not at all.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the file.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        durable::replace(path, self.html().as_bytes())
    }

    fn add(&mut self, html: std::fmt::Arguments<'_>) {
        writeln!(self.body, "{html}").expect("text");
    }
}

fn row(cells: &[String]) -> String {
    let cell = |cell: &String| {
        let class = if is_number(cell) { " class=\"number\"" } else { "" };
        format!("<td{class}>{}</td>", escaped(cell))
    };
    format!("<tr>{}</tr>\n", cells.iter().map(cell).collect::<String>())
}

/// Whether a cell is a number, with a unit perhaps.
fn is_number(cell: &str) -> bool {
    let number = cell.split(' ').next().unwrap_or_default().trim_end_matches('%');
    number.parse::<f64>().is_ok()
}

/// Text as HTML shows it, in elements and in attributes. Characters that XML does not have are left out.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(' '),
            other if other.is_control() => {}
            other => escaped.push(other),
        }
    }
    escaped
}

/// Text in a URL inside of an attribute.
fn percent(text: &str) -> String {
    let mut url = String::with_capacity(text.len() * 5 / 4);
    for character in text.chars() {
        match character {
            '%' | '#' | '"' | '\'' | '<' | '>' | '&' | '`' | '\\' => {
                write!(url, "%{:02X}", character as u32).expect("text");
            }
            other if other.is_control() => url.push(' '),
            other => url.push(other),
        }
    }
    url
}

/// Four digits of a number.
pub(super) fn short(number: f64) -> String {
    let size = number.abs();
    match number {
        _ if !size.is_finite() => number.to_string(),
        _ if size < 1e-12 => "0".to_owned(),
        _ if !(1e-4..1e9).contains(&size) => {
            let text = format!("{number:.3e}");
            text.parse::<f64>().map_or(text, |rounded| format!("{rounded:e}"))
        }
        _ => {
            let text = format!("{number:.*}", (3 - size.log10().floor() as i32).max(0) as usize);
            text.parse::<f64>().map_or(text, |rounded| rounded.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_html() {
        let evil = "<script>alert(\"1\")</script>&'\u{1b}[31m";
        let page = Page::new(evil)
            .with_text(evil)
            .with_heading(evil)
            .with_figures(&[(evil.to_owned(), evil.to_owned())])
            .with_warnings(&[evil.to_owned()])
            .with_table(evil, &[evil], &[vec![evil.to_owned()]])
            .with_facts(evil, &[(evil.to_owned(), evil.to_owned())])
            .with_images(&[(evil.to_owned(), evil.to_owned())]);
        let html = page.html();
        assert!(!html.contains("<script") && !html.contains('\u{1b}'), "{html}");
        assert_eq!(html.matches("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;").count(), 15);
        for outside in ["http://", "https://", "url(", "@import"] {
            assert!(!html.contains(outside), "{outside}");
        }
        let sources = |of: &str| html.matches(of).count();
        assert_eq!([sources("src="), sources("src=\"data:image/svg+xml,%3Cscript%3E")], [1, 1]);
    }

    #[test]
    fn numbers_are_short() {
        let cases =
            [(0.0, "0"), (0.02, "0.02"), (1234.5, "1234"), (22_000.0, "22000"), (1e-5, "1e-5"), (2.5e12, "2.5e12")];
        for (number, text) in cases {
            assert_eq!(short(number), text);
        }
        assert_eq!((short(-0.123_45), short(f64::NAN)), ("-0.1235".to_owned(), "NaN".to_owned()));
        assert_eq!([-0.0, -1e-13].map(short), ["0", "0"]);
    }

    #[test]
    fn numbers_stand_at_the_right() {
        for (cell, expected) in
            [("1", true), ("-0.5", true), ("97.1 %", true), ("1.5e-3 s", true), ("flex", false), ("", false)]
        {
            assert_eq!(is_number(cell), expected, "{cell}");
        }
    }
}
