//! Pipelines and swarms as pictures: boxes, frames around them and arrows between them.
//!
//! In: a plan. Out: one [`Graph`], and by [`layout_picture`] the place of each of its parts. Only what the plan says is
//! drawn: what waits for what and how, what decides whether it runs, what is inside of loops, and who may write to whom.

mod frames;
mod layers;

use std::collections::BTreeMap;

use swarmc_plan::{Body, Iteration, Pipeline, Plan, PlanItem, Response, Step, Swarm, When};

pub use frames::{Drawn, LINE, NAME_LINE, Picture, SLANT, layout_picture};
pub use layers::{Point, Rect, Size, TooLarge, Wire};
pub use swarmc_plan::Shape;

use crate::describe_step;

/// The characters of a condition that are shown.
const SHOWN: usize = 40;

/// Boxes, in groups, and arrows between them.
#[derive(Debug, Default)]
pub struct Graph {
    /// The outer frames.
    pub groups: Vec<Group>,
    /// The arrows between boxes or frames, of all groups.
    pub arrows: Vec<Arrow>,
}

/// A pipeline, swarm or loop: a frame around boxes and other groups.
#[derive(Debug, Default)]
pub struct Group {
    /// An id that no other part has.
    pub id: String,
    /// Its name in the plan.
    pub name: String,
    /// What stands above it.
    pub title: String,
    /// When it runs again: at most how often, and until what. Nothing where it runs once.
    pub repeat: Vec<String>,
    /// Below its title.
    pub notes: Vec<String>,
    /// The boxes in it.
    pub nodes: Vec<Node>,
    /// The frames in it.
    pub groups: Vec<Group>,
}

/// A step or a member.
#[derive(Debug)]
pub struct Node {
    /// An id that no other part has.
    pub id: String,
    /// What stands in it; its name first.
    pub lines: Vec<String>,
    /// What there is no space for.
    pub about: Vec<String>,
    /// What it stands for.
    pub shape: Shape,
    /// It runs for each item of a list, or stands for several.
    pub is_many: bool,
}

/// An arrow.
#[derive(Debug)]
pub struct Arrow {
    /// The id of the box or frame that it leaves.
    pub from: String,
    /// The id of the box or frame that it leads to.
    pub to: String,
    /// What stands on it.
    pub label: String,
    /// What it is, in words.
    pub about: String,
    /// It is an edge that messages travel along, rather than an order of steps.
    pub is_message: bool,
    /// It leads both ways.
    pub both: bool,
}

impl Group {
    /// Its title in lines, when it runs again included.
    pub fn heading_lines(&self) -> Vec<String> {
        let mut lines = vec![self.title.clone()];
        let mut repeat = self.repeat.iter();
        if let Some(most) = repeat.next() {
            lines[0].push_str(&format!(", {most}"));
        }
        lines.extend(repeat.chain(&self.notes).cloned());
        lines
    }
}

impl Graph {
    /// All pipelines and swarms of a plan, or the one of this name; none where none has it.
    pub fn build(plan: &Plan, name: Option<&str>) -> Option<Graph> {
        let mut drawer = Drawer { plan, graph: Graph::default() };
        match name {
            Some(name) => match (plan.pipeline(name), plan.swarm(name)) {
                (Some(pipeline), _) => drawer.draw_pipeline(pipeline),
                (None, Some(swarm)) => drawer.draw_swarm(swarm),
                (None, None) => return None,
            },
            None => {
                plan.pipelines.iter().for_each(|pipeline| drawer.draw_pipeline(pipeline));
                plan.swarms.iter().for_each(|swarm| drawer.draw_swarm(swarm));
            }
        }
        Some(drawer.graph)
    }

    /// What a run of `pipeline` executes: that pipeline, those that it calls, and the swarms of their steps.
    pub fn build_run(plan: &Plan, pipeline: &Pipeline) -> Graph {
        let mut drawer = Drawer { plan, graph: Graph::default() };
        let reached = list_reached(plan, pipeline);
        reached.iter().for_each(|pipeline| drawer.draw_pipeline(pipeline));
        let runs = |swarm: &&Swarm| {
            let mut steps = reached.iter().flat_map(|pipeline| pipeline.all_steps());
            steps.any(|step| matches!(&step.body, Body::Swarm(call) if call.swarm == swarm.name))
        };
        plan.swarms.iter().filter(runs).for_each(|swarm| drawer.draw_swarm(swarm));
        drawer.graph
    }
}

/// The id of the box, or frame, of each step of a run, by the name of the step: where several pipelines have a step of
/// that name, that of the pipeline that runs.
pub fn step_ids<'p>(plan: &'p Plan, pipeline: &'p Pipeline) -> BTreeMap<&'p str, String> {
    // The last one of a name stays in the map, and the pipeline that runs is the first of the list.
    let steps = list_reached(plan, pipeline).into_iter().rev();
    let steps = steps.flat_map(|pipeline| pipeline.all_steps().map(move |step| (pipeline, step)));
    steps.map(|(pipeline, step)| (step.name.as_str(), id(&pipeline.name, &step.name))).collect()
}

