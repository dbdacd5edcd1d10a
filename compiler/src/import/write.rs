//! Writes the converted spec: builds a document with the `kdl` crate, and formats it with our formatter.

use std::collections::BTreeMap;

use kdl::{KdlDocument, KdlEntry, KdlEntryFormat, KdlNode, KdlNodeFormat};

use super::convert::{Agent, Body, Carried, Pipeline, Task, output_placeholder};

/// Comments about one node at most.
const MOST: usize = 20;

/// The text of a spec.
pub(super) fn render_spec(carried: &Carried, lost: &BTreeMap<u32, Vec<String>>) -> String {
    let mut document = KdlDocument::new();
    let nodes = document.nodes_mut();
    let mut workflow = make_node("workflow", [&carried.name]);
    if let Some(text) = &carried.description {
        push(&mut workflow, make_node("description", [text]));
    }
    if let Some(first) = carried.pipelines.first() {
        push(&mut workflow, make_node("default", [&first.name]));
    }
    nodes.push(add_comments(workflow, &[], lost.get(&0)));
    for preset in &carried.presets {
        let mut provider = make_node("provider", [preset]);
        set_property(&mut provider, "preset", preset.as_str());
        nodes.push(add_comments(provider, &[], None));
    }
    nodes.extend(carried.agents.iter().map(render_agent));
    let several = carried.agents.len() > 1;
    nodes.extend(carried.tasks.iter().map(|it| add_comments(render_task(it, several), &it.comments, lost.get(&it.at))));
    for it in &carried.pipelines {
        let lost = it.at.and_then(|at| lost.get(&at));
        nodes.push(add_comments(render_pipeline(it), &it.comments, lost));
    }
    let text = document.to_string();
    // What `kdl` writes is KDL; were it not, its text would still be the better answer than none.
    crate::format_document(&text).unwrap_or(text)
}

fn render_agent(agent: &Agent) -> KdlNode {
    let mut node = make_node("agent", [&agent.name]);
    set_property(&mut node, "provider", agent.preset.as_str());
    if let Some(model) = &agent.model {
        set_property(&mut node, "model", model.as_str());
    }
    node
}

fn render_task(task: &Task, several: bool) -> KdlNode {
    let mut out = make_node("task", [&task.name]);
    if let Some(agent) = task.agent.as_ref().filter(|_| several) {
        set_property(&mut out, "agent", agent.as_str());
    }
    if let Some(text) = &task.description {
        push(&mut out, make_node("description", [text]));
    }
    for (needed, when) in &task.needs {
        let mut depends = make_node("depends-on", [needed]);
        if *when != "success" {
            set_property(&mut depends, "when", when);
        }
        push(&mut out, depends);
    }
    for (port, from) in &task.inputs {
        let mut input = make_node("input", [port]);
        set_property(&mut input, "from", from.as_str());
        push(&mut out, input);
    }
    if let Some(text) = &task.prefix {
        push(&mut out, text_node("prefix", text));
    }
    push(
        &mut out,
        match &task.body {
            Body::Prompt(text) => text_node("prompt", text),
            Body::File(path) => {
                let mut prompt = make_node("prompt", []);
                set_property(&mut prompt, "file", path.as_str());
                prompt
            }
            Body::Nothing => make_node("value", [&output_placeholder(&task.name)]),
        },
    );
    if let Some(text) = &task.suffix {
        push(&mut out, text_node("suffix", text));
    }
    if task.may_fail {
        let mut output = make_node("output", []);
        set_property(&mut output, "default", &output_placeholder(&task.name));
        push(&mut out, output);
    }
    if let Some(count) = task.concurrency {
        push(&mut out, number_node("concurrency", count));
    }
    out
}

fn render_pipeline(pipeline: &Pipeline) -> KdlNode {
    let mut out = make_node("pipeline", [&pipeline.name]);
    if let Some(text) = &pipeline.description {
        push(&mut out, make_node("description", [text]));
    }
    let counts = [
        ("iterations", pipeline.iterations),
        ("parallelism", pipeline.parallelism),
        ("concurrency", pipeline.concurrency),
    ];
    for (name, count) in counts {
        if let Some(count) = count {
            push(&mut out, number_node(name, count));
        }
    }
    let mut used = make_node("use", pipeline.tasks.iter());
    if pipeline.partial {
        used.push(("partial", true));
    }
    push(&mut out, used);
    out
}

