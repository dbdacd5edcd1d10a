//! Tests random edits of real specs and prompts: a workspace that keeps its state answers like a fresh workspace.
//!
//! In: the repository's `specs/`, and a seed. The test makes 20,000 edits in bursts, and closes, touches and opens
//! files in between. After each burst it asks both workspaces every question at random places, and compares the answers
//! as text.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use swarmc_compiler::{FileId, syntax};

use super::*;
use crate::runs::NoRuns;

/// Edits in all.
const EDITS: usize = 20_000;

/// Edits between two comparisons, at most.
const BURST: usize = 100;

/// What people type, and what breaks.
const PIECES: &[&str] = &[
    "{",
    "}",
    "\"",
    "<<",
    ">>",
    "<<output:",
    "<<out",
    "<<output:plan>>",
    "<<output:plan.verdict|default:none>>",
    "<<file:",
    "{{ ",
    " }}",
    "{{ plan.",
    "{% if ",
    "{% endif %}",
    "<<if:",
    "<<end>>",
    "task x { run ls }\n",
    "depends-on plan\n",
    "prompt \"a <<output:scope>>\"\n",
    "prompt file=\"prompts/",
    "edges {\n",
    "plan -> coder\n",
    "#\"\"\"\n",
    "\"\"\"",
    "/-",
    "/*",
    "*/",
    "//",
    "\\",
    "\n",
    "\r\n",
    " ",
    "😀",
    "é",
    "\u{feff}",
    "#true",
    "(type)",
    "=",
    "|",
    ">",
    ":",
    "workflow w {}\n",
    "pipeline p {\n",
    "type t { a string }\n",
    "param p string\n",
    "agent a\n",
    "for-each",
    "import \"other.kdl\"\n",
    "swarm s {\n",
    "loop l max=3 {\n",
    "when \"plan.ok\"\n",
    "-",
    "_",
    "0",
    "x",
    ";",
];

/// A generator of Marsaglia's, small and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `limit`, which is not 0.
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("it is below a usize")
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// Files by path.
type Texts = BTreeMap<String, String>;

/// The folders of `specs/`, each a workspace.
fn workspaces() -> Vec<Texts> {
    fn collect(root: &Path, folder: &Path, found: &mut Texts) {
        for entry in std::fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("it is listed")) {
            let path = entry.path();
            if path.is_dir() {
                collect(root, &path, found);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let name = path.strip_prefix(root).expect("it lies beneath").to_str().expect("it is UTF-8");
                found.insert(name.to_owned(), text);
            }
        }
    }
    let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs");
    let mut folders: Vec<_> = std::fs::read_dir(specs).expect("the specs are there").flatten().collect();
    folders.sort_by_key(std::fs::DirEntry::path);
    let texts = folders.into_iter().map(|folder| {
        let mut found = Texts::new();
        collect(&folder.path(), &folder.path(), &mut found);
        found
    });
    texts.collect()
}

/// A random edit of a text: what is replaced, and by what.
fn edit(random: &mut Random, text: &str, original: &str) -> (Range<usize>, String) {
    let at = |random: &mut Random, text: &str| text.floor_char_boundary(random.below(text.len() + 1));
    let start = at(random, text);
    match random.below(12) {
        0..6 => (start..start, (*random.pick(PIECES)).to_owned()),
        6..8 => {
            (start..text.floor_char_boundary((start + 1 + random.below(12)).min(text.len())).max(start), String::new())
        }
        8 => (start..text.floor_char_boundary((start + random.below(200)).min(text.len())).max(start), String::new()),
        9 => {
            // A line is written again elsewhere, or taken from the text as it was.
            let from = if random.one_in(2) { text } else { original };
            let lines: Vec<&str> = from.split_inclusive('\n').collect();
            (start..start, lines.get(random.below(lines.len().max(1))).map_or(String::new(), |line| (*line).to_owned()))
        }
        10 => {
            let end = text.floor_char_boundary((start + random.below(30)).min(text.len())).max(start);
            (start..end, (*random.pick(PIECES)).to_owned())
        }
        // A text that has become rubble says nothing any more.
        _ => match random.one_in(8) || text.len() > 3 * original.len() + 1_000 {
            true => (0..text.len(), original.to_owned()),
            false => (start..start, "\n".to_owned()),
        },
    }
}

/// Compares the answers of two snapshots to the same question; each question is a line.
macro_rules! same {
    ($kept:expr, $fresh:expr, $about:expr; $($question:expr;)*) => {$({
        let question: &dyn Fn(&Snapshot) -> String = &$question;
        let (kept, fresh) = (question($kept), question($fresh));
        assert!(kept == fresh, "{}\n{}\nkept:  {kept}\nfresh: {fresh}", $about, stringify!($question));
    })*};
}

fn text(answer: impl Debug) -> String {
    format!("{answer:?}")
}

