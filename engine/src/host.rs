//! The drivers of this process: one thread for each run that Restate has called it for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use swarmc_runtime::engine::Submission;
use swarmc_runtime::{EngineRun, drive_run};
use tokio::sync::watch;

/// How long a look at a driver waits for its end.
const LOOK: Duration = Duration::from_secs(20);

/// How a driver ended: in words; none while it goes on. An error is one that another driver may not have.
type Ended = Option<Result<String, String>>;

/// The drivers of this process.
pub(crate) struct Host {
    /// What every run has.
    setup: EngineRun,
    drivers: Mutex<HashMap<String, watch::Receiver<Ended>>>,
}

impl Host {
    /// A host without drivers.
    pub(crate) fn new(setup: EngineRun) -> Host {
        Host { setup, drivers: Mutex::default() }
    }

    /// Sees to it that a run has a driver, and waits for its end: how it ended; none where it goes on.
    ///
    /// # Errors
    /// The driver failed. Restate calls again.
    pub(crate) async fn attend(self: Arc<Host>, run: &str, submission: &Submission) -> Option<String> {
        let mut driver = self.driver(run, submission);
        let wait = async {
            match driver.wait_for(Option::is_some).await {
                Ok(ended) => ended.clone(),
                // The thread panicked: the next look begins another driver.
                Err(_) => Some(Err("its driver has failed".to_owned())),
            }
        };
        match tokio::time::timeout(LOOK, wait).await.ok().flatten()? {
            Ok(ended) => {
                self.forget(run);
                Some(ended)
            }
            Err(problem) => {
                self.forget(run);
                eprintln_line(&format!("run {run}: {problem}; it goes on in a moment"));
                tokio::time::sleep(Duration::from_secs(2)).await;
                None
            }
        }
    }

    fn driver(&self, run: &str, submission: &Submission) -> watch::Receiver<Ended> {
        let mut drivers = self.drivers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(driver) = drivers.get(run) {
            return driver.clone();
        }
        let (tell, driver) = watch::channel(None);
        let (setup, id, submission) = (self.setup.clone(), run.to_owned(), submission.clone());
        let started = std::thread::Builder::new().name(format!("run {run}")).spawn(move || {
            let ended = drive_run(&setup, &id, &submission);
            // Where nothing looks any more, the next look begins another driver, which finds the end.
            let _ = tell.send(Some(ended));
        });
        if started.is_ok() {
            drivers.insert(run.to_owned(), driver.clone());
        }
        driver
    }

    fn forget(&self, run: &str) {
        self.drivers.lock().unwrap_or_else(PoisonError::into_inner).remove(run);
    }
}

/// Says something to those who read the output of the engine.
pub(crate) fn eprintln_line(line: &str) {
    use std::io::Write as _;
    // Where there is no output, there is nothing to say it to.
    let _ = writeln!(std::io::stderr(), "{line}");
}
