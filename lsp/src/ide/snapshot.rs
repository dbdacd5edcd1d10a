//! The state of a workspace: open texts, files on disk, and the compiler's analysis of each spec, computed once.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use swarmc_compiler::{
    Bounds, CONFIG_NAME, Cancel, Compilation, Diagnostic, FileError, FileId, Files, Index, O200k, Settings, Sources,
    Trees, Turn,
};

use super::document::{Document, Kind};
use super::read_files::{Cache, DiskText, Texts, TrackedFiles};
use super::rules::Rules;

/// A workspace as it changes. Every change is made here, and [`Workspace::snapshot`] is what questions are asked of.
#[derive(Clone)]
pub struct Workspace {
    disk: Arc<dyn Files + Send + Sync>,
    /// Texts that were read from disk, until told that they changed.
    cache: Arc<Mutex<Cache>>,
    open: BTreeMap<String, Document>,
    specs: BTreeMap<String, Known>,
    /// What was known of a spec before the last change.
    last: BTreeMap<String, Arc<Analysis>>,
    rules: Arc<OnceLock<Rules>>,
    /// What was worked out of texts.
    facts: Arc<swarmc_compiler::Cache>,
    /// Leaves what is being worked out of the texts as they are.
    cancel: Cancel,
}

/// What the compiler says of a spec, once that is worked out; none where that was left, as the texts are others now.
type Known = Arc<OnceLock<Option<Arc<Analysis>>>>;

/// A snapshot of a workspace; cheap to clone, and it never changes.
#[derive(Clone)]
pub struct Snapshot {
    files: Arc<Texts>,
    specs: Arc<BTreeMap<String, Known>>,
    last: Arc<BTreeMap<String, Arc<Analysis>>>,
    rules: Arc<OnceLock<Rules>>,
    facts: Arc<swarmc_compiler::Cache>,
    cancel: Cancel,
    /// Whether an analysis that was wanted of it is not there, as it was left.
    cut: Arc<AtomicBool>,
}

/// Hears of the problems of a spec, and of the texts that they are about.
pub(super) type ProblemSink<'h> = dyn FnMut(&Sources, &[Diagnostic]) + 'h;

/// What the compiler says of a spec.
#[derive(Debug)]
pub struct Analysis {
    /// What kind of file the spec is.
    pub kind: Kind,
    /// What came of compiling it.
    pub compilation: Compilation,
    /// Its names, texts and types.
    pub index: Index,
    /// Every path that was asked for, found or not.
    asked: HashSet<String>,
    /// The folders whose contents were asked for.
    listed: BTreeSet<String>,
    /// Counted by the first who asks.
    counted: OnceLock<Counted>,
}

/// The tokens of a plan.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// What turns are given at most, by pipeline and step.
    pub(super) turns: BTreeMap<(String, String), Turn>,
    /// What runs use at most, by pipeline or swarm.
    pub(super) bounds: BTreeMap<String, Bounds>,
}

/// The folder that a path lies in.
fn parent_folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Whether a document is looked at by itself, not only as a part of a spec.
fn is_ours(document: &Document) -> bool {
    matches!(document.kind(), Kind::Spec | Kind::Part)
}

impl Workspace {
    /// A workspace with nothing open.
    pub fn new(disk: Arc<dyn Files + Send + Sync>) -> Workspace {
        Workspace {
            disk,
            cache: Arc::default(),
            open: BTreeMap::new(),
            specs: BTreeMap::new(),
            last: BTreeMap::new(),
            rules: Arc::default(),
            facts: Arc::default(),
            cancel: Cancel::default(),
        }
    }

    /// Adds a spec on disk. Returns whether it is new.
    pub fn add_spec(&mut self, path: &str) -> bool {
        let count = self.specs.len();
        self.specs.entry(path.to_owned()).or_default();
        self.specs.len() > count
    }

    /// A text is open now, or was replaced as a whole. Returns whether that changes the texts or the list of specs: most
    /// files are opened as they lie on disk.
    pub fn open(&mut self, path: &str, text: &str) -> bool {
        let known = self.lock_cache().get(path).and_then(|known| known.clone().ok());
        let same = known.filter(|known| !self.open.contains_key(path) && *known.text == *text);
        let is_same = same.is_some();
        // What is being worked out of the same text goes on, and has its tree.
        let document = same.map_or_else(|| Document::new(path, text), |known| known.document(path));
        let lists = self.set_text(path, document);
        if !is_same {
            self.drop_analyses(path, false);
        }
        lists || !is_same
    }

