//! The notations: Mermaid, as GitHub and many editors draw it, and DOT of Graphviz.

use std::fmt::Write;

use super::{Arrow, Graph, Group, Node, Shape};

/// <https://mermaid.js.org/syntax/flowchart.html>
pub(super) fn mermaid(graph: &Graph) -> String {
    let mut out = String::from("flowchart TD\n");
    graph.groups.iter().for_each(|group| mermaid_group(&mut out, group, 1));
    for Arrow { from, to, label, is_message, both } in &graph.arrows {
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

fn mermaid_group(out: &mut String, group: &Group, depth: usize) {
    let indent = "    ".repeat(depth);
    let _ = writeln!(out, "{indent}subgraph {} [\"{}\"]", group.id, mermaid_text(&group.title));
    for Node { id, lines, shape } in &group.nodes {
        let (open, close) = match shape {
            Shape::Agent => ("(", ")"),
            Shape::Command => ("[", "]"),
            Shape::Value => ("[/", "/]"),
            Shape::Gate => ("{{", "}}"),
            Shape::Stop => ("([", "])"),
            Shape::Call => ("[[", "]]"),
        };
        let text: Vec<String> = lines.iter().map(|line| mermaid_text(line)).collect();
        let _ = writeln!(out, "{indent}    {id}{open}\"{}\"{close}", text.join("<br>"));
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
pub(super) fn dot(graph: &Graph) -> String {
    let mut out = String::from(
        "digraph workflow {\n    compound=true;\n    node [fontname=\"sans-serif\"];\n    edge [fontname=\"sans-serif\"];\n",
    );
    let mut frames = Vec::new();
    graph.groups.iter().for_each(|group| dot_group(&mut out, group, 1, &mut frames));
    for Arrow { from, to, label, is_message, both } in &graph.arrows {
        let mut attributes = Vec::new();
        // An arrow ends at a box: one that means a frame ends at a box in it, cut off where the frame is.
        let mut end = |id: &str, attribute: &str| match frames.iter().find(|(frame, _)| frame == id) {
            Some((frame, inner)) => {
                attributes.push(format!("{attribute}=\"cluster_{frame}\""));
                inner.clone()
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

/// Writes a group; `frames` gets every group with the first box in it.
fn dot_group(out: &mut String, group: &Group, depth: usize, frames: &mut Vec<(String, String)>) {
    let indent = "    ".repeat(depth);
    let _ = writeln!(out, "{indent}subgraph \"cluster_{}\" {{", group.id);
    let _ = writeln!(out, "{indent}    label=\"{}\";", dot_text(&group.title));
    for Node { id, lines, shape } in &group.nodes {
        let shape = match shape {
            Shape::Agent => "shape=box, style=rounded",
            Shape::Command => "shape=box",
            Shape::Value => "shape=parallelogram",
            Shape::Gate => "shape=hexagon",
            Shape::Stop => "shape=oval",
            Shape::Call => "shape=box, peripheries=2",
        };
        let text: Vec<String> = lines.iter().map(|line| dot_text(line)).collect();
        let _ = writeln!(out, "{indent}    {id} [{shape}, label=\"{}\"];", text.join("\\n"));
    }
    group.groups.iter().for_each(|inner| dot_group(out, inner, depth + 1, frames));
    let _ = writeln!(out, "{indent}}}");
    if let Some(first) = first(group) {
        frames.push((group.id.clone(), first.to_owned()));
    }
}

fn first(group: &Group) -> Option<&str> {
    group.nodes.first().map(|node| node.id.as_str()).or_else(|| group.groups.iter().find_map(first))
}

fn dot_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace(|sign: char| sign.is_control(), " ")
}
