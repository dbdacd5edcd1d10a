//! SVG: a picture that any browser shows, with nothing beside it, in colours for light and dark.
//!
//! In: a graph. Out: one SVG document. What a spec or plan says is text in it, never markup.

use std::fmt::Write;

use swarmc_view::graph::{
    Drawn, Graph, Group, LINE, NAME_LINE, Node, Picture, Point, Rect, SLANT, Shape, TooLarge, layout_picture,
};

/// Light, then dark. Plain rules, as not every program that shows SVG knows variables.
const STYLE: &str = "\
text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace;font-size:11px;fill:#57606a}
.name{font-size:13px;fill:#1f2328}
.paper{fill:#ffffff}
.frame{fill:#656d76;fill-opacity:.06;stroke:#8c959f}
.box{fill:#ffffff;stroke:#57606a;stroke-width:1.2}
.agent{fill:#ddf4ff;stroke:#0969da}
.gate{fill:#fff8c5;stroke:#9a6700}
.stop{fill:#ffebe9;stroke:#cf222e}
.call{fill:#fbefff;stroke:#8250df}
.value{fill:#f6f8fa}
.line{fill:none;stroke:#57606a;stroke-width:1.2}
.message{stroke:#8250df;stroke-dasharray:5 3}
.again{stroke:#1a7f37}
.wire:hover .line{stroke-width:2.6}
.tip{fill:#57606a}
.message-tip{fill:#8250df}
.again-tip{fill:#1a7f37}
@media(prefers-color-scheme:dark){
text{fill:#9198a1}
.name{fill:#f0f6fc}
.paper{fill:#0d1117}
.frame{fill:#9198a1;fill-opacity:.08;stroke:#656c76}
.box{fill:#151b23;stroke:#9198a1}
.agent{fill:#0c2d6b;stroke:#58a6ff}
.gate{fill:#3b2300;stroke:#d29922}
.stop{fill:#490202;stroke:#f85149}
.call{fill:#2b1052;stroke:#bc8cff}
.value{fill:#212830}
.line{stroke:#9198a1}
.message{stroke:#bc8cff}
.again{stroke:#3fb950}
.tip{fill:#9198a1}
.message-tip{fill:#bc8cff}
.again-tip{fill:#3fb950}
}
";

pub(super) fn render_svg(graph: &Graph) -> Result<String, TooLarge> {
    Ok(render_document(&layout_picture(graph)?))
}

fn render_document(picture: &Picture<'_>) -> String {
    let (width, height) = (picture.size.width.ceil(), picture.size.height.ceil());
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         aria-label=\"{}\">\n<style>\n{STYLE}</style>\n<defs>\n",
        escape_xml(&picture.frames.iter().map(|(_, group)| group.title.as_str()).collect::<Vec<_>>().join(", "))
    );
    for name in ["tip", "message-tip", "again-tip"] {
        let _ = writeln!(
            out,
            "<marker id=\"{name}\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
             markerUnits=\"userSpaceOnUse\" orient=\"auto-start-reverse\"><path class=\"{name}\" d=\"M0 0.5L8 4L0 7.5Z\"/></marker>"
        );
    }
    out.push_str("</defs>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
    // SVG paints in the order of its text: what comes later covers the ends of the wires.
    picture.frames.iter().for_each(|(rect, group)| write_frame(&mut out, *rect, group));
    picture.wires.iter().for_each(|drawn| write_wire(&mut out, drawn));
    picture.boxes.iter().for_each(|(rect, node)| node_box(&mut out, *rect, node));
    // Arrows that share a line share its label.
    let mut labels: Vec<(Rect, &[String])> =
        picture.wires.iter().filter_map(|drawn| Some((drawn.wire.label?, drawn.label.as_slice()))).collect();
    labels.sort_by(|a, b| a.0.at.y.total_cmp(&b.0.at.y).then(a.0.at.x.total_cmp(&b.0.at.x)));
    labels.dedup();
    for (rect, lines) in labels {
        let middle = rect.at.x + rect.size.width / 2.0;
        for (index, line) in lines.iter().enumerate() {
            write_text(&mut out, "", middle, rect.at.y + index as f64 * LINE + 11.0, "middle", line);
        }
    }
    out.push_str("</svg>\n");
    out
}

fn write_frame(out: &mut String, Rect { at, size }: Rect, group: &Group) {
    let _ = writeln!(
        out,
        "<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"8\"/>",
        round_tenth(at.x),
        round_tenth(at.y),
        round_tenth(size.width),
        round_tenth(size.height)
    );
    write_text(out, "name", at.x + 10.0, at.y + NAME_LINE, "start", &group.title);
    for (index, line) in group.notes.iter().enumerate() {
        write_text(out, "", at.x + 10.0, at.y + NAME_LINE + (index + 1) as f64 * LINE, "start", line);
    }
}

fn node_box(out: &mut String, Rect { at: Point { x, y }, size }: Rect, node: &Node) {
    let (right, bottom, middle) = (x + size.width, y + size.height, y + size.height / 2.0);
    let class = match node.shape {
        Shape::Agent => "box agent",
        Shape::Command => "box",
        Shape::Value => "box value",
        Shape::Gate => "box gate",
        Shape::Stop => "box stop",
        Shape::Call => "box call",
    };
    let _ = writeln!(out, "<g><title>{}</title>", escape_xml(&node.about.join("\n")));
    let polygon = |out: &mut String, corners: &[(f64, f64)]| {
        let points: Vec<String> =
            corners.iter().map(|(x, y)| format!("{},{}", round_tenth(*x), round_tenth(*y))).collect();
        let _ = writeln!(out, "<polygon class=\"{class}\" points=\"{}\"/>", points.join(" "));
    };
    let rect = |out: &mut String, by: f64, round: f64| {
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"/>",
            round_tenth(x + by),
            round_tenth(y + by),
            round_tenth(size.width - 2.0 * by),
            round_tenth(size.height - 2.0 * by),
            round_tenth(round)
        );
    };
    if node.is_many {
        // A second one behind it, whose corner shows.
        let _ = writeln!(
            out,
            "<path class=\"{class}\" d=\"M{} {}V{}H{}\" style=\"fill:none\"/>",
            round_tenth(right + 3.0),
            round_tenth(y + 6.0),
            round_tenth(bottom + 3.0),
            round_tenth(x + 6.0)
        );
    }
    match node.shape {
        Shape::Agent => rect(out, 0.0, 9.0),
        Shape::Command => rect(out, 0.0, 0.0),
        Shape::Stop => rect(out, 0.0, SLANT),
        Shape::Call => {
            rect(out, 0.0, 0.0);
            rect(out, 3.0, 0.0);
        }
        Shape::Value => polygon(out, &[(x + SLANT, y), (right, y), (right - SLANT, bottom), (x, bottom)]),
        Shape::Gate => {
            let (left_in, right_in) = (x + SLANT, right - SLANT);
            polygon(
                out,
                &[(left_in, y), (right_in, y), (right, middle), (right_in, bottom), (left_in, bottom), (x, middle)],
            );
        }
    }
    let all = NAME_LINE + node.lines.len().saturating_sub(1) as f64 * LINE;
    let top = middle - all / 2.0;
    for (index, line) in node.lines.iter().enumerate() {
        let (class, base) = if index == 0 { ("name", 13.0) } else { ("", NAME_LINE + index as f64 * LINE - 4.0) };
        write_text(out, class, x + size.width / 2.0, top + base, "middle", line);
    }
    out.push_str("</g>\n");
}

fn write_wire(out: &mut String, drawn: &Drawn<'_>) {
    let (class, tip) = match drawn.arrow {
        Some(arrow) if arrow.is_message => ("line message", "message-tip"),
        Some(_) => ("line", "tip"),
        None => ("line again", "again-tip"),
    };
    let _ = writeln!(out, "<g class=\"wire\"><title>{}</title>", escape_xml(&drawn.describe()));
    // Where a label interrupts the line, only the outer ends of its parts have heads.
    let last = drawn.wire.parts.len().saturating_sub(1);
    for (index, part) in drawn.wire.parts.iter().enumerate() {
        let start = if index == 0 && drawn.arrow.is_some_and(|arrow| arrow.both) {
            format!(" marker-start=\"url(#{tip})\"")
        } else {
            String::new()
        };
        let end = if index == last { format!(" marker-end=\"url(#{tip})\"") } else { String::new() };
        let _ = writeln!(out, "<path class=\"{class}\" d=\"{}\"{start}{end}/>", path_data(part));
    }
    out.push_str("</g>\n");
}

/// Straight where x or y stays, else a curve that begins and ends vertically.
fn path_data(points: &[Point]) -> String {
    let mut out = String::new();
    let mut before: Option<(f64, f64)> = None;
    for point in points {
        // What is one point when rounded is one: the direction of nothing would be that of the arrow's head.
        let here @ (x, y) = (round_tenth(point.x), round_tenth(point.y));
        let _ = match before {
            Some(before) if before == here => continue,
            Some((same, _)) if same == x => write!(out, "V{y}"),
            Some((_, same)) if same == y => write!(out, "H{x}"),
            Some((from, above)) => {
                let middle = round_tenth((above + y) / 2.0);
                write!(out, "C{from} {middle} {x} {middle} {x} {y}")
            }
            None => write!(out, "M{x} {y}"),
        };
        before = Some(here);
    }
    out
}

fn write_text(out: &mut String, class: &str, x: f64, y: f64, anchor: &str, line: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let anchor = if anchor == "start" { String::new() } else { format!(" text-anchor=\"{anchor}\"") };
    let _ = writeln!(
        out,
        "<text{class} x=\"{}\" y=\"{}\"{anchor}>{}</text>",
        round_tenth(x),
        round_tenth(y),
        escape_xml(line)
    );
}

/// A tenth of a pixel is enough.
fn round_tenth(value: f64) -> f64 {
    let rounded = (value * 10.0).round() / 10.0;
    // Not -0.
    rounded + 0.0
}

/// Text for between tags and in attributes: without what would be markup, and without what XML forbids.
fn escape_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push('\n'),
            sign if sign.is_control() || matches!(sign, '\u{FFFE}' | '\u{FFFF}') => out.push(' '),
            sign => out.push(sign),
        }
    }
    out
}
