//! Applies the fixes of diagnostics, round after round, until no fix is left.
//!
//! In: a spec, its files, and whether to apply likely fixes too. Out: the changed texts, in memory. Each fix applies
//! whole or not at all. If two fixes touch, the second waits for the next round. A fix that causes an error is undone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::analysis::{Compilation, compile_with};
use crate::code::{Code, Severity};
use crate::diagnostic::{Diagnostic, Fix};
use crate::files::{Entry, FileError, Files};
use crate::settings::Settings;

/// The rounds at most: one fix can make the next one possible, but not for ever.
const ROUNDS: usize = 20;

/// Files with texts of its own in place of some of them.
pub struct Overlay<'f> {
    files: &'f dyn Files,
    /// The texts that differ, by path.
    pub texts: BTreeMap<String, Arc<str>>,
}

impl<'f> Overlay<'f> {
    /// The files as they are.
    pub fn new(files: &'f dyn Files) -> Overlay<'f> {
        Overlay { files, texts: BTreeMap::new() }
    }
}

impl Files for Overlay<'_> {
    fn read(&self, path: &str) -> Result<Arc<str>, FileError> {
        self.texts.get(path).map_or_else(|| self.files.read(path), |text| Ok(Arc::clone(text)))
    }

    fn find(&self, path: &str) -> Result<Entry, FileError> {
        self.files.find(path)
    }

    fn is_executable(&self, path: &str) -> Result<bool, FileError> {
        self.files.is_executable(path)
    }

    fn list(&self, path: &str) -> Vec<String> {
        self.files.list(path)
    }
}

/// What became of the fixes of a spec.
#[derive(Debug)]
pub struct Mended {
    /// The spec with its fixes applied, and what is still wrong with it.
    pub compilation: Compilation,
    /// What was done, in order: the titles of the fixes.
    pub applied: Vec<String>,
}

/// Applies the fixes of a spec to the texts of `overlay`: the certain ones, and with `guesses` also the likely ones.
pub fn fix_spec(path: &str, overlay: &mut Overlay<'_>, settings: &Settings, guesses: bool) -> Mended {
    let mut compilation = compile_with(path, overlay, settings);
    let (mut applied, mut refused) = (Vec::new(), BTreeSet::new());
    for _ in 0..ROUNDS {
        let wanted = |diagnostic: &&Diagnostic| {
            diagnostic.severity_in(&settings.levels).is_some()
                && !refused.contains(&diagnostic_key(diagnostic, &compilation))
        };
        let fixable = compilation.diagnostics.iter().filter(wanted);
        let mut chosen: Vec<(_, Fix)> = Vec::new();
        for diagnostic in fixable {
            if let Some(fix) = diagnostic.fix.as_ref().filter(|fix| fix.certain || guesses)
                && !chosen.iter().any(|(_, other)| is_overlapping(fix, other))
                && fix.edits.iter().all(|edit| !compilation.sources.name(edit.span.file).starts_with("std:"))
            {
                chosen.push((diagnostic_key(diagnostic, &compilation), fix.clone()));
            }
        }
        // Half of them, and half of these, when they do harm together.
        loop {
            if chosen.is_empty() {
                return Mended { compilation, applied };
            }
            let before = overlay.texts.clone();
            apply_edits(&compilation, chosen.iter().map(|(_, fix)| fix), overlay);
            let after = compile_with(path, overlay, settings);
            if is_improvement(&compilation, &after, chosen.iter().map(|(key, _)| key.0)) {
                applied.extend(chosen.iter().map(|(_, fix)| fix.title.clone()));
                compilation = after;
                break;
            }
            overlay.texts = before;
            if chosen.len() == 1 {
                refused.extend(chosen.pop().map(|(key, _)| key));
                break;
            }
            // The others come again in the next round.
            chosen.truncate(chosen.len() / 2);
        }
    }
    Mended { compilation, applied }
}

/// A diagnostic wherever the edits of others move it: its code, its message, its file and what is written in its place.
fn diagnostic_key(diagnostic: &Diagnostic, compilation: &Compilation) -> (Code, String, String, String) {
    let (file, text) = match diagnostic.span() {
        Some(span) => (compilation.sources.name(span.file), compilation.sources.slice(span)),
        None => ("", ""),
    };
    (diagnostic.code, diagnostic.message.clone(), file.to_owned(), text.to_owned())
}

