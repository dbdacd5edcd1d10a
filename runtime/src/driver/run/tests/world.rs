//! A place to run hand-built plans in: a home, a workspace, what was observed, and short ways to write plans down.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use swarmc_plan::{
    Body, Command, Directive, DirectiveKind, Effect, Exhausted, Iteration, Need, Origin, Output, Pipeline, Plan,
    RoundFailure, Segment, SourceFile, Step, Template, When,
};
use tempfile::TempDir;

use super::super::*;
use crate::core::graph::Graph;
use crate::core::state::State;
use crate::types::event::{Event, Record};
use crate::types::observer::Stream;

/// A home, a workspace, and everything that was observed.
pub(super) struct World {
    pub(super) folder: TempDir,
    pub(super) events: Mutex<Receiver<Seen>>,
    pub(super) sender: Sender<Seen>,
}

#[derive(Debug)]
pub(super) enum Seen {
    Record(Box<Record>),
    Output(String, Vec<u8>),
    Notice(String),
}

pub(super) struct Watcher(pub(super) Sender<Seen>);

impl Observer for Watcher {
    fn recorded(&mut self, record: &Record) {
        let _ = self.0.send(Seen::Record(Box::new(record.clone())));
    }
    fn output(&mut self, step: &StepId, _: u32, _: Stream, bytes: &[u8]) {
        let _ = self.0.send(Seen::Output(step.name.to_string(), bytes.to_vec()));
    }
    fn notice(&mut self, text: &str) {
        let _ = self.0.send(Seen::Notice(text.to_owned()));
    }
}

impl World {
    pub(super) fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let (sender, events) = channel();
        World { folder, events: Mutex::new(events), sender }
    }

    pub(super) fn home(&self) -> Home {
        Home::new(self.folder.path().join("home"))
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(super) fn options(&self) -> Options {
        Options { workspace: self.workspace(), environment: environment(), ..Options::default() }
    }

    pub(super) fn start(&self, plan: &Plan) -> Outcome {
        self.start_with(plan, self.options(), Control::new()).unwrap()
    }

    pub(super) fn start_with(&self, plan: &Plan, options: Options, control: Control) -> Result<Outcome, RunError> {
        start_run(&self.home(), plan, options, control, Box::new(Watcher(self.sender.clone())))
    }

    /// Starts a run whose records go into this journal, and says where it is.
    pub(super) fn start_in(&self, plan: &Plan, journal: Box<dyn Journal>) -> (RunFolder, Result<Outcome, RunError>) {
        self.start_elsewhere(plan, journal, None)
    }

    /// The same where its processes are held elsewhere.
    pub(super) fn start_elsewhere(
        &self,
        plan: &Plan,
        journal: Box<dyn Journal>,
        remote: Option<Arc<dyn RemoteHolder>>,
    ) -> (RunFolder, Result<Outcome, RunError>) {
        let pipeline = &plan.pipelines[0];
        let folder = self.home().publish(self.home().create().unwrap()).unwrap();
        let facts = RunConfig {
            workspace: self.workspace(),
            concurrency: None,
            commit: None,
            record: None,
            replay: None,
            reuse: None,
        };
        let begin = RunSetup {
            folder: folder.clone(),
            plan,
            pipeline,
            trees: None,
            params: BTreeMap::new(),
            stdin: None,
            process_env: match ProcessEnv::new([pipeline], &facts.workspace, environment()).unwrap() {
                here if remote.is_none() => here,
                elsewhere => elsewhere.remote(),
            },
            state: State::new(Arc::new(build_graph(plan, pipeline, None, 4).unwrap())),
            folded: 0,
            last: 0,
            clock: 0,
            first: FirstRecord::New(vec![started(&folder.id)]),
            notices: Vec::new(),
            journal,
            held: BTreeMap::new(),
            headless: false,
            source: Source::Live,
            record: None,
            reuse: None,
            remote,
        };
        let lock = Lock::acquire_lock(&folder).unwrap();
        let poller = create_poller().unwrap();
        let (inputs, receiver) = Inputs::new(poller.inbox());
        let observer = Box::new(Watcher(self.sender.clone()));
        let outcome = begin.run(lock, Control::new(), observer, (&inputs, receiver, &poller));
        (folder, outcome)
    }

    pub(super) fn resume(&self, run: &str) -> Result<Outcome, RunError> {
        resume_run(&self.home(), run, environment(), false, Control::new(), Box::new(Watcher(self.sender.clone())))
    }

    pub(super) fn records(&self) -> Vec<Record> {
        self.home().find("last").unwrap().read_records().unwrap()
    }

    /// The state that the journal of the last run comes to.
    pub(super) fn state(&self) -> State {
        let folder = self.home().find("last").unwrap();
        let records = folder.read_records().unwrap();
        let plan = folder.plan_now(&records).unwrap();
        State::replay(Arc::new(Graph::new(&plan, &plan.default, None, folder.concurrency(&records)).unwrap()), &records)
    }

    pub(super) fn ends(&self) -> Vec<(String, event::Outcome)> {
        let ended = |record: Record| match record.event {
            Event::AttemptEnded { step, outcome, .. } => Some((step.name.to_string(), outcome)),
            _ => None,
        };
        self.records().into_iter().filter_map(ended).collect()
    }

    pub(super) fn notices(&self) -> Vec<String> {
        let notice = |seen| if let Seen::Notice(text) = seen { Some(text) } else { None };
        self.events.lock().unwrap().try_iter().filter_map(notice).collect()
    }

    /// What was shown of a step, in one piece.
    pub(super) fn shown(&self, name: &str) -> Vec<u8> {
        let shown = |seen| match seen {
            Seen::Output(step, bytes) if step == name => Some(bytes),
            _ => None,
        };
        self.events.lock().unwrap().try_iter().filter_map(shown).flatten().collect()
    }

    pub(super) fn read(&self, path: impl AsRef<Path>) -> String {
        String::from_utf8(std::fs::read(path).unwrap()).unwrap()
    }

    pub(super) fn output(&self, name: &str) -> PathBuf {
        self.home().find("last").unwrap().outputs.join(name)
    }

    pub(super) fn in_run(&self, name: &str) -> PathBuf {
        self.home().find("last").unwrap().path.join(name)
    }
}

