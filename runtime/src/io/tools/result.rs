//! The result of a tool as a model gets it: visible and short, with the whole of it in a file.

use std::path::Path;

use crate::io::confine::Folder;
use crate::types::digest::file_name;
use crate::types::visible_text::beginning;

/// The characters up to which a result goes on as it is.
const SHORT: usize = 500;

/// The characters of a longer result that go on, beside the note that says where the whole is.
pub(super) const GIVEN: usize = 4_000;

/// The bytes of a result that are kept in its file.
const KEPT: usize = 1024 * 1024;

/// The characters of a fault that are told.
pub(super) const TOLD: usize = 2_000;

/// The results of one agent that are kept at most.
const MOST_FILES: u32 = 10_000;

/// The folder of results, in the folder that the agent works in.
const FOLDER: &str = "tool-results";

/// A result, and whether it is saved where it is long.
pub(super) struct Given {
    pub text: String,
    pub saved: bool,
}

/// Where a result belongs.
pub(super) struct Place<'a> {
    pub folder: &'a Path,
    pub agent: &'a str,
    pub tool: &'a str,
    /// Whether the agent can read it there.
    pub reads: bool,
}

/// The result as it goes on; a long one is saved to a file, and the note that says so comes first, since histories
/// keep beginnings.
pub(super) fn told(text: String, place: &Place<'_>) -> String {
    let count = text.chars().count();
    if count <= SHORT {
        return text;
    }
    let shown = beginning(&text, GIVEN);
    let part = if shown.len() < text.len() { format!(", of which the first {GIVEN} follow") } else { String::new() };
    let note = match save(&text, place) {
        Ok((file, whole)) => {
            let cut = if whole { String::new() } else { format!(" (its first {KEPT} bytes)") };
            let read = if place.reads { "; read it with file_read" } else { "" };
            format!("[{count} characters{part}; saved to {file}{cut}{read}]")
        }
        Err(problem) => format!("[{count} characters{part}; not saved: {problem}]"),
    };
    format!("{note}\n{shown}")
}

/// Saves a result under an unused name; says where, and whether it is the whole.
fn save(text: &str, place: &Place<'_>) -> Result<(String, bool), String> {
    let folder = Folder::open(place.folder)?;
    let results = folder.make(FOLDER)?;
    // Results do not belong into version control.
    if results.create(".gitignore", b"*\n").is_err_and(|problem| problem.is_some()) {
        return Err(format!("`{FOLDER}` cannot be written"));
    }
    let kept = &text[..text.floor_char_boundary(KEPT)];
    let (agent, tool) = (file_name(place.agent), file_name(place.tool));
    let (agent, tool) = (beginning(&agent, 60), beginning(&tool, 80));
    let taken = results.highest(&format!("{agent}-"))?;
    // Another call of the same agent may take a number between our look and our file.
    for number in taken.saturating_add(1)..=MOST_FILES {
        let name = format!("{agent}-{number:03}-{tool}.txt");
        match results.create(&name, kept.as_bytes()) {
            Ok(()) => return Ok((format!("{FOLDER}/{name}"), kept.len() == text.len())),
            Err(None) => {}
            Err(Some(problem)) => return Err(problem),
        }
    }
    Err(format!("there are {MOST_FILES} results of `{agent}` already"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(folder: &Path) -> Place<'_> {
        Place { folder, agent: "takao", tool: "web.search", reads: true }
    }

    #[test]
    fn a_short_result_goes_on_as_it_is_and_a_long_one_is_saved() {
        let folder = tempfile::tempdir().unwrap();
        let short = "é".repeat(500);
        assert_eq!(told(short.clone(), &place(folder.path())), short);
        assert!(!folder.path().join("tool-results").exists());
        let long = "é".repeat(5_000);
        let told = told(long.clone(), &place(folder.path()));
        let (note, text) = told.split_once('\n').unwrap();
        assert_eq!(
            note,
            "[5000 characters, of which the first 4000 follow; saved to tool-results/takao-001-web.search.txt; read it with file_read]"
        );
        assert_eq!(text.chars().count(), 4_001, "and an ellipsis");
        let saved = folder.path().join("tool-results/takao-001-web.search.txt");
        assert_eq!(std::fs::read_to_string(saved).unwrap(), long);
        assert_eq!(std::fs::read_to_string(folder.path().join("tool-results/.gitignore")).unwrap(), "*\n");
    }

    #[test]
    fn a_result_never_takes_the_place_of_another() {
        let folder = tempfile::tempdir().unwrap();
        for number in 1..=12 {
            let text = format!("{number}").repeat(600);
            let told = told(text.clone(), &place(folder.path()));
            let name = format!("tool-results/takao-{number:03}-web.search.txt");
            assert!(told.starts_with(&format!("[{} characters; saved to {name};", text.len())), "{told}");
            assert_eq!(std::fs::read_to_string(folder.path().join(name)).unwrap(), text);
        }
    }

    #[test]
    fn a_folder_of_results_that_leads_elsewhere_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("tool-results")).unwrap();
        let told = told("x".repeat(600), &place(folder.path()));
        assert!(told.starts_with("[600 characters; not saved: "), "{told}");
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn names_of_agents_and_tools_lead_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place { folder: folder.path(), agent: "../../x", tool: "/etc/passwd", reads: false };
        let told = told("x".repeat(600), &place);
        assert!(told.contains("saved to tool-results/%2e.%2f..%2fx-001-%2fetc%2fpasswd.txt]"), "{told}");
    }

    #[test]
    fn of_a_huge_result_the_beginning_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let told = told("x".repeat(10 * 1024 * 1024), &place(folder.path()));
        assert!(told.starts_with("[10485760 characters, of which the first 4000 follow; saved to "), "{told:.200}");
        assert!(told.contains("(its first 1048576 bytes)"), "{told:.200}");
        let saved = folder.path().join("tool-results/takao-001-web.search.txt");
        assert_eq!(std::fs::metadata(saved).unwrap().len(), 1024 * 1024);
    }
}
