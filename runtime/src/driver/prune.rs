//! Removes old runs, their outputs, and results in the cache. It never touches a run that is running; one that could be
//! resumed, or has working trees with work in them, it removes only by name, and ends what that run has left.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::io::cache::Cache;
use crate::io::files::remove_all;
use crate::io::home::{DRAFT, Home, RunFolder, list_folder_names};
use crate::io::orphan_processes::end_survivors;
use crate::io::worktree::any_in;
use crate::types::error::RunError;

/// What to clear away.
#[derive(Clone, Debug)]
pub struct Prune {
    /// These runs, whatever their age; every run when empty.
    pub runs: Vec<String>,
    /// Runs that have not changed for so long; 7 days by custom.
    pub older_than: Duration,
    /// Only what lies under `outputs/`.
    pub outputs: bool,
    /// Only say what would be cleared away.
    pub dry_run: bool,
}

/// What decides whether a run goes with its age.
#[derive(Clone, Copy, Debug)]
pub struct RunAge {
    /// When it last changed, in milliseconds since 1970 (UTC).
    pub changed_ms: u64,
    /// Whether it has ended. What is left of another one may be all that there is.
    pub has_ended: bool,
}

/// What was cleared away, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The runs, the oldest first.
    pub runs: Vec<PrunedRun>,
    /// Runs that are old enough, but could still be resumed, or keep worktrees with work in them.
    pub kept: Vec<String>,
    /// The results in the cache that have not changed for so long.
    pub results: u64,
    /// The space that they took, in bytes.
    pub result_bytes: u64,
}

/// A run that was cleared away, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrunedRun {
    /// Its id.
    pub id: String,
    /// The space that its files took, in bytes.
    pub bytes: u64,
}

