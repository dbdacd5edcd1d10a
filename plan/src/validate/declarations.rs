//! What stands around pipelines: providers, agents, servers of tools, secrets, hooks, budgets and context packs.

use std::collections::BTreeSet;

use super::place::{Place, ROOT, budget, circle, count};
use super::{ANYWHERE, Checked, Validator};
use crate::{Agent, Connection, PackRule, Provider, Recorded, Transport};

/// The artifacts that a context pack may hold.
const ARTIFACTS: [&str; 6] = ["diff", "log", "prompt", "transcript", "contextpack", "report"];

impl<'p> Validator<'p> {
    /// Providers, agents, servers of tools, secrets, hooks and budgets.
    pub(super) fn declarations(&self) -> Checked {
        let plan = self.plan;
        let mut secrets = BTreeSet::new();
        for (index, secret) in plan.secrets.iter().enumerate() {
            let place = ROOT.field("secrets");
            let place = place.index(index);
            place.field("name").name(&secret.name)?;
            place
                .field("name")
                .hold(secrets.insert(&secret.name), || format!("secret `{}` stands twice", secret.name))?;
            place.field("env").variable(&secret.env)?;
        }
        for (index, provider) in plan.providers.iter().enumerate() {
            self.provider(&ROOT.field("providers").index(index), provider)?;
        }
        for (index, agent) in plan.agents.iter().enumerate() {
            self.agent(&ROOT.field("agents").index(index), agent)?;
        }
        let fallback = |agent: &Agent| agent.fallback.as_ref().into_iter().cloned().collect();
        circle(plan.agents.iter().map(|agent| (agent.name.as_str(), fallback(agent)))).map_or(Ok(()), |name| {
            ROOT.field("agents").wrong(format!("agent `{name}` falls back on itself in the end"))
        })?;
        for (index, server) in plan.tool_servers.iter().enumerate() {
            let place = ROOT.field("tool_servers");
            let place = place.index(index);
            match &server.transport {
                Transport::Exec(words) => place.field("transport").field("exec").words(words)?,
                Transport::Url(url) => {
                    place.field("transport").field("url").hold(!url.is_empty(), || "an empty address".to_owned())?
                }
            }
            self.variables(&place.field("env"), &server.env, ANYWHERE)?;
            server.auth.as_deref().map_or(Ok(()), |variable| place.field("auth").variable(variable))?;
        }
        for (index, hook) in plan.hooks.iter().enumerate() {
            ROOT.field("hooks").index(index).field("run").command(&hook.run)?;
        }
        if let Some(timeout) = &plan.policy.on_timeout {
            ROOT.field("policy").field("on_timeout").field("after_ms").amount(Some(timeout.after_ms), 0)?;
        }
        budget(&ROOT, plan.budget.as_ref())?;
        for name in plan.bounds.keys() {
            let known = plan.pipeline(name).is_some() || plan.swarm(name).is_some();
            ROOT.field("bounds").hold(known, || format!("has bounds of `{name}`, which is not in it"))?;
        }
        Ok(())
    }

    fn provider(&self, place: &Place<'_>, provider: &'p Provider) -> Checked {
        self.variables(&place.field("env"), &provider.env, ANYWHERE)?;
        place.field("context_window").amount(provider.context_window, 1)?;
        if let Some(rate) = &provider.rate {
            place.field("rate").field("requests").amount(rate.requests, 1)?;
            place.field("rate").field("tokens").amount(rate.tokens, 1)?;
        }
        if let Some(price) = &provider.price {
            let parts = [Some(price.input), Some(price.output), price.cache_read, price.cache_write];
            parts.into_iter().try_for_each(|part| place.field("price").amount(part, 0))?;
        }
        let place = place.field("connection");
        match &provider.connection {
            Connection::Exec { argv, resume, mcp, .. } => {
                let place = place.field("exec");
                place.field("argv").words(argv)?;
                resume.as_deref().map_or(Ok(()), |words| place.field("resume").words(words))?;
                for (index, variable) in mcp.env.iter().enumerate() {
                    place.field("mcp").field("env").index(index).field("name").variable(&variable.name)?;
                }
                let wrong = mcp.args.iter().position(|word| word.contains('\0'));
                wrong.map_or(Ok(()), |at| place.field("mcp").field("args").index(at).wrong("holds a NUL"))
            }
            Connection::Acp { argv } => place.field("acp").field("argv").words(argv),
            Connection::Llm { auth, base_url, .. } => {
                let place = place.field("llm");
                auth.as_deref().map_or(Ok(()), |variable| place.field("auth").variable(variable))?;
                let empty = base_url.as_ref().is_some_and(String::is_empty);
                place.field("base_url").hold(!empty, || "an empty address".to_owned())
            }
            Connection::Script { answers } => {
                let place = place.field("script");
                let place = place.field("answers");
                answers.iter().enumerate().try_for_each(|(index, answer)| recorded(&place.index(index), answer))
            }
        }
    }

