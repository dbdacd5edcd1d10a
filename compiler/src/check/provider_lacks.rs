//! SW701: a step needs an ability that its agent's provider lacks; SW005: an agent needs a model, and none is named.
//!
//! A provider lists its abilities in `provides`, its own or its preset's. A command without `provides` can resume a
//! conversation only with `resume-args`. A model calls tools only with `provides tools` or `tools=`. The check assumes
//! no other ability.

use std::collections::BTreeSet;

use swarmc_plan::{Ability, Capability};

use crate::ast::{Agent, Llm, Name};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, Pack, Provider, Step};
use crate::source::Span;
use crate::template::{Kind, Part};
use crate::trust::powers;

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let provider_of = |agent: &crate::model::Agent<'_>| agent.provider.map(|provider| &model.providers[provider]);
    // An agent is told once, whether it has tools of its own or those of a swarm.
    let mut told = BTreeSet::new();
    for (index, agent) in model.agents.iter().enumerate() {
        let Some(provider) = provider_of(agent) else { continue };
        let server = |tool: &&Name| powers::find_server(model, tool).is_some();
        let tool = agent.ast.tools.as_ref().and_then(|tools| tools.names.iter().find(server));
        if let Some(llm) = provider_llm(provider) {
            let any = agent.ast.tools.as_ref().and_then(|tools| tools.names.first());
            if let (Some(any), false) = (any, calls_tools(provider, llm)) {
                let what = format!("use the tool `{}`", any.value);
                diagnostics.push(report_lack(provider, agent.ast, Ability::Tools, &what, any.span, "a tool"));
                told.insert(index);
            }
            continue;
        }
        if let (Some(tool), Some(false)) = (tool, declared_ability(provider, Ability::Tools)) {
            let what = format!("use the tools of `{}`", tool.value);
            diagnostics.push(report_lack(provider, agent.ast, Ability::Tools, &what, tool.span, "a server of tools"));
        }
    }
    check_members(model, told, diagnostics);
    check_managers(model, diagnostics);
    check_model_names(model, diagnostics);
    // A session that several steps share is reported once.
    let mut told = BTreeSet::new();
    for (pipeline, step) in model
        .pipelines
        .iter()
        .enumerate()
        .flat_map(|(index, pipeline)| pipeline.steps.iter().map(move |step| (index, step)))
    {
        let Some(agent) = step.agent.map(|agent| &model.agents[agent]) else { continue };
        let Some(provider) = provider_of(agent) else { continue };
        diagnostics.set_home(Some(step.ast.name.span));
        if let Some(session) = &step.ast.session
            && !can_resume(provider)
            && told.insert((pipeline, session.value.as_str(), agent.ast.name.span))
        {
            let what = format!("go on with the session `{}`", session.value);
            diagnostics.push(report_lack(
                provider,
                agent.ast,
                Ability::Resume,
                &what,
                session.span,
                "continued across turns",
            ));
        }
        if let (Some(image), Some(false)) = (find_image(step), declared_ability(provider, Ability::Images)) {
            diagnostics.push(report_lack(provider, agent.ast, Ability::Images, "read pictures", image, "a picture"));
        }
    }
    diagnostics.set_home(None);
}

/// Members of swarms act by calling tools, their own and those of the swarm.
fn check_members(model: &Model<'_>, mut told: BTreeSet<usize>, diagnostics: &mut Diagnostics) {
    for swarm in &model.swarms {
        let members = swarm.members.iter().map(|member| member.agent).chain(swarm.groups.iter().copied());
        // A coordinator takes turns as its members do, and so does everyone that it adds.
        let coordinator = swarm.leader.filter(|_| swarm.ast.coordinator().is_some());
        let members = members.chain([coordinator]).chain(swarm.managers.iter().chain(&swarm.spawns).copied());
        for index in members.flatten() {
            let agent = &model.agents[index];
            let Some(provider) = agent.provider.map(|provider| &model.providers[provider]) else { continue };
            if provider_llm(provider).is_some_and(|llm| !calls_tools(provider, llm)) && told.insert(index) {
                let (what, name) = (format!("act in swarm `{}`", swarm.ast.name.value), &agent.ast.name);
                diagnostics.push(report_lack(provider, agent.ast, Ability::Tools, &what, name.span, "plays a member"));
            }
        }
    }
}

/// Managers of worktrees that cannot resolve the conflicts of a merge: models, which act by what `can` gives them.
fn check_managers(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    for swarm in &model.swarms {
        for (tree, manager) in swarm.ast.worktrees.iter().zip(&swarm.managers) {
            let Some(name) = &tree.manager else { continue };
            let mut members = swarm.ast.members.iter().zip(&swarm.members);
            let member = members.find(|(member, _)| member.name.value == name.value);
            let Some(agent) = manager.or_else(|| member?.1.agent).map(|agent| &model.agents[agent]) else { continue };
            let is_model = agent.provider.is_some_and(|provider| provider_llm(&model.providers[provider]).is_some());
            let acts = [Capability::WriteFiles, Capability::RunCommands];
            if !is_model || agent.ast.can.iter().any(|can| acts.contains(&can.value)) {
                continue;
            }
            let plays = &agent.ast.name;
            diagnostics.push(
                Diagnostic::new(
                    Code::ProviderLacks,
                    format!("manager `{}` can neither write files nor run commands", name.value),
                )
                .label(name.span, format!("cannot resolve a conflict of worktree `{}`", tree.name.value))
                .label(plays.span, "the agent that it plays")
                .help(format!("write `can write-files` in agent `{}`, or choose another `manager`", plays.value)),
            );
        }
    }
}

