//! Resolves tests: looks up their pipelines, parameters, steps and files. The plan leaves out what only tests read.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::{Resolver, suggest};
use crate::ast::{self, Name};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::files::Entry;
use crate::model::{Body, Fake, ParamRef, Pipeline, Start, StepRef, Test};
use crate::symbols::NameKind;
use crate::symbols::names::Names;
use crate::syntax::Text;

/// The name of the leader of a swarm that declares no leader.
const SUPERVISOR: &str = "swarm-supervisor";

/// The steps and agents that a run of a pipeline, or of a swarm, can reach.
#[derive(Default)]
struct Reach<'a> {
    /// The steps by name: its own, and those of what it calls.
    steps: BTreeMap<&'a str, Vec<StepRef>>,
    /// The named agents of the swarms that these steps start.
    members: BTreeSet<&'a str>,
    /// Whether the leader of one of the swarms names further agents itself.
    is_open: bool,
    /// Whether one of the swarms may have agents without a name in the spec: agents of a group, or spawned helpers.
    has_nameless: bool,
    /// The swarm that runs by itself: a step of its own name.
    alone: Option<&'a str>,
}

impl<'a> Resolver<'_, 'a, '_, '_> {
    pub(super) fn resolve_tests(
        &mut self,
        pipelines: &[Pipeline<'a>],
        wanted: &[bool],
        default: Option<Start>,
    ) -> Vec<Test<'a>> {
        let spec = self.spec;
        self.loader.only_tests_from_here();
        // Only to report names that stand twice.
        Names::new("test", spec.tests.iter().map(|test| &test.name), self.diagnostics);
        let mut known: BTreeMap<Start, Rc<Reach<'a>>> = BTreeMap::new();
        let mut tests = Vec::with_capacity(spec.tests.len());
        for test in &spec.tests {
            let start = self.resolve_test_target(test, wanted, default);
            let reach = start.map(|start| {
                Rc::clone(known.entry(start).or_insert_with(|| Rc::new(collect_reach(spec, pipelines, start))))
            });
            let params = start.map(|start| self.test_params(test, start)).unwrap_or_default();
            // A member of a swarm is asked as a step is; nothing else can be said of one by its name.
            let mut steps = |name: &Name, is_asked: bool| -> Vec<StepRef> {
                let (Some(start), Some(reach)) = (start, &reach) else { return Vec::new() };
                let word = name.value.as_str();
                match reach.steps.get(word) {
                    Some(found) => found.clone(),
                    None if is_asked && reach.takes_turns(word) => Vec::new(),
                    None if !is_asked && reach.alone == Some(word) => Vec::new(),
                    None => {
                        let of = match start {
                            Start::Pipeline(index) => ("pipeline", pipelines[index].ast.name.value.as_str()),
                            Start::Swarm(index) => ("swarm", spec.swarms[index].name.value.as_str()),
                        };
                        self.diagnostics.push(unknown_test_step(name, of, reach, is_asked));
                        Vec::new()
                    }
                }
            };
            let mut of_expect = |kind: &ast::ExpectKind| {
                let is_asked = matches!(kind, ast::ExpectKind::Prompt(..));
                kind.step_names().into_iter().map(|name| steps(name, is_asked)).collect()
            };
            let expects = test.expects.iter().map(|expect| of_expect(&expect.kind)).collect();
            let of_fakes: Vec<Vec<StepRef>> = test.fakes.iter().map(|fake| steps(&fake.step, true)).collect();
            let fakes = test.fakes.iter().zip(of_fakes);
            let fakes = fakes
                .map(|(fake, steps)| Fake { ast: fake, steps, file: self.fake_file(fake.file.as_ref()) })
                .collect();
            let (pipeline, swarm) = match start {
                Some(Start::Pipeline(index)) => (Some(index), None),
                Some(Start::Swarm(index)) => (None, Some(index)),
                None => (None, None),
            };
            tests.push(Test { ast: test, pipeline, swarm, params, fakes, expects });
        }
        tests
    }

    /// What a test is of.
    fn resolve_test_target(&mut self, test: &ast::Test, wanted: &[bool], default: Option<Start>) -> Option<Start> {
        let Some(name) = &test.pipeline else { return default };
        let home = name.span.file;
        if self.tables.find_name(NameKind::Pipeline, &name.value, true, home).is_none()
            && let Some(swarm) = self.tables.find_name(NameKind::Swarm, &name.value, true, home)
        {
            let start = Start::Swarm(swarm);
            let place = self.spec.swarms[swarm].name.span;
            let runs = self.tables.modules.is_own(place) || self.uses.swarms[swarm] || default == Some(start);
            return self.check_reachable(name, "swarm", runs).then_some(start);
        }
        let index = self.tables.resolve_name(NameKind::Pipeline, name, self.diagnostics)?;
        self.check_reachable(name, "pipeline", wanted[index]).then_some(Start::Pipeline(index))
    }

    /// Whether a run comes to something that a test names.
    fn check_reachable(&mut self, name: &Name, what: &str, runs: bool) -> bool {
        if !runs {
            let message = format!("no run of this workflow reaches {what} `{}`", name.value);
            let diagnostic = Diagnostic::new(Code::WrongValue, message)
                .label(name.span, "neither the default nor called")
                .help("test it in the spec that declares it");
            self.diagnostics.push(diagnostic);
        }
        runs
    }

    fn test_params(&mut self, test: &'a ast::Test, start: Start) -> Vec<(ParamRef, &'a Name)> {
        let spec = self.spec;
        let own = match start {
            Start::Pipeline(pipeline) => spec.pipelines[pipeline].params.as_slice(),
            Start::Swarm(_) => &[],
        };
        let mut params = Vec::new();
        for (name, value) in &test.params {
            let position = own.iter().position(|param| param.name.value == name.value);
            let found = position.map(ParamRef::Pipeline).or_else(|| {
                self.tables.find_name(NameKind::Param, &name.value, true, name.span.file).map(ParamRef::Spec)
            });
            let Some(found) = found else {
                let also: Vec<&str> = own.iter().map(|param| param.name.value.as_str()).collect();
                let unknown = self.tables.unknown_name(
                    NameKind::Param,
                    &name.value,
                    name.span,
                    name.span.file,
                    &str::to_owned,
                    &also,
                );
                self.diagnostics.push(unknown);
                continue;
            };
            let param = match found {
                ParamRef::Pipeline(index) => &own[index],
                ParamRef::Spec(index) => &spec.params[index],
            };
            let entry = match param.kind.kind {
                ast::TypeKind::File => Some(Entry::File),
                ast::TypeKind::Dir => Some(Entry::Folder),
                _ => None,
            };
            if let Some(entry) = entry {
                self.loader.find_entry(&value.value, entry, value.span, None, self.diagnostics);
            }
            params.push((found, value));
        }
        params
    }

    fn fake_file(&mut self, path: Option<&Text>) -> Option<String> {
        let path = path?;
        let file = self.loader.resolve_file(path.as_str(), path.span(0..path.as_str().len()), self.diagnostics)?;
        Some(self.loader.sources.text(file).to_owned())
    }
}