pub(super) fn environment() -> BTreeMap<OsString, OsString> {
    let path = std::env::var_os("PATH").unwrap();
    BTreeMap::from([
        (OsString::from("PATH"), path),
        (OsString::from("LC_ALL"), OsString::from("C")),
        (OsString::from("LEAK"), OsString::from("1")),
        (OsString::from("TOKEN"), OsString::from("s3cret")),
    ])
}

pub(super) fn origin() -> Origin {
    Origin { file: "flow.kdl".to_owned(), line: 1, column: 1 }
}

pub(super) fn plan(steps: Vec<Step>) -> Plan {
    Plan {
        version: swarmc_plan::VERSION,
        workflow: "test".to_owned(),
        default: "main".to_owned(),
        pipelines: vec![Pipeline {
            name: "main".to_owned(),
            iteration: Iteration {
                max: 1,
                on_failure: RoundFailure::Stop,
                exhausted: Exhausted::Success,
                ..Iteration::default()
            },
            parallelism: 1,
            concurrency: Some(4),
            result: steps.last().map(|step| step.name.clone()).into_iter().collect(),
            steps,
            origin: origin(),
            ..Pipeline::default()
        }],
        sources: Vec::<SourceFile>::new(),
        ..Plan::default()
    }
}

pub(super) fn step(name: &str, body: Body, needs: &[&str]) -> Step {
    let need = |step: &&str| Need {
        step: (*step).to_owned(),
        when: When::Success,
        declared: true,
        effect: Effect::None,
        origin: origin(),
    };
    Step {
        name: name.to_owned(),
        needs: needs.iter().map(need).collect(),
        body,
        output: Output { max_bytes: 102_400, ..Output::default() },
        grace_ms: 30_000,
        origin: origin(),
        ..Step::default()
    }
}

pub(super) fn argv(words: &[&str]) -> Body {
    Body::Run(Command::Argv(words.iter().map(|word| (*word).to_owned()).collect()))
}

pub(super) fn sh(line: &str) -> Body {
    Body::Run(Command::Shell(line.to_owned()))
}

pub(super) fn template(segments: Vec<Segment>) -> Template {
    Template { segments, digest: String::new() }
}

pub(super) fn output_of(step: &str, wrap: bool) -> Segment {
    Segment::Directive(Directive {
        kind: DirectiveKind::Output,
        name: Some(step.to_owned()),
        fields: Vec::new(),
        filters: Vec::new(),
        wrap,
        origin: origin(),
    })
}

/// The first record of a run in which four steps run at once.
fn started(run: &str) -> Event {
    let mut started = Event::run_started(run, "main");
    if let Event::RunStarted { concurrency, .. } = &mut started {
        *concurrency = Some(4);
    }
    started
}
