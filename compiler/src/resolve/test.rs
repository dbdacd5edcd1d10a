//! Tests: their pipelines, parameters, steps and files are looked up. What only tests read is no part of the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::names::Names;
use super::tables::What;
use super::{Resolver, suggest};
use crate::ast::{self, Name};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::files::Entry;
use crate::model::{Body, Fake, ParamRef, Pipeline, Start, StepRef, Test};
use crate::syntax::Text;

/// What a run of a pipeline can come to.
#[derive(Default)]
struct Reach<'a> {
    /// The steps by name: its own, and those of what it calls.
    steps: BTreeMap<&'a str, Vec<StepRef>>,
    /// Who takes turns in the swarms that these start.
    members: BTreeSet<&'a str>,
    /// Whether somebody leads one of them who names others itself.
    is_open: bool,
}

impl<'a> Resolver<'_, 'a, '_, '_> {
    pub(super) fn tests(
        &mut self,
        pipelines: &[Pipeline<'a>],
        wanted: &[bool],
        default: Option<Start>,
    ) -> Vec<Test<'a>> {
        let spec = self.spec;
        self.loader.only_tests_from_here();
        Names::new("test", spec.tests.iter().map(|test| &test.name), self.diagnostics);
        let mut known: Vec<Option<Rc<Reach<'a>>>> = vec![None; pipelines.len()];
        let mut tests = Vec::with_capacity(spec.tests.len());
        for test in &spec.tests {
            let pipeline = self.tested(test, wanted, default);
            let reach = pipeline
                .map(|index| Rc::clone(known[index].get_or_insert_with(|| Rc::new(reach(spec, pipelines, index)))));
            let params = pipeline.map(|index| self.test_params(test, index)).unwrap_or_default();
            // A member of a swarm is asked as a step is; nothing else can be said of one by its name.
            let mut steps = |name: &Name, is_asked: bool| -> Vec<StepRef> {
                let (Some(index), Some(reach)) = (pipeline, &reach) else { return Vec::new() };
                let word = name.value.as_str();
                match reach.steps.get(word) {
                    Some(found) => found.clone(),
                    None if is_asked && (reach.is_open || reach.members.contains(word)) => Vec::new(),
                    None => {
                        self.diagnostics.push(unknown(name, &pipelines[index], reach, is_asked));
                        Vec::new()
                    }
                }
            };
            let mut of_expect = |kind: &ast::ExpectKind| {
                let is_asked = matches!(kind, ast::ExpectKind::Prompt(..));
                kind.steps().into_iter().map(|name| steps(name, is_asked)).collect()
            };
            let expects = test.expects.iter().map(|expect| of_expect(&expect.kind)).collect();
            let of_fakes: Vec<Vec<StepRef>> = test.fakes.iter().map(|fake| steps(&fake.step, true)).collect();
            let fakes = test.fakes.iter().zip(of_fakes);
            let fakes = fakes
                .map(|(fake, steps)| Fake { ast: fake, steps, file: self.fake_file(fake.file.as_ref()) })
                .collect();
            tests.push(Test { ast: test, pipeline, params, fakes, expects });
        }
        tests
    }

    /// The pipeline of a test.
    fn tested(&mut self, test: &ast::Test, wanted: &[bool], default: Option<Start>) -> Option<usize> {
        let no_swarm = |place, swarm: &str, diagnostics: &mut Diagnostics| {
            let diagnostic =
                Diagnostic::new(Code::WrongValue, format!("`{swarm}` is a swarm, and a test is of a pipeline"))
                    .label(place, "swarms cannot be rehearsed yet")
                    .help("name a pipeline: `pipeline NAME`");
            diagnostics.push(diagnostic);
        };
        let Some(name) = &test.pipeline else {
            return match default? {
                Start::Pipeline(index) => Some(index),
                Start::Swarm(index) => {
                    no_swarm(test.name.span, &self.spec.swarms[index].name.value, self.diagnostics);
                    None
                }
            };
        };
        let home = name.span.file;
        if self.tables.find(What::Pipeline, &name.value, true, home).is_none()
            && self.tables.find(What::Swarm, &name.value, true, home).is_some()
        {
            no_swarm(name.span, &name.value, self.diagnostics);
            return None;
        }
        let index = self.tables.lookup(What::Pipeline, name, self.diagnostics)?;
        if !wanted[index] {
            let diagnostic = Diagnostic::new(
                Code::WrongValue,
                format!("no run of this workflow comes to pipeline `{}`", name.value),
            )
            .label(name.span, "neither the default nor called")
            .help("test it in the spec that declares it");
            self.diagnostics.push(diagnostic);
            return None;
        }
        Some(index)
    }

    fn test_params(&mut self, test: &'a ast::Test, pipeline: usize) -> Vec<(ParamRef, &'a Name)> {
        let spec = self.spec;
        let own = &spec.pipelines[pipeline].params;
        let mut params = Vec::new();
        for (name, value) in &test.params {
            let position = own.iter().position(|param| param.name.value == name.value);
            let found = position
                .map(ParamRef::Pipeline)
                .or_else(|| self.tables.find(What::Param, &name.value, true, name.span.file).map(ParamRef::Spec));
            let Some(found) = found else {
                let also: Vec<&str> = own.iter().map(|param| param.name.value.as_str()).collect();
                let unknown =
                    self.tables.unknown(What::Param, &name.value, name.span, name.span.file, &str::to_owned, &also);
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
                self.loader.find(&value.value, entry, value.span, None, self.diagnostics);
            }
            params.push((found, value));
        }
        params
    }

    fn fake_file(&mut self, path: Option<&Text>) -> Option<String> {
        let path = path?;
        let file = self.loader.named(path.as_str(), path.span(0..path.as_str().len()), self.diagnostics)?;
        Some(self.loader.sources.text(file).to_owned())
    }
}

