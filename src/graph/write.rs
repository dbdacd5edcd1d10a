//! The notations: Mermaid, as GitHub and many editors draw it, and DOT of Graphviz.

use std::fmt::Write;

use swarmc_view::graph::{Arrow, Graph, Group, Node, Shape};

/// How high Mermaid's lines are, in pixels.
const MERMAID_LINE: usize = 24;

/// <https://mermaid.js.org/syntax/flowchart.html>
pub(super) fn render_mermaid(graph: &Graph) -> String {
    let mut out = String::new();
    // Titles of several lines would stand on the boxes below them.
    let below = graph.groups.iter().map(title_lines).max().unwrap_or(1).saturating_sub(1) * MERMAID_LINE;
    if below > 0 {
        let _ = writeln!(out, "%%{{init: {{\"flowchart\": {{\"subGraphTitleMargin\": {{\"bottom\": {below}}}}}}}}}%%");
    }
    out.push_str("flowchart TB\n");
    graph.groups.iter().for_each(|group| mermaid_group(&mut out, group, 1));
    for Arrow { from, to, label, is_message, both, .. } in &graph.arrows {
        let line = match (is_message, both) {
            (true, true) => "<-.->",
            (true, false) => "-.->",
            (false, _) => "-->",
        };
        match label.is_empty() {
            true => _ = writeln!(out, "    {from} {line} {to}"),
            false => _ = writeln!(out, "    {from} {line}|\"{}\"| {to}", mermaid_text(label)),
        }
    }
    out
}

/// The most lines that the title of a group, or of one in it, has.
fn title_lines(group: &Group) -> usize {
    group.groups.iter().map(title_lines).fold(group.heading_lines().len(), usize::max)
}

fn mermaid_group(out: &mut String, group: &Group, depth: usize) {
    let indent = "    ".repeat(depth);
    let _ = writeln!(
        out,
        "{indent}subgraph {} [\"{}\"]",
        group.id,
        join_lines(&group.heading_lines(), mermaid_text, "<br>")
    );
    let _ = writeln!(out, "{indent}    direction TB");
    for Node { id, lines: text, shape, .. } in &group.nodes {
        let (open, close) = match shape {
            Shape::Agent => ("(", ")"),
            Shape::Command => ("[", "]"),
            Shape::Value => ("[/", "/]"),
            Shape::Gate => ("{{", "}}"),
            Shape::Stop => ("([", "])"),
            Shape::Call => ("[[", "]]"),
        };
        let _ = writeln!(out, "{indent}    {id}{open}\"{}\"{close}", join_lines(text, mermaid_text, "<br>"));
    }
    group.groups.iter().for_each(|inner| mermaid_group(out, inner, depth + 1));
    let _ = writeln!(out, "{indent}end");
}

/// Text between quotes, where `#` begins an entity and HTML is HTML.
fn mermaid_text(text: &str) -> String {
    let mut out = String::new();
    for sign in text.chars() {
        match sign {
            '"' | '#' | '<' | '>' | '&' | '`' => _ = write!(out, "#{};", u32::from(sign)),
            sign if sign.is_control() => out.push(' '),
            sign => out.push(sign),
        }
    }
    out
}

/// <https://graphviz.org/doc/info/lang.html>
pub(super) fn render_dot(graph: &Graph) -> String {
    let mut out = String::from(
        "digraph workflow {\n    compound=true;\n    fontname=\"sans-serif\";\n    node [fontname=\"sans-serif\"];\n    edge [fontname=\"sans-serif\"];\n",
    );
    let mut frames = Vec::new();
    graph.groups.iter().for_each(|group| dot_group(&mut out, group, 1, &mut frames));
    for Arrow { from, to, label, is_message, both, .. } in &graph.arrows {
        let mut attributes = Vec::new();
        // An arrow ends at a box: one that means a frame ends at the first box in it, or begins at the last, and is cut off
        // where the frame is.
        let mut end = |id: &str, attribute: &str| match frames.iter().find(|frame| frame.id == id) {
            Some(frame) => {
                attributes.push(format!("{attribute}=\"cluster_{id}\""));
                if attribute == "lhead" { frame.first } else { frame.last }.to_owned()
            }
            None => id.to_owned(),
        };
        let (from, to) = (end(from, "ltail"), end(to, "lhead"));
        if !label.is_empty() {
            attributes.push(format!("label=\"{}\"", dot_text(label)));
        }
        if *is_message {
            attributes.push("style=dashed".to_owned());
        }
        if *both {
            attributes.push("dir=both".to_owned());
        }
        match attributes.is_empty() {
            true => _ = writeln!(out, "    {from} -> {to};"),
            false => _ = writeln!(out, "    {from} -> {to} [{}];", attributes.join(", ")),
        }
    }
    out.push_str("}\n");
    out
}

/// A group with the first and the last box in it.
struct Frame<'g> {
    id: &'g str,
    first: &'g str,
    last: &'g str,
}

/// Writes a group, and notes every frame.
fn dot_group<'g>(out: &mut String, group: &'g Group, depth: usize, frames: &mut Vec<Frame<'g>>) {
    let indent = "    ".repeat(depth);
    let _ = writeln!(out, "{indent}subgraph \"cluster_{}\" {{", group.id);
    let _ = writeln!(out, "{indent}    label=\"{}\";", join_lines(&group.heading_lines(), dot_text, "\\n"));
    for Node { id, lines: text, shape, .. } in &group.nodes {
        let shape = match shape {
            Shape::Agent => "shape=box, style=rounded",
            Shape::Command => "shape=box",
            Shape::Value => "shape=parallelogram",
            Shape::Gate => "shape=hexagon",
            Shape::Stop => "shape=oval",
            Shape::Call => "shape=box, peripheries=2",
        };
        let _ = writeln!(out, "{indent}    {id} [{shape}, label=\"{}\"];", join_lines(text, dot_text, "\\n"));
    }
    group.groups.iter().for_each(|inner| dot_group(out, inner, depth + 1, frames));
    let _ = writeln!(out, "{indent}}}");
    if let (Some(first), Some(last)) = (first_id(group), last_id(group)) {
        frames.push(Frame { id: &group.id, first, last });
    }
}

fn first_id(group: &Group) -> Option<&str> {
    group.nodes.first().map(|node| node.id.as_str()).or_else(|| group.groups.iter().find_map(first_id))
}

fn last_id(group: &Group) -> Option<&str> {
    group.nodes.last().map(|node| node.id.as_str()).or_else(|| group.groups.iter().rev().find_map(last_id))
}

/// Lines as one label.
fn join_lines(lines: &[String], text: fn(&str) -> String, between: &str) -> String {
    lines.iter().map(|line| text(line)).collect::<Vec<_>>().join(between)
}

fn dot_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace(|sign: char| sign.is_control(), " ")
}
