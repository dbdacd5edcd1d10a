//! Tests as `swarmc test` carries them out; beside the plan, never in it.

use serde_json::{Map, Value};

use super::Emitter;
use crate::ast::{self, ExpectKind, Holds};
use crate::load::Loader;
use crate::model::{self, Model, ParamRef};
use crate::source::Span;
use crate::test::{Expectation, Expected, Fake, Hold, Test};

/// The tests of the spec itself; only a model without errors is emitted.
pub(crate) fn emit_tests(model: &Model<'_>, loader: &Loader<'_>) -> Vec<Test> {
    let emitter = Emitter { model, loader };
    model.tests.iter().filter_map(|test| emitter.emit_test(test)).collect()
}

impl Emitter<'_, '_, '_> {
    fn emit_test(&self, test: &model::Test<'_>) -> Option<Test> {
        let pipeline = test.pipeline.map(|index| &self.model.pipelines[index]);
        let param = |(param, value): &(ParamRef, &ast::Name)| {
            let (declared, kind) = match *param {
                ParamRef::Pipeline(index) => {
                    (&pipeline?.ast.params[index], &self.model.typing.pipelines[test.pipeline?].own_params[index])
                }
                ParamRef::Spec(index) => (&self.model.spec.params[index], &self.model.typing.params[index]),
            };
            let text = match declared.kind.kind {
                ast::TypeKind::File | ast::TypeKind::Dir => {
                    let path = self.path_at(&value.value, value.span).unwrap_or_default();
                    if path.is_empty() { ".".to_owned() } else { path }
                }
                ast::TypeKind::Enum(_) | ast::TypeKind::Named(_) => {
                    self.model.typing.types.format_literal(kind, &value.value)
                }
                _ => value.value.clone(),
            };
            Some((declared.name.value.clone(), text))
        };
        Some(Test {
            name: test.ast.name.value.clone(),
            span: test.ast.name.span,
            pipeline: match (pipeline, test.swarm) {
                (Some(pipeline), _) => pipeline.ast.name.value.clone(),
                (None, swarm) => self.model.spec.swarms[swarm?].name.value.clone(),
            },
            params: test.params.iter().filter_map(param).collect(),
            stdin: test.ast.stdin.clone(),
            fakes: test.fakes.iter().map(|fake| self.emit_fake(fake)).collect(),
            expectations: test.ast.expects.iter().map(emit_expectation).collect(),
        })
    }

    fn emit_fake(&self, fake: &model::Fake<'_>) -> Fake {
        let written = fake.ast;
        let path = written.file.as_ref().map(|path| path.span(0..path.as_str().len()));
        let texts = written.texts.iter().map(|text| (text.value.as_str(), text.span));
        let texts = texts.chain(fake.file.as_deref().zip(path));
        Fake {
            step: written.step.value.clone(),
            span: written.step.span,
            part: written.part,
            tool: written.tool.clone(),
            moment: written.moment,
            texts: texts.map(|(text, span): (&str, Span)| (without_newline(text), span)).collect(),
            exit: written.exit,
            delay_ms: written.delay_ms,
            choice: written.choice.as_ref().map(|choice| choice.value.clone()),
            fields: self.emit_fields(fake),
        }
    }

    /// The fields of a gate as values of their types.
    fn emit_fields(&self, fake: &model::Fake<'_>) -> Map<String, Value> {
        let step = fake.steps.first().map(|found| &self.model.pipelines[found.pipeline].steps[found.step]);
        let Some(crate::types::Kind::Record(record)) = step.map(|step| &step.output.kind) else { return Map::new() };
        let types = &self.model.typing.types;
        let value = |(name, value): &(ast::Name, ast::Name)| {
            let field = record.fields.iter().find(|field| field.name == name.value)?;
            let text = types.format_literal(&field.kind, &value.value);
            Some((name.value.clone(), serde_json::from_str(&text).unwrap_or(Value::String(text))))
        };
        fake.ast.fields.iter().filter_map(value).collect()
    }
}

/// A file ends with a line break, and an answer does not.
fn without_newline(text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text).to_owned()
}

fn emit_expectation(expect: &ast::Expect) -> Expectation {
    let expected = match &expect.kind {
        ExpectKind::Status(ending) => Expected::Status(*ending),
        ExpectKind::Step(step, moment, status) => {
            Expected::Step { step: step.value.clone(), moment: *moment, status: *status }
        }
        ExpectKind::Order(steps) => Expected::Order(steps.iter().map(|step| step.value.clone()).collect()),
        ExpectKind::Prompt(step, moment, holds) => {
            Expected::Prompt { step: step.value.clone(), moment: *moment, holds: self::list_holds(holds) }
        }
        ExpectKind::Output(step, moment, holds) => {
            Expected::Output { step: step.value.clone(), moment: *moment, holds: self::list_holds(holds) }
        }
        ExpectKind::Result(holds) => Expected::Result(self::list_holds(holds)),
        ExpectKind::Rounds(of, count) => Expected::Rounds(of.as_ref().map(|of| of.value.clone()), *count),
        ExpectKind::Launches(count) => Expected::Launches(*count),
        ExpectKind::Turns(count) => Expected::Turns(*count),
        ExpectKind::Tokens(most) => Expected::Tokens(*most),
        ExpectKind::Cost(most) => Expected::Cost(*most),
        ExpectKind::Team { of, expected, .. } => {
            Expected::Team { of: of.as_ref().map(|of| of.value.clone()), expected: expected.clone() }
        }
    };
    Expectation { span: expect.span, expected }
}

fn list_holds(holds: &[Holds]) -> Vec<Hold> {
    holds.iter().map(|holds| holds.hold.clone()).collect()
}
