//! The first record of a run without parameters.

use std::collections::BTreeMap;

use super::{AttemptId, Event, VERSION};
use crate::types::swarm::{Answer, TurnId};

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
            concurrency: None,
            commit: None,
        }
    }

    /// A turn of a swarm that ended without being carried out: it began, and no model was asked.
    pub(crate) fn refused_turn(swarm: &AttemptId, turn: TurnId, answer: Answer) -> [Event; 2] {
        let started = Event::TurnStarted { swarm: swarm.clone(), turn: turn.clone(), reserved: None };
        let (usage, cost, model, session) = (None, None, None, None);
        [started, Event::TurnEnded { swarm: swarm.clone(), turn, answer, usage, cost, model, session }]
    }
}
