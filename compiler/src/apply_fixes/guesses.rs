//! What `swarmc check --fix --unsafe` writes, and what it leaves alone.

use std::collections::BTreeMap;

use super::{Mended, Overlay, fix_spec};
use crate::files::Files;
use crate::settings::Settings;

fn fix_body(body: &str) -> (String, Mended) {
    let files = BTreeMap::from([("a.kdl".to_owned(), body.to_owned())]);
    let mut overlay = Overlay::new(&files);
    let mended = fix_spec("a.kdl", &mut overlay, &Settings::default(), true);
    (overlay.read("a.kdl").expect("it is there").to_string(), mended)
}

/// A pipeline whose task `a` has this body.
fn write_task(body: &str) -> String {
    format!("pipeline p {{ task b {{ run date }}; task a {{ {body} }} }}\n")
}

#[test]
fn values_reach_commands_in_a_variable() {
    let value = r#"env VALUE="<<output:b>>""#;
    for (body, right) in [
        (r#"run echo "<<output:b>>""#, r##"run #"echo "$VALUE""#"##),
        (r#"run "echo <<output:b>>""#, r##"run #"echo "$VALUE""#"##),
        (r##"run #"echo "x <<output:b>>y""#"##, r##"run #"echo "x ${VALUE}y""#"##),
        (r##"run #"echo "$(cat <<output:b>>)""#"##, r##"run #"echo "$(cat "$VALUE")""#"##),
        // What only a shell understands stays what it is.
        (r#"run echo "<<output:b>>" | tr a-z A-Z"#, r##"run #"echo "$VALUE" | tr a-z A-Z"#"##),
        (r#"run echo "<<output:b>>" "|" > out.txt"#, r##"run #"echo "$VALUE" '|' > out.txt"#"##),
        (r#"run echo "$HOME" "<<output:b>>""#, r##"run #"echo "$HOME" "$VALUE""#"##),
        // Between the quotes of the script it is an argument as well.
        (r#"run sh -c "echo <<output:b>>""#, r##"run sh -c #"echo "$VALUE""#"##),
        (r##"run sh -c #"echo "<<output:b>>""# x; timeout "1m""##, r##"run sh -c #"echo "$VALUE""# x"##),
    ] {
        let (text, done) = fix_body(&write_task(body));
        let rest = if body.contains("timeout") { "; timeout \"1m\"" } else { "" };
        assert_eq!(text, write_task(&format!("{right}; {value}{rest}")));
        assert!(done.compilation.diagnostics.is_empty(), "{body}: {:?}", done.compilation.diagnostics);
    }
}

#[test]
fn what_is_meant_is_written_as_it_is_meant() {
    for (spec, right) in [
        (
            "param n int\npipeline p { task a { run cat; stdin \"<<param:n>>\" } }\n",
            "param n type=int\npipeline p { task a { run cat; stdin \"<<param:n>>\" } }\n",
        ),
        (
            "param n enum low high\npipeline p { task a { run cat; stdin \"<<param:n>>\" } }\n",
            "param n type=\"enum low high\"\npipeline p { task a { run cat; stdin \"<<param:n>>\" } }\n",
        ),
        ("pipeline p { task a { run ls [ab]* } }\n", "pipeline p { task a { run \"ls [ab]*\" } }\n"),
        (
            "pipeline p { task a { run date; output int 5 } }\n",
            "pipeline p { task a { run date; output int default=5 } }\n",
        ),
    ] {
        let (text, done) = fix_body(spec);
        assert_eq!(text, right);
        assert!(done.compilation.plan.is_some(), "{text}");
    }
}

#[test]
fn values_that_a_command_would_run_are_left_alone() {
    for body in [
        r##"run "sh -c \"echo <<output:b>>\"""##,
        r#"run "eval echo <<output:b>>""#,
        r#"run eval echo "<<output:b>>""#,
        r#"run sh -c "eval echo <<output:b>>""#,
        r#"run sh -c "echo '<<output:b>>'""#,
        r#"run sudo sh -c "echo <<output:b>>""#,
        r#"run bash -c "echo $(( <<output:b>> ))""#,
        r#"run python3 -c "print(\"<<output:b>>\")""#,
        r#"run sed "s/a/<<output:b>>/" a.txt"#,
        r#"run "<<output:b>> --help""#,
        r#"run "echo '<<output:b>>'""#,
    ] {
        let (text, done) = fix_body(&write_task(body));
        assert!(text.contains("<<output:b>>") && !text.contains("VALUE"), "{text}");
        assert!(!done.compilation.diagnostics.is_empty(), "{text}");
    }
}
