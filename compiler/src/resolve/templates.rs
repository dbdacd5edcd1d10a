//! Resolves agents that start from another agent: fills in the fields that they leave out.
//!
//! In: a spec. Out: the same spec with every agent complete, so that later stages read only the agent itself. The own
//! fields of an agent win, field by field.

use crate::ast::{Agent, Spec};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::symbols::{NameKind, Tables};

/// Fills in the agents; returns by index which of them other agents start from.
pub(crate) fn apply_templates(spec: &mut Spec, tables: &Tables, diagnostics: &mut Diagnostics) -> Vec<bool> {
    let mut used = vec![false; spec.agents.len()];
    if spec.agents.iter().all(|agent| agent.template.is_none()) {
        return used;
    }
    let found = |agent: &Agent| tables.resolve_name(NameKind::Agent, agent.template.as_ref()?, diagnostics);
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
            diagnostics.push(template_cycle(spec, &chain[position..]));
        }
        // From the far end on, so that a template is complete before another agent takes from it.
        for &agent in chain.iter().rev() {
            if let Some(template) = templates[agent].filter(|&template| template != agent) {
                let [agent, template] =
                    spec.agents.get_disjoint_mut([agent, template]).expect("two agents of the spec");
                inherit_fields(agent, template);
            }
        }
    }
    used
}

/// Gives an agent what it does not say itself.
fn inherit_fields(agent: &mut Agent, template: &Agent) {
    fn fill_missing<T: Clone>(own: &mut Option<T>, other: &Option<T>) {
        if own.is_none() {
            own.clone_from(other);
        }
    }
    // A model is one of its provider.
    if agent.provider.is_none() && agent.tier.is_none() {
        fill_missing(&mut agent.model, &template.model);
        fill_missing(&mut agent.provider, &template.provider);
        fill_missing(&mut agent.tier, &template.tier);
    }
    fill_missing(&mut agent.description, &template.description);
    fill_missing(&mut agent.system, &template.system);
    fill_missing(&mut agent.mode, &template.mode);
    fill_missing(&mut agent.temperature, &template.temperature);
    fill_missing(&mut agent.max_output, &template.max_output);
    fill_missing(&mut agent.tools, &template.tools);
    fill_missing(&mut agent.permissions, &template.permissions);
    fill_missing(&mut agent.fallback, &template.fallback);
    fill_missing(&mut agent.budget, &template.budget);
    fill_missing(&mut agent.files, &template.files);
    fill_missing(&mut agent.pool, &template.pool);
    if agent.can.is_empty() {
        agent.can.clone_from(&template.can);
    }
}

/// Agents that start from each other.
fn template_cycle(spec: &Spec, agents: &[usize]) -> Diagnostic {
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
        .help("remove `template=` from one of them")
}
