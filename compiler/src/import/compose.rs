//! A compose file as its tool understands it: tasks and pipelines, with their places.
//!
//! In: YAML. Out: what it says; whatever it says besides is reported, key by key, and so is what is wrong.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::Notes;
use super::yaml::{Node, Value};
use crate::source::Span;
use crate::suggest;

/// Tasks and pipelines at most: more is no workflow that a person wrote.
const MOST: usize = 2000;

const TOP: &[&str] = &["version", "name", "description", "tasks", "pipelines"];
const TASK: &[&str] = &[
    "prompt",
    "prompt-file",
    "prompt-string",
    "model",
    "prefix",
    "suffix",
    "iterations",
    "parallelism",
    "concurrency",
    "depends_on",
    "inputs",
    "description",
];
const PIPELINE: &[&str] = &["iterations", "parallelism", "concurrency", "tasks", "description"];
const CONDITIONS: &[&str] = &["success", "failure", "any", "always"];

/// What a compose file says.
#[derive(Debug, Default)]
pub(super) struct Compose {
    pub(super) name: Option<Said>,
    pub(super) description: Option<Said>,
    pub(super) tasks: Vec<Task>,
    pub(super) pipelines: Vec<Pipeline>,
}

/// A text with its place.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) span: Span,
}

#[derive(Debug)]
pub(super) struct Task {
    pub(super) name: Said,
    /// The keys that may hold the prompt, in the order in which they count.
    pub(super) prompt: Option<(Source, Said)>,
    pub(super) model: Option<Said>,
    pub(super) description: Option<Said>,
    pub(super) prefix: Option<Said>,
    pub(super) suffix: Option<Said>,
    pub(super) iterations: Option<(u64, Span)>,
    pub(super) parallelism: Option<(u64, Span)>,
    pub(super) concurrency: Option<u64>,
    pub(super) needs: Vec<Needs>,
    /// The name of the port, and the task.
    pub(super) inputs: Vec<(Said, Said)>,
}

/// What holds a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    File,
    Text,
    /// The name of a prompt, or its text.
    Either,
}

#[derive(Debug)]
pub(super) struct Needs {
    pub(super) task: Said,
    /// A word of the language: `success`, `failure`, `any` or `always`.
    pub(super) when: &'static str,
}

#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) name: Said,
    pub(super) description: Option<Said>,
    pub(super) iterations: Option<u64>,
    pub(super) parallelism: Option<u64>,
    pub(super) concurrency: Option<u64>,
    /// None where it does not say.
    pub(super) tasks: Option<Vec<Said>>,
}

/// Reads a document.
pub(super) fn read_compose(root: &Node, notes: &mut Notes) -> Compose {
    let mut compose = Compose::default();
    let Some(keys) = read_keys(root, "a compose file", TOP, None, notes) else { return compose };
    for (key, value) in keys {
        match key.text.as_str() {
            "tasks" => compose.tasks = read_entries(value, "task", notes, read_task),
            "pipelines" => compose.pipelines = read_entries(value, "pipeline", notes, read_pipeline),
            "name" => compose.name = read_text(value, "name", None, notes),
            "description" => compose.description = read_text(value, "description", None, notes),
            // Its tool's own version says nothing about the workflow.
            _ => {}
        }
    }
    compose
}