    /// Changes an open text.
    pub fn edit(&mut self, path: &str, change: impl FnOnce(Document) -> Document) {
        if let Some(document) = self.open.remove(path) {
            self.set_text(path, change(document));
            self.drop_analyses(path, false);
        }
    }

    /// Sets the open text of a path. Returns whether that changes the list of specs.
    fn set_text(&mut self, path: &str, document: Document) -> bool {
        let changes = match is_ours(&document) {
            true => self.add_spec(path),
            false => self.forget_spec(path),
        };
        self.open.insert(path.to_owned(), document);
        changes
    }

    /// A text is not open any more: what lies on disk counts.
    pub fn close(&mut self, path: &str) {
        let Some(document) = self.open.remove(path) else { return };
        // What the disk had before it was opened may be another text.
        self.lock_cache().remove(path);
        if self.disk.read(path).ok().as_deref() != Some(document.text()) {
            self.touched_file(path);
        }
    }

    /// A file or folder on disk was made, changed or removed; what lies beneath it may have changed with it.
    pub fn invalidate_path(&mut self, path: &str) {
        let beneath = |other: &str| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        let mut files: BTreeSet<String> = self.lock_cache().keys().filter(|file| beneath(file)).cloned().collect();
        files.extend(self.specs.keys().filter(|file| beneath(file)).cloned());
        files.insert(path.to_owned());
        files.iter().for_each(|file| self.touched_file(file));
    }

    /// Looks at everything that was read from disk again. Returns whether any of it has changed.
    pub fn refresh(&mut self) -> bool {
        let known = self.lock_cache().clone();
        let closed = known.into_iter().filter(|(path, _)| !self.open.contains_key(path));
        let text = |known: Result<DiskText, FileError>| known.map(|known| known.text);
        let changed = closed.filter(|(path, known)| self.disk.read(path) != text(known.clone()));
        let changed: Vec<String> = changed.map(|(path, _)| path).collect();
        changed.iter().for_each(|path| self.touched_file(path));
        !changed.is_empty()
    }

    fn touched_file(&mut self, path: &str) {
        // The open text counts, also for what is being worked out of the text on disk that it was opened with.
        if self.open.contains_key(path) {
            return;
        }
        self.lock_cache().remove(path);
        if path.ends_with(".kdl") || self.specs.contains_key(path) {
            match self.disk.read(path) {
                Ok(text) if is_ours(&Document::new(path, &text)) => self.add_spec(path),
                _ => self.forget_spec(path),
            };
        }
        self.drop_analyses(path, true);
    }

    fn lock_cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open document at a path.
    pub fn document(&self, path: &str) -> Option<&Document> {
        self.open.get(path)
    }

    /// The paths of what is open.
    pub fn open_paths(&self) -> impl Iterator<Item = &str> {
        self.open.keys().map(String::as_str)
    }

    /// The workspace as it is.
    pub fn snapshot(&self) -> Snapshot {
        let texts = Texts { open: self.open.clone(), disk: Arc::clone(&self.disk), cache: Arc::clone(&self.cache) };
        Snapshot {
            files: Arc::new(texts),
            specs: Arc::new(self.specs.clone()),
            last: Arc::new(self.last.clone()),
            rules: Arc::clone(&self.rules),
            facts: Arc::clone(&self.facts),
            cancel: self.cancel.clone(),
            cut: Arc::default(),
        }
    }

    /// Removes a spec. Returns whether it was listed.
    fn forget_spec(&mut self, path: &str) -> bool {
        self.last.remove(path);
        self.specs.remove(path).is_some()
    }

    /// Drops what is known of the specs that read a file, that looked for it, or, when it may be new `on_disk`, that looked
    /// into its folder; of all of them when they are to be checked in another way. What is being worked out is about the texts before, and is left.
    fn drop_analyses(&mut self, path: &str, on_disk: bool) {
        std::mem::take(&mut self.cancel).cancel();
        // Rules that are not there yet may be in the making, from the texts before.
        if path == CONFIG_NAME || self.rules.get().is_none_or(|rules| rules.depends_on(path)) {
            self.rules = Arc::default();
        }
        for (spec, known) in &mut self.specs {
            let Some(Some(analysis)) = known.get() else {
                // Another snapshot works it out, or has left it.
                if Arc::strong_count(known) > 1 || known.get().is_some() {
                    *known = Arc::default();
                }
                continue;
            };
            if spec == path || path == CONFIG_NAME || analysis.depends_on(path) || on_disk && analysis.lists(path) {
                self.last.insert(spec.clone(), Arc::clone(analysis));
                *known = Arc::default();
            }
        }
    }
}

