//! The differences between two plans, part by part.
//!
//! In: two plans. Out: the parts that were added, removed or changed, with the changed fields. A place in a source file
//! is not content, so a part that only moved is not a part that changed. Equal parts cost one comparison; the order is
//! that of the newer plan, with removed parts last in their kind.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::{Body, Loop, Origin, Pipeline, Plan, Step};

/// A kind of part of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The single parts: the name, the default, the budget, the policy, the order of declarations.
    Workflow,
    /// A typed input of the workflow.
    Param,
    /// A secret.
    Secret,
    /// A declared type.
    Type,
    /// A provider.
    Provider,
    /// An agent.
    Agent,
    /// A server of tools.
    ToolServer,
    /// A pipeline, without its steps.
    Pipeline,
    /// A step of a pipeline; of a loop, without the steps in it.
    Step,
    /// A swarm.
    Swarm,
    /// A context pack.
    Pack,
    /// A hook, by its event.
    Hook,
    /// What a run of a pipeline or swarm uses at most.
    Bounds,
    /// A file that the plan was made from, by its path.
    Source,
}

impl Part {
    /// Its name in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Part::Workflow => "workflow",
            Part::Param => "param",
            Part::Secret => "secret",
            Part::Type => "type",
            Part::Provider => "provider",
            Part::Agent => "agent",
            Part::ToolServer => "tool server",
            Part::Pipeline => "pipeline",
            Part::Step => "step",
            Part::Swarm => "swarm",
            Part::Pack => "context pack",
            Part::Hook => "hook",
            Part::Bounds => "bounds of",
            Part::Source => "file",
        }
    }
}

/// A part that is not the same in both plans.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// What it is.
    pub part: Part,
    /// Its name; of the workflow, that of the newer plan.
    pub name: String,
    /// The pipeline that a step belongs to.
    pub pipeline: Option<String>,
    /// How it differs.
    pub change: Change,
    /// Where it is declared: in the newer plan, or in the older one if it was removed. Not every part has a place.
    pub origin: Option<Origin>,
}

/// How a part differs.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Only the newer plan has it.
    Added,
    /// Only the older plan has it.
    Removed,
    /// These fields changed; at least one.
    Changed(Vec<Field>),
    /// Its content is the same, but it or something in it moved; the older place.
    Moved(Origin),
}

/// A value inside a part that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its path, as in `body.prompt.agent` or `needs[1].when`.
    pub path: String,
    /// The older value; none where there was none.
    pub before: Option<Value>,
    /// The newer value; none where there is none.
    pub after: Option<Value>,
}

/// Everything in which `new` differs from `old`. Empty when the two are equal.
pub fn compare_plans(old: &Plan, new: &Plan) -> Vec<Difference> {
    let mut found = Finder { list: Vec::new() };
    found.compare_workflow(old, new);
    found.compare_named(Part::Param, (&old.params, &new.params), |it| &it.name, |it| Some(&it.origin));
    found.compare_named(Part::Secret, (&old.secrets, &new.secrets), |it| &it.name, |_| None);
    found.compare_maps(Part::Type, &old.types, &new.types);
    found.compare_named(Part::Provider, (&old.providers, &new.providers), |it| &it.name, |it| Some(&it.origin));
    found.compare_named(Part::Agent, (&old.agents, &new.agents), |it| &it.name, |it| Some(&it.origin));
    found.compare_named(Part::ToolServer, (&old.tool_servers, &new.tool_servers), |it| &it.name, |it| Some(&it.origin));
    found.compare_pipelines(&old.pipelines, &new.pipelines);
    found.compare_named(Part::Swarm, (&old.swarms, &new.swarms), |it| &it.name, |it| Some(&it.origin));
    found.compare_named(Part::Pack, (&old.packs, &new.packs), |it| &it.name, |it| Some(&it.origin));
    found.compare_hooks(old, new);
    found.compare_maps(Part::Bounds, &old.bounds, &new.bounds);
    found.compare_named(Part::Source, (&old.sources, &new.sources), |it| &it.path, |_| None);
    found.list
}

struct Finder {
    list: Vec<Difference>,
}

