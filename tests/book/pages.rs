//! Pages of the book, of `docs`, and the READMEs: their programs are those that run, every linked file exists.

use super::embedded;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a page without its programs, at most: longer ones are not read.
const PAGE_LINES: usize = 150;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn book() -> PathBuf {
    root().join("docs/book/src")
}

/// Files of a folder with an ending, by name.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|found| found == ending)).collect();
    files.sort();
    files
}

/// What stands between `before` and `after`, everywhere in a text.
fn between<'a>(text: &'a str, before: &'a str, after: char) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).filter_map(move |rest| rest.split_once(after).map(|(inside, _)| inside))
}

/// The lines of a page that are not code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        code ^= line.starts_with("```");
        !code
    })
}

/// Linked files: no other sites, no places within a page, and nothing in code.
fn links(text: &str) -> Vec<&str> {
    let targets = prose(text).flat_map(|line| between(line, "](", ')'));
    let files = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    files.map(|target| target.split('#').next().unwrap_or(target)).collect()
}

/// What is wrong with a page.
fn problems(page: &Path, text: &str) -> Vec<String> {
    let folder = page.parent().expect("in a folder");
    let mut problems = Vec::new();
    for target in links(text) {
        if !folder.join(target).exists() {
            problems.push(format!("no file {target}"));
        }
    }
    problems.extend(embedded::problems(text));
    let prose = prose(text).count();
    if prose > PAGE_LINES {
        problems.push(format!("{prose} lines, more than {PAGE_LINES}"));
    }
    problems
}

/// All pages with prose of this repository, but for those of the crates.
fn pages() -> Vec<PathBuf> {
    [book(), root().join("docs"), root().join("examples"), root()]
        .iter()
        .flat_map(|folder| files(folder, "md"))
        .collect()
}

#[test]
fn programs_and_links_are_right() {
    let pages = pages();
    assert!(pages.len() > 15, "{pages:?}");
    for page in pages {
        let mut text = fs::read_to_string(&page).expect("reads");
        if std::env::var_os("EGGROLL_BLESS").is_some() {
            let blessed = embedded::rewritten(&text);
            if blessed != text {
                fs::write(&page, &blessed).expect("writes");
                text = blessed;
            }
        }
        let mut problems = problems(&page, &text);
        // The limit is the book's.
        problems.retain(|problem| page.starts_with(book()) || !problem.contains(" lines, more than "));
        assert!(problems.is_empty(), "{}: {problems:#?}", page.display());
    }
}

#[test]
fn canary_problems_are_found() {
    let page = book().join("made_up.md");
    let here = "tests/book/modules.rs";
    let text = format!(
        "[there](SUMMARY.md) [site](https://burn.dev) [absent](absent.md#place)\n```\n[code](x.md)\n```\n\
         <!-- {here}:graph -->\n```rust\nstale\n```\n<!-- {here}:nothing -->\n```rust\n```\n\
         <!-- tests/absent.rs:part -->\n```rust\n```\n<!-- {here}:graph -->\nno block\n{{{{#include x}}}}\n{}",
        "\n".repeat(PAGE_LINES)
    );
    let expected = [
        "no file absent.md".into(),
        format!("{here}:graph is not what the page shows"),
        format!("no part nothing in {here}"),
        "no file tests/absent.rs".into(),
        format!("no block of code below {here}:graph"),
        "{{#include".into(),
        "161 lines".into(),
    ];
    let found = problems(&page, &text);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    assert!(found.iter().zip(expected).all(|(found, expected)| found.starts_with(&expected)), "{found:#?}");
}

/// The table of contents lists every page once, and pages link only to pages: the book stands alone where it is published.
#[test]
fn the_summary_is_complete() {
    let text = fs::read_to_string(book().join("SUMMARY.md")).expect("reads");
    let listed = links(&text);
    let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let pages: BTreeSet<String> = files(&book(), "md").iter().map(name).filter(|name| name != "SUMMARY.md").collect();
    assert_eq!(listed.iter().map(|page| (*page).to_owned()).collect::<BTreeSet<_>>(), pages);
    assert_eq!(listed.len(), pages.len());
    for page in files(&book(), "md") {
        let text = fs::read_to_string(&page).expect("reads");
        let outside: Vec<&str> = links(&text).into_iter().filter(|link| link.contains("..")).collect();
        assert!(outside.is_empty(), "{}: {outside:?}", page.display());
    }
}

/// Programs show everything that they mark.
#[test]
fn every_part_is_shown() {
    let read = |path: PathBuf| fs::read_to_string(path).expect("reads");
    let pages: Vec<String> = pages().into_iter().map(read).collect();
    let shown: BTreeSet<_> = pages.iter().flat_map(|text| embedded::sources(text)).collect();
    let programs = files(&root().join("tests/book"), "rs")
        .into_iter()
        .filter(|path| !["embedded.rs", "pages.rs"].iter().any(|name| path.ends_with(name)));
    for program in programs {
        let name = program.file_name().expect("a name").to_string_lossy().into_owned();
        for part in between(&read(program), "// ANCHOR: ", '\n') {
            let source = format!("tests/book/{name}:{part}");
            assert!(shown.contains(source.as_str()), "{source} is shown nowhere");
        }
    }
}
