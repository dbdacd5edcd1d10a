//! Processes on other machines.

use std::os::unix::net::UnixStream;
use std::path::Path;

use super::world::*;
use super::*;
use crate::io::journal::FileJournal;
use crate::io::shim::{EndCause, Exit, FromShim, HeldAttempt, RemoteHolder, RemoteLaunch};

/// Starts nothing, and notes whether it should have before any record was kept.
#[derive(Debug)]
struct Elsewhere {
    is_kept: Arc<AtomicBool>,
    too_early: AtomicBool,
}

impl RemoteHolder for Elsewhere {
    fn start(&self, _: RemoteLaunch, mut stream: UnixStream) {
        self.too_early.fetch_or(!self.is_kept.load(Ordering::SeqCst), Ordering::SeqCst);
        let refused = Some("no machine is there".to_owned());
        let exit = Exit { cause: EndCause::Exit, exit: -1, signal: None, refused, came: [0; 2], boot: None };
        let line = serde_json::to_string(&FromShim::Ended(exit)).unwrap();
        std::io::Write::write_all(&mut stream, format!("{line}\n").as_bytes()).unwrap();
    }

    fn rejoin(&self, _: &Path) -> Option<UnixStream> {
        None
    }

    fn find_held(&self, _: &Path) -> Option<HeldAttempt> {
        None
    }

    fn serve_tools(&self, _: &str) {}

    fn forget(&self, _: &Path) {}
}

#[test]
fn the_start_of_a_process_elsewhere_is_kept_before_it_begins() {
    let world = World::new();
    let mut options = std::fs::File::options();
    let file = options.read(true).write(true).create_new(true).open(world.workspace().join("journal")).unwrap();
    let is_kept = Arc::new(AtomicBool::new(false));
    // As far away as an engine.
    let keep = {
        let is_kept = Arc::clone(&is_kept);
        move || {
            std::thread::sleep(Duration::from_millis(200));
            is_kept.store(true, Ordering::SeqCst);
            Ok(())
        }
    };
    let journal = FileJournal::append_kept(file, (0, 0), Box::new(keep), |error| panic!("{error}")).unwrap();
    let holder = Arc::new(Elsewhere { is_kept, too_early: AtomicBool::new(false) });
    let plan = plan(vec![step("first", argv(&["true"]), &[])]);
    let outcome = world.start_elsewhere(&plan, Box::new(journal), Some(Arc::clone(&holder) as _)).1.unwrap();
    assert_eq!(outcome.failed.len(), 1, "{outcome:?}");
    assert!(!holder.too_early.load(Ordering::SeqCst), "another driver would not know of it");
}
