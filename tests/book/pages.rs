//! Pages of the book and of `docs`: every included part and every linked file must be there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a page, at most: longer ones are not read.
const PAGE_LINES: usize = 150;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
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

/// Included files with their anchors.
fn includes(text: &str) -> Vec<(&str, Option<&str>)> {
    let targets = between(text, "{{#include ", '}');
    targets.map(|target| target.split_once(':').map_or((target, None), |(path, anchor)| (path, Some(anchor)))).collect()
}

/// Linked files: no other sites, no places within a page, and none of what stands in code.
fn links(text: &str) -> Vec<&str> {
    let mut code = false;
    let prose = text.lines().filter(move |line| {
        code ^= line.starts_with("```");
        !code
    });
    let targets = prose.flat_map(|line| between(line, "](", ')'));
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
    for (path, anchor) in includes(text) {
        let Ok(source) = fs::read_to_string(folder.join(path)) else {
            problems.push(format!("no file {path}"));
            continue;
        };
        if let Some(anchor) = anchor
            && part(&source, anchor).is_none_or(|part| part.trim().is_empty())
        {
            problems.push(format!("no anchor {anchor} in {path}"));
        }
    }
    if text.lines().count() > PAGE_LINES {
        problems.push(format!("{} lines, more than {PAGE_LINES}", text.lines().count()));
    }
    problems
}

/// The lines between an anchor and its end.
fn part<'a>(source: &'a str, anchor: &str) -> Option<&'a str> {
    let (_, rest) = source.split_once(&format!("// ANCHOR: {anchor}\n"))?;
    rest.split_once(&format!("// ANCHOR_END: {anchor}\n")).map(|(part, _)| part)
}

#[test]
fn includes_and_links_resolve() {
    let pages = [files(&book(), "md"), files(&root().join("docs"), "md"), files(&root(), "md")].concat();
    assert!(pages.len() > 15, "{pages:?}");
    for page in pages {
        let text = fs::read_to_string(&page).expect("reads");
        let mut problems = problems(&page, &text);
        // The limit is the book's.
        problems.retain(|problem| page.starts_with(book()) || !problem.contains(" lines, more than "));
        assert!(problems.is_empty(), "{}: {problems:?}", page.display());
    }
}

#[test]
fn canary_problems_are_found() {
    let page = book().join("made_up.md");
    let here = "../../../tests/book/pages.rs";
    let text = format!(
        "[there](SUMMARY.md) [site](https://burn.dev) [absent](absent.md#place)\n```\n[code](x.md)\n```\n\
         {{{{#include {here}}}}} {{{{#include {here}:nothing}}}} {{{{#include absent.rs:part}}}}\n{}",
        "\n".repeat(PAGE_LINES)
    );
    let expected = [
        "no file absent.md".into(),
        format!("no anchor nothing in {here}"),
        "no file absent.rs".into(),
        "155 lines".into(),
    ];
    let found = problems(&page, &text);
    assert_eq!(found.len(), expected.len(), "{found:?}");
    assert!(found.iter().zip(expected).all(|(found, expected)| found.starts_with(&expected)), "{found:?}");
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
fn every_anchor_is_included() {
    let read = |path: PathBuf| fs::read_to_string(path).expect("reads");
    let pages: Vec<String> = files(&book(), "md").into_iter().map(read).collect();
    let shown: BTreeSet<_> = pages.iter().flat_map(|text| includes(text)).collect();
    let programs = files(&root().join("tests/book"), "rs").into_iter().filter(|path| !path.ends_with("pages.rs"));
    for program in programs {
        let path = format!("../../../tests/book/{}", program.file_name().expect("a name").to_string_lossy());
        for anchor in between(&read(program), "// ANCHOR: ", '\n') {
            assert!(shown.contains(&(path.as_str(), Some(anchor))), "{path}: {anchor} is shown nowhere");
        }
    }
}