/// Agents in use for which neither the agent nor its provider names a model.
fn check_model_names(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let steps = model.pipelines.iter().flat_map(|pipeline| &pipeline.steps);
    let members = model.swarms.iter().flat_map(|swarm| swarm.members.iter().map(|member| member.agent));
    let groups = model.swarms.iter().flat_map(|swarm| swarm.groups.iter().chain(&swarm.managers).chain(&swarm.spawns));
    let groups = groups.copied();
    let leaders = model.swarms.iter().map(|swarm| swarm.leader.filter(|_| swarm.ast.coordinator().is_some()));
    let summing = model.packs.iter().flat_map(Pack::summary_agents);
    let used: BTreeSet<usize> = steps
        .flat_map(|step| [step.agent, step.fixer])
        .chain(members)
        .chain(groups)
        .chain(leaders)
        .flatten()
        .chain(summing)
        .collect();
    for agent in used.into_iter().map(|index| &model.agents[index]) {
        let Some(provider) = agent.provider.map(|provider| &model.providers[provider]) else { continue };
        if agent.ast.model.is_some() || provider_llm(provider).is_none_or(|llm| llm.model.is_some()) {
            continue;
        }
        let (name, other) = (&agent.ast.name, &provider.ast.name);
        diagnostics.push(
            Diagnostic::new(
                Code::WrongValue,
                format!("neither agent `{}` nor provider `{}` names a model", name.value, other.value),
            )
            .label(name.span, "no `model`")
            .label(other.span, "an `llm` without `model=`")
            .help("write `model \"NAME\"` in the agent, or `model=\"NAME\"` behind the `llm` of its provider"),
        );
    }
}

/// The model that a provider is.
fn provider_llm<'a>(provider: &Provider<'a>) -> Option<&'a Llm> {
    let own = provider.ast;
    // Its own way to reach agents takes the place of the preset's.
    let has_way = own.programs().next().is_some() || own.script.is_some();
    let of = |provider: &'a crate::ast::Provider| provider.llm.as_ref();
    of(own).or_else(|| provider.preset.and_then(of)).filter(|_| !has_way)
}

/// Whether a model calls tools, in one protocol or the other.
fn calls_tools(provider: &Provider<'_>, llm: &Llm) -> bool {
    llm.tools.is_some() || declared_ability(provider, Ability::Tools) == Some(true)
}

fn report_lack(
    provider: &Provider<'_>,
    agent: &Agent,
    ability: Ability,
    what: &str,
    span: Span,
    label: &str,
) -> Diagnostic {
    let name = &provider.ast.name;
    let word = ability_name(ability);
    let said = provider.ast.provides.as_ref().and_then(|list| list.first()).map(|first| first.span);
    let help = match ability {
        Ability::Resume if provider.ast.exec.is_some() => format!(
            "say how `{}` resumes, `resume-args \"--resume\" \"{{session}}\"`, take an agent of another provider, or remove `session`",
            name.value
        ),
        Ability::Resume if provider_llm(provider).is_some() => {
            "take an agent of another provider, or remove `session`".to_owned()
        }
        Ability::Tools if provider_llm(provider).is_some() => {
            "write `provides tools` where the model knows them, else `tools=schema` behind the kind of its `llm`"
                .to_owned()
        }
        _ => format!("take an agent whose provider has `provides {word}`"),
    };
    Diagnostic::new(
        Code::ProviderLacks,
        format!("provider `{}` of agent `{}` cannot {what}", name.value, agent.name.value),
    )
    .label(span, label)
    .label(said.unwrap_or(name.span), format!("does not provide `{word}`"))
    .help(help)
}

/// Whether a provider says that it can do this; none where it says nothing.
fn declared_ability(provider: &Provider<'_>, ability: Ability) -> Option<bool> {
    let list = provider.ast.provides.as_ref().or_else(|| provider.preset?.provides.as_ref())?;
    Some(list.iter().any(|found| found.value == ability))
}

/// Whether it can go on with a conversation.
fn can_resume(provider: &Provider<'_>) -> bool {
    let preset = provider.preset;
    if provider.kind().is_some_and(|kind| !kind.can_resume()) {
        return false;
    }
    if provider.ast.script.is_some() {
        return true;
    }
    if provider.ast.resume_args.is_some()
        || provider.ast.exec.is_none() && preset.is_some_and(|preset| preset.resume_args.is_some())
    {
        return true;
    }
    match declared_ability(provider, Ability::Resume) {
        Some(says) => says,
        // A provider without a command keeps its conversations itself.
        None => provider.ast.exec.is_none() && preset.is_none_or(|preset| preset.exec.is_none()),
    }
}

/// A picture that the prompt of a step shows.
fn find_image(step: &Step<'_>) -> Option<Span> {
    let Body::Prompt(prose) = &step.body else { return None };
    prose.template.parts.iter().find_map(|part| match part {
        Part::Directive(directive) if directive.kind == Kind::File => {
            let name = directive.name.as_ref()?;
            let ending = name.value.rsplit_once('.')?.1.to_ascii_lowercase();
            let picture = matches!(ending.as_str(), "png" | "jpg" | "jpeg" | "gif" | "webp");
            picture.then(|| prose.passage.span(name.range.clone()))
        }
        _ => None,
    })
}

fn ability_name(ability: Ability) -> &'static str {
    match ability {
        Ability::Schema => "schema",
        Ability::Tools => "tools",
        Ability::Resume => "resume",
        Ability::Images => "images",
    }
}