/// Whether fixes of diagnostics with these codes made something better, and nothing worse. What cannot be read hides
/// other errors, and a name that leads nowhere hides what its value is read for: those may come to light.
fn is_improvement(before: &Compilation, after: &Compilation, codes: impl Iterator<Item = Code>) -> bool {
    let layer = |code: Code| match code {
        Code::BadDirective | Code::TemplateError => 0,
        // An id is `SW` and three digits, of which the first names its layer.
        code => code.id().as_bytes()[2] - b'0',
    };
    let mended = codes.map(layer).min().unwrap_or(0);
    let hidden = |code: Code| match mended {
        // A word that could not be read may be one for a shell.
        0 => layer(code) > 0 || code == Code::UnquotedShell,
        1 => layer(code) == 2,
        _ => false,
    };
    let mut known: BTreeMap<_, usize> = BTreeMap::new();
    for error in list_errors(before) {
        *known.entry(diagnostic_key(error, before)).or_default() += 1;
    }
    let mut new = list_errors(after).filter(|error| match known.get_mut(&diagnostic_key(error, after)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    });
    new.all(|error| hidden(error.code))
}

/// The errors that count against a fix. Bounds are looked at only when everything else is right, so that they may come
/// to light when it is.
fn list_errors(compilation: &Compilation) -> impl Iterator<Item = &Diagnostic> {
    let is_error = |diagnostic: &&Diagnostic| diagnostic.severity() == Severity::Error;
    compilation.diagnostics.iter().filter(is_error).filter(|diagnostic| !diagnostic.code.id().starts_with("SW4"))
}

/// Whether two fixes change the same place.
fn is_overlapping(one: &Fix, other: &Fix) -> bool {
    one.edits.iter().any(|a| {
        other
            .edits
            .iter()
            // Touching counts as well: two insertions in one place have no order.
            .any(|b| a.span.file == b.span.file && a.span.start <= b.span.end && b.span.start <= a.span.end)
    })
}

/// Makes the edits of fixes that do not touch.
fn apply_edits<'d>(compilation: &Compilation, fixes: impl Iterator<Item = &'d Fix>, overlay: &mut Overlay<'_>) {
    let mut edits: Vec<_> = fixes.flat_map(|fix| &fix.edits).collect();
    // From the last to the first, so that places in front stay where they are.
    edits.sort_by_key(|edit| std::cmp::Reverse((edit.span.file, edit.span.start)));
    let mut texts: BTreeMap<_, String> = BTreeMap::new();
    for edit in edits {
        let file = edit.span.file;
        let text = texts.entry(file).or_insert_with(|| compilation.sources.text(file).to_owned());
        text.replace_range(edit.span.range(), &edit.text);
    }
    for (file, text) in texts {
        overlay.texts.insert(compilation.sources.name(file).to_owned(), text.into());
    }
}

#[cfg(test)]
mod certain;
#[cfg(test)]
mod guesses;

#[cfg(test)]
mod tests {
    use super::*;

    fn mended(spec: &str, guesses: bool) -> (String, Mended) {
        let files = BTreeMap::from([("a.kdl".to_owned(), spec.to_owned())]);
        let mut overlay = Overlay::new(&files);
        let mended = fix_spec("a.kdl", &mut overlay, &Settings::default(), guesses);
        (overlay.read("a.kdl").expect("it is there").to_string(), mended)
    }

    const HEAD: &str = "provider local { exec cat }\nagent writer provider=local\n";

    #[test]
    fn certain_fixes_are_applied_and_guesses_only_when_wanted() {
        let spec = format!(
            "{HEAD}pipeline p {{\n    task plan {{ prompt \"x\"; output {{ ok bool }} }}\n    \
             task b {{ depends-on pln; prompt \"{{{{output:plan}}}}\" }}\n}}\n"
        );
        let (text, done) = mended(&spec, false);
        assert!(text.contains("<<output:plan>>"), "{text}");
        assert_eq!(done.applied.len(), 1);
        assert_eq!(
            done.compilation.diagnostics.iter().map(|found| found.code).collect::<Vec<_>>(),
            [Code::UnknownReference]
        );
        let (text, done) = mended(&spec, true);
        assert!(text.contains("depends-on plan;"), "{text}");
        assert!(done.compilation.diagnostics.is_empty() && done.compilation.plan.is_some());
    }

    #[test]
    fn several_fixes_of_one_text_are_applied_at_once() {
        let steps: String = (0..50).map(|index| format!("    task t{index} {{ run true; use-me true }}\n")).collect();
        let spec = format!("pipeline p {{\n    partial true\n{steps}}}\n");
        let (text, _) = mended(&spec, false);
        assert!(text.contains("#true"), "{text}");
    }

    #[test]
    fn a_fix_that_does_not_help_is_no_endless_loop() {
        let (text, done) = mended("pipeline p { task a { run true } }\nfoo true\n", true);
        assert!(text.contains("pipeline p"), "{text}");
        assert!(!done.compilation.diagnostics.is_empty());
    }
}
