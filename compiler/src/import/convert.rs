//! Converts a compose file to a spec: its names, order, references and prompts.
//!
//! In: the tasks and pipelines of the compose file. Out: the same with valid spec names, references that resolve, no
//! cycle, and a body for every task; the converter reports what it had to leave out.

use std::collections::{BTreeMap, BTreeSet};

use super::compose::{Compose, Pipeline as Written, Said, Task as Old};
use super::names::{Names, spell_name};
use super::prompt::Reader;
use super::{Notes, Route};
use crate::files::Files;
use crate::source::Span;
use crate::suggest;

/// The most steps through the graph while the converter looks for cycles: only a hostile file needs more.
const MAX_STEPS: usize = 4_000_000;

/// A spec, ready to be written.
#[derive(Debug)]
pub(super) struct Carried {
    pub(super) name: String,
    pub(super) description: Option<String>,
    /// Names of presets, which are names of providers too.
    pub(super) presets: BTreeSet<String>,
    pub(super) agents: Vec<Agent>,
    pub(super) tasks: Vec<Task>,
    pub(super) pipelines: Vec<Pipeline>,
}

#[derive(Debug)]
pub(super) struct Agent {
    pub(super) name: String,
    pub(super) preset: String,
    pub(super) model: Option<String>,
}

#[derive(Debug)]
pub(super) struct Task {
    pub(super) name: String,
    /// Where its name stands: comments are found by it.
    pub(super) at: u32,
    /// The comment lines above it in the compose file.
    pub(super) comments: Vec<String>,
    pub(super) description: Option<String>,
    pub(super) body: Body,
    /// The agent, of several.
    pub(super) agent: Option<String>,
    pub(super) prefix: Option<String>,
    pub(super) suffix: Option<String>,
    pub(super) needs: Vec<(String, &'static str)>,
    pub(super) inputs: Vec<(String, String)>,
    pub(super) concurrency: Option<u64>,
    /// Whether another task runs even when this one fails.
    pub(super) may_fail: bool,
}

#[derive(Debug)]
pub(super) enum Body {
    Prompt(String),
    File(String),
    /// There is none: what readers of its output see instead.
    Nothing,
}

#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) name: String,
    pub(super) at: Option<u32>,
    pub(super) comments: Vec<String>,
    pub(super) description: Option<String>,
    pub(super) iterations: Option<u64>,
    pub(super) parallelism: Option<u64>,
    pub(super) concurrency: Option<u64>,
    pub(super) tasks: Vec<String>,
    pub(super) partial: bool,
}

/// What stands for an output that is not there, as seed 000 says.
pub(super) fn output_placeholder(task: &str) -> String {
    format!("(No output available from task \"{task}\")")
}

/// Carries everything over.
pub(super) fn convert_compose(
    compose: Compose,
    route: Route<'_>,
    text: &str,
    files: &dyn Files,
    notes: &mut Notes,
) -> Carried {
    let folder = |path: &str| path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    let mut names = Names::default();
    let new: Vec<String> = compose.tasks.iter().map(|task| names.add("task", &task.name, notes)).collect();
    let index = compose.tasks.iter().enumerate().map(|(index, task)| (task.name.text.clone(), index)).collect();
    let (from, to) = (folder(route.from), folder(route.to));
    let mut carrier = Converter {
        index,
        new,
        names,
        deps: vec![BTreeMap::new(); compose.tasks.len()],
        steps: 0,
        from,
        to,
        files,
        notes,
    };
    carrier.collect_dependencies(&compose.tasks);
    let groups = carrier.convert_pipelines(compose.pipelines, &compose.tasks, text);
    let agents = collect_agents(&compose.tasks, route.preset, carrier.notes);
    let mut tasks = Vec::new();
    let mut reads = Vec::new();
    for (index, task) in compose.tasks.iter().enumerate() {
        let (carried, read) = carrier.convert_task(index, task, &groups, &agents, text);
        tasks.push(carried);
        reads.push(read);
    }
    let risky: BTreeSet<String> = tasks
        .iter()
        .flat_map(|task| task.needs.iter().filter(|(_, when)| *when != "success").map(|(needed, _)| needed.clone()))
        .collect();
    tasks.iter_mut().for_each(|task| task.may_fail = risky.contains(&task.name) && !matches!(task.body, Body::Nothing));
    let deps = carrier.deps;
    let pipelines = groups.into_iter().map(|group| group.into_pipeline(&deps, &reads, &carrier.new)).collect();
    let name = compose.name.map_or_else(|| workflow_name(route.from), |name| spell_name(&name.text, "workflow"));
    // A task that lost its prompt needs no agent, and the compiler warns of an agent without a task.
    let used: BTreeSet<&str> = tasks.iter().filter_map(|task| task.agent.as_deref()).collect();
    let agents: Vec<Agent> = agents.list.into_iter().filter(|agent| used.contains(agent.name.as_str())).collect();
    Carried {
        name,
        description: compose.description.map(|said| said.text),
        presets: agents.iter().map(|agent| agent.preset.clone()).collect(),
        agents,
        tasks,
        pipelines,
    }
}