/// The keys of a map that are known, once each; the others are reported.
fn read_keys<'n>(
    node: &'n Node,
    what: &str,
    known: &[&'static str],
    owner: Option<&Said>,
    notes: &mut Notes,
) -> Option<Vec<(Said, &'n Rc<Node>)>> {
    let Value::Map(entries) = &node.value else {
        notes.report_loss(node.span, format!("{what} must be a map of keys"), "no map", None, owner);
        return None;
    };
    let mut seen: BTreeMap<String, Span> = BTreeMap::new();
    let mut found = Vec::new();
    for entry in entries {
        let Value::Text { text: written, .. } = &entry.key.value else {
            notes.report_loss(
                entry.key.span,
                format!("a key of {what} must be a text, not a list or a map"),
                "no name",
                None,
                owner,
            );
            continue;
        };
        // The older and the newer separator mean the same.
        let plain = written.to_lowercase().replace('_', "-");
        let Some(&name) = known.iter().find(|name| name.replace('_', "-") == plain) else {
            let (_, help) = suggest::did_you_mean(written, known, "known here are ");
            notes.report_loss(
                entry.key.span,
                format!("unknown key `{written}` in {what}"),
                "not carried over",
                help,
                owner,
            );
            continue;
        };
        if let Some(first) = seen.get(name) {
            notes.report_duplicate(entry.key.span, *first, format!("`{written}` stands twice in {what}"), owner);
            continue;
        }
        seen.insert(name.to_owned(), entry.key.span);
        found.push((Said { text: name.to_owned(), span: entry.key.span }, &entry.value));
    }
    Some(found)
}

/// Tasks or pipelines: a map by name, or a list of maps that say their name.
fn read_entries<T>(
    node: &Rc<Node>,
    what: &str,
    notes: &mut Notes,
    read: impl Fn(Said, &Node, bool, &mut Notes) -> T,
) -> Vec<T> {
    let mut entries: Vec<(Said, &Node, bool)> = Vec::new();
    match &node.value {
        // In YAML, a key with nothing under it is null.
        _ if node.is_null() => {}
        Value::Map(map) => {
            for entry in map {
                match &entry.key.value {
                    Value::Text { text, .. } => {
                        entries.push((Said { text: text.clone(), span: entry.key.span }, &entry.value, false));
                    }
                    _ => notes.report_loss(
                        entry.key.span,
                        format!("the name of a {what} must be a text"),
                        "no text",
                        None,
                        None,
                    ),
                }
            }
        }
        Value::List(items) => {
            for item in items {
                let own = match &item.value {
                    Value::Map(map) => map.iter().find_map(|entry| match (&entry.key.value, &entry.value.value) {
                        (Value::Text { text: key, .. }, Value::Text { text, .. }) if key == "name" => {
                            Some(Said { text: text.clone(), span: entry.value.span })
                        }
                        _ => None,
                    }),
                    _ => None,
                };
                match own {
                    Some(name) => entries.push((name, item, true)),
                    None => {
                        let help = Some(format!("`- name: NAME`, or a map of {what}s by name"));
                        notes.report_loss(
                            item.span,
                            format!("this {what} has no name"),
                            "not carried over",
                            help,
                            None,
                        );
                    }
                }
            }
        }
        Value::Text { .. } => {
            notes.report_loss(node.span, format!("`{what}s` must be a map by name"), "no map", None, None);
        }
    }
    let mut seen: BTreeMap<String, Span> = BTreeMap::new();
    let mut found = Vec::new();
    for (name, node, listed) in entries {
        if let Some(first) = seen.get(&name.text) {
            notes.report_duplicate(name.span, *first, format!("there are two {what}s `{}`", name.text), None);
        } else if found.len() == MOST {
            notes.report_loss(name.span, format!("more than {MOST} {what}s"), "this one and what follows", None, None);
            break;
        } else {
            seen.insert(name.text.clone(), name.span);
            found.push(read(name, node, listed, notes));
        }
    }
    found
}

