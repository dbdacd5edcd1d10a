//! What texts and conditions say, as tables.

use super::*;

fn show(text: &str) -> String {
    let template = scan(text);
    let mut lines = Vec::new();
    for part in &template.parts {
        lines.push(match part {
            Part::Text(range) => format!("text {:?}", &text[range.clone()]),
            Part::Escape(range) => format!("escape {:?}", &text[range.clone()]),
            Part::Logic(range) => format!("logic {}", &text[range.clone()]),
            Part::Directive(d) => format!("{d:?}"),
        });
    }
    for r in &template.reads {
        lines.push(format!("{r:?}"));
    }
    for r in &template.problems {
        lines.push(format!("{:?}: {r:?}", &text[r.range.clone()]));
    }
    lines.join("\n")
}
#[test]
fn look() {
    for t in [
        "a <<output:x.y | tail:3 | default:\"a\">> b \\<<c>> <<EOF {% if output.x is defined %}<<output:x>>{% else %}<<output:x>>{% endif %}",
        "{{ output.topic-finder | upperr }} {{ foo }} {% if status.a == \"success\" %}{% endif %}",
    ] {
        println!("{}\n", show(t));
    }
    println!("{:?}", expression("status.a == \"failed\" and exit.b == 0"));
}