fn workflow_name(path: &str) -> String {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    spell_name(name.split_once('.').map_or(name, |(stem, _)| stem), "workflow")
}

/// The comment lines directly above a place, which stands alone on its line.
fn comments_above(text: &str, at: u32) -> Vec<String> {
    /// The bytes looked at.
    const NEAR: usize = 4096;
    let at = at as usize;
    let near = &text[text.ceil_char_boundary(at.saturating_sub(NEAR))..at];
    let Some((above, _)) = near.rsplit_once('\n') else { return Vec::new() };
    let above = above.lines().rev().map(str::trim);
    let mut found: Vec<String> = above
        .take_while(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim().to_owned())
        .collect();
    found.reverse();
    found
}

/// Tasks that run together, and how.
pub(super) struct Group {
    pub(super) pipeline: Pipeline,
    pub(super) members: BTreeSet<usize>,
    order: Vec<usize>,
}

impl Group {
    fn new(name: String, order: Vec<usize>) -> Group {
        let members = order.iter().copied().collect();
        let pipeline = Pipeline {
            name,
            at: None,
            comments: Vec::new(),
            description: None,
            iterations: None,
            parallelism: None,
            concurrency: None,
            tasks: Vec::new(),
            partial: false,
        };
        Group { pipeline, members, order }
    }

    fn into_pipeline(self, deps: &[BTreeMap<usize, Span>], reads: &[BTreeSet<usize>], names: &[String]) -> Pipeline {
        let needed = self.order.iter().flat_map(|&task| deps[task].keys().chain(&reads[task]));
        // Without `partial`, a reference to a task of another pipeline would not resolve.
        let partial = needed.into_iter().any(|needed| !self.members.contains(needed));
        let tasks = self.order.iter().map(|&task| names[task].clone()).collect();
        Pipeline { tasks, partial, ..self.pipeline }
    }
}

/// The agents by what they are made of.
struct Agents {
    list: Vec<Agent>,
    by_model: BTreeMap<Option<String>, usize>,
}

fn collect_agents(tasks: &[Old], preset: &str, notes: &mut Notes) -> Agents {
    let mut agents = Agents { list: Vec::new(), by_model: BTreeMap::new() };
    let mut names = Names::default();
    for task in tasks {
        let model = task.model.as_ref().map(|model| model.text.trim().to_owned());
        if agents.by_model.contains_key(&model) {
            continue;
        }
        let name = names.fresh_name(model.as_deref().unwrap_or("agent"));
        let told = model.as_deref().and_then(find_preset);
        if let (Some(said), Some(told)) = (&task.model, told.filter(|told| *told != preset)) {
            notes.report_change(
                said.span,
                format!("`{}` is taken for a model of {told}", said.text),
                "runs with that program",
            );
        }
        let preset = told.unwrap_or(preset);
        agents.by_model.insert(model.clone(), agents.list.len());
        agents.list.push(Agent { name, preset: preset.to_owned(), model });
    }
    agents
}

/// The preset that models of this name belong to.
fn find_preset(model: &str) -> Option<&'static str> {
    const FAMILIES: &[(&str, &[&str])] = &[
        ("claude-code", &["claude", "opus", "sonnet", "haiku"]),
        ("codex", &["gpt", "o1", "o3", "o4", "codex"]),
        ("gemini", &["gemini"]),
        ("qwen", &["qwen"]),
    ];
    let model = model.to_lowercase();
    if model.contains('/') {
        return Some("opencode");
    }
    let of = |(_, words): &&(&str, &[&str])| words.iter().any(|word| model.starts_with(word));
    FAMILIES.iter().find(of).map(|(preset, _)| *preset)
}

pub(super) struct Converter<'a, 'n, 's> {
    pub(super) index: BTreeMap<String, usize>,
    pub(super) new: Vec<String>,
    pub(super) names: Names,
    /// What each task waits for, with where it says so.
    pub(super) deps: Vec<BTreeMap<usize, Span>>,
    steps: usize,
    /// The folders of the compose file and of the spec.
    pub(super) from: String,
    pub(super) to: String,
    pub(super) files: &'a dyn Files,
    pub(super) notes: &'n mut Notes<'s>,
}