impl Home {
    /// Clears away old runs; `read_age` reads that of one which no process runs.
    ///
    /// # Errors
    /// A named run is unknown or running, or something cannot be removed.
    pub fn prune(
        &self,
        options: &Prune,
        now: SystemTime,
        read_age: impl Fn(&RunFolder) -> RunAge,
    ) -> Result<Pruned, RunError> {
        let mut pruned = Pruned::default();
        if !options.runs.is_empty() {
            for name in &options.runs {
                let folder = self.find(name)?;
                if folder.is_running() {
                    return Err(RunError::Busy { run: folder.id });
                }
                // One that has not ended may have left agents that go on. A journal that cannot be read names none of them.
                if !options.dry_run
                    && !options.outputs
                    && let Err(busy @ RunError::Busy { .. }) = end_survivors(&folder)
                {
                    return Err(busy);
                }
                self.remove(&folder.id, options, &mut pruned)?;
            }
            return Ok(pruned);
        }
        let limit = now.checked_sub(options.older_than).unwrap_or(UNIX_EPOCH);
        let limit_ms = u64::try_from(limit.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(0);
        let runs = self.list_folders()?;
        for run in runs.iter().rev().filter(|run| !run.is_running()) {
            let RunAge { changed_ms, has_ended } = read_age(run);
            if changed_ms > limit_ms {
                continue;
            }
            match has_ended && (options.outputs || !any_in(&run.path)) {
                true => self.remove(&run.id, options, &mut pruned)?,
                false => pruned.kept.push(run.id.clone()),
            }
        }
        for id in list_folder_names(&self.root().join("outputs"))? {
            let orphaned = !runs.iter().any(|run| run.id == id);
            let path = self.root().join("outputs").join(&id);
            let old = path.metadata().and_then(|meta| meta.modified()).is_ok_and(|time| time <= limit);
            if orphaned && old {
                self.remove(&id, options, &mut pruned)?;
            }
        }
        self.remove_drafts(limit, options)?;
        if !options.outputs {
            (pruned.results, pruned.result_bytes) = Cache::new(self).prune(limit, options.dry_run)?;
        }
        Ok(pruned)
    }

    /// Removes what runs left that were killed before they were recorded.
    fn remove_drafts(&self, limit: SystemTime, options: &Prune) -> Result<(), RunError> {
        let runs = self.root().join("runs");
        for name in list_folder_names(&runs)?.into_iter().filter(|name| name.starts_with(DRAFT)) {
            let path = runs.join(name);
            let old = path.metadata().and_then(|meta| meta.modified()).is_ok_and(|time| time <= limit);
            if old && !options.dry_run && !options.outputs {
                remove_all(&path).map_err(RunError::io("remove", path))?;
            }
        }
        Ok(())
    }

    fn remove(&self, id: &str, options: &Prune, pruned: &mut Pruned) -> Result<(), RunError> {
        let folder = self.run_folder(id.to_owned());
        let mut paths = vec![&folder.outputs];
        if !options.outputs {
            paths.push(&folder.path);
        }
        paths.retain(|path| path.exists());
        if paths.is_empty() {
            return Ok(());
        }
        let bytes = paths.iter().map(|path| count_bytes(path)).sum();
        if !options.dry_run {
            for path in paths {
                remove_all(path).map_err(RunError::io("remove", path))?;
            }
        }
        pruned.runs.push(PrunedRun { id: id.to_owned(), bytes });
        Ok(())
    }
}

/// The bytes of all files beneath `path`, links not followed. What cannot be read counts nothing.
fn count_bytes(path: &Path) -> u64 {
    let mut bytes = 0;
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        let entries: io::Result<Vec<_>> = std::fs::read_dir(folder).and_then(Iterator::collect);
        for entry in entries.unwrap_or_default() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => open.push(entry.path()),
                Ok(meta) => bytes += meta.len(),
                Err(_) => {}
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::home::Lock;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("home"));
        (folder, home)
    }

    /// A run that never got far, with an output of ten bytes.
    fn run(home: &Home) -> String {
        let folder = home.publish(home.create().unwrap()).unwrap();
        std::fs::create_dir_all(&folder.outputs).unwrap();
        std::fs::write(folder.outputs.join("task.txt"), "0123456789").unwrap();
        folder.id
    }

    /// None of them has ended, and all are old.
    fn read_age(_: &RunFolder) -> RunAge {
        RunAge { changed_ms: 0, has_ended: false }
    }

    fn prune(runs: &[&str]) -> Prune {
        let runs = runs.iter().map(|run| (*run).to_owned()).collect();
        Prune { runs, older_than: Duration::ZERO, outputs: false, dry_run: false }
    }

    #[test]
    fn a_run_that_could_be_resumed_goes_only_by_name_and_a_running_one_never() {
        let (_folder, home) = home();
        let id = run(&home);
        let later = SystemTime::now() + Duration::from_secs(3600);
        let kept = Pruned { runs: Vec::new(), kept: vec![id.clone()], ..Pruned::default() };
        assert_eq!(home.prune(&prune(&[]), later, read_age).unwrap(), kept);
        let lock = Lock::acquire_lock(&home.find(&id).unwrap()).unwrap();
        assert!(matches!(home.prune(&prune(&[&id]), later, read_age), Err(RunError::Busy { .. })));
        assert_eq!(home.prune(&prune(&[]), later, read_age).unwrap(), Pruned::default());
        drop(lock);
        let dry = Prune { dry_run: true, outputs: true, ..prune(&[&id]) };
        let expected = Pruned { runs: vec![PrunedRun { id: id.clone(), bytes: 10 }], ..Pruned::default() };
        assert_eq!(home.prune(&dry, later, read_age).unwrap(), expected);
        assert!(home.find(&id).unwrap().outputs.exists());
        assert_eq!(home.prune(&Prune { dry_run: false, ..dry }, later, read_age).unwrap(), expected);
        assert!(!home.find(&id).unwrap().outputs.exists(), "only its outputs are gone");
        home.prune(&prune(&["last"]), later, read_age).unwrap();
        assert!(matches!(home.find(&id), Err(RunError::UnknownRun { .. })));
    }

    #[test]
    fn outputs_without_a_run_go_with_age() {
        let (_folder, home) = home();
        let orphan = home.root().join("outputs/20200101-000000-2222");
        std::fs::create_dir_all(&orphan).unwrap();
        let old = Prune { older_than: Duration::from_secs(7 * 86_400), ..prune(&[]) };
        assert_eq!(home.prune(&old, SystemTime::now(), read_age).unwrap(), Pruned::default());
        let later = SystemTime::now() + Duration::from_secs(8 * 86_400);
        assert_eq!(home.prune(&old, later, read_age).unwrap().runs.len(), 1);
        assert!(!orphan.exists());
    }

    #[test]
    fn runs_are_found_by_a_beginning_that_only_one_has() {
        let (_folder, home) = home();
        let ids = [run(&home), run(&home)];
        assert_eq!(home.find(&ids[0]).unwrap().id, ids[0]);
        assert!(matches!(home.find("2"), Err(RunError::AmbiguousRun { candidates, .. }) if candidates.len() == 2));
        assert!(matches!(home.find(""), Err(RunError::UnknownRun { .. })));
        let runs = home.root().join("runs");
        std::fs::create_dir(runs.join(".2")).unwrap();
        std::os::unix::fs::symlink(runs.join(&ids[0]), runs.join("x")).unwrap();
        for none in ["../x", ".2", ".", "x", "../runs"] {
            assert!(matches!(home.find(none), Err(RunError::UnknownRun { .. })), "{none}");
        }
    }
}