    fn agent(&self, place: &Place<'_>, agent: &'p Agent) -> Checked {
        let plan = self.plan;
        place.field("provider").hold(plan.provider(&agent.provider).is_some(), || {
            format!("agent `{}` uses provider `{}`, which is not in it", agent.name, agent.provider)
        })?;
        if let Some(fallback) = &agent.fallback {
            place.field("fallback").hold(plan.agent(fallback).is_some(), || {
                format!("agent `{}` falls back on agent `{fallback}`, which is not in it", agent.name)
            })?;
        }
        if let Some(temperature) = agent.temperature {
            place
                .field("temperature")
                .hold((0.0..=2.0).contains(&temperature), || format!("{temperature}, and it must be from 0 to 2"))?;
        }
        place.field("max_output").amount(agent.max_output, 1)?;
        if let Some(system) = &agent.system {
            self.template(&place.field("system"), system, ANYWHERE)?;
        }
        if let Some(files) = &agent.files {
            self.files(&place.field("files"), files, ANYWHERE)?;
        }
        budget(place, agent.budget.as_ref())
    }

    pub(super) fn packs(&self) -> Checked {
        let plan = self.plan;
        let list = ROOT.field("packs");
        for (index, pack) in plan.packs.iter().enumerate() {
            let place = list.index(index);
            place.field("tokens").amount(pack.tokens, 1)?;
            place.field("min_tokens").amount(pack.min_tokens, 1)?;
            for (index, rule) in pack.rules.iter().enumerate() {
                let place = place.field("rules");
                self.rule(&place.index(index), &pack.name, rule)?;
            }
        }
        let merged = |rule: &PackRule| match rule {
            PackRule::Merge(name) => Some(name.clone()),
            _ => None,
        };
        let packs = plan.packs.iter().map(|pack| (&*pack.name, pack.rules.iter().filter_map(merged).collect()));
        match circle(packs) {
            Some(name) => list.wrong(format!("context pack `{name}` takes itself in, in the end")),
            None => Ok(()),
        }
    }

    fn rule(&self, place: &Place<'_>, pack: &str, rule: &'p PackRule) -> Checked {
        let plan = self.plan;
        match rule {
            PackRule::Goal(text) => self.template(&place.field("goal"), text, ANYWHERE),
            PackRule::DefinitionOfDone(texts) => {
                let place = place.field("definition_of_done");
                texts.iter().enumerate().try_for_each(|(at, text)| self.template(&place.index(at), text, ANYWHERE))
            }
            PackRule::Docs { path, lines } => {
                let place = place.field("docs");
                place.field("path").path(path)?;
                let (first, last) = lines.unwrap_or((1, 1));
                place.field("lines").hold((1..=last).contains(&first), || {
                    format!("lines {first} to {last}: they count from 1, the first before the last")
                })
            }
            PackRule::Files { globs, agent, max, .. } => {
                let place = place.field("files");
                for (index, glob) in globs.iter().enumerate() {
                    place.field("globs").index(index).path(glob)?;
                }
                count(&place.field("max"), *max)?;
                let known = agent.as_ref().is_none_or(|agent| plan.agent(agent).is_some());
                let agent = agent.as_deref().unwrap_or_default();
                place.field("agent").hold(known, || format!("pack `{pack}` uses agent `{agent}`, which is not in it"))
            }
            PackRule::Inputs(names) => {
                let place = place.field("inputs");
                names.iter().enumerate().try_for_each(|(index, name)| place.index(index).name(name))
            }
            PackRule::Artifacts { kind, from } => {
                let place = place.field("artifacts");
                place
                    .field("kind")
                    .hold(ARTIFACTS.contains(&kind.as_str()), || format!("there are no artifacts `{kind}`"))?;
                place.field("from").name(from)
            }
            PackRule::Merge(name) => {
                place.field("merge").hold(plan.packs.iter().any(|pack| pack.name == *name), || {
                    format!("pack `{pack}` takes in pack `{name}`, which is not in it")
                })
            }
            PackRule::Fact { .. } | PackRule::Constraint { .. } => Ok(()),
        }
    }
}

fn recorded(place: &Place<'_>, answer: &Recorded) -> Checked {
    count(&place.field("iteration"), answer.iteration)?;
    count(&place.field("attempt"), answer.attempt)?;
    count(&place.field("turn"), answer.turn)?;
    place
        .field("exit")
        .hold((0..=255).contains(&answer.exit), || format!("{}, and an exit code is from 0 to 255", answer.exit))?;
    place.field("delay_ms").amount(Some(answer.delay_ms), 0)
}