/// One part in both plans.
struct Pair<'p> {
    part: Part,
    name: &'p str,
    pipeline: Option<&'p str>,
    old: Option<(Value, Option<&'p Origin>)>,
    new: Option<(Value, Option<&'p Origin>)>,
}

impl Finder {
    fn push(&mut self, pair: Pair<'_>) {
        let Pair { part, name, pipeline, old, new } = pair;
        let origin = match (&old, &new) {
            (_, Some((_, origin))) | (Some((_, origin)), None) => *origin,
            (None, None) => None,
        };
        let change = match (&old, &new) {
            (None, _) => Change::Added,
            (_, None) => Change::Removed,
            (Some((old, _)), Some((new, _))) => {
                // Callers leave out equal parts, but the head of one whose inner parts differ may be the same.
                let mut walk = Walk { path: String::new(), fields: Vec::new(), moved: None };
                walk.compare_values(old, new);
                match (walk.fields.is_empty(), walk.moved) {
                    (false, _) => Change::Changed(walk.fields),
                    (true, Some(before)) => Change::Moved(before),
                    (true, None) => return,
                }
            }
        };
        let (name, pipeline) = (name.to_owned(), pipeline.map(str::to_owned));
        self.list.push(Difference { part, name, pipeline, change, origin: origin.cloned() });
    }

    /// Compares the single parts, and the order of the others.
    fn compare_workflow(&mut self, old: &Plan, new: &Plan) {
        let head = |plan: &Plan| {
            let Plan { version, workflow, description, mode, docs_root, default, budget, policy, .. } = plan;
            serde_json::json!({
                "version": version, "name": workflow, "description": description, "mode": mode, "docs_root": docs_root,
                "default": default, "budget": budget, "policy": policy,
            })
        };
        let (mut before, mut after) = (head(old), head(new));
        let lists = [
            ("params", collect_names(&old.params, |it| &it.name), collect_names(&new.params, |it| &it.name)),
            ("agents", collect_names(&old.agents, |it| &it.name), collect_names(&new.agents, |it| &it.name)),
            ("pipelines", collect_names(&old.pipelines, |it| &it.name), collect_names(&new.pipelines, |it| &it.name)),
            ("swarms", collect_names(&old.swarms, |it| &it.name), collect_names(&new.swarms, |it| &it.name)),
            ("providers", collect_names(&old.providers, |it| &it.name), collect_names(&new.providers, |it| &it.name)),
            (
                "tool_servers",
                collect_names(&old.tool_servers, |it| &it.name),
                collect_names(&new.tool_servers, |it| &it.name),
            ),
            ("secrets", collect_names(&old.secrets, |it| &it.name), collect_names(&new.secrets, |it| &it.name)),
            ("packs", collect_names(&old.packs, |it| &it.name), collect_names(&new.packs, |it| &it.name)),
        ];
        for (key, old, new) in lists {
            let (old, new) = shared_names(&old, &new);
            if old != new {
                (before[key], after[key]) = (old.into(), new.into());
            }
        }
        let pair = Pair {
            part: Part::Workflow,
            name: &new.workflow,
            pipeline: None,
            old: Some((before, None)),
            new: Some((after, None)),
        };
        self.push(pair);
    }

    fn compare_named<'p, T: Serialize + PartialEq>(
        &mut self,
        part: Part,
        (old, new): (&'p [T], &'p [T]),
        name: fn(&T) -> &String,
        origin: fn(&T) -> Option<&Origin>,
    ) {
        let known: BTreeMap<&str, &T> = old.iter().map(|it| (name(it).as_str(), it)).collect();
        for it in new {
            let before = known.get(name(it).as_str()).copied();
            if before != Some(it) {
                let old = before.map(|before| (encode_value(before), origin(before)));
                self.push(Pair {
                    part,
                    name: name(it),
                    pipeline: None,
                    old,
                    new: Some((encode_value(it), origin(it))),
                });
            }
        }
        let kept: BTreeSet<&str> = new.iter().map(|it| name(it).as_str()).collect();
        for it in old.iter().filter(|it| !kept.contains(name(it).as_str())) {
            // `Removed` has no fields, so nothing needs the value.
            let old = Some((Value::Null, origin(it)));
            self.push(Pair { part, name: name(it), pipeline: None, old, new: None });
        }
    }

    fn compare_maps<T: Serialize + PartialEq>(
        &mut self,
        part: Part,
        old: &BTreeMap<String, T>,
        new: &BTreeMap<String, T>,
    ) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names.into_iter().filter(|name| old.get(*name) != new.get(*name)) {
            let side = |map: &BTreeMap<String, T>| map.get(name).map(|it| (encode_value(it), None));
            self.push(Pair { part, name, pipeline: None, old: side(old), new: side(new) });
        }
    }

    /// Hooks have no names: the first of an event is compared with the first, and so on.
    fn compare_hooks(&mut self, old: &Plan, new: &Plan) {
        if old.hooks == new.hooks {
            return;
        }
        let events: BTreeSet<_> = old.hooks.iter().chain(&new.hooks).map(|hook| hook.event).collect();
        for event in events {
            let of = |plan: &'_ Plan| -> Vec<_> {
                let hooks = plan.hooks.iter().filter(|hook| hook.event == event);
                hooks.map(|hook| (encode_value(hook), hook.origin.clone())).collect()
            };
            let (before, after) = (of(old), of(new));
            let name = encode_value(&event);
            for index in 0..before.len().max(after.len()) {
                let side = |list: &'_ [(Value, Origin)]| list.get(index).cloned();
                let (before, after) = (side(&before), side(&after));
                let name = name.as_str().unwrap_or_default();
                self.push(Pair {
                    part: Part::Hook,
                    name,
                    pipeline: None,
                    old: before.as_ref().map(|(value, origin)| (value.clone(), Some(origin))),
                    new: after.as_ref().map(|(value, origin)| (value.clone(), Some(origin))),
                });
            }
        }
    }

    fn compare_pipelines(&mut self, old: &[Pipeline], new: &[Pipeline]) {
        let known: BTreeMap<&str, &Pipeline> = old.iter().map(|it| (it.name.as_str(), it)).collect();
        for pipeline in new {
            let Some(before) = known.get(pipeline.name.as_str()).copied() else {
                let new = Some((Value::Null, Some(&pipeline.origin)));
                self.push(Pair { part: Part::Pipeline, name: &pipeline.name, pipeline: None, old: None, new });
                continue;
            };
            if before != pipeline {
                self.compare_pipeline(before, pipeline);
            }
        }
        let kept: BTreeSet<&str> = new.iter().map(|it| it.name.as_str()).collect();
        for it in old.iter().filter(|it| !kept.contains(it.name.as_str())) {
            let old = Some((Value::Null, Some(&it.origin)));
            self.push(Pair { part: Part::Pipeline, name: &it.name, pipeline: None, old, new: None });
        }
    }

    fn compare_pipeline(&mut self, old: &Pipeline, new: &Pipeline) {
        let before: BTreeMap<&str, &Step> = old.all_steps().map(|step| (step.name.as_str(), step)).collect();
        let after: BTreeMap<&str, &Step> = new.all_steps().map(|step| (step.name.as_str(), step)).collect();
        // Added and removed parts are reported by themselves, not as changes of their list.
        let stays = |name: &str| before.contains_key(name) && after.contains_key(name);
        let list = |steps: &[Step]| -> Value {
            steps.iter().map(|step| step.name.as_str()).filter(|name| stays(name)).collect::<Vec<_>>().into()
        };
        let head = |pipeline: &Pipeline| {
            let mut value = encode_value(&without_steps(pipeline));
            value["steps"] = list(&pipeline.steps);
            value
        };
        let whole = |step: &Step| match &step.body {
            Body::Loop(body) => {
                let body = Body::Loop(Loop { iteration: body.iteration.clone(), steps: Vec::new() });
                let mut value = encode_value(&Step { body, ..step.clone() });
                value["body"]["loop"]["steps"] = list(step.body.loop_steps());
                value
            }
            _ => encode_value(step),
        };
        self.push(Pair {
            part: Part::Pipeline,
            name: &new.name,
            pipeline: None,
            old: Some((head(old), Some(&old.origin))),
            new: Some((head(new), Some(&new.origin))),
        });
        for step in new.all_steps() {
            let known = before.get(step.name.as_str()).copied();
            if known != Some(step) {
                let old = known.map(|known| (whole(known), Some(&known.origin)));
                let new_side = Some((whole(step), Some(&step.origin)));
                let pipeline = Some(new.name.as_str());
                self.push(Pair { part: Part::Step, name: &step.name, pipeline, old, new: new_side });
            }
        }
        for step in old.all_steps().filter(|step| !after.contains_key(step.name.as_str())) {
            let gone = Some((Value::Null, Some(&step.origin)));
            self.push(Pair { part: Part::Step, name: &step.name, pipeline: Some(&new.name), old: gone, new: None });
        }
    }
}