impl Converter<'_, '_, '_> {
    /// Takes in what tasks say they wait for, without what closes a cycle.
    fn collect_dependencies(&mut self, tasks: &[Old]) {
        for (task, old) in tasks.iter().enumerate() {
            let said = old.needs.iter().map(|needs| &needs.task).chain(old.inputs.iter().map(|(_, task)| task));
            for needed in said {
                let Some(index) = self.find_task(needed, Some(&old.name)) else { continue };
                if self.deps[task].contains_key(&index) {
                    continue;
                }
                // The graph has no circle before, so a path back is exactly what the new edge would close.
                match self.find_path(index, task) {
                    None => _ = self.deps[task].insert(index, needed.span),
                    Some(path) => self.report_cycle(&path, needed, &old.name),
                }
            }
        }
    }

    /// The task of that name, or a report.
    fn find_task(&mut self, said: &Said, owner: Option<&Said>) -> Option<usize> {
        let found = self.index.get(said.text.trim()).copied();
        if found.is_none() {
            let help = self.suggest_task(&said.text);
            let message = format!("there is no task `{}`", said.text);
            self.notes.report_loss(said.span, message, "not carried over", help, owner);
        }
        found
    }

    /// What to type instead of a name that no task has.
    pub(super) fn suggest_task(&self, name: &str) -> Option<String> {
        // The search compares every name: the converter skips it when it reports no more notes.
        if self.notes.is_full() {
            return None;
        }
        suggest::did_you_mean(name, &self.names.old_names(), "there are ").1
    }

    /// How `from` waits for `to`, both included; none when it does not.
    pub(super) fn find_path(&mut self, from: usize, to: usize) -> Option<Vec<usize>> {
        if self.steps >= MAX_STEPS {
            return None;
        }
        let mut before: BTreeMap<usize, usize> = BTreeMap::from([(from, from)]);
        let mut open = vec![from];
        while let Some(task) = open.pop() {
            if task == to {
                let mut path = vec![to];
                let mut at = to;
                // Every task that was opened has an entry, so the way back leads to `from`.
                while at != from {
                    at = before[&at];
                    path.push(at);
                }
                path.reverse();
                return Some(path);
            }
            for &next in self.deps[task].keys() {
                self.steps += 1;
                if self.steps < MAX_STEPS && !before.contains_key(&next) {
                    before.insert(next, task);
                    open.push(next);
                }
            }
        }
        None
    }

    fn report_cycle(&mut self, path: &[usize], needed: &Said, owner: &Said) {
        const SHOWN: usize = 10;
        let old: BTreeMap<usize, &String> = self.index.iter().map(|(name, index)| (*index, name)).collect();
        let mut circle: Vec<String> = path.iter().take(SHOWN).map(|task| format!("`{}`", old[task])).collect();
        if path.len() > SHOWN {
            circle.push("…".to_owned());
        }
        circle.insert(0, format!("`{}`", owner.text));
        let message = format!("these tasks wait for each other: {}", circle.join(" → "));
        let help = "remove one of the dependencies; for the value of the round before, write `<<previous:NAME>>`";
        self.notes.report_loss(
            needed.span,
            message,
            "closes the circle; not carried over",
            Some(help.to_owned()),
            Some(owner),
        );
    }

    /// The pipelines that were written, and some for tasks that are in none.
    fn convert_pipelines(&mut self, written: Vec<Written>, tasks: &[Old], text: &str) -> Vec<Group> {
        let mut names = Names::default();
        let none_written = written.is_empty();
        let mut groups = Vec::new();
        for pipeline in written {
            let own = pipeline.name.clone();
            let order = match &pipeline.tasks {
                Some(listed) => self.resolve_tasks(listed, &own),
                None => {
                    let message = format!("pipeline `{}` lists no tasks", own.text);
                    self.notes.report_change(own.span, message, "it gets all of them");
                    (0..tasks.len()).collect()
                }
            };
            if order.is_empty() {
                let message = format!("no task is left in pipeline `{}`", own.text);
                self.notes.report_loss(own.span, message, "not carried over", None, None);
                continue;
            }
            let name = names.add("pipeline", &own, self.notes);
            let mut group = Group::new(name, order);
            group.pipeline.at = Some(own.span.start);
            group.pipeline.comments = comments_above(text, own.span.start);
            group.pipeline.description = pipeline.description.map(|said| said.text);
            group.pipeline.iterations = pipeline.iterations;
            group.pipeline.parallelism = pipeline.parallelism;
            group.pipeline.concurrency = pipeline.concurrency;
            groups.push(group);
        }
        let held: BTreeSet<usize> = groups.iter().flat_map(|group| group.members.iter().copied()).collect();
        for (index, task) in tasks.iter().enumerate().filter(|(index, _)| held.contains(index)) {
            self.report_rounds(task, &format!("of a task inside of a pipeline, as `{}` is", self.new[index]));
        }
        let free: Vec<usize> = (0..tasks.len()).filter(|task| !held.contains(task)).collect();
        let waited: BTreeSet<usize> = self.deps.iter().flat_map(|deps| deps.keys().copied()).collect();
        let more = |count: Option<(u64, Span)>| count.filter(|(count, _)| *count > 1).map(|(count, _)| count);
        // Rounds belong to pipelines here: only a task that no other is tied to can have a pipeline of its own.
        let (alone, rest): (Vec<usize>, Vec<usize>) = free.into_iter().partition(|&index| {
            let rounds = more(tasks[index].iterations).or(more(tasks[index].parallelism)).is_some();
            rounds && self.deps[index].is_empty() && !waited.contains(&index)
        });
        for index in alone {
            let mut group = Group::new(names.fresh_name(&self.new[index]), vec![index]);
            group.pipeline.iterations = more(tasks[index].iterations);
            group.pipeline.parallelism = more(tasks[index].parallelism);
            groups.push(group);
        }
        if !rest.is_empty() {
            for &index in &rest {
                let why = "of a task that others wait for, or that waits for others";
                self.report_rounds(&tasks[index], why);
            }
            let name = names.fresh_name(if none_written { "main" } else { "rest" });
            groups.push(Group::new(name, rest));
        }
        groups
    }

    /// Reports rounds and instances of a task that has none of its own here.
    fn report_rounds(&mut self, task: &Old, why: &str) {
        for (key, count) in [("iterations", task.iterations), ("parallelism", task.parallelism)] {
            let Some((count, span)) = count.filter(|(count, _)| *count > 1) else { continue };
            let message = format!("`{key}: {count}` {why}");
            let help = match key {
                "iterations" => "a `loop NAME max=N { … }` around it, in the pipeline, repeats a task",
                _ => "`for-each \"[1, 2]\"` in the task runs it once for each item; its output is a list then",
            };
            let help = Some(help.to_owned());
            self.notes.report_loss(span, message, "runs once a round", help, Some(&task.name));
        }
    }

    fn resolve_tasks(&mut self, listed: &[Said], owner: &Said) -> Vec<usize> {
        let mut seen: BTreeMap<usize, Span> = BTreeMap::new();
        let mut order = Vec::new();
        for said in listed {
            let Some(index) = self.find_task(said, Some(owner)) else { continue };
            match seen.get(&index) {
                Some(first) => {
                    let message = format!("pipeline `{}` lists `{}` twice", owner.text, said.text);
                    self.notes.report_duplicate(said.span, *first, message, Some(owner));
                }
                None => {
                    seen.insert(index, said.span);
                    order.push(index);
                }
            }
        }
        order
    }

    /// A task, and the tasks whose output its text reads.
    fn convert_task(
        &mut self,
        index: usize,
        old: &Old,
        groups: &[Group],
        agents: &Agents,
        text: &str,
    ) -> (Task, BTreeSet<usize>) {
        let mut reads = BTreeSet::new();
        let mut inputs = Vec::new();
        let mut ports = Names::default();
        let mut known = BTreeMap::new();
        for (port, task) in &old.inputs {
            let Some(&from) = self.index.get(task.text.trim()) else { continue };
            // One that closed a cycle is no input any more.
            if self.deps[index].contains_key(&from) {
                let name = ports.add("input", port, self.notes);
                known.insert(port.text.clone(), name.clone());
                inputs.push((name, self.new[from].clone()));
            }
        }
        let mut reader = Reader { task: index, old, ports: &known, groups, reads: &mut reads };
        let prefix = old.prefix.as_ref().map(|said| self.convert_text(said, &mut reader));
        let suffix = old.suffix.as_ref().map(|said| self.convert_text(said, &mut reader));
        let body = self.convert_body(&mut reader);
        let model = old.model.as_ref().map(|model| model.text.trim().to_owned());
        let agent = agents.by_model.get(&model).map(|&agent| agents.list[agent].name.clone());
        let mut told = BTreeSet::new();
        let needs = old.needs.iter().filter_map(|needs| {
            let needed = *self.index.get(needs.task.text.trim())?;
            (self.deps[index].contains_key(&needed) && told.insert(needed)).then_some((needed, needs.when))
        });
        let needs = needs.map(|(needed, when)| (self.new[needed].clone(), when)).collect();
        let nothing = matches!(body, Body::Nothing);
        let task = Task {
            name: self.new[index].clone(),
            at: old.name.span.start,
            comments: comments_above(text, old.name.span.start),
            description: old.description.as_ref().map(|said| said.text.clone()),
            body,
            agent: agent.filter(|_| !nothing),
            prefix: prefix.filter(|_| !nothing),
            suffix: suffix.filter(|_| !nothing),
            needs,
            inputs,
            concurrency: old.concurrency,
            may_fail: false,
        };
        (task, reads)
    }
}
