//! Resolves agents that start from another agent: fills in the fields that they leave out.
//!
//! In: a spec. Out: the same spec with every agent complete, so that later stages read only the agent itself. The own
//! fields of an agent win, field by field.

use crate::ast::{Agent, Spec};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::resolve::symbols::{NameKind, Tables};

/// Fills in the agents; returns by index which of them other agents start from.
pub(crate) fn apply(spec: &mut Spec, tables: &Tables, diagnostics: &mut Diagnostics) -> Vec<bool> {
    let mut used = vec![false; spec.agents.len()];
    if spec.agents.iter().all(|agent| agent.template.is_none()) {
        return used;
    }
    let found = |agent: &Agent| tables.lookup(NameKind::Agent, agent.template.as_ref()?, diagnostics);
    let templates: Vec<Option<usize>> = spec.agents.iter().map(found).collect();
    templates.iter().flatten().for_each(|&template| used[template] = true);
    let mut done = vec![false; spec.agents.len()];
    for start in 0..spec.agents.len() {
        let mut chain = Vec::new();
        let mut next = Some(start);
        // Each agent is in one chain, so this is linear.
        while let Some(agent) = next.filter(|&agent| !std::mem::replace(&mut done[agent], true)) {
            chain.push(agent);
            next = templates[agent];
        }
        if let Some(position) = next.and_then(|next| chain.iter().position(|&agent| agent == next)) {
            diagnostics.push(cycle(spec, &chain[position..]));
        }
        for &agent in chain.iter().rev() {
            if let Some(template) = templates[agent].filter(|&template| template != agent) {
                let [agent, template] =
                    spec.agents.get_disjoint_mut([agent, template]).expect("two agents of the spec");
                fill(agent, template);
            }
        }
    }
    used
}

/// Gives an agent what it does not say itself.
fn fill(agent: &mut Agent, template: &Agent) {
    fn or<T: Clone>(own: &mut Option<T>, other: &Option<T>) {
        if own.is_none() {
            own.clone_from(other);
        }
    }
    // A model is one of its provider.
    if agent.provider.is_none() && agent.tier.is_none() {
        or(&mut agent.model, &template.model);
        or(&mut agent.provider, &template.provider);
        or(&mut agent.tier, &template.tier);
    }
    or(&mut agent.description, &template.description);
    or(&mut agent.system, &template.system);
    or(&mut agent.mode, &template.mode);
    or(&mut agent.temperature, &template.temperature);
    or(&mut agent.max_output, &template.max_output);
    or(&mut agent.tools, &template.tools);
    or(&mut agent.permissions, &template.permissions);
    or(&mut agent.fallback, &template.fallback);
    or(&mut agent.budget, &template.budget);
    or(&mut agent.files, &template.files);
    or(&mut agent.fallback, &template.fallback);
    if agent.can.is_empty() {
        agent.can.clone_from(&template.can);
    }
}

/// Agents that start from each other.
fn cycle(spec: &Spec, agents: &[usize]) -> Diagnostic {
    let name = |agent: usize| spec.agents[agent].name.value.as_str();
    let message = match agents {
        [only] => format!("agent `{}` starts from itself", name(*only)),
        _ => {
            let way: Vec<String> =
                agents.iter().chain(&agents[..1]).map(|&agent| format!("`{}`", name(agent))).collect();
            format!("agents start from each other: {}", way.join(" → "))
        }
    };
    let places = agents.iter().filter_map(|&agent| Some((agent, spec.agents[agent].template.as_ref()?)));
    places
        .fold(Diagnostic::new(Code::Cycle, message), |diagnostic, (agent, template)| {
            diagnostic.label(template.span, format!("`{}` starts from `{}`", name(agent), template.value))
        })
        .help("one of them must stand without `template=`")
}
