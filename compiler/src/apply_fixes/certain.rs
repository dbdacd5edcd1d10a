//! What `swarmc check --fix` mends alone: broken specs of which only one reading is left, and some of which more are.

use std::collections::BTreeMap;

use super::{Mended, Overlay, fix_spec};
use crate::code::Code;
use crate::files::Files;
use crate::settings::Settings;

const HEAD: &str =
    "provider local { exec cat }\nagent writer provider=local\ntype Verdict { approved bool; reason string }\n";

fn fix_body(body: &str) -> (String, Mended) {
    let spec = format!("{HEAD}{body}");
    let prompt = "Write it.\n".to_owned();
    let files = BTreeMap::from([("a.kdl".to_owned(), spec), ("prompts/one.md".to_owned(), prompt)]);
    let mut overlay = Overlay::new(&files);
    let mended = fix_spec("a.kdl", &mut overlay, &Settings::default(), false);
    let text = overlay.read("a.kdl").expect("it is there").to_string();
    (text[HEAD.len()..].to_owned(), mended)
}

/// Each broken spec, and what becomes of it.
const BROKEN: &[(&str, &str)] = &[
    (
        "pipeline p { task draft { prompt \"x\" }; task review { depends-on drafd; run echo ok } }\n",
        "pipeline p { task draft { prompt \"x\" }; task review { depends-on draft; run echo ok } }\n",
    ),
    (
        "pipeline p { task draft { prompt \"x\" }; task review { run cat; stdin \"See <<output:draft>, please\" } }\n",
        "pipeline p { task draft { prompt \"x\" }; task review { run cat; stdin \"See <<output:draft>>, please\" } }\n",
    ),
    (
        "pipeline p { task draft { prompt \"x\" }; task review { run cat; stdin \"See <<outptu:drafft>>\" } }\n",
        "pipeline p { task draft { prompt \"x\" }; task review { run cat; stdin \"See <<output:draft>>\" } }\n",
    ),
    (
        "pipeline p { task judge { promt \"x\"; outptu Verdict }; task go { when \"output.judge.aproved\"; run date } }\n",
        "pipeline p { task judge { prompt \"x\"; output Verdict }; task go { when \"output.judge.approved\"; run date } }\n",
    ),
    (
        "pipeline p { task list { run ls; timeout \"5m\" }; task count { run wc -l < list.txt > count.txt } }\n",
        "pipeline p { task list { run ls; timeout \"5m\" }; task count { run \"wc -l < list.txt > count.txt\" } }\n",
    ),
    (
        "pipeline p { task one { prompt \"prompts/one.md\"; output { done boolean } } }\n",
        "pipeline p { task one { prompt file=\"prompts/one.md\"; output { done bool } } }\n",
    ),
    (
        "pipeline p { task one { prompt file=\"prompts/ome.md\"; retry 2 backof=\"1s\" } }\n",
        "pipeline p { task one { prompt file=\"prompts/one.md\"; retry 2 backoff=\"1s\" } }\n",
    ),
    (
        "pipeline p {\n    task judge { prompt \"x\"; output Verdict }\n    task ok { when \"output.judge.approved && output.judge.reason != ''\"; run echo ok }\n}\n",
        "pipeline p {\n    task judge { prompt \"x\"; output Verdict }\n    task ok { when \"output.judge.approved and output.judge.reason != ''\"; run echo ok }\n}\n",
    ),
    (
        "pipeline p { task each { for-each \"[{'id': 'a'}]\"; run cat; stdin \"<<item:id>> {{output:other}}\" }; task other { run date } }\n",
        "pipeline p { task each { for-each \"[{'id': 'a'}]\"; run cat; stdin \"<<item.id>> <<output:other>>\" }; task other { run date } }\n",
    ),
    (
        "pipeline p {\n    loop polish {\n        task mend agent=writr { prompt \"Mend\"; output Verdict }\n        until \"output.mend.approvd\"\n    }\n}\n",
        "pipeline p {\n    loop polish max=5 {\n        task mend agent=writer { prompt \"Mend\"; output Verdict }\n        until \"output.mend.approved\"\n    }\n}\n",
    ),
    (
        "pipeline p { task a { call sub n=3 b=#true } }\npipeline sub { param n; param b; task a { run cat; stdin \"<<param:n>> <<param:b>>\" } }\n",
        "pipeline p { task a { call sub n=\"3\" b=\"true\" } }\npipeline sub { param n; param b; task a { run cat; stdin \"<<param:n>> <<param:b>>\" } }\n",
    ),
];

#[test]
fn broken_specs_are_mended_completely() {
    for (broken, right) in BROKEN {
        let (text, done) = fix_body(broken);
        // Not all of them use all that stands above.
        let left = done.compilation.diagnostics.iter().filter(|left| left.code != Code::UnusedDefinition);
        let left: Vec<&str> = left.map(|left| left.message.as_str()).collect();
        assert!(left.is_empty() && done.compilation.plan.is_some(), "{text}{left:?}");
        assert_eq!(text, *right);
    }
}

#[test]
fn what_has_two_readings_is_left_alone() {
    for broken in [
        // Two names are as close, a name differs in its number, and a short one may be anything.
        "pipeline p { task reviewer { run date }; task reviewed { run date }; task a { depends-on reviewe; run date } }\n",
        "pipeline p { task test1 { run date }; task a { depends-on test2; run date } }\n",
        "pipeline p { task lag { run date }; task a { depends-on log; run date } }\n",
        // The name that is meant would close a circle.
        "pipeline p { task first { depends-on secont; run date }; task second { depends-on first; run date } }\n",
        // How long, and what becomes of a gate.
        "pipeline p { task a { run date; timeout 5 } }\n",
        "pipeline p { task a { run date }; gate human { depends-on a; options yes no } }\n",
    ] {
        let (text, done) = fix_body(broken);
        assert_eq!(text, broken);
        assert!(done.applied.is_empty() && !done.compilation.diagnostics.is_empty());
    }
}

#[test]
fn nothing_else_is_touched() {
    let broken = "// A comment.\npipeline  p   {\n\ttask draft { prompt \"x\" } // drafd\n  task review  { depends-on drafd ;run echo   ok }\n}\n\n";
    let (text, _) = fix_body(broken);
    assert_eq!(text, broken.replacen("depends-on drafd", "depends-on draft", 1));
}
