//! The site that mdBook makes of `docs/`: it builds without a warning, every link in it leads somewhere, and its search
//! finds what a reader looks for, in a real browser.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::tidy::root;

/// Where `tests/install-tools` has put mdBook.
fn mdbook() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let script = root().join("tests/install-tools");
        let output =
            Command::new(script).stderr(Stdio::inherit()).output().expect("tests/install-tools can be started");
        assert!(output.status.success(), "tests/install-tools failed: it says why above");
        let folder = String::from_utf8(output.stdout).expect("the path is UTF-8");
        Path::new(folder.trim_end()).join("bin/mdbook")
    })
}

/// The site, in a folder of its own.
fn build_site() -> TempDir {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let output = Command::new(mdbook()).arg("build").arg("-d").arg(folder.path()).current_dir(root()).output();
    let output = output.expect("mdbook starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("WARN") && !said.contains("ERROR"), "{said}");
    folder
}

/// The values of an attribute in a page.
fn attributes<'p>(page: &'p str, name: &str) -> Vec<&'p str> {
    let mark = format!(" {name}=\"");
    page.split(mark.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// The links of a page that lead nowhere within the site.
fn find_dead_links(site: &Path, name: &str, pages: &BTreeMap<String, String>) -> Vec<String> {
    let page = &pages[name];
    let links: BTreeSet<&str> = [attributes(page, "href"), attributes(page, "src")].concat().into_iter().collect();
    let inside = links.into_iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:"));
    let dead = inside.filter(|link| {
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let path = if path.is_empty() { name } else { path };
        match pages.get(path) {
            Some(target) => !anchor.is_empty() && !attributes(target, "id").contains(&anchor),
            None => path.starts_with('/') || path.contains("..") || !site.join(path).is_file(),
        }
    });
    dead.map(|link| format!("{name}: {link}")).collect()
}

fn read_pages(site: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(site).expect("the site can be read").map(|entry| entry.expect("an entry").path());
    let pages = files.filter(|path| path.extension().is_some_and(|extension| extension == "html"));
    let read = |path: PathBuf| {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).expect("a page can be read"))
    };
    // It is for addresses that do not exist, so its links begin at the root of a server.
    pages.map(read).filter(|(name, _)| name != "404.html").collect()
}

#[test]
fn every_link_of_the_site_leads_somewhere() {
    let site = build_site();
    let mut pages = read_pages(site.path());
    assert!(pages.len() > super::summary::list_pages().len(), "{:?}", pages.keys());
    let dead: Vec<String> = pages.keys().flat_map(|name| find_dead_links(site.path(), name, &pages)).collect();
    assert!(dead.is_empty(), "{dead:#?}");
    pages.insert("new.html".to_owned(), "<a href=\"rules.html#sw999\">a</a><a href=\"none.html\">b</a>".to_owned());
    assert_eq!(find_dead_links(site.path(), "new.html", &pages).len(), 2, "dead links are found");
}

#[test]
fn the_search_of_the_site_finds_pages_in_a_browser() {
    let site = build_site();
    let profile = TempDir::new().expect("a temporary folder can be made");
    let found = |word: &str| {
        let output = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("file://{}/index.html?search={word}", site.path().display()))
            .output()
            .expect("chromium starts");
        let page = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(page.contains("<title>Tutorial - swarmc</title>"), "{page}");
        let (_, rest) = page.split_once("<ul id=\"mdbook-searchresults\">").expect("the page has a place for results");
        rest.split("</ul>").next().unwrap_or_default().to_owned()
    };
    let results = found("release%20gate");
    assert!(results.contains("cookbook.html?highlight=release%20gate#release-with-a-gate"), "{results}");
    let results = found("SW202");
    assert!(results.contains("#sw202-output-may-be-skipped"), "{results}");
    assert_eq!(found("xyzzyplugh"), "");
}