fn collect_reach<'a>(spec: &'a ast::Spec, pipelines: &[Pipeline<'a>], start: Start) -> Reach<'a> {
    let mut reach = Reach::default();
    let mut seen = vec![false; spec.pipelines.len()];
    let mut open = match start {
        Start::Pipeline(pipeline) => vec![pipeline],
        Start::Swarm(swarm) => {
            let swarm = &spec.swarms[swarm];
            reach.alone = Some(&swarm.name.value);
            reach.add_swarm(swarm);
            Vec::new()
        }
    };
    while let Some(pipeline) = open.pop() {
        if std::mem::replace(&mut seen[pipeline], true) {
            continue;
        }
        for (step, resolved) in pipelines[pipeline].steps.iter().enumerate() {
            let name: &'a str = &resolved.ast.name.value;
            reach.steps.entry(name).or_default().push(StepRef { pipeline, step });
            match &resolved.body {
                Body::Call { pipeline: Some(called), .. } => open.push(*called),
                Body::Swarm { swarm: Some(swarm), .. } => reach.add_swarm(&spec.swarms[*swarm]),
                _ => {}
            }
        }
    }
    reach
}

impl<'a> Reach<'a> {
    /// Adds the agents of a swarm.
    fn add_swarm(&mut self, swarm: &'a ast::Swarm) {
        self.members.extend(swarm.party_names().map(|name| name.value.as_str()));
        if swarm.leader.is_none() && (swarm.synthesize.is_some() || swarm.decompose.is_some()) {
            self.members.insert(SUPERVISOR);
        }
        self.is_open |= swarm.decompose.is_some();
        self.has_nameless |= !swarm.groups.is_empty() || swarm.spawn.per_agent > 0;
    }

    /// Whether an agent that takes turns may have this name.
    fn takes_turns(&self, name: &str) -> bool {
        self.is_open || self.members.contains(name) || self.has_nameless && swarmc_plan::is_station(name)
    }
}

fn unknown_test_step(name: &Name, (kind, of): (&str, &str), reach: &Reach<'_>, is_asked: bool) -> Diagnostic {
    let is_member = !is_asked && reach.members.contains(name.value.as_str());
    let has_members = is_asked && !reach.members.is_empty();
    let members = reach.members.iter().filter(|_| is_asked);
    let known: Vec<&str> = reach.steps.keys().chain(members).copied().collect();
    let (what, list) = match has_members {
        true => ("step or member", "the steps and members are "),
        false => ("step", "the steps are "),
    };
    let message = format!("there is no {what} `{}` in {kind} `{of}`", name.value);
    let diagnostic = Diagnostic::new(Code::UnknownReference, message);
    if is_member {
        return diagnostic
            .label(name.span, "a member of a swarm")
            .help("only `fake` and `prompt` can name a member; other nodes name a step");
    }
    let (close, help) = suggest::did_you_mean(&name.value, &known, list);
    let diagnostic = diagnostic.label(name.span, "not one of its steps").help_maybe(help);
    match close {
        Some(close) => diagnostic.write_near(name.span, close),
        None => diagnostic,
    }
}
