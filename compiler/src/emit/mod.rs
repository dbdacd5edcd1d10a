//! Writes the model as a plan: spells out names, fills in defaults and cuts texts into segments. The compiler emits
//! only a model without errors, so no part of it is missing.

mod agent;
pub(crate) mod command;
mod pack;
mod pipeline;
mod swarm;
mod test;
mod text;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};
use swarmc_plan as plan;
use swarmc_plan::{EnvValue, Origin, Plan};

use crate::ast::{self, TypeKind};
use crate::load::Loader;
use crate::model::{Model, Start, Variable};
use crate::source::{FileId, Span};
use crate::text_cache::Derived;
use crate::types::{Lack, Type};

pub(crate) use test::emit_tests;

/// Writes the plan; none where the spec has nothing to run.
pub(crate) fn emit_plan(model: &Model<'_>, loader: &Loader<'_>, stem: &str) -> Option<Plan> {
    let spec = model.spec;
    let emitter = Emitter { model, loader };
    let workflow = spec.workflow.as_ref();
    // The plan leaves out unused declarations of imports, so the caller need not give a parameter that no step reads.
    let wanted = |span: Span, used: bool| used || model.tables.modules.is_own(span);
    let used_agents = |index: &usize| model.uses.agents[*index];
    let agents: Vec<usize> = (0..model.agents.len()).filter(used_agents).collect();
    let mut providers: Vec<usize> = agents.iter().filter_map(|&agent| model.agents[agent].provider).collect();
    providers.sort_unstable();
    providers.dedup();
    let agents: Vec<plan::Agent> = agents.into_iter().map(|agent| emitter.emit_agent(&model.agents[agent])).collect();
    let tools: BTreeSet<String> = agents.iter().flat_map(|agent| &agent.tools).flatten().cloned().collect();
    Some(Plan {
        version: plan::VERSION,
        workflow: workflow.map_or_else(|| stem.to_owned(), |workflow| workflow.name.value.clone()),
        description: workflow.and_then(|workflow| workflow.description.clone()),
        default: match model.default? {
            Start::Pipeline(index) => model.pipelines.get(index)?.ast.name.value.clone(),
            Start::Swarm(index) => model.swarms.get(index)?.ast.name.value.clone(),
        },
        params: spec
            .params
            .iter()
            .zip(&model.typing.params)
            .zip(&model.uses.params)
            .filter(|((param, _), used)| wanted(param.name.span, **used))
            .map(|((param, kind), _)| emitter.emit_param(param, kind))
            .collect(),
        types: emitter.type_schemas(),
        secrets: spec
            .secrets
            .iter()
            .zip(&model.uses.secrets)
            .filter(|(secret, used)| wanted(secret.name.span, **used))
            .map(|(secret, _)| secret)
            .map(|secret| plan::Secret { name: secret.name.value.clone(), env: secret.env.clone() })
            .collect(),
        mode: workflow.and_then(|workflow| workflow.mode.as_ref()).map(|mode| mode.value),
        survive: workflow.map(|workflow| workflow.survive).unwrap_or_default(),
        docs_root: workflow
            .and_then(|workflow| workflow.docs_root.as_ref())
            .and_then(|path| emitter.workspace_path(path)),
        policy: spec.policy.as_ref().map(emit_policy).unwrap_or_default(),
        hooks: spec
            .hooks
            .iter()
            .zip(&model.hooks)
            .filter_map(|(hook, script)| emitter.emit_hook(hook, *script))
            .collect(),
        tool_servers: model
            .servers
            .iter()
            .map(|server| (server, emitter.emit_server(server)))
            .filter(|(server, plan)| wanted(server.ast.name.span, tools.contains(&plan.name)))
            .map(|(_, plan)| plan)
            .collect(),
        providers: providers.into_iter().map(|provider| emitter.emit_provider(&model.providers[provider])).collect(),
        agents,
        pipelines: model
            .pipelines
            .iter()
            .zip(&model.typing.pipelines)
            .zip(&model.wanted)
            .filter(|(_, wanted)| **wanted)
            .map(|((pipeline, known), _)| emitter.emit_pipeline(pipeline, &known.own_params))
            .collect(),
        swarms: model.swarms.iter().filter(|swarm| swarm.wanted).map(|swarm| emitter.emit_swarm(swarm)).collect(),
        packs: model
            .packs
            .iter()
            .zip(&model.uses.packs)
            .filter(|(pack, used)| wanted(pack.ast.name.span, **used))
            .map(|(pack, _)| emitter.emit_pack(pack))
            .collect(),
        budget: spec.budget.as_ref().map(|budget| emitter.emit_budget(budget)),
        sources: build_manifest(model, loader),
        ..Plan::default()
    })
}

fn emit_policy(policy: &ast::Policy) -> plan::Policy {
    let approval = |said: &Option<ast::Spanned<plan::Approval>>| said.as_ref().map(|it| it.value).unwrap_or_default();
    plan::Policy {
        spawn: approval(&policy.spawn),
        tools: policy.tools.iter().map(|(name, approval)| (name.value.clone(), approval.value)).collect(),
        plan_update: policy.plan_update.as_ref().map_or(plan::Policy::PLAN_UPDATE, |update| update.value),
        integrate: policy.integrate.as_ref().map_or(plan::Policy::INTEGRATE, |integrate| integrate.value),
        unattended: policy.unattended.value,
        on_timeout: policy.on_timeout.as_ref().map(|timeout| timeout.value),
    }
}

