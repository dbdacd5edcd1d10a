//! Agents that a use makes of another: with `model=` of a task, or with `tier=` of the synthesis of a swarm.
//!
//! In: the spec of a module. Out: the same, where each such place names an agent of its own, `coder-gpt-5` for instance,
//! that starts from the other one. So no later stage knows of `model=` on tasks, nor of `tier=` on a synthesis.

use std::collections::{BTreeMap, BTreeSet};

use crate::ast::{Agent, Body, Name, Spec, Step, Swarm};
use crate::source::Span;
use crate::symbols::names::normalize_name;

/// Declares the agents that the tasks and swarms of a spec make. A `model=` or `tier=` where no agent is named stays, unless
/// the spec declares one agent only.
pub(crate) fn declare_variants(spec: &mut Spec) {
    let Spec { agents, tasks, pipelines, swarms, .. } = spec;
    let sole = match agents.as_slice() {
        [only] => Some(only.name.value.clone()),
        _ => None,
    };
    let names = agents.iter().map(|agent| normalize_name(&agent.name.value)).collect();
    let mut variants = Variants { agents, names, sole, known: BTreeMap::new() };
    tasks.iter_mut().for_each(|task| variants.declare_of(task));
    pipelines.iter_mut().flat_map(|pipeline| &mut pipeline.steps).for_each(|step| variants.declare_of(step));
    swarms.iter_mut().for_each(|swarm| variants.declare_synthesizer(swarm));
}

/// What differs from the agent that a variant starts from.
enum Change {
    Model(Name),
    Tier(Name),
}

struct Variants<'s> {
    agents: &'s mut Vec<Agent>,
    /// What the agents are called.
    names: BTreeSet<String>,
    /// The agent that is meant where none is named.
    sole: Option<String>,
    /// What was declared, by agent, by whether it has a tier, and by its model or tier.
    known: BTreeMap<(String, bool, String), String>,
}

impl Variants<'_> {
    /// The agents of a step, and of those in it: blocks nest as deep as the parser lets them.
    fn declare_of(&mut self, step: &mut Step) {
        if let Some(Body::Loop(inner)) = &mut step.body {
            inner.steps.iter_mut().for_each(|step| self.declare_of(step));
        }
        let place = step.agent.as_ref().map_or(step.name.span, |agent| agent.span);
        let named = step.agent.as_ref().map(|agent| agent.value.clone());
        let Some(agent) = named.or_else(|| self.sole.clone()) else { return };
        let Some(model) = step.model.take() else { return };
        let name = self.find_variant(agent, place, Change::Model(model));
        step.agent = Some(Name { value: name, span: place });
    }

    fn declare_synthesizer(&mut self, swarm: &mut Swarm) {
        let Some(synthesize) = &mut swarm.synthesize else { return };
        let leader = swarm.leader.as_ref().and_then(|leader| leader.agent.as_ref());
        let place = synthesize.agent.as_ref().map_or(synthesize.span, |agent| agent.span);
        let named = synthesize.agent.as_ref().or(leader).map(|agent| agent.value.clone());
        let Some(agent) = named.or_else(|| self.sole.clone()) else { return };
        let Some(tier) = synthesize.tier.take() else { return };
        let name = self.find_variant(agent, place, Change::Tier(tier));
        synthesize.agent = Some(Name { value: name, span: place });
    }

    /// The name of the variant of an agent, which is declared unless it is known.
    fn find_variant(&mut self, agent: String, place: Span, change: Change) -> String {
        let (is_tier, word) = match &change {
            Change::Model(model) => (false, model),
            Change::Tier(tier) => (true, tier),
        };
        let span = word.span;
        let key = (agent, is_tier, word.value.clone());
        if let Some(name) = self.known.get(&key) {
            return name.clone();
        }
        let name = self.take_name(&key.0, &key.2);
        let template = Name { value: key.0.clone(), span: place };
        self.agents.push(make_variant(Name { value: name.clone(), span }, template, change));
        self.known.insert(key, name.clone());
        name
    }

    /// `coder-gpt-5`, or with a number where an agent is called so already.
    fn take_name(&mut self, agent: &str, model: &str) -> String {
        let role = agent.rsplit('.').next().unwrap_or(agent);
        let letter = |letter: char| match letter.to_ascii_lowercase() {
            plain @ ('a'..='z' | '0'..='9' | '_') => plain,
            _ => '-',
        };
        let name = format!("{role}-{}", model.chars().map(letter).collect::<String>());
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut free = std::iter::once(name.clone()).chain(numbered);
        // `insert` says whether it was free.
        free.find(|name| self.names.insert(normalize_name(name))).expect("there are more numbers than agents")
    }
}

fn make_variant(name: Name, template: Name, change: Change) -> Agent {
    let (model, tier) = match change {
        Change::Model(model) => (Some(model), None),
        Change::Tier(tier) => (None, Some(tier)),
    };
    Agent {
        name,
        template: Some(template),
        model,
        variant: true,
        provider: None,
        tier,
        description: None,
        system: None,
        mode: None,
        temperature: None,
        max_output: None,
        tools: None,
        can: Vec::new(),
        permissions: None,
        fallback: None,
        budget: None,
        files: None,
        pool: None,
    }
}
