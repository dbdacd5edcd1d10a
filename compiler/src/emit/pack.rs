//! Context packs, and the files of the file protocol.

use swarmc_plan as plan;

use super::Emitter;
use crate::ast::{self, Literal, Summary};
use crate::model::{Files, Pack, PackRule, TemplateText};
use crate::syntax::Text;

impl Emitter<'_, '_, '_> {
    pub(super) fn emit_pack(&self, pack: &Pack<'_>) -> plan::ContextPack {
        let ast = pack.ast;
        plan::ContextPack {
            name: ast.name.value.clone(),
            description: ast.description.clone(),
            tokens: Some(ast.tokens.value.into()),
            min_tokens: Some(ast.min_tokens.into()),
            rules: ast.rules.iter().zip(&pack.rules).map(|(rule, found)| self.emit_rule(&rule.value, found)).collect(),
            on_overflow: ast.on_overflow,
            origin: self.to_origin(ast.name.span),
        }
    }

    fn emit_rule(&self, rule: &ast::PackRule, found: &PackRule) -> plan::PackRule {
        let path = |path: &Text| self.workspace_path(path).unwrap_or_default();
        match (rule, found) {
            (ast::PackRule::Goal(_), PackRule::Texts(texts)) => match texts.as_slice() {
                [goal] => plan::PackRule::Goal(self.emit_current_text(goal)),
                _ => unreachable!("a goal is one text"),
            },
            (_, PackRule::Texts(texts)) => {
                plan::PackRule::DefinitionOfDone(texts.iter().map(|text| self.emit_current_text(text)).collect())
            }
            (_, PackRule::Merge(pack)) => {
                let pack = pack.expect("a model without errors has the packs that it names");
                plan::PackRule::Merge(self.model.packs[pack].ast.name.value.clone())
            }
            (ast::PackRule::Docs { path: document, lines }, PackRule::Plain) => plan::PackRule::Docs {
                path: path(document),
                lines: lines.as_ref().map(|lines| (lines.value.0.into(), lines.value.1.into())),
            },
            (ast::PackRule::Files { globs, summary, max }, found) => plan::PackRule::Files {
                globs: globs.iter().map(path).collect(),
                summary: *summary != Summary::None,
                agent: match found {
                    PackRule::Summed(Some(agent)) => Some(self.model.agents[*agent].ast.name.value.clone()),
                    _ => None,
                },
                max: Some(*max),
            },
            (ast::PackRule::Fact { name, value }, PackRule::Plain) => {
                plan::PackRule::Fact { name: name.value.clone(), value: value.as_str().to_owned() }
            }
            (ast::PackRule::Inputs(names), PackRule::Plain) => {
                plan::PackRule::Inputs(names.iter().map(|name| name.value.clone()).collect())
            }
            (ast::PackRule::Artifacts { kind, from }, PackRule::Plain) => {
                plan::PackRule::Artifacts { kind: kind.value.clone(), from: from.value.clone() }
            }
            (ast::PackRule::Constraint { name, value }, PackRule::Plain) => {
                plan::PackRule::Constraint { name: name.value.clone(), value: emit_literal(value) }
            }
            (
                ast::PackRule::Goal(_) | ast::PackRule::DefinitionOfDone(_) | ast::PackRule::Merge(_),
                PackRule::Plain | PackRule::Summed(_),
            )
            | (_, PackRule::Summed(_)) => unreachable!("a rule of the model is one of the spec"),
        }
    }

    /// The file protocol of a step or an agent; `back` says which outputs are read as those of the round before.
    pub(super) fn emit_files(
        &self,
        written: Option<&ast::Files>,
        found: Option<&Files>,
        back: &dyn Fn(&str) -> bool,
    ) -> Option<plan::FileProtocol> {
        let (written, found) = written.zip(found)?;
        let texts = |texts: &[TemplateText]| texts.iter().map(|text| self.emit_text(text, back)).collect();
        let text = |text: &Text| text.as_str().to_owned();
        let input = |input: &ast::FileInput| plan::FileInput {
            // A path of an outbox counts from there.
            path: match &input.from {
                Some(_) => text(&input.path),
                None => self.emit_path(&input.path).unwrap_or_default(),
            },
            description: input.description.clone(),
            from: input.from.as_ref().map(|from| from.value.clone()),
            copy_to: input.copy_to.as_ref().map(text),
            reference: input.reference,
            optional: !input.required,
        };
        let output = |(position, output): (usize, &ast::FileOutput)| plan::FileOutput {
            path: text(&output.path),
            description: output.description.clone(),
            required: output.required,
            schema: found.kinds.get(position).and_then(Option::as_ref).map(|kind| self.emit_schema(kind)),
            copy_to: output.copy_to.as_ref().and_then(|path| self.emit_path(path)),
        };
        Some(plan::FileProtocol {
            skill: found.skill.map(|file| self.loader.sources.text(file).to_owned()),
            inputs: written.inputs.iter().map(input).collect(),
            copy_max: Some(written.copy_max),
            outputs: written.outputs.iter().enumerate().map(output).collect(),
            requirements: texts(&found.requirements),
            criteria: texts(&found.criteria),
            constraints: texts(&found.constraints),
            wait_for: written.wait_for.iter().map(|name| name.value.clone()).collect(),
        })
    }

    /// A file of the workspace, or with a final `/` a folder.
    fn emit_path(&self, path: &Text) -> Option<String> {
        let slash = if path.as_str().ends_with('/') { "/" } else { "" };
        self.workspace_path(path).map(|place| place + slash)
    }

    fn emit_schema(&self, kind: &crate::types::Type) -> plan::Schema {
        plan::Schema(self.model.typing.types.schema(kind))
    }
}

fn emit_literal(literal: &Literal) -> serde_json::Value {
    match literal {
        Literal::Bool(value) => serde_json::Value::Bool(*value),
        Literal::Number(value) => serde_json::Value::Number(value.clone()),
        Literal::Text(value) => serde_json::Value::String(value.as_str().to_owned()),
    }
}