impl Snapshot {
    /// The document at a path, open or on disk.
    pub fn document(&self, path: &str) -> Option<Document> {
        self.files.document(path)
    }

    /// The files of the workspace, open texts first.
    pub fn files(&self) -> &dyn Files {
        &*self.files
    }

    /// How problems are reported.
    pub fn settings(&self) -> &Settings {
        &self.rules().settings
    }

    /// What the workspace asks for; read by the first who asks.
    pub(super) fn rules(&self) -> &Rules {
        self.rules.get_or_init(|| Rules::read(&*self.files))
    }

    /// The specs of the workspace, by path.
    pub fn specs(&self) -> impl Iterator<Item = &str> {
        self.specs.keys().map(String::as_str)
    }

    /// Whether something that was asked of this state could not be answered, as the texts are others now.
    pub fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// What the compiler says of a spec now; worked out by the first who asks. None for what is no spec, and once the texts
    /// are others.
    pub fn analysis(&self, spec: &str) -> Option<Arc<Analysis>> {
        self.analysis_telling(spec, &mut |_, _| ())
    }

    /// The same; when it is worked out here, and is that of a spec, `tell` hears of the problems as soon as they are known.
    pub(super) fn analysis_telling(&self, spec: &str, tell: &mut ProblemSink<'_>) -> Option<Arc<Analysis>> {
        let known = self.specs.get(spec)?;
        let known = known.get_or_init(|| {
            let document = self.document(spec);
            let kind = document.as_ref().map_or(Kind::Foreign, Document::kind);
            let files =
                TrackedFiles { files: &self.files, document, paths: Mutex::default(), folders: Mutex::default() };
            let (mut trees, settings) = (Trees::default(), self.settings());
            let analyzed = swarmc_compiler::analyze(&mut trees, spec, &files, settings, &self.facts, &self.cancel)?;
            // The rest takes longer.
            if kind == Kind::Spec {
                tell(analyzed.sources(), &analyzed.diagnostics);
            }
            if self.cancel.is_cancelled() {
                return None;
            }
            let index = analyzed.build_index();
            let compilation = analyzed.finish()?;
            let asked = files.paths.into_inner().unwrap_or_else(PoisonError::into_inner);
            let listed = files.folders.into_inner().unwrap_or_else(PoisonError::into_inner);
            Some(Arc::new(Analysis { kind, compilation, index, asked, listed, counted: OnceLock::new() }))
        });
        if known.is_none() {
            self.cut.store(true, Ordering::Relaxed);
        }
        known.clone()
    }

    /// The folders whose files the specs name or look through, as far as that is known, and those of the settings.
    pub fn list_folders(&self) -> BTreeSet<String> {
        let known = self.specs.values().filter_map(|known| known.get()?.as_ref());
        let mut folders: BTreeSet<String> = BTreeSet::new();
        let mut add = |path: &str| {
            let folder = parent_folder(path);
            // Specs are watched wherever they lie.
            if !path.ends_with(".kdl") && !folders.contains(folder) {
                folders.insert(folder.to_owned());
            }
        };
        self.rules.get().into_iter().flat_map(Rules::asked_paths).for_each(|path| add(path));
        for analysis in known {
            analysis.asked.iter().for_each(|path| add(path));
            analysis.listed.iter().for_each(|folder| add(&format!("{folder}/")));
        }
        folders
    }

    /// Whether that is known already.
    pub(super) fn is_analyzed(&self, spec: &str) -> bool {
        self.specs.get(spec).is_some_and(|known| matches!(known.get(), Some(Some(_))))
    }

    /// What the compiler says of a spec if that is known already, else what it said before the last changes: for answers
    /// that must come at once, and only use names.
    pub fn recent_analysis(&self, spec: &str) -> Option<Arc<Analysis>> {
        let known = self.specs.get(spec).and_then(|known| known.get()?.as_ref()).or_else(|| self.last.get(spec));
        known.cloned().or_else(|| self.analysis(spec))
    }

    /// The analyses that a file is part of: its own where it is a spec, and those of the specs that read it.
    pub fn find_analyses(&self, path: &str) -> Vec<Arc<Analysis>> {
        let mut own: Vec<Arc<Analysis>> = self.analysis(path).into_iter().collect();
        let others = self.specs().filter(|spec| *spec != path).filter_map(|spec| self.analysis(spec));
        own.extend(others.filter(|analysis| analysis.file(path).is_some()));
        own
    }
}