fn reach<'a>(spec: &'a ast::Spec, pipelines: &[Pipeline<'a>], start: usize) -> Reach<'a> {
    let mut reach = Reach::default();
    let mut seen = vec![false; spec.pipelines.len()];
    let mut open = vec![start];
    while let Some(pipeline) = open.pop() {
        if std::mem::replace(&mut seen[pipeline], true) {
            continue;
        }
        for (step, resolved) in pipelines[pipeline].steps.iter().enumerate() {
            let name: &'a str = &resolved.ast.name.value;
            reach.steps.entry(name).or_default().push(StepRef { pipeline, step });
            match &resolved.body {
                Body::Call { pipeline: Some(called), .. } => open.push(*called),
                Body::Swarm { swarm: Some(swarm), .. } => {
                    let swarm = &spec.swarms[*swarm];
                    reach.members.extend(swarm.names().map(|name| name.value.as_str()));
                    reach.is_open |= swarm.decompose.is_some();
                }
                _ => {}
            }
        }
    }
    reach
}

fn unknown(name: &Name, pipeline: &Pipeline<'_>, reach: &Reach<'_>, is_asked: bool) -> Diagnostic {
    let of = &pipeline.ast.name;
    let members = reach.members.iter().filter(|_| is_asked);
    let known: Vec<&str> = reach.steps.keys().chain(members).copied().collect();
    let list = if is_asked && !reach.members.is_empty() { "the steps and members are " } else { "the steps are " };
    let (close, help) = suggest::did_you_mean(&name.value, &known, list);
    let diagnostic = Diagnostic::new(
        Code::UnknownReference,
        format!("there is no step `{}` in pipeline `{}`", name.value, of.value),
    )
    .label(name.span, "not one of its steps")
    .help_maybe(help);
    match close {
        Some(close) => diagnostic.unsafe_fix(format!("write `{close}`"), name.span, close),
        None => diagnostic,
    }
}
