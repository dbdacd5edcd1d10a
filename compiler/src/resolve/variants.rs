//! Agents that tasks make with `model=`: the agent of the task with another model.
//!
//! In: the spec of a module. Out: the same, where each such task names an agent of its own, `coder-gpt-5` for instance,
//! that starts from the other one. So no later stage knows of `model=` on tasks.

use std::collections::{BTreeMap, BTreeSet};

use crate::ast::{Agent, Body, Name, Spec, Step};
use crate::symbols::names::normalize_name;

/// Declares the agents that the tasks of a spec make. A `model=` where no agent is named stays, unless the spec declares
/// one agent only.
pub(crate) fn declare_variants(spec: &mut Spec) {
    let Spec { agents, tasks, pipelines, .. } = spec;
    let sole = match agents.as_slice() {
        [only] => Some(only.name.value.clone()),
        _ => None,
    };
    let names = agents.iter().map(|agent| normalize_name(&agent.name.value)).collect();
    let mut variants = Variants { agents, names, sole, known: BTreeMap::new() };
    tasks.iter_mut().for_each(|task| variants.declare_of(task));
    pipelines.iter_mut().flat_map(|pipeline| &mut pipeline.steps).for_each(|step| variants.declare_of(step));
}

struct Variants<'s> {
    agents: &'s mut Vec<Agent>,
    /// What the agents are called.
    names: BTreeSet<String>,
    /// The agent that is meant where none is named.
    sole: Option<String>,
    /// What was declared, by agent and model.
    known: BTreeMap<(String, String), String>,
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
        let key = (agent, model.value.clone());
        let name = match self.known.get(&key) {
            Some(name) => name.clone(),
            None => {
                let name = self.take_name(&key.0, &model.value);
                let template = Name { value: key.0.clone(), span: place };
                self.agents.push(make_variant(Name { value: name.clone(), span: model.span }, template, model));
                self.known.insert(key, name.clone());
                name
            }
        };
        step.agent = Some(Name { value: name, span: place });
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

fn make_variant(name: Name, template: Name, model: Name) -> Agent {
    Agent {
        name,
        template: Some(template),
        model: Some(model),
        variant: true,
        provider: None,
        tier: None,
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
    }
}
