//! The declarations outside pipelines: providers, agents, servers of tools, secrets, hooks, budgets and context packs.

use std::collections::BTreeSet;

use super::place::{Place, ROOT, check_budget, check_optional_count, find_cycle};
use super::{ANYWHERE, Checked, Validator};
use crate::{Agent, Connection, PackRule, Provider, Recorded, Transport};

/// The artifacts that a context pack may hold.
const ARTIFACTS: [&str; 6] = ["diff", "log", "prompt", "transcript", "contextpack", "report"];

impl<'p> Validator<'p> {
    /// Providers, agents, servers of tools, secrets, hooks and budgets.
    pub(super) fn check_declarations(&self) -> Checked {
        let plan = self.plan;
        let mut secrets = BTreeSet::new();
        for (index, secret) in plan.secrets.iter().enumerate() {
            let place = ROOT.field("secrets");
            let place = place.index(index);
            place.field("name").check_name(&secret.name)?;
            place
                .field("name")
                .ensure_holds(secrets.insert(&secret.name), || format!("secret `{}` is declared twice", secret.name))?;
            place.field("env").check_variable(&secret.env)?;
        }
        for (index, provider) in plan.providers.iter().enumerate() {
            self.check_provider(&ROOT.field("providers").index(index), provider)?;
        }
        for (index, agent) in plan.agents.iter().enumerate() {
            self.check_agent(&ROOT.field("agents").index(index), agent)?;
        }
        let fallback = |agent: &Agent| agent.fallback.as_ref().into_iter().cloned().collect();
        find_cycle(plan.agents.iter().map(|agent| (agent.name.as_str(), fallback(agent))))
            .map_or(Ok(()), |name| ROOT.field("agents").fail_with(format!("agent `{name}` falls back on itself")))?;
        for (index, server) in plan.tool_servers.iter().enumerate() {
            let place = ROOT.field("tool_servers");
            let place = place.index(index);
            match &server.transport {
                Transport::Exec(words) => place.field("transport").field("exec").check_argv(words)?,
                Transport::Url(url) => place
                    .field("transport")
                    .field("url")
                    .ensure_holds(!url.is_empty(), || "an empty address".to_owned())?,
            }
            self.check_variables(&place.field("env"), &server.env, ANYWHERE)?;
            server.auth.as_deref().map_or(Ok(()), |variable| place.field("auth").check_variable(variable))?;
        }
        for (index, hook) in plan.hooks.iter().enumerate() {
            ROOT.field("hooks").index(index).field("run").check_command(&hook.run)?;
        }
        if let Some(timeout) = &plan.policy.on_timeout {
            ROOT.field("policy").field("on_timeout").field("after_ms").check_amount(Some(timeout.after_ms), 0)?;
        }
        check_budget(&ROOT, plan.budget.as_ref())?;
        for name in plan.bounds.keys() {
            let known = plan.pipeline(name).is_some() || plan.swarm(name).is_some();
            ROOT.field("bounds")
                .ensure_holds(known, || format!("has bounds of `{name}`, which the plan does not declare"))?;
        }
        Ok(())
    }

    fn check_provider(&self, place: &Place<'_>, provider: &'p Provider) -> Checked {
        self.check_variables(&place.field("env"), &provider.env, ANYWHERE)?;
        place.field("context_window").check_amount(provider.context_window, 1)?;
        if let Some(rate) = &provider.rate {
            place.field("rate").field("requests").check_amount(rate.requests, 1)?;
            place.field("rate").field("tokens").check_amount(rate.tokens, 1)?;
        }
        if let Some(price) = &provider.price {
            let parts = [Some(price.input), Some(price.output), price.cache_read, price.cache_write];
            parts.into_iter().try_for_each(|part| place.field("price").check_amount(part, 0))?;
        }
        let connection = &provider.connection;
        let place = place.field("connection");
        let place = place.field(connection.kind().name());
        connection.program().map_or(Ok(()), |argv| place.field("argv").check_argv(argv))?;
        if let Connection::Exec { resume: Some(words), .. } = connection {
            place.field("resume").check_argv(words)?;
        }
        if let Some(mcp) = connection.mcp_config() {
            let place = place.field("mcp");
            for (index, variable) in mcp.env.iter().enumerate() {
                place.field("env").index(index).field("name").check_variable(&variable.name)?;
            }
            let wrong = mcp.args.iter().position(|word| word.contains('\0'));
            wrong.map_or(Ok(()), |at| place.field("args").index(at).fail_with("contains a NUL"))?;
        }
        connection.key_variable().map_or(Ok(()), |variable| place.field("auth").check_variable(variable))?;
        let is_empty = connection.address().is_some_and(str::is_empty);
        place.field("base_url").ensure_holds(!is_empty, || "an empty address".to_owned())?;
        let place = place.field("answers");
        let mut answers = connection.answers().into_iter().flatten().enumerate();
        answers.try_for_each(|(index, answer)| check_answer(&place.index(index), answer))
    }

