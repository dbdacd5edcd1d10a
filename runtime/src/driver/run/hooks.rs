//! Hooks: commands that the driver starts after certain events. They delay nothing and change nothing; the process
//! waits for them before it ends.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use swarmc_plan::{Hook, HookEvent, Plan};

use super::process_env::ProcessEnv;
use crate::core::state::State;
use crate::io::executor::{self, ObserverHandle};
use crate::io::home::RunFolder;
use crate::io::process::run_side_command;
use crate::types::event::{Event, RunStatus};

/// How long a hook may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The hooks that run now.
#[derive(Debug)]
pub(super) struct Hooks {
    running: Vec<JoinHandle<()>>,
    /// Where they report that they failed.
    observer_handle: ObserverHandle,
}

impl Hooks {
    /// No hooks yet.
    pub(super) fn new(observer_handle: ObserverHandle) -> Hooks {
        Hooks { running: Vec::new(), observer_handle }
    }

    /// Starts the hooks that wait for what was just recorded.
    pub(super) fn start(
        &mut self,
        event: &Event,
        state: &State,
        (plan, process_env, folder): (&Plan, &ProcessEnv, &RunFolder),
    ) {
        let (happened, mut facts) = match event {
            Event::RunStarted { .. } => (HookEvent::Start, Vec::new()),
            Event::RunFinished { status: RunStatus::Succeeded } => (HookEvent::Complete, Vec::new()),
            Event::RunFinished { .. } => (HookEvent::Failure, Vec::new()),
            Event::GateOpened { step, .. } => (HookEvent::Gate, vec![("SWARM_GATE", step.label())]),
            // A request for which no person is needed is answered by now.
            Event::ApprovalAsked { request, .. } if state.find_request(request.id).is_some() => {
                (HookEvent::Gate, vec![("SWARM_GATE", request.id.to_string())])
            }
            Event::StopRequested => (HookEvent::Stop, Vec::new()),
            _ => return,
        };
        let hooks: Vec<Hook> = plan.hooks.iter().filter(|hook| hook.event == happened).cloned().collect();
        if hooks.is_empty() {
            return;
        }
        facts.push(("SWARM_EVENT", hook_event_name(happened).to_owned()));
        facts.push(("SWARM_RUN_DIR", folder.path.to_string_lossy().into_owned()));
        facts.push(("SWARM_WORKFLOW", plan.workflow.clone()));
        if let Event::RunFinished { status } = event {
            facts.push(("SWARM_STATUS", status.as_str().to_owned()));
        }
        let environment: Arc<Vec<(OsString, OsString)>> = Arc::new(process_env.of_hook(&folder.id, facts));
        let directory = Arc::new(process_env.workspace.clone());
        for hook in hooks {
            self.start_hook(hook, Arc::clone(&environment), Arc::clone(&directory));
        }
    }

    fn start_hook(&mut self, hook: Hook, environment: Arc<Vec<(OsString, OsString)>>, directory: Arc<PathBuf>) {
        let observer_handle = self.observer_handle.clone();
        let name = hook_event_name(hook.event);
        let run = move || {
            if let Err(problem) = run_side_command(&hook.run, &environment, &directory, PATIENCE) {
                observer_handle.send_notice(format!("{}: the hook of `{name}` failed: {problem}", hook.origin));
            }
        };
        let thread = std::thread::Builder::new().name("hook".to_owned()).stack_size(executor::STACK).spawn(run);
        match thread {
            Ok(thread) => self.running.push(thread),
            Err(error) => self.observer_handle.send_notice(format!("the hook of `{name}` cannot be started: {error}")),
        }
    }

    /// Waits for the hooks that still run.
    pub(super) fn wait(&mut self) {
        for hook in self.running.drain(..) {
            // One that panicked has said so.
            let _ = hook.join();
        }
    }
}

fn hook_event_name(event: HookEvent) -> &'static str {
    match event {
        HookEvent::Start => "start",
        HookEvent::Complete => "complete",
        HookEvent::Failure => "failure",
        HookEvent::Gate => "gate",
        HookEvent::Stop => "stop",
    }
}
