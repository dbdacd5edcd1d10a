//! `swarmc plan --diff`: what a change of a workflow means, for the person who reviews it.
//!
//! In: the older plan and the newer one. Out: their differences in groups, what may do more than before first. Places
//! that moved, and digests of files, are no difference here: whatever they stand for shows itself.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use swarmc_compiler::Settings;
use swarmc_plan::{Body, Change, Difference, Field, Part, Plan, Step, StepKind, compare_plans};
use swarmc_view::make_printable;

use crate::exit::Exit;
use crate::load::load_with;
use crate::terminal::{self, Paint, Stream};

/// The characters of a value that are shown.
const SHOWN: usize = 100;

/// What a difference is about, the weightiest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// Who may do what: commands, tools, secrets, and where a person is asked.
    Privilege,
    /// What it may cost.
    Cost,
    /// What is said and decided.
    Behaviour,
    /// The types of what goes in, out and between.
    Wire,
    /// What there is, and what waits for what.
    Structure,
}

impl Group {
    fn as_str(self) -> &'static str {
        match self {
            Group::Privilege => "privilege",
            Group::Cost => "cost",
            Group::Behaviour => "behaviour",
            Group::Wire => "wire",
            Group::Structure => "structure",
        }
    }
}

pub(crate) fn exec(spec: &Path, old: &Path, exit_code: bool) -> miette::Result<Exit> {
    let settings = Settings { count_tokens: true, ..Settings::default() };
    let Some(new) = load_with(spec, &settings)? else { return Ok(Exit::Spec) };
    let Some(old) = load_with(old, &settings)? else { return Ok(Exit::Spec) };
    let lines = format_differences(&old.plan, &new.plan);
    terminal::print(render_lines(&lines, Stream::Out.paint()))?;
    Ok(if exit_code && !lines.is_empty() { Exit::Spec } else { Exit::Done })
}

/// The differences, one line or more each, with their groups; in the order of the groups.
fn format_differences(old: &Plan, new: &Plan) -> Vec<(Group, String)> {
    let mut lines = Vec::new();
    for difference in compare_plans(old, new) {
        let name = match &difference.pipeline {
            Some(pipeline) => format!("{} `{}` of `{pipeline}`", difference.part.as_str(), difference.name),
            None => format!("{} `{}`", difference.part.as_str(), difference.name),
        };
        match &difference.change {
            _ if difference.part == Part::Source => {}
            Change::Moved(_) => {}
            // Bounds come and go with their pipeline, and the comparison reports that already.
            Change::Added | Change::Removed if difference.part == Part::Bounds => {}
            Change::Added => lines.push(format_addition(&difference, &name, new)),
            Change::Removed => lines.push(format_removal(&difference, &name, old)),
            Change::Changed(fields) => {
                for field in fields.iter().filter(|field| !is_derived(field)) {
                    lines.push((
                        classify_field(difference.part, &field.path),
                        format!("{name}: {}", describe_field(field)),
                    ));
                }
            }
        }
    }
    lines.sort_by_key(|(group, _)| *group);
    lines
}

/// Whether a field only follows from others.
fn is_derived(field: &Field) -> bool {
    field.path == "digest" || field.path.ends_with(".digest") || field.path == "version"
}

/// What came: who may do something new is told first.
fn format_addition(difference: &Difference, name: &str, new: &Plan) -> (Group, String) {
    let line = format!("{name} is new");
    match difference.part {
        Part::Secret | Part::ToolServer | Part::Hook | Part::Provider => (Group::Privilege, line),
        Part::Agent => {
            let agent = new.agent(&difference.name);
            let may = agent.map(|agent| {
                let can = agent.can.iter().map(|can| format_value(&serde_json::to_value(can).unwrap_or_default()));
                let tools = agent.tools.iter().flatten().map(|tool| format!("`{tool}`"));
                can.chain(tools).collect::<Vec<_>>().join(", ")
            });
            match may.filter(|may| !may.is_empty()) {
                Some(may) => (Group::Privilege, format!("{line}, and may use {may}")),
                None => (Group::Privilege, line),
            }
        }
        Part::Param | Part::Type => (Group::Wire, line),
        Part::Step => match find_step(new, difference).map(|step| &step.body) {
            Some(Body::Run(command)) => {
                let command = serde_json::to_value(command).unwrap_or_default();
                (Group::Privilege, format!("{line}, and runs {}", truncate_text(&format_value(&command))))
            }
            _ => (Group::Structure, line),
        },
        _ => (Group::Structure, line),
    }
}