/// Asks both the same.
fn compare(random: &mut Random, kept: &Snapshot, fresh: &Snapshot, texts: &Texts, about: &str) {
    same! { kept, fresh, about;
        |one| text(one.specs().collect::<Vec<_>>());
        |one| text(collect_diagnostics(one));
        |one| text(search_symbols(one, ""));
        |one| text(search_symbols(one, "pla"));
    }
    let paths: Vec<&str> = texts.keys().map(String::as_str).collect();
    for _ in 0..2 {
        let path = *random.pick(&paths);
        let Some(document) = kept.document(path) else { continue };
        if let Some(tree) = document.tree() {
            let parsed = syntax::parse(&texts[path], FileId::new(0));
            assert_eq!(text(&**tree), text(parsed), "{about}: the tree of {path}");
        }
        let length = document.text().len();
        let offset = document.text().floor_char_boundary(random.below(length + 1));
        let end = document.text().floor_char_boundary((offset + random.below(80)).min(length)).max(offset);
        let about = &format!("{about}, {path} at {offset}");
        // Counting tokens takes as long as all the rest.
        let shown = Hints { tokens: random.one_in(20), ..Hints::default() };
        let document = |one: &Snapshot| one.document(path).expect("both have it");
        same! { kept, fresh, about;
            |one| text(document(one).text());
            |one| text(find_hover(one, path, offset, &NoRuns));
            |one| text(find_definition(one, path, offset));
            |one| text(type_definition(one, path, offset));
            |one| text(find_references(one, path, offset, true));
            |one| text(highlight_name(one, path, offset));
            |one| text(prepare_rename(one, path, offset));
            |one| text(rename_symbol(one, path, offset, "renamed"));
            |one| text(list_actions(one, path, offset..end));
            |one| text(list_completions(one, path, offset, None));
            |one| text(list_tokens(one, path, 0..length));
            |one| text(list_tokens(one, path, offset..end));
            |one| text(list_folds(one, path));
            |one| text(list_selections(one, path, offset));
            |one| text(build_outline(&document(one)));
            |one| text(format_document(&document(one), None));
            |one| text(format_typed(&document(one), offset));
            |one| text(list_members(one, path, offset));
            |one| text(list_incoming(one, path, offset));
            |one| text(list_outgoing(one, path, offset));
            |one| text(list_hints(one, path, 0..length, shown));
            |one| text(list_lenses(one, path, &NoRuns));
            |one| text(find_linked_ranges(one, path, offset));
            |one| text(list_links(one, path));
            |one| text(list_values(one, path, 0..length, &NoRuns));
            |one| text(find_signature(one, path, offset));
        }
    }
}

/// A workspace as a server that starts now would have it.
fn fresh(disk: &Texts, open: &Texts) -> Workspace {
    let mut workspace = Workspace::new(Arc::new(disk.clone()));
    for path in disk.keys() {
        workspace.invalidate_path(path);
    }
    for (path, text) in open {
        workspace.open(path, text);
    }
    workspace
}

/// Edits the files of a workspace, and asks after each burst.
fn fuzz(seed: u64, originals: &Texts, edits: usize) {
    let mut random = Random(seed);
    let disk = originals.clone();
    let mut texts = originals.clone();
    let mut kept = fresh(&disk, &texts);
    let paths: Vec<&str> = originals.keys().map(String::as_str).collect();
    let (mut done, mut burst) = (0, 0);
    while done < edits {
        let size = if random.one_in(4) { 1 + random.below(3) } else { 1 + random.below(BURST) };
        burst += 1;
        for _ in 0..size {
            let path = if random.one_in(3) { *random.pick(&paths) } else { paths[burst % paths.len()] };
            let (range, inserted) = edit(&mut random, &texts[path], &originals[path]);
            texts.get_mut(path).expect("it is open").replace_range(range.clone(), &inserted);
            kept.edit(path, |document| document.apply_edit(range, &inserted));
            // Requests in the middle of a burst make the workspace compute states in between, too.
            if random.one_in(40) {
                let _ = list_completions(&kept.snapshot(), path, 0, None);
                let _ = collect_diagnostics(&kept.snapshot());
            }
        }
        done += size;
        if random.one_in(3) {
            let path = *random.pick(&paths);
            kept.close(path);
            kept.invalidate_path(path);
            texts.insert(path.to_owned(), disk[path].clone());
            kept.open(path, &texts[path]);
        }
        let about = format!("seed {seed}, burst {burst}");
        let now = kept.snapshot();
        // Completion may answer from what was known before; there is no before in a fresh one.
        now.specs().for_each(|spec| drop(now.analysis(spec)));
        compare(&mut random, &now, &fresh(&disk, &texts).snapshot(), &texts, &about);
    }
}

#[test]
fn what_is_kept_answers_what_a_fresh_start_answers() {
    let workspaces = workspaces();
    let each = EDITS / workspaces.len() + 1;
    std::thread::scope(|scope| {
        for (texts, seed) in workspaces.iter().zip(1..) {
            // As much stack as the server's own threads have.
            let builder = std::thread::Builder::new().stack_size(16 << 20);
            builder.spawn_scoped(scope, move || fuzz(0x9E37_79B9_7F4A_7C15 ^ seed, texts, each)).expect("a thread");
        }
    });
}