fn encode_value<T: Serialize>(part: &T) -> Value {
    serde_json::to_value(part).expect("a plan has string keys only")
}

/// A pipeline without its steps, which are not copied.
fn without_steps(pipeline: &Pipeline) -> Pipeline {
    Pipeline {
        name: pipeline.name.clone(),
        description: pipeline.description.clone(),
        params: pipeline.params.clone(),
        iteration: pipeline.iteration.clone(),
        parallelism: pipeline.parallelism,
        concurrency: pipeline.concurrency,
        fail_fast: pipeline.fail_fast,
        working_dir: pipeline.working_dir.clone(),
        env: pipeline.env.clone(),
        steps: Vec::new(),
        result: pipeline.result.clone(),
        edges: pipeline.edges.clone(),
        budget: pipeline.budget.clone(),
        worktree: pipeline.worktree,
        origin: pipeline.origin.clone(),
    }
}

fn collect_names<T>(list: &[T], name: fn(&T) -> &String) -> Vec<&str> {
    list.iter().map(|it| name(it).as_str()).collect()
}

/// The names that both lists have, in the order of each.
fn shared_names<'n>(old: &[&'n str], new: &[&'n str]) -> (Vec<&'n str>, Vec<&'n str>) {
    let (before, after): (BTreeSet<&str>, BTreeSet<&str>) =
        (old.iter().copied().collect(), new.iter().copied().collect());
    let both = |list: &[&'n str]| -> Vec<&'n str> {
        list.iter().copied().filter(|name| before.contains(name) && after.contains(name)).collect()
    };
    (both(old), both(new))
}

/// The way down two values.
struct Walk {
    path: String,
    fields: Vec<Field>,
    /// The older place of the first thing that moved.
    moved: Option<Origin>,
}

impl Walk {
    /// Recursion is bounded: what a plan holds nests no deeper than JSON may.
    fn compare_values(&mut self, old: &Value, new: &Value) {
        match (old, new) {
            _ if old == new => {}
            (Value::Object(before), Value::Object(after)) => {
                let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
                // What an expression reads follows from its source.
                let follows = |key: &str| key == "reads" && before.contains_key("source");
                for key in keys.into_iter().filter(|key| !follows(key)) {
                    let length = self.path.len();
                    if !self.path.is_empty() {
                        self.path.push('.');
                    }
                    self.path += key;
                    match (before.get(key), after.get(key)) {
                        (Some(before), Some(after)) => match (parse_origin(key, before), parse_origin(key, after)) {
                            (Some(before), Some(after)) if before != after => {
                                self.moved.get_or_insert(before);
                            }
                            (Some(_), Some(_)) => {}
                            _ => self.compare_values(before, after),
                        },
                        (before, after) => self.record_field(before, after),
                    }
                    self.path.truncate(length);
                }
            }
            // Of another length, everything behind the first item that came or went would count as changed.
            (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
                for (index, (before, after)) in before.iter().zip(after).enumerate() {
                    let length = self.path.len();
                    self.path += &format!("[{index}]");
                    self.compare_values(before, after);
                    self.path.truncate(length);
                }
            }
            _ => self.record_field(Some(old), Some(new)),
        }
    }

    fn record_field(&mut self, before: Option<&Value>, after: Option<&Value>) {
        self.fields.push(Field { path: self.path.clone(), before: before.cloned(), after: after.cloned() });
    }
}

/// The place in a source file, if the value of this key is one. A field of a type may also be called `origin`.
fn parse_origin(key: &str, value: &Value) -> Option<Origin> {
    let number = |key: &str| u32::try_from(value.get(key)?.as_u64()?).ok();
    let fits = key == "origin" && value.as_object().is_some_and(|object| object.len() == 3);
    fits.then_some(())?;
    Some(Origin { file: value.get("file")?.as_str()?.to_owned(), line: number("line")?, column: number("column")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Agent, Hook, Need, Param, Provider, SourceFile};

    fn step(name: &str) -> Step {
        Step { name: name.to_owned(), origin: at(1), ..Step::default() }
    }

    fn at(line: u32) -> Origin {
        Origin { file: "flow.kdl".to_owned(), line, column: 1 }
    }

    fn plan() -> Plan {
        let inner = Body::Loop(Loop { steps: vec![step("inner"), step("other")], ..Loop::default() });
        let steps = vec![step("draft"), step("review"), Step { body: inner, ..step("rounds") }];
        let main = Pipeline { name: "main".to_owned(), steps, origin: at(1), ..Pipeline::default() };
        Plan { workflow: "flow".to_owned(), pipelines: vec![main], ..Plan::default() }
    }

    /// The differences of a changed plan, a line each.
    fn check(change: impl FnOnce(&mut Plan), expected: &[&str]) {
        let (old, mut new) = (plan(), plan());
        change(&mut new);
        let line = |found: Difference| {
            let whole = found.pipeline.map_or(String::new(), |pipeline| format!("{pipeline}."));
            let change = match found.change {
                Change::Changed(fields) => fields.into_iter().map(|field| field.path).collect::<Vec<_>>().join(", "),
                Change::Moved(before) => format!("moved from {before}"),
                other => format!("{other:?}").to_lowercase(),
            };
            format!("{} {whole}{}: {change}", found.part.as_str(), found.name)
        };
        let found: Vec<String> = compare_plans(&old, &new).into_iter().map(line).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_part_that_changed_says_in_which_fields() {
        check(|_| {}, &[]);
        check(|plan| plan.pipelines[0].steps[1].timeout_ms = Some(1), &["step main.review: timeout_ms"]);
        check(|plan| plan.pipelines[0].fail_fast = true, &["pipeline main: fail_fast"]);
        check(|plan| plan.default = "main".to_owned(), &["workflow flow: default"]);
        check(|plan| plan.version = 7, &["workflow flow: version"]);
        check(
            |plan| {
                let need = Need {
                    step: "draft".to_owned(),
                    when: crate::When::Any,
                    declared: true,
                    effect: crate::Effect::None,
                    origin: at(3),
                };
                plan.pipelines[0].steps[1].needs = vec![need];
            },
            &["step main.review: needs"],
        );
    }

    #[test]
    fn parts_come_and_go() {
        check(
            |plan| {
                plan.agents = vec![Agent { name: "coder".to_owned(), ..Agent::default() }];
                plan.providers = vec![Provider { name: "local".to_owned(), ..Provider::default() }];
                plan.types.insert("Verdict".to_owned(), crate::Schema(Value::Null));
                plan.pipelines[0].steps.remove(0);
                plan.pipelines[0].steps.push(step("last"));
            },
            &[
                "type Verdict: added",
                "provider local: added",
                "agent coder: added",
                "step main.last: added",
                "step main.draft: removed",
            ],
        );
        check(|plan| plan.pipelines[0].name = "other".to_owned(), &["pipeline other: added", "pipeline main: removed"]);
    }

    #[test]
    fn a_loop_and_what_is_in_it_are_told_apart() {
        let inside = |plan: &mut Plan, change: fn(&mut Loop)| match &mut plan.pipelines[0].steps[2].body {
            Body::Loop(body) => change(body),
            _ => panic!("the third step is a loop"),
        };
        check(|plan| inside(plan, |body| body.steps[0].retry.times = 2), &["step main.inner: retry.times"]);
        check(|plan| inside(plan, |body| body.iteration.max = 9), &["step main.rounds: body.loop.iteration.max"]);
        check(
            |plan| inside(plan, |body| body.steps.swap(0, 1)),
            &["step main.rounds: body.loop.steps[0], body.loop.steps[1]"],
        );
        check(
            |plan| {
                let moved = step("inner");
                inside(plan, |body| drop(body.steps.remove(0)));
                plan.pipelines[0].steps.push(moved);
            },
            &["pipeline main: steps", "step main.rounds: body.loop.steps"],
        );
    }

    #[test]
    fn the_order_of_declarations_counts() {
        check(|plan| plan.pipelines[0].steps.swap(0, 1), &["pipeline main: steps[0], steps[1]"]);
    }

    #[test]
    fn what_only_moved_has_not_changed() {
        check(|plan| plan.pipelines[0].steps[0].origin = at(2), &["step main.draft: moved from flow.kdl:1:1"]);
        check(
            |plan| {
                plan.pipelines[0].steps[0].origin = at(2);
                plan.pipelines[0].steps[0].grace_ms = 1;
            },
            &["step main.draft: grace_ms"],
        );
        // A field of a type may have this name.
        let named = serde_json::json!({ "origin": { "file": "string" } });
        let (mut walk, other) = (Walk { path: String::new(), fields: Vec::new(), moved: None }, &Value::Null);
        walk.compare_values(&named, &serde_json::json!({ "origin": other }));
        assert_eq!((walk.fields.len(), walk.moved), (1, None));
    }

    #[test]
    fn hooks_files_and_parameters_have_names_too() {
        let file = |digest: &str| SourceFile { path: "a.md".to_owned(), digest: digest.to_owned() };
        let mut old = plan();
        old.sources = vec![file("sha256:1")];
        let mut new = plan();
        new.sources = vec![file("sha256:2")];
        let run = crate::Command::Shell("true".to_owned());
        new.hooks = vec![Hook { event: crate::HookEvent::Complete, run, origin: at(1) }];
        let kind = crate::ParamType::String;
        let (optional, default, env, description) = (false, Some("x".to_owned()), None, None);
        new.params = vec![Param { name: "goal".to_owned(), kind, optional, default, env, description, origin: at(9) }];
        let found = compare_plans(&old, &new);
        let names: Vec<(Part, &str)> = found.iter().map(|found| (found.part, found.name.as_str())).collect();
        assert_eq!(names, [(Part::Param, "goal"), (Part::Hook, "complete"), (Part::Source, "a.md")]);
        assert_eq!(found[0].origin, Some(at(9)));
    }
}