fn format_removal(difference: &Difference, name: &str, old: &Plan) -> (Group, String) {
    let line = format!("{name} is gone");
    match difference.part {
        Part::Secret | Part::ToolServer | Part::Hook | Part::Provider | Part::Agent => (Group::Privilege, line),
        Part::Param | Part::Type => (Group::Wire, line),
        Part::Step => match find_step(old, difference).map(|step| &step.body) {
            Some(Body::Gate(_)) => (Group::Privilege, format!("{line}: it no longer asks a person")),
            _ => (Group::Structure, line),
        },
        _ => (Group::Structure, line),
    }
}

fn find_step<'p>(plan: &'p Plan, difference: &Difference) -> Option<&'p Step> {
    let pipeline = plan.pipeline(difference.pipeline.as_deref()?)?;
    pipeline.all_steps().find(|step| step.name == difference.name)
}

/// What a field of a part is about.
fn classify_field(part: Part, path: &str) -> Group {
    let mut words = path.split(['.', '[']);
    let first = words.next().unwrap_or_default();
    let second = words.next().unwrap_or_default();
    match (part, first) {
        (Part::Secret | Part::ToolServer | Part::Hook, _) => Group::Privilege,
        (Part::Workflow, "policy") => Group::Privilege,
        (Part::Provider, "connection" | "env") => Group::Privilege,
        (Part::Agent, "can" | "tools" | "permissions" | "files") => Group::Privilege,
        (Part::Pipeline, "env" | "working_dir" | "worktree") => Group::Privilege,
        (Part::Step, "checks" | "env" | "worktree" | "reads" | "writes" | "files") => Group::Privilege,
        (Part::Step, "body") if [StepKind::Run, StepKind::Gate].iter().any(|kind| kind.name() == second) => {
            Group::Privilege
        }
        (Part::Swarm, "spawn" | "spawns" | "worktrees") => Group::Privilege,
        (Part::Bounds, _) | (_, "budget" | "price" | "retry" | "parallelism" | "concurrency") => Group::Cost,
        (Part::Agent, "provider" | "model" | "tier" | "max_output" | "fallback") => Group::Cost,
        (Part::Pipeline, "iteration") | (Part::Swarm, "limits") | (Part::Provider, "context_window") => Group::Cost,
        (Part::Step, "body") if second == StepKind::Loop.name() && path.contains("iteration.max") => Group::Cost,
        (Part::Param | Part::Type, _) | (Part::Pipeline, "params" | "result") | (_, "edges") => Group::Wire,
        (Part::Step, "output" | "inputs") => Group::Wire,
        (Part::Step, "needs" | "join") | (Part::Workflow | Part::Pipeline, "steps" | "default") => Group::Structure,
        (Part::Workflow, "params" | "agents" | "pipelines" | "swarms" | "providers" | "packs") => Group::Structure,
        _ => Group::Behaviour,
    }
}

