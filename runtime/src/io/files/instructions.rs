//! The texts that an agent finds: `inbox/instructions.md` in the protocol's format, `inbox/dependencies.json`, and a
//! `SKILL.md` where the spec has none.

use std::fmt::Write;

use serde_json::{Value, json};

use swarmc_plan::prompt_text;

use super::paths::{last_component, normalize_path};
use super::{FileWorkspaceSpec, Given, SUMMARY};

/// What the instructions say besides inputs and outputs, all rendered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Brief {
    pub task: String,
    pub objective: String,
    pub context: String,
    pub requirements: Vec<String>,
    pub criteria: Vec<String>,
    pub constraints: Vec<String>,
}

/// An input as it was laid out.
#[derive(Debug)]
pub(super) struct Input<'d> {
    pub given: &'d Given,
    /// Where it lies in the inbox, with a final `/` where it is a folder; else it was not copied.
    pub place: Option<String>,
    /// Where it lies outside.
    pub source: String,
    pub bytes: u64,
    /// Whether it is not there, which it may be.
    pub absent: bool,
}

/// `inbox/instructions.md`.
pub(super) fn render_instructions(file_workspace: &FileWorkspaceSpec, laid: &[Input<'_>]) -> String {
    let brief = &file_workspace.brief;
    let mut text = format!("# Task: {}\n", brief.task);
    write_section(&mut text, "Objective", &or_none(&brief.objective));
    write_section(&mut text, "Context", &or_none(&brief.context));
    write_section(&mut text, "Inputs Provided", &render_list(laid.iter().map(render_input), "- "));
    let requirements =
        brief.requirements.iter().zip(1..).map(|(text, number)| format!("{number}. {}", fold_lines(text)));
    write_section(&mut text, "Requirements", &render_list(requirements, ""));
    write_section(
        &mut text,
        "Success Criteria",
        &render_list(brief.criteria.iter().map(|text| fold_lines(text)), "- [ ] "),
    );
    write_section(&mut text, "Constraints", &render_list(brief.constraints.iter().map(|text| fold_lines(text)), "- "));
    write_section(&mut text, "Output Expectations", &render_outputs(file_workspace));
    text
}

fn write_section(text: &mut String, title: &str, body: &str) {
    let _ = write!(text, "\n## {title}\n{}\n", body.trim_end());
}

fn or_none(text: &str) -> String {
    if text.trim().is_empty() { "None.".to_owned() } else { text.trim().to_owned() }
}

fn render_list(items: impl Iterator<Item = String>, mark: &str) -> String {
    let items: Vec<String> = items.map(|item| format!("{mark}{item}")).collect();
    if items.is_empty() { "None.".to_owned() } else { items.join("\n") }
}

/// A text as one entry of a list.
fn fold_lines(text: &str) -> String {
    text.trim().replace('\n', "\n  ")
}

fn render_input(laid: &Input<'_>) -> String {
    let mut about = laid.given.description.as_deref().map(fold_lines).unwrap_or_default();
    if about.is_empty() {
        about = match &laid.given.from {
            Some(maker) => format!("`{}` of `{}`", laid.given.path, maker.agent),
            None => format!("`{}` of the project", laid.given.path),
        };
    }
    match &laid.place {
        None if laid.absent => format!("`{}` - {about} (absent: it may be, so do without it)", laid.given.path),
        Some(place) => format!("`{place}` - {about}"),
        None => {
            format!("`{}` - {about} (by reference, {} bytes: read it there, it is not copied)", laid.source, laid.bytes)
        }
    }
}

fn render_outputs(file_workspace: &FileWorkspaceSpec) -> String {
    let mut text = String::new();
    for (position, output) in file_workspace.outputs.iter().enumerate() {
        let path = display_path(&output.path);
        let what = if position == 0 { "Place main deliverable in" } else { "Place further deliverable in" };
        let mut line = format!("- {what} `outbox/{path}`");
        if let Some(description) = &output.description {
            let _ = write!(line, ": {}", fold_lines(description));
        }
        if !output.required {
            line.push_str(" (optional)");
        }
        let shape = output.shape.as_ref().or(file_workspace.primary.as_ref().filter(|_| position == 0));
        if let Some(shape) = shape {
            let _ = write!(line, ". It is JSON that satisfies this schema: `{}`", shape.schema_text());
        }
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "- Include summary in `outbox/{SUMMARY}`");
    text
}

/// A path as it is written, a final `/` kept.
fn display_path(path: &str) -> String {
    let slash = if path.ends_with('/') { "/" } else { "" };
    normalize_path(path).map_or_else(|_| path.to_owned(), |plain| plain + slash)
}

/// What an agent has of another one in one folder of its inbox.
struct Depends<'d> {
    agent: &'d str,
    folder: &'d str,
    outputs: Vec<String>,
    /// Those of the outputs that are not there.
    absent: Vec<String>,
}