fn read_task(name: Said, node: &Node, listed: bool, notes: &mut Notes) -> Task {
    let mut task = Task {
        name,
        prompt: None,
        model: None,
        description: None,
        prefix: None,
        suffix: None,
        iterations: None,
        parallelism: None,
        concurrency: None,
        needs: Vec::new(),
        inputs: Vec::new(),
    };
    let own = task.name.clone();
    let owner = Some(&own);
    let mut prompts = Vec::new();
    for (key, value) in read_members(node, &own, "task", TASK, listed, notes) {
        let name = key.text.as_str();
        let text = |notes: &mut Notes| read_text(value, name, owner, notes);
        match name {
            "prompt-file" => prompts.extend(text(notes).map(|text| (Source::File, text, key.span))),
            "prompt-string" => prompts.extend(text(notes).map(|text| (Source::Text, text, key.span))),
            "prompt" => prompts.extend(text(notes).map(|text| (Source::Either, text, key.span))),
            "model" => task.model = text(notes),
            "prefix" => task.prefix = text(notes),
            "suffix" => task.suffix = text(notes),
            "description" => task.description = text(notes),
            "iterations" => task.iterations = read_count(value, name, owner, notes).map(|count| (count, key.span)),
            "parallelism" => task.parallelism = read_count(value, name, owner, notes).map(|count| (count, key.span)),
            "concurrency" => task.concurrency = read_count(value, name, owner, notes),
            "depends_on" => task.needs = read_needs(value, owner, notes),
            "inputs" => task.inputs = read_inputs(value, owner, notes),
            _ => {}
        }
    }
    prompts.sort_by_key(|(source, ..)| match source {
        Source::File => 0,
        Source::Text => 1,
        Source::Either => 2,
    });
    let mut prompts = prompts.into_iter();
    if let Some((source, text, used)) = prompts.next() {
        task.prompt = Some((source, text));
        for (_, _, span) in prompts {
            notes.report_duplicate(span, used, format!("task `{}` has several prompts", own.text), owner);
        }
    }
    task
}

fn read_pipeline(name: Said, node: &Node, listed: bool, notes: &mut Notes) -> Pipeline {
    let mut pipeline =
        Pipeline { name, description: None, iterations: None, parallelism: None, concurrency: None, tasks: None };
    let own = pipeline.name.clone();
    let owner = Some(&own);
    if let Value::List(_) = &node.value {
        // `main: [plan, code]`
        pipeline.tasks = Some(read_texts(node, "tasks", owner, notes));
        return pipeline;
    }
    for (key, value) in read_members(node, &own, "pipeline", PIPELINE, listed, notes) {
        let name = key.text.as_str();
        match name {
            "iterations" => pipeline.iterations = read_count(value, name, owner, notes),
            "parallelism" => pipeline.parallelism = read_count(value, name, owner, notes),
            "concurrency" => pipeline.concurrency = read_count(value, name, owner, notes),
            "description" => pipeline.description = read_text(value, name, owner, notes),
            "tasks" if value.is_null() => {}
            "tasks" => pipeline.tasks = Some(read_texts(value, name, owner, notes)),
            _ => {}
        }
    }
    pipeline
}

/// The keys of a task or a pipeline; one of a list says its name there, one without anything says nothing.
fn read_members<'n>(
    node: &'n Node,
    name: &Said,
    what: &str,
    known: &[&'static str],
    listed: bool,
    notes: &mut Notes,
) -> Vec<(Said, &'n Rc<Node>)> {
    if node.is_null() {
        return Vec::new();
    }
    let with_name: Vec<&'static str> = known.iter().copied().chain(listed.then_some("name")).collect();
    read_keys(node, &format!("{what} `{}`", name.text), &with_name, Some(name), notes).unwrap_or_default()
}

fn read_text(node: &Node, key: &str, owner: Option<&Said>, notes: &mut Notes) -> Option<Said> {
    match &node.value {
        _ if node.is_null() => None,
        Value::Text { text, .. } => Some(Said { text: text.clone(), span: node.span }),
        _ => {
            notes.report_loss(node.span, format!("`{key}` must be a text"), "a list or a map", None, owner);
            None
        }
    }
}

/// A text, or a list of texts.
fn read_texts(node: &Node, key: &str, owner: Option<&Said>, notes: &mut Notes) -> Vec<Said> {
    match &node.value {
        Value::List(items) => items.iter().filter_map(|item| read_text(item, key, owner, notes)).collect(),
        _ => read_text(node, key, owner, notes).into_iter().collect(),
    }
}

