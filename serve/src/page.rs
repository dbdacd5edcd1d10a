//! The page: files of the server itself, or of a folder for those who work on it.
//!
//! Invariant: the page loads nothing from elsewhere and no other site frames it; its policy says so to the browser.

use std::path::PathBuf;

use crate::digest::short_digest;

/// What the page may do, for the browser.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'";

/// A file of the page: its name, its type, and its bytes, plain and by gzip.
struct Built {
    name: &'static str,
    kind: &'static str,
    plain: &'static [u8],
    zipped: &'static [u8],
}

macro_rules! built {
    ($name:literal, $kind:literal) => {
        Built {
            name: $name,
            kind: $kind,
            plain: include_bytes!(concat!("../page/", $name)),
            zipped: include_bytes!(concat!("../page/", $name, ".gz")),
        }
    };
}

const BUILT: &[Built] = &[
    built!("index.html", "text/html; charset=utf-8"),
    built!("app.js", "text/javascript; charset=utf-8"),
    built!("app.css", "text/css; charset=utf-8"),
];

/// Where the page comes from.
#[derive(Debug)]
pub(crate) struct Page {
    folder: Option<PathBuf>,
}

/// A file of it.
#[derive(Debug)]
pub(crate) struct PageFile {
    pub kind: &'static str,
    pub bytes: Vec<u8>,
    pub is_zipped: bool,
    /// By which a browser asks whether it has changed.
    pub tag: String,
}

impl Page {
    pub(crate) fn new(folder: Option<PathBuf>) -> Page {
        Page { folder }
    }

    /// The file of a path, zipped where the client takes that; none where there is none.
    pub(crate) fn find_file(&self, path: &str, takes_zipped: bool) -> Option<PageFile> {
        let name = match path.trim_start_matches('/') {
            "" => "index.html",
            name => name,
        };
        let built = BUILT.iter().find(|file| file.name == name)?;
        let (bytes, is_zipped) = match &self.folder {
            Some(folder) => (std::fs::read(folder.join(built.name)).ok()?, false),
            None if takes_zipped => (built.zipped.to_vec(), true),
            None => (built.plain.to_vec(), false),
        };
        let tag = format!("\"{}\"", short_digest(&bytes));
        Some(PageFile { kind: built.kind, bytes, is_zipped, tag })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of the page as a browser loads it at most.
    const LARGEST: usize = 100 * 1024;

    #[test]
    fn the_page_is_small_and_loads_nothing_from_elsewhere() {
        let zipped: usize = BUILT.iter().map(|file| file.zipped.len()).sum();
        assert!(zipped <= LARGEST, "{zipped} bytes");
        for file in BUILT {
            let text = std::str::from_utf8(file.plain).expect("it is text");
            for start in ["http://", "https://"] {
                for (at, _) in text.match_indices(start) {
                    let address = &text[at..text.len().min(at + 60)];
                    assert!(address.starts_with("http://www.w3.org/"), "{}: {address}", file.name);
                }
            }
        }
    }

    #[test]
    fn only_the_files_of_the_page_are_served() {
        let page = Page::new(None);
        assert_eq!(page.find_file("/", false).expect("there is a page").kind, "text/html; charset=utf-8");
        assert!(page.find_file("/app.js", true).expect("it has a script").is_zipped);
        for nothing in ["/app.js.gz", "/../Cargo.toml", "/favicon.ico", "/index"] {
            assert!(page.find_file(nothing, false).is_none(), "{nothing}");
        }
    }
}