/// `inbox/dependencies.json`; none where the agent has no dependencies.
pub(super) fn render_dependencies(file_workspace: &FileWorkspaceSpec, laid: &[Input<'_>]) -> Option<String> {
    let mut depends: Vec<Depends<'_>> = Vec::new();
    for Input { given, absent, .. } in laid {
        let Some(maker) = &given.from else { continue };
        let (agent, folder) = (maker.agent.as_str(), given.folder.as_str());
        let known = depends.iter().position(|it| it.agent == agent && it.folder == folder);
        let known = known.unwrap_or_else(|| {
            depends.push(Depends { agent, folder, outputs: Vec::new(), absent: Vec::new() });
            depends.len() - 1
        });
        let list = if *absent { &mut depends[known].absent } else { &mut depends[known].outputs };
        list.push(format!("outbox/{}", display_path(&given.path)));
    }
    let mut wait_for: Vec<&str> = Vec::new();
    for name in depends.iter().map(|it| it.agent).chain(file_workspace.wait_for.iter().map(String::as_str)) {
        if !wait_for.contains(&name) {
            wait_for.push(name);
        }
    }
    if wait_for.is_empty() {
        return None;
    }
    let depends: Vec<Value> = depends
        .into_iter()
        .map(|Depends { agent, folder, outputs, absent }| {
            let folder = if folder.is_empty() { "inbox/".to_owned() } else { format!("inbox/{folder}/") };
            let mut entry = json!({ "agent": agent, "outputs": outputs, "copy_to": folder });
            if !absent.is_empty() {
                entry["absent"] = json!(absent);
            }
            entry
        })
        .collect();
    Some(format!("{:#}\n", json!({ "depends_on": depends, "wait_for": wait_for })))
}

/// `inbox/references.json`: where inputs lie that were not copied; none where all were.
pub(super) fn render_references(laid: &[Input<'_>]) -> Option<String> {
    let references: Vec<Value> = laid
        .iter()
        .filter(|laid| laid.place.is_none() && !laid.absent)
        .map(|laid| json!({ "name": last_component(laid.given.path.trim_end_matches('/')), "path": laid.source, "bytes": laid.bytes }))
        .collect();
    (!references.is_empty()).then(|| format!("{:#}\n", json!({ "references": references })))
}

/// `SKILL.md` where the spec has none: the protocol itself.
pub(super) fn render_skill(file_workspace: &FileWorkspaceSpec) -> String {
    format!(
        "# {}\n\nYou work in a folder of your own.\n\n\
         - `inbox/` holds your task, `inbox/instructions.md`, and what you need for it. It is read-only.\n\
         - `outbox/` takes your work: the deliverables that the instructions name, and always `outbox/summary.md`, a \
         brief summary of what you did. You may add `changelog.md`, `issues.md` and `metadata.json`.\n\
         - `workspace/` is yours, for whatever you need on the way. Nobody reads it.\n\
         - `status.json` says where you stand. Set its `state` to `running` when you begin, keep `progress` current, and \
         set `state` to `completed` when all is in `outbox/`.\n\n\
         If you cannot go on, set `state` to `failed` with an `error` of `type`, `message`, `details` and \
         `recoverable`, put what is done so far into `outbox/partial/`, and write `outbox/error_report.md`:\n\n{}",
        file_workspace.brief.task,
        render_report_outline()
    )
}

/// The outline of `error_report.md`, which seed 003 gives.
fn render_report_outline() -> String {
    let sections = [
        ("Error Type", "The `type` of the `error` in `status.json`."),
        ("Description", "What happened, and what was expected."),
        ("Attempted Recovery", "What you tried, and why it did not help."),
        ("Suggested Resolution", "What would let another attempt succeed."),
        ("Partial Work", "What lies in `outbox/partial/`, and how far it can be used."),
    ];
    let sections: String = sections.iter().map(|(heading, text)| format!("\n## {heading}\n{text}\n")).collect();
    format!("```markdown\n# Error Report\n{sections}```\n")
}

/// What a prompt says of the folder.
pub(crate) fn describe_folder(file_workspace: &FileWorkspaceSpec) -> String {
    let folder = file_workspace.folder.display().to_string();
    match file_workspace.mends {
        true => prompt_text::files_to_mend(&folder),
        false => prompt_text::describe_folder(&folder, &file_workspace.brief.task, file_workspace.messages.is_some()),
    }
}