impl Analysis {
    /// The file at a path, when the spec reads it.
    pub fn file(&self, path: &str) -> Option<FileId> {
        self.compilation.sources.find(path)
    }

    /// The tokens of its plan; nothing where there is no plan.
    pub(super) fn token_counts(&self) -> &Counted {
        self.counted.get_or_init(|| {
            let Some(plan) = &self.compilation.plan else { return Counted::default() };
            let mut turns = BTreeMap::new();
            for pipeline in &plan.pipelines {
                let given = swarmc_compiler::count_turn_inputs(plan, pipeline, &O200k);
                turns.extend(pipeline.all_steps().filter_map(|step| {
                    let turn = given.get(step.name.as_str())?;
                    Some(((pipeline.name.clone(), step.name.clone()), turn.clone()))
                }));
            }
            Counted { turns, bounds: swarmc_compiler::compute_bounds(plan, &O200k) }
        })
    }

    /// Whether it could change when the file at `path` does.
    fn depends_on(&self, path: &str) -> bool {
        self.asked.contains(path)
    }

    /// Whether it could change when the file at `path` is made or removed.
    fn lists(&self, path: &str) -> bool {
        self.listed.contains(parent_folder(path))
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("specs", &self.specs.keys()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::{Receiver, Sender, unbounded};
    use swarmc_compiler::Entry;

    use super::*;

    /// Files of which one can be read only after the test allows it.
    struct Late {
        files: BTreeMap<String, String>,
        asked: Sender<()>,
        go: Receiver<()>,
        read: Mutex<Vec<String>>,
    }

    impl Files for Late {
        fn read(&self, path: &str) -> Result<Arc<str>, FileError> {
            if path == "late.md" {
                self.asked.send(()).expect("the test listens");
                // At its end the test drops the sender.
                let _ = self.go.recv();
            }
            self.read.lock().expect("nothing panics").push(path.to_owned());
            self.files.read(path)
        }

        fn find(&self, path: &str) -> Result<Entry, FileError> {
            self.files.find(path)
        }

        fn list(&self, path: &str) -> Vec<String> {
            self.files.list(path)
        }
    }

    #[test]
    fn what_is_closed_as_it_lies_on_disk_stays_known() {
        let spec = "pipeline main {\n    task one { run echo one }\n}\n";
        let disk: BTreeMap<String, String> = [("flow.kdl".to_owned(), spec.to_owned())].into();
        let mut workspace = Workspace::new(Arc::new(disk));
        workspace.open("flow.kdl", spec);
        workspace.snapshot().analysis("flow.kdl").expect("it is a spec");
        workspace.close("flow.kdl");
        assert!(workspace.snapshot().is_analyzed("flow.kdl"));

        workspace.open("flow.kdl", &spec.replace("one", "two"));
        workspace.open("new.kdl", spec);
        workspace.close("flow.kdl");
        workspace.close("new.kdl");
        let snapshot = workspace.snapshot();
        assert!(!snapshot.is_analyzed("flow.kdl"), "the disk has another text");
        assert_eq!(snapshot.specs().collect::<Vec<_>>(), ["flow.kdl"], "nothing lies there");
    }

    #[test]
    fn a_text_that_is_opened_as_it_lies_on_disk_changes_nothing() {
        let spec = "provider p { exec cat }\nagent a provider=p\npipeline main { task t { prompt file=\"t.md\" } }\n";
        let disk = [("flow.kdl", spec), ("t.md", "Do it.")].map(|(path, text)| (path.to_owned(), text.to_owned()));
        let mut workspace = Workspace::new(Arc::new(BTreeMap::from(disk)));
        assert!(workspace.add_spec("flow.kdl") && !workspace.add_spec("flow.kdl"));
        let before = workspace.snapshot();
        let known = before.analysis("flow.kdl").expect("it is a spec");
        let read = before.document("flow.kdl").expect("it is read");
        assert!(!workspace.open("flow.kdl", spec));
        assert!(!workspace.open("t.md", "Do it."));
        let opened = workspace.document("flow.kdl").expect("it is open");
        assert!(Arc::ptr_eq(read.tree().expect("it is a spec"), opened.tree().expect("it is a spec")), "one tree");
        workspace.invalidate_path("t.md");
        assert!(Arc::ptr_eq(&known, &workspace.snapshot().analysis("flow.kdl").expect("it is a spec")));
        assert!(!workspace.refresh());

        // An edit, and the one that takes it back.
        for text in ["Do that.", "Do it."] {
            workspace.edit("t.md", |_| Document::new("t.md", text));
            assert!(!workspace.snapshot().is_analyzed("flow.kdl"), "{text}");
            let analysis = workspace.snapshot().analysis("flow.kdl").expect("it is a spec");
            assert_eq!(analysis.compilation.sources.text(analysis.file("t.md").expect("it is read")), text);
        }
        assert!(workspace.open("t.md", "Do that."), "it was open with another text");
        assert!(workspace.open("new.kdl", spec), "it was not listed");
    }

    #[test]
    fn what_is_worked_out_of_an_old_text_is_left() {
        let spec = "provider p { exec cat }\nagent a provider=p\npipeline main {\n    task one { prompt file=\"late.md\" }\n    \
                    task two { prompt file=\"later.md\" }\n}\n";
        let files = [("flow.kdl", spec), ("late.md", "Do it."), ("later.md", "Go on.")];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        let ((asked, is_asked), (say, go)) = (unbounded(), unbounded());
        let disk = Arc::new(Late { files, asked, go, read: Mutex::default() });
        let mut workspace = Workspace::new(Arc::clone(&disk) as Arc<dyn Files + Send + Sync>);
        workspace.open("flow.kdl", spec);
        let old = workspace.snapshot();
        let worker = std::thread::spawn({
            let old = old.clone();
            move || old.analysis("flow.kdl").is_some()
        });
        is_asked.recv().expect("the prompt is read");
        // A letter is typed while the file is read.
        workspace.edit("flow.kdl", |document| document.apply_edit(0..0, "\n"));
        say.send(()).expect("the disk listens");
        assert!(!worker.join().expect("it ends"), "no request wants it");
        assert!(old.is_cut());
        let read = || disk.read.lock().expect("nothing panics").clone();
        assert!(!read().contains(&"later.md".to_owned()), "what comes after it was not begun: {:?}", read());
        // The new text is worked out, with what has been read.
        let new = workspace.snapshot();
        assert!(new.analysis("flow.kdl").is_some_and(|analysis| analysis.compilation.plan.is_some()));
        assert!(!new.is_cut() && read().contains(&"later.md".to_owned()));
        assert!(old.analysis("flow.kdl").is_none(), "of the old text nothing is worked out any more");
    }

    #[test]
    fn what_a_spec_names_and_looks_through_is_watched() {
        let spec = "context-pack docs { files \"guide/**/*.md\" }\npipeline main { task t { prompt file=\"prompts/t.md\"; context docs } }\n";
        let files = [("flow.kdl", spec), ("guide/deep/a.md", "x"), ("vendor/b.md", "x"), ("prompts/t.md", "x")];
        let files: BTreeMap<String, String> = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        let mut workspace = Workspace::new(Arc::new(files));
        workspace.add_spec("flow.kdl");
        let snapshot = workspace.snapshot();
        let known = snapshot.analysis("flow.kdl").expect("it is a spec");
        let folders = snapshot.list_folders();
        for folder in ["", "guide", "prompts"] {
            assert!(folders.contains(folder), "{folder}: {folders:?}");
        }
        assert!(!folders.contains("vendor"), "{folders:?}");
        // A file in another folder changes nothing; one in a folder that is looked through may.
        workspace.invalidate_path("vendor/new.md");
        assert!(Arc::ptr_eq(&known, &workspace.snapshot().analysis("flow.kdl").expect("it is a spec")));
        workspace.invalidate_path("guide/new.md");
        assert!(!Arc::ptr_eq(&known, &workspace.snapshot().analysis("flow.kdl").expect("it is a spec")));
    }

    #[test]
    fn a_change_elsewhere_keeps_what_is_known() {
        let files: BTreeMap<String, String> = BTreeMap::new();
        let mut workspace = Workspace::new(Arc::new(files));
        let spec = "pipeline main { task t { run ls } }\n";
        for path in ["one.kdl", "two.kdl"] {
            workspace.open(path, spec);
        }
        let before = workspace.snapshot();
        let known = before.analysis("one.kdl").expect("it is a spec");
        workspace.edit("two.kdl", |document| document.apply_edit(0..0, "\n"));
        let after = workspace.snapshot().analysis("one.kdl").expect("it is a spec");
        assert!(Arc::ptr_eq(&known, &after));
        assert!(before.analysis("two.kdl").is_none() && before.is_cut(), "its text is another");
    }
}
