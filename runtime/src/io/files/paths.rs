//! Paths that specs and agents write: which are allowed, and where they lead.

use crate::types::visible_text::shown;
/// The longest path, in bytes.
const LONGEST: usize = 1024;

/// A path without what does not change it.
///
/// # Errors
/// It leads elsewhere than downwards, or holds what no name should.
pub(super) fn normalize_path(path: &str) -> Result<String, String> {
    let shown = shown(path);
    if path.len() > LONGEST {
        return Err(format!("`{shown}` is longer than the {LONGEST} bytes that a path may have"));
    }
    if path.starts_with('/') {
        return Err(format!("`{shown}` is absolute"));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(format!("`{shown}` goes up with `..`"));
    }
    if parts.is_empty() {
        return Err("it is empty".to_owned());
    }
    match parts.iter().find_map(|part| find_odd_character(part)) {
        Some(what) => Err(format!("`{shown}` {what}")),
        None => Ok(parts.join("/")),
    }
}

/// What is wrong with the name of a file.
pub(super) fn find_odd_character(name: &str) -> Option<&'static str> {
    if name.chars().any(char::is_control) {
        return Some("holds control characters");
    }
    name.contains('\\').then_some("holds a `\\`")
}

/// The last name of a plain path.
pub(super) fn last_component(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether `path` is `place`, or lies in it.
pub(super) fn lies_in(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_downwards() {
        assert_eq!(normalize_path("./a//b/").as_deref(), Ok("a/b"));
        for path in ["/a", "../a", "a/../b", "", "./", "a\nb", "a\\b", "a\0"] {
            assert!(normalize_path(path).is_err(), "{path:?}");
        }
        assert!(normalize_path(&"a/".repeat(600)).is_err());
        assert!(shown(&"x\u{1b}".repeat(500)).chars().all(|found| found != '\u{1b}'));
        assert!(lies_in("a/b", "a") && lies_in("a", "a") && !lies_in("ab", "a"));
    }
}
