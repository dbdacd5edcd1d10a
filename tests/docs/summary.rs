//! `docs/SUMMARY.md`, the table of contents of the site, and how long the pages are.

use std::collections::BTreeSet;

use crate::tidy::{files, text};

/// The pages of `docs/`, by name.
pub(super) fn list_pages() -> BTreeSet<String> {
    let pages = files().into_iter().filter_map(|path| {
        let page = path.to_string_lossy().strip_prefix("docs/")?.to_owned();
        page.ends_with(".md").then_some(page)
    });
    pages.collect()
}

#[test]
fn every_page_stands_once_in_the_summary() {
    let summary = text("docs/SUMMARY.md");
    let mut listed = BTreeSet::new();
    for link in summary.split("](").skip(1) {
        let page = link.split(')').next().expect("a link ends").to_owned();
        assert!(listed.insert(page.clone()), "{page} is listed twice");
    }
    let mut pages = list_pages();
    pages.remove("SUMMARY.md");
    assert_eq!(listed, pages);
}

/// The words of all pages and of the README at most: to say more in one place, say less in another.
const MOST_WORDS: usize = 70_500;

#[test]
fn pages_are_short_enough_to_read() {
    let pages = list_pages().into_iter().map(|page| format!("docs/{page}"));
    let pages = pages.chain(["README.md".to_owned()]);
    let words: usize = pages.map(|page| text(&page).split_whitespace().count()).sum();
    assert!(words < MOST_WORDS, "the pages have {words} words");
}