/// A pipeline, and those that it calls, directly or through others.
fn list_reached<'p>(plan: &'p Plan, pipeline: &'p Pipeline) -> Vec<&'p Pipeline> {
    let mut reached = vec![pipeline];
    let mut next = 0;
    while let Some(&pipeline) = reached.get(next) {
        for step in pipeline.all_steps() {
            if let Body::Call(call) = &step.body
                && let Some(called) = plan.pipeline(&call.pipeline)
                && reached.iter().all(|known| known.name != called.name)
            {
                reached.push(called);
            }
        }
        next += 1;
    }
    reached
}

struct Drawer<'p> {
    plan: &'p Plan,
    graph: Graph,
}

impl Drawer<'_> {
    fn draw_pipeline(&mut self, pipeline: &Pipeline) {
        // Of a loop, what waits for it waits for its frame.
        let ids: BTreeMap<&str, String> =
            pipeline.all_steps().map(|step| (step.name.as_str(), id(&pipeline.name, &step.name))).collect();
        let mut title = format!("pipeline {}", pipeline.name);
        if pipeline.parallelism > 1 {
            title.push_str(&format!(", {} at once", pipeline.parallelism));
        }
        let mut group = Group {
            id: id("pipeline", &pipeline.name),
            name: pipeline.name.clone(),
            title,
            repeat: describe_iteration(&pipeline.iteration),
            ..Group::default()
        };
        for step in &pipeline.steps {
            self.draw_step(step, &ids, &mut group);
        }
        for edge in &pipeline.edges {
            self.draw_edge(&ids, &edge.from, &edge.to, edge);
        }
        self.graph.groups.push(group);
    }

    fn draw_step(&mut self, step: &Step, ids: &BTreeMap<&str, String>, group: &mut Group) {
        // `all_steps`, from which these come, has the steps of loops as well.
        let id = ids[step.name.as_str()].clone();
        for need in &step.needs {
            let how = match need.when {
                When::Success => "",
                When::Failure => "failed",
                When::Any => "ran",
                When::Always => "ended",
            };
            if let Some(from) = ids.get(need.step.as_str()) {
                let (from, label) = (from.clone(), how.to_owned());
                let about = format!("{} waits until {} {}", step.name, need.step, how_long(need.when));
                self.graph.arrows.push(Arrow { from, to: id.clone(), label, about, is_message: false, both: false });
            }
        }
        if let Body::Loop(body) = &step.body {
            let mut inner = Group {
                id,
                name: step.name.clone(),
                title: format!("loop {}", step.name),
                repeat: describe_iteration(&body.iteration),
                notes: step.when.iter().map(|when| format!("when {}", truncate_text(&when.source))).collect(),
                ..Group::default()
            };
            body.steps.iter().for_each(|step| self.draw_step(step, ids, &mut inner));
            group.groups.push(inner);
            return;
        }
        let kind = step.body.kind();
        let what = match &step.body {
            Body::Gate(gate) => Some(gate.options.join(" / ")),
            body => body.target().map(|target| format!("{} {target}", kind.label())),
        };
        let mut lines = vec![step.name.clone()];
        lines.extend(what);
        lines.extend(step.for_each.as_ref().map(|each| format!("for each of {}", truncate_text(&each.list.source))));
        lines.extend(step.when.as_ref().map(|when| format!("when {}", truncate_text(&when.source))));
        let (about, shape) = (self.describe_node(step), kind.shape());
        group.nodes.push(Node { id, lines, about, shape, is_many: step.for_each.is_some() });
    }

    /// All that is to be said of a step.
    fn describe_node(&self, step: &Step) -> Vec<String> {
        let mut lines = vec![format!("{}: {}", step.name, describe_step(self.plan, step))];
        lines.extend(step.description.clone());
        lines.extend(step.for_each.as_ref().map(|each| format!("for each of {}", each.list.source.trim())));
        lines.extend(step.when.as_ref().map(|when| format!("when {}", when.source.trim())));
        lines
    }

    fn draw_swarm(&mut self, swarm: &Swarm) {
        let mut ids = BTreeMap::new();
        let mut group = Group {
            id: id("swarm", &swarm.name),
            name: swarm.name.clone(),
            title: format!("swarm {}", swarm.name),
            notes: if swarm.edges.is_empty() { vec!["anyone may write to anyone".to_owned()] } else { Vec::new() },
            ..Group::default()
        };
        let mut member = |name: &str, lines: Vec<String>| {
            let id = id(&swarm.name, name);
            let is_many = lines.first().is_some_and(|first| first != name);
            group.nodes.push(Node { id: id.clone(), about: lines.clone(), lines, shape: Shape::Agent, is_many });
            ids.insert(name.to_owned(), id);
        };
        if let Some(lead) = &swarm.lead {
            let role = if lead.coordinator { "coordinator" } else { "supervisor" };
            member(&lead.name, vec![lead.name.clone(), format!("{role}, agent {}", lead.agent)]);
        }
        for (index, one) in swarm.members.iter().enumerate() {
            let agent = format!("agent {}", one.agent);
            match &one.name {
                Some(name) => member(name, vec![name.clone(), agent]),
                // The number keeps the ids of several entries without names apart.
                None => member(&format!("members {index}"), vec![format!("{} members", one.count), agent]),
            }
        }
        if let Some(last) = &swarm.synthesize {
            member("synthesize", vec!["synthesize".to_owned(), format!("at the end, agent {}", last.agent)]);
        }
        let ids: BTreeMap<&str, String> = ids.iter().map(|(name, id)| (name.as_str(), id.clone())).collect();
        for edge in &swarm.edges {
            self.draw_edge(&ids, &edge.from, &edge.to, edge);
        }
        group.groups.extend(self.draw_plan(swarm));
        self.graph.groups.push(group);
    }

    /// The plan of a team: its items, each behind those that it depends on.
    fn draw_plan(&mut self, swarm: &Swarm) -> Option<Group> {
        let plan = format!("{}.plan", swarm.name);
        let node = |item: &PlanItem| {
            let owner = item.owner.as_ref().map_or("no owner".to_owned(), |owner| format!("owner {owner}"));
            let about = vec![item.text.clone()];
            let lines = vec![item.name.clone(), owner];
            Node { id: id(&plan, &item.name), lines, about, shape: Shape::Value, is_many: false }
        };
        let nodes: Vec<Node> = swarm.items.iter().map(node).collect();
        for item in &swarm.items {
            let arrow = |on: &String| Arrow {
                from: id(&plan, on),
                to: id(&plan, &item.name),
                label: String::new(),
                about: format!("{} waits for {on}", item.name),
                is_message: false,
                both: false,
            };
            self.graph.arrows.extend(item.depends_on.iter().map(arrow));
        }
        let (id, title) = (id("plan", &swarm.name), "plan".to_owned());
        (!nodes.is_empty()).then(|| Group { id, name: plan, title, nodes, ..Group::default() })
    }

    fn draw_edge(&mut self, ids: &BTreeMap<&str, String>, from: &str, to: &str, edge: &swarmc_plan::Edge) {
        let (Some(from), Some(to)) = (ids.get(from), ids.get(to)) else { return };
        let carries = edge.carries.as_ref().and_then(|schema| schema.0["$ref"].as_str());
        let name = carries.and_then(|path| path.rsplit('/').next()).filter(|name| self.plan.types.contains_key(*name));
        let kind = serde_json::to_value(edge.kind).unwrap_or_default();
        let kind = kind.as_str().unwrap_or("message");
        let label = name.map_or(kind.to_owned(), |name| format!("{kind} {name}"));
        let line = if edge.both { "↔" } else { "→" };
        let mut about = format!("{} {line} {}: {kind}", edge.from, edge.to);
        about.extend(name.map(|name| format!(" that carries {name}")));
        about.push_str(match edge.response {
            Response::None => "",
            Response::Optional => ", which may be answered",
            Response::Required => ", which must be answered",
        });
        about.extend(edge.max.map(|max| format!(", at most {max}")));
        let (from, to) = (from.clone(), to.clone());
        self.graph.arrows.push(Arrow { from, to, label, about, is_message: true, both: edge.both });
    }
}

fn how_long(when: When) -> &'static str {
    match when {
        When::Success => "succeeded",
        When::Failure => "failed",
        When::Any => "ran, whether it succeeded or failed",
        When::Always => "ended in any way",
    }
}

/// How often something runs at most, and until what.
fn describe_iteration(iteration: &Iteration) -> Vec<String> {
    if iteration.max <= 1 {
        return Vec::new();
    }
    let most = format!("at most {} rounds", iteration.max);
    std::iter::once(most)
        .chain(iteration.until.iter().map(|until| format!("until {}", truncate_text(&until.source))))
        .collect()
}

/// A name that no notation takes for a word of its own.
fn id(group: &str, name: &str) -> String {
    let plain = |text: &str| -> String {
        // `_` becomes its code, too: else two names could come to one id.
        let sign = |sign: char| {
            if sign.is_ascii_alphanumeric() { sign.to_string() } else { format!("_{:x}_", u32::from(sign)) }
        };
        text.chars().map(sign).collect()
    };
    format!("n_{}__{}", plain(group), plain(name))
}

fn truncate_text(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_be_words_of_a_notation() {
        assert_eq!(id("p", "end"), "n_p__end");
        assert_ne!(id("p", "a-b"), id("p", "a_b"));
    }
}