fn read_count(node: &Node, key: &str, owner: Option<&Said>, notes: &mut Notes) -> Option<u64> {
    let Said { text, span } = read_text(node, key, owner, notes)?;
    match text.parse::<u32>() {
        Ok(0) => {
            let help = Some("write a limit: swarmc runs nothing without a limit".to_owned());
            notes.report_loss(span, format!("`{key}: 0`"), "no limit, or no meaning", help, owner);
            None
        }
        // The language allows no more.
        Ok(count) if key == "parallelism" && count > 10_000 => {
            notes.report_loss(span, format!("`{key}` is more than 10000"), "not carried over", None, owner);
            None
        }
        Ok(count) => Some(count.into()),
        Err(_) => {
            notes.report_loss(span, format!("`{key}` must be a whole number from 1"), "not carried over", None, owner);
            None
        }
    }
}

/// `depends_on: plan`, `[plan, code]`, `[{task: plan, condition: success}]` or `{plan: {condition: success}}`.
fn read_needs(node: &Node, owner: Option<&Said>, notes: &mut Notes) -> Vec<Needs> {
    let items = match &node.value {
        Value::List(items) => items,
        // A map with the key `task` is one dependency; any other has tasks for its keys.
        Value::Map(entries) if !entries.iter().any(|entry| is_key(&entry.key, "task")) => {
            let mut found = Vec::new();
            for entry in entries {
                let Some(task) = read_text(&entry.key, "task", owner, notes) else { continue };
                found.push(read_need(Some(task), &entry.value, owner, notes));
            }
            return found.into_iter().flatten().collect();
        }
        Value::Map(_) => return read_need(None, node, owner, notes).into_iter().collect(),
        Value::Text { .. } => return read_texts(node, "depends_on", owner, notes).into_iter().map(any_need).collect(),
    };
    let mut found = Vec::new();
    for item in items {
        match &item.value {
            Value::Map(_) => found.extend(read_need(None, item, owner, notes)),
            _ => found.extend(read_text(item, "depends_on", owner, notes).map(any_need)),
        }
    }
    found
}

fn is_key(node: &Node, name: &str) -> bool {
    matches!(&node.value, Value::Text { text, .. } if text == name)
}

fn any_need(task: Said) -> Needs {
    Needs { task, when: "any" }
}

fn read_need(mut task: Option<Said>, node: &Node, owner: Option<&Said>, notes: &mut Notes) -> Option<Needs> {
    let mut when = "any";
    let known = ["task", "condition"];
    if !node.is_null() {
        for (key, value) in read_keys(node, "a dependency", &known, owner, notes).unwrap_or_default() {
            let Some(said) = read_text(value, &key.text, owner, notes) else { continue };
            if key.text == "task" {
                task = Some(said);
                continue;
            }
            let plain = said.text.to_lowercase();
            match CONDITIONS.iter().find(|known| **known == plain) {
                Some(known) => when = known,
                None => {
                    let (_, help) = suggest::did_you_mean(&said.text, CONDITIONS, "there are ");
                    let message = format!("unknown condition `{}`", said.text);
                    notes.report_loss(said.span, message, "`any`, the default, is written instead", help, owner);
                }
            }
        }
    }
    if task.is_none() {
        notes.report_loss(node.span, "this dependency names no task".to_owned(), "not carried over", None, owner);
    }
    task.map(|task| Needs { task, when })
}

/// `inputs: {plan: planner}`.
fn read_inputs(node: &Node, owner: Option<&Said>, notes: &mut Notes) -> Vec<(Said, Said)> {
    let mut found: Vec<(Said, Said)> = Vec::new();
    let Value::Map(entries) = &node.value else {
        if !node.is_null() {
            notes.report_loss(node.span, "`inputs` must be a map of names to tasks".to_owned(), "no map", None, owner);
        }
        return found;
    };
    let mut seen: BTreeMap<String, Span> = BTreeMap::new();
    for entry in entries {
        let Some(name) = read_text(&entry.key, "inputs", owner, notes) else { continue };
        let Some(task) = read_text(&entry.value, &name.text, owner, notes) else { continue };
        match seen.get(&name.text) {
            Some(first) => {
                notes.report_duplicate(name.span, *first, format!("there are two inputs `{}`", name.text), owner)
            }
            None => {
                seen.insert(name.text.clone(), name.span);
                found.push((name, task));
            }
        }
    }
    found
}