/// A field with what it was and is; a text of several lines as its changed lines.
fn describe_field(field: &Field) -> String {
    if let (Some(Value::String(before)), Some(Value::String(after))) = (&field.before, &field.after)
        && (before.contains('\n') || after.contains('\n'))
    {
        let mut out = field.path.clone();
        for line in TextDiff::from_lines(before, after).iter_all_changes() {
            let sign = match line.tag() {
                ChangeTag::Equal => continue,
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let _ = write!(out, "\n    {sign} {}", make_printable(line.value().trim_end()));
        }
        return out;
    }
    let side = |value: &Option<Value>| {
        value.as_ref().map_or("nothing".to_owned(), |value| truncate_text(&format_value(value)))
    };
    format!("{} was {}, and is {}", field.path, side(&field.before), side(&field.after))
}

/// A value as a person writes it.
fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{}`", make_printable(text)),
        value => format!("`{}`", make_printable(&value.to_string())),
    }
}

fn truncate_text(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…`", &text[..at]),
        None => text.to_owned(),
    }
}

fn render_lines(lines: &[(Group, String)], paint: Paint) -> String {
    if lines.is_empty() {
        return "no differences\n".to_owned();
    }
    let mut out = String::new();
    let mut last = None;
    for (group, line) in lines {
        if last.replace(*group) != Some(*group) {
            let head = match group {
                Group::Privilege => paint.red(group.as_str()),
                Group::Cost => paint.yellow(group.as_str()),
                Group::Behaviour | Group::Wire | Group::Structure => paint.bold(group.as_str()),
            };
            let _ = writeln!(out, "{head}");
        }
        let _ = writeln!(out, "  {line}");
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn plan(spec: &str) -> Plan {
        let files = BTreeMap::from([("a.kdl".to_owned(), spec.to_owned())]);
        let compilation = swarmc_compiler::compile("a.kdl", &files);
        compilation.plan.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics))
    }

    const OLD: &str = r#"
workflow w { default p }
policy { tool Read human }
provider local { exec cat }
agent a provider=local { tools Read }
pipeline p {
    budget calls=100
    task plan { prompt "Plan it.\nIn five steps.\n" }
    gate go { message "Go?"; options yes no; headless no }
    task publish { when "output.go.choice == 'yes'"; run make publish }
    result plan
}
"#;

    #[test]
    fn what_may_do_more_comes_first() {
        let new = OLD
            .replace("tools Read", "tools Read Bash; can network")
            .replace("tool Read human", "tool Read human; on-timeout approve after=\"10m\"")
            .replace("calls=100", "calls=200")
            .replace("five", "ten")
            .replace("    gate go { message \"Go?\"; options yes no; headless no }\n", "")
            .replace("when \"output.go.choice == 'yes'\"; run make publish", "depends-on plan; run make deploy");
        let lines = format_differences(&plan(OLD), &plan(&new));
        let groups: Vec<Group> = lines.iter().map(|(group, _)| *group).collect();
        assert!(groups.is_sorted(), "{lines:#?}");
        let of = |group: Group| {
            let lines = lines.iter().filter(|(other, _)| *other == group);
            lines.map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n")
        };
        let privilege = of(Group::Privilege);
        for part in [
            "agent `a`: tools was `[\"Read\"]`, and is `[\"Read\",\"Bash\"]`",
            "agent `a`: can",
            "policy.on_timeout",
            "step `go` of `p` is gone: it no longer asks a person",
            "`publish`, and is `deploy`",
        ] {
            assert!(privilege.contains(part), "{part}:\n{privilege}");
        }
        assert!(of(Group::Cost).contains("budget.calls was `100`, and is `200`"), "{}", of(Group::Cost));
        assert!(
            of(Group::Behaviour).contains("\n    - In five steps.\n    + In ten steps."),
            "{}",
            of(Group::Behaviour)
        );
        assert!(of(Group::Structure).contains("step `publish` of `p`: needs"), "{}", of(Group::Structure));
    }

    #[test]
    fn what_only_moved_is_no_difference() {
        let moved = format!("// A comment.\n\n{OLD}");
        assert_eq!(render_lines(&format_differences(&plan(OLD), &plan(&moved)), Paint::NONE), "no differences\n");
    }
}