fn make_node<'t>(name: &str, arguments: impl IntoIterator<Item = &'t String>) -> KdlNode {
    let mut node = KdlNode::new(name);
    node.entries_mut()
        .extend(arguments.into_iter().map(|argument| escape_entry(KdlEntry::new(argument.as_str()), argument)));
    node
}

/// A property.
fn set_property(node: &mut KdlNode, name: &str, value: &str) {
    node.push(escape_entry(KdlEntry::new_prop(name, value), value));
}

/// Writes invisible characters as escapes: `kdl` writes them as they are.
pub(crate) fn escape_entry(mut entry: KdlEntry, text: &str) -> KdlEntry {
    if text.chars().any(is_odd) {
        entry.set_format(KdlEntryFormat {
            value_repr: quote_text(text),
            leading: " ".to_owned(),
            ..KdlEntryFormat::default()
        });
    }
    entry
}

fn quote_text(text: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '\r' => "\\r".to_owned(),
        c if is_odd(c) => format!("\\u{{{:x}}}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

fn number_node(name: &str, count: u64) -> KdlNode {
    let mut node = KdlNode::new(name);
    node.push(i128::from(count));
    node
}

/// A node with a text that may go over lines.
fn text_node(name: &str, text: &str) -> KdlNode {
    let mut node = KdlNode::new(name);
    let mut entry = escape_entry(KdlEntry::new(text), text);
    if let Some(lines) = quote_lines(text) {
        entry.set_format(KdlEntryFormat {
            value_repr: lines,
            leading: " ".to_owned(),
            autoformat_keep: true,
            ..KdlEntryFormat::default()
        });
    }
    node.push(entry);
    node
}

/// A text over lines as it would be typed; none where it has one line, or characters that only an escape can write.
fn quote_lines(text: &str) -> Option<String> {
    const INDENT: &str = "        ";
    let text = text.strip_suffix('\n').unwrap_or(text);
    let typed = |c: char| c == '\n' || c == '\t' || !is_odd(c);
    let blank = |line: &str| !line.is_empty() && line.trim().is_empty();
    // Between such quotes, KDL empties a line of blanks alone.
    if !text.contains('\n') || !text.chars().all(typed) || text.lines().any(blank) {
        return None;
    }
    // One more than ever follow three quotes.
    let after = |quotes: &str| quotes.len() - quotes.trim_start_matches('#').len();
    let most = text.split("\"\"\"").skip(1).map(|rest| after(rest.trim_start_matches('"'))).max();
    let marks = "#".repeat(1 + most.unwrap_or(0));
    let mut out = format!("{marks}\"\"\"\n");
    for line in text.split('\n') {
        if !line.is_empty() {
            out.push_str(INDENT);
            out.push_str(line);
        }
        out.push('\n');
    }
    Some(out + INDENT + "\"\"\"" + &marks)
}

/// Whether KDL has another meaning for a character, or none.
fn is_odd(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
        || matches!(c, '\u{2028}' | '\u{2029}')
}

fn push(parent: &mut KdlNode, child: KdlNode) {
    parent.ensure_children().nodes_mut().push(child);
}

/// With comments of its own above it, and what was lost.
fn add_comments(mut node: KdlNode, own: &[String], lost: Option<&Vec<String>>) -> KdlNode {
    let lost = lost.map_or(&[][..], Vec::as_slice);
    let mut leading = "\n".to_owned();
    let more = (lost.len() > MOST).then(|| format!("and {} more that are not carried over", lost.len() - MOST));
    for comment in own.iter().chain(lost.iter().take(MOST)).chain(&more) {
        // A line break would end the comment, and the spec would go on with the rest.
        let words: String = comment.chars().map(|c| if is_odd(c) { ' ' } else { c }).collect();
        leading.push_str(&format!("// {}\n", words.trim_end()));
    }
    node.set_format(KdlNodeFormat {
        leading,
        before_children: " ".to_owned(),
        terminator: "\n".to_owned(),
        ..KdlNodeFormat::default()
    });
    node
}