/// What was read, with digests, by path.
fn build_manifest(model: &Model<'_>, loader: &Loader<'_>) -> Vec<plan::SourceFile> {
    let source = |(path, file): (&str, FileId)| plan::SourceFile {
        path: path.to_owned(),
        digest: match without_tests(model, loader, file) {
            Cow::Borrowed(_) => loader.facts(file).derived::<Digest>().0.clone(),
            Cow::Owned(text) => compute_digest(text.as_bytes()),
        },
    };
    loader.list_files().map(source).collect()
}

/// The digest of a text.
struct Digest(String);

impl Derived for Digest {
    fn from_text(text: &str) -> Digest {
        Digest(compute_digest(text.as_bytes()))
    }
}

/// A text without its tests and the white space before each: they do not change what runs.
fn without_tests<'l>(model: &Model<'_>, loader: &'l Loader<'_>, file: FileId) -> Cow<'l, str> {
    let text = loader.sources.text(file);
    // The model has the tests of the spec itself alone, in the order of its text.
    let mut spans = model.tests.iter().map(|test| test.ast.span).filter(|span| span.file == file).peekable();
    if spans.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let (mut kept, mut from) = (String::with_capacity(text.len()), 0);
    for span in spans {
        kept.push_str(text[from..span.start as usize].trim_end());
        from = span.end as usize;
    }
    kept.push_str(&text[from..]);
    Cow::Owned(kept)
}

/// `sha256:` and the digest in hexadecimal.
pub(crate) fn compute_digest(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).expect("half a byte is one digit");
    let digits = Sha256::digest(bytes).into_iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    "sha256:".chars().chain(digits).collect()
}

struct Emitter<'e, 'a, 'l> {
    model: &'e Model<'a>,
    loader: &'e Loader<'l>,
}

impl Emitter<'_, '_, '_> {
    fn to_origin(&self, span: Span) -> Origin {
        let position = self.loader.sources.position(span.file, span.start);
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        Origin {
            file: self.loader.sources.name(span.file).to_owned(),
            line: number(position.line),
            column: number(position.column),
        }
    }

    /// The declared types as schemas, by name.
    fn type_schemas(&self) -> BTreeMap<String, plan::Schema> {
        let definitions = self.model.typing.types.definitions().into_iter();
        definitions.map(|(name, schema)| (name, plan::Schema(schema))).collect()
    }

    fn emit_params(&self, params: &[ast::Param], types: &[Type]) -> Vec<plan::Param> {
        params.iter().zip(types).map(|(param, kind)| self.emit_param(param, kind)).collect()
    }

    fn emit_param(&self, param: &ast::Param, kind: &Type) -> plan::Param {
        plan::Param {
            name: param.name.value.clone(),
            kind: match param.kind.kind {
                TypeKind::Int => plan::ParamType::Int,
                TypeKind::Float => plan::ParamType::Float,
                TypeKind::Bool => plan::ParamType::Bool,
                TypeKind::File => plan::ParamType::File,
                TypeKind::Dir => plan::ParamType::Dir,
                TypeKind::String | TypeKind::Unknown => plan::ParamType::String,
                // Whether it may be left out is not part of the schema.
                _ => plan::ParamType::Json(plan::Schema(
                    self.model.typing.types.schema(&kind.clone().with_lack(Lack::NEVER)),
                )),
            },
            optional: param.kind.optional,
            default: param.default.as_ref().map(|default| match param.kind.kind {
                TypeKind::File | TypeKind::Dir => {
                    let path = self.path_at(&default.value, default.span).unwrap_or_default();
                    if path.is_empty() { ".".to_owned() } else { path }
                }
                TypeKind::Enum(_) | TypeKind::Named(_) => self.model.typing.types.format_literal(kind, &default.value),
                _ => default.value.clone(),
            }),
            env: param.env.as_ref().map(|env| env.value.clone()),
            description: param.description.clone(),
            origin: self.to_origin(param.name.span),
        }
    }

    fn emit_env(&self, env: &[Variable]) -> plan::Environment {
        self.env_of(env, &|_| false)
    }

    fn env_of(&self, env: &[Variable], back: &dyn Fn(&str) -> bool) -> plan::Environment {
        let value = |variable: &Variable| match variable {
            Variable::Pass(name) => EnvValue::Pass(name.clone()),
            Variable::Secret(name) => EnvValue::Secret(name.clone()),
            Variable::Set(name, prose) => EnvValue::Set { name: name.clone(), value: self.emit_text(prose, back) },
        };
        env.iter().map(value).collect()
    }

    /// A path of the spec as the workspace sees it.
    fn workspace_path(&self, path: &crate::syntax::Text) -> Option<String> {
        self.path_at(path.as_str(), path.span(0..0))
    }

    fn path_at(&self, path: &str, span: Span) -> Option<String> {
        let home = self.loader.sources.name(span.file);
        let folder = home.rsplit_once('/').map_or("", |(folder, _)| folder);
        crate::load::join_path(folder, path)
    }
}