    fn check_agent(&self, place: &Place<'_>, agent: &'p Agent) -> Checked {
        let plan = self.plan;
        place.field("provider").ensure_holds(plan.provider(&agent.provider).is_some(), || {
            format!("agent `{}` uses provider `{}`, which the plan does not declare", agent.name, agent.provider)
        })?;
        if let Some(fallback) = &agent.fallback {
            place.field("fallback").ensure_holds(plan.agent(fallback).is_some(), || {
                format!("agent `{}` falls back on agent `{fallback}`, which the plan does not declare", agent.name)
            })?;
        }
        if let Some(temperature) = agent.temperature {
            place.field("temperature").ensure_holds((0.0..=2.0).contains(&temperature), || {
                format!("a temperature of {temperature}, which must be from 0 to 2")
            })?;
        }
        place.field("max_output").check_amount(agent.max_output, 1)?;
        place.check_pool(agent.pool.as_ref())?;
        if let Some(system) = &agent.system {
            self.check_template(&place.field("system"), system, ANYWHERE)?;
        }
        if let Some(files) = &agent.files {
            self.check_files(&place.field("files"), files, ANYWHERE)?;
        }
        check_budget(place, agent.budget.as_ref())
    }

    pub(super) fn check_packs(&self) -> Checked {
        let plan = self.plan;
        let list = ROOT.field("packs");
        for (index, pack) in plan.packs.iter().enumerate() {
            let place = list.index(index);
            place.field("tokens").check_amount(pack.tokens, 1)?;
            place.field("min_tokens").check_amount(pack.min_tokens, 1)?;
            for (index, rule) in pack.rules.iter().enumerate() {
                let place = place.field("rules");
                self.check_pack_rule(&place.index(index), &pack.name, rule)?;
            }
        }
        let merged = |rule: &PackRule| match rule {
            PackRule::Merge(name) => Some(name.clone()),
            _ => None,
        };
        let packs = plan.packs.iter().map(|pack| (&*pack.name, pack.rules.iter().filter_map(merged).collect()));
        match find_cycle(packs) {
            Some(name) => list.fail_with(format!("context pack `{name}` merges itself")),
            None => Ok(()),
        }
    }

    fn check_pack_rule(&self, place: &Place<'_>, pack: &str, rule: &'p PackRule) -> Checked {
        let plan = self.plan;
        match rule {
            PackRule::Goal(text) => self.check_template(&place.field("goal"), text, ANYWHERE),
            PackRule::DefinitionOfDone(texts) => {
                let place = place.field("definition_of_done");
                texts
                    .iter()
                    .enumerate()
                    .try_for_each(|(at, text)| self.check_template(&place.index(at), text, ANYWHERE))
            }
            PackRule::Docs { path, lines } => {
                let place = place.field("docs");
                place.field("path").check_path(path)?;
                let (first, last) = lines.unwrap_or((1, 1));
                place.field("lines").ensure_holds((1..=last).contains(&first), || {
                    format!("lines {first} to {last}: they count from 1, the first before the last")
                })
            }
            PackRule::Files { globs, agent, max, .. } => {
                let place = place.field("files");
                for (index, glob) in globs.iter().enumerate() {
                    place.field("globs").index(index).check_path(glob)?;
                }
                check_optional_count(&place.field("max"), *max)?;
                let known = agent.as_ref().is_none_or(|agent| plan.agent(agent).is_some());
                let agent = agent.as_deref().unwrap_or_default();
                place.field("agent").ensure_holds(known, || {
                    format!("pack `{pack}` uses agent `{agent}`, which the plan does not declare")
                })
            }
            PackRule::Inputs(names) => {
                let place = place.field("inputs");
                names.iter().enumerate().try_for_each(|(index, name)| place.index(index).check_name(name))
            }
            PackRule::Artifacts { kind, from } => {
                let place = place.field("artifacts");
                place
                    .field("kind")
                    .ensure_holds(ARTIFACTS.contains(&kind.as_str()), || format!("there are no artifacts `{kind}`"))?;
                place.field("from").check_name(from)
            }
            PackRule::Merge(name) => {
                place.field("merge").ensure_holds(plan.packs.iter().any(|pack| pack.name == *name), || {
                    format!("pack `{pack}` merges pack `{name}`, which the plan does not declare")
                })
            }
            PackRule::Fact { .. } | PackRule::Constraint { .. } => Ok(()),
        }
    }
}

fn check_answer(place: &Place<'_>, answer: &Recorded) -> Checked {
    check_optional_count(&place.field("iteration"), answer.iteration)?;
    check_optional_count(&place.field("attempt"), answer.attempt)?;
    check_optional_count(&place.field("turn"), answer.turn)?;
    place.field("exit").ensure_holds((0..=255).contains(&answer.exit), || {
        format!("an exit code of {}, which must be from 0 to 255", answer.exit)
    })?;
    place.field("delay_ms").check_amount(Some(answer.delay_ms), 0)
}
