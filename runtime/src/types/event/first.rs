//! The first record of a run without parameters.

use std::collections::BTreeMap;

use super::{Event, VERSION};

impl Event {
    /// The run called `run` of a whole pipeline exists, as this build records it: without parameters and input, and of a plan
    /// that lies nowhere.
    pub fn run_started(run: &str, pipeline: &str) -> Event {
        Event::RunStarted {
            version: VERSION,
            run: run.to_owned(),
            plan: String::new(),
            pipeline: pipeline.to_owned(),
            task: None,
            params: BTreeMap::new(),
            stored_params: None,
            stdin: None,
        }
    }
}
