//! Hooks: commands that the driver starts after certain events. They delay nothing and change nothing; the process
//! waits for them before it ends.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use swarmc_plan::{Hook, HookEvent};

use super::driver::Driver;
use crate::io::executor;
use crate::io::process::run_side_command;
use crate::types::event::{Event, RunStatus};

/// How long a hook may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The hooks that run now.
#[derive(Debug, Default)]
pub(super) struct Hooks(Vec<JoinHandle<()>>);

impl Driver<'_> {
    /// Starts the hooks that wait for what was just recorded.
    pub(super) fn start_hooks(&mut self, event: &Event) {
        let (happened, mut facts) = match event {
            Event::RunStarted { .. } => (HookEvent::Start, Vec::new()),
            Event::RunFinished { status: RunStatus::Succeeded } => (HookEvent::Complete, Vec::new()),
            Event::RunFinished { .. } => (HookEvent::Failure, Vec::new()),
            Event::GateOpened { step, .. } => (HookEvent::Gate, vec![("SWARM_GATE", step.label())]),
            // A request for which no person is needed is answered by now.
            Event::ApprovalAsked { request, .. } if self.state.find_request(request.id).is_some() => {
                (HookEvent::Gate, vec![("SWARM_GATE", request.id.to_string())])
            }
            Event::StopRequested => (HookEvent::Stop, Vec::new()),
            _ => return,
        };
        let hooks: Vec<Hook> =
            self.evaluator.plan.hooks.iter().filter(|hook| hook.event == happened).cloned().collect();
        if hooks.is_empty() {
            return;
        }
        facts.push(("SWARM_EVENT", hook_event_name(happened).to_owned()));
        facts.push(("SWARM_RUN_DIR", self.folder.path.to_string_lossy().into_owned()));
        facts.push(("SWARM_WORKFLOW", self.evaluator.plan.workflow.clone()));
        if let Event::RunFinished { status } = event {
            facts.push(("SWARM_STATUS", status.as_str().to_owned()));
        }
        let environment: Arc<Vec<(OsString, OsString)>> =
            Arc::new(self.process_env.of_hook(&self.evaluator.run, facts));
        let directory = Arc::new(self.process_env.workspace.clone());
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
            Ok(thread) => self.hooks.0.push(thread),
            Err(error) => self.observer_handle.send_notice(format!("the hook of `{name}` cannot be started: {error}")),
        }
    }

    /// Waits for the hooks that still run.
    pub(super) fn await_hooks(&mut self) {
        for hook in std::mem::take(&mut self.hooks.0) {
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
