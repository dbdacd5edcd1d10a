//! The tools around the compiler, through the binary: fixes, formatting, and the forms in which problems are told.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;
use swarmc_compiler::compile;

use crate::cli::{Ended, Place};
use crate::specs::{meaning, texts};

const HEAD: &str = "provider local { exec cat }\nagent writer provider=local\n";

/// A spec and a prompt with a certain fix each, and a spec with a likely one.
fn broken() -> Place {
    let place = Place::new(&format!(
        "{HEAD}pipeline p {{\n    task plan {{ prompt \"x\"; output {{ ok bool }} }}\n    \
         task code {{ prompt file=\"code.md\" }}\n    task last {{ depends-on cod; run echo \"done\" }}\n}}\n"
    ));
    place.write("code.md", "Do it: {{output:plan}}\n");
    place
}

fn read(place: &Place, name: &str) -> String {
    fs::read_to_string(place.work().join(name)).expect("a file can be read")
}

#[test]
fn certain_fixes_are_made_in_prompts_too_and_guesses_when_wanted() {
    let place = broken();
    let shown = place.swarmc(&["check", "--diff", "--unsafe"]);
    assert_eq!(shown.code, Some(1), "{shown:?}");
    assert!(shown.out.contains("--- code.md") && shown.out.contains("+Do it: <<output:plan>>"), "{}", shown.out);
    assert!(shown.out.contains("+    task last { depends-on code;"), "{}", shown.out);
    assert_eq!(read(&place, "code.md"), "Do it: {{output:plan}}\n", "a diff changes nothing");

    let fixed = place.swarmc(&["check", "--fix"]);
    assert_eq!((fixed.code, read(&place, "code.md").as_str()), (Some(1), "Do it: <<output:plan>>\n"), "{fixed:?}");
    assert!(fixed.out.contains("SW101") && fixed.out.contains("1 error left in 1 spec"), "{}", fixed.out);
    assert_eq!(fixed.err, "made 1 fix in 1 file\n");

    let fixed = place.swarmc(&["check", "--fix", "--unsafe"]);
    assert_eq!((fixed.code, fixed.out.as_str()), (Some(0), "no problems left in 1 spec\n"), "{fixed:?}");
    assert!(read(&place, "flow.kdl").contains("depends-on code;"));
    let again = place.swarmc(&["check", "--fix", "--unsafe"]);
    assert_eq!((again.code, again.err.as_str()), (Some(0), "nothing to fix\n"));
}

#[test]
fn a_duration_in_the_words_of_other_tools_has_a_certain_fix() {
    let place = Place::new(
        "workflow w\npipeline p {\n    task a { timeout \"5 min\" idle=\"30 seconds\"; run make }\n    \
         task b { timeout \"soon\"; run make }\n}\n",
    );
    let fixed = place.swarmc(&["check", "--fix"]).expect(1, &["`soon` is not a duration", "1 error left"], &[]);
    assert_eq!(fixed.err, "made 2 fixes in 1 file\n");
    assert!(read(&place, "flow.kdl").contains("timeout \"5m\" idle=\"30s\""), "{}", read(&place, "flow.kdl"));
}

#[test]
fn a_file_that_may_not_be_written_stops_every_fix() {
    let place = broken();
    let path = place.work().join("code.md");
    let mut permissions = fs::metadata(&path).expect("it is there").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).expect("its mode can be set");
    let spec = read(&place, "flow.kdl");
    let refused = place.swarmc(&["check", "--fix", "--unsafe"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("`code.md` is read-only: nothing was written"), "{}", refused.err);
    assert!(refused.err.contains("chmod u+w code.md"), "{}", refused.err);
    assert_eq!(read(&place, "flow.kdl"), spec);
}

#[test]
fn specs_are_formatted_and_broken_ones_left_alone() {
    let place = Place::new("pipeline  p{\ntask a{run echo   hello}\n\n\n\n}");
    place.write("broken.kdl", "pipeline p {\n");
    let listed = place.swarmc(&["fmt", "--check"]);
    assert_eq!((listed.code, listed.out.as_str()), (Some(1), "flow.kdl\n"), "{listed:?}");
    assert!(listed.err.contains("broken.kdl:1:13: error[SW001]"), "{}", listed.err);
    let shown = place.swarmc(&["fmt", "--diff", "flow.kdl"]);
    assert!(shown.code == Some(1) && shown.out.contains("+    task a { run echo hello }"), "{shown:?}");
    let done = place.swarmc(&["fmt", "flow.kdl"]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), "formatted 1 file\n"));
    assert_eq!(read(&place, "flow.kdl"), "pipeline p {\n    task a { run echo hello }\n\n}\n".replace("\n\n}", "\n}"));
    assert_eq!(read(&place, "broken.kdl"), "pipeline p {\n");
    assert_eq!(place.swarmc(&["fmt", "flow.kdl"]).err, "formatted already\n");
    let mut child =
        place.command(&["fmt", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("swarmc starts");
    child.stdin.take().expect("it is piped").write_all(b"a{b}").expect("it reads");
    let piped = Ended::from(child.wait_with_output().expect("it ends"));
    assert_eq!((piped.code, piped.out.as_str()), (Some(0), "a { b }\n"));
}

#[test]
fn the_examples_are_formatted_and_formatting_keeps_what_they_mean() {
    let files: BTreeMap<String, String> = texts(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("specs"));
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".kdl")) {
        assert_eq!(swarmc_compiler::format_document(text).as_ref(), Ok(text), "{path}: run `swarmc fmt specs`");
        // As it would be with all of its white space out of order.
        let loose: String = text.lines().flat_map(|line| [line.trim_start(), "\n"]).collect();
        let written = |text: &str| {
            let mut files = files.clone();
            files.insert(path.clone(), text.to_owned());
            compile(path, &files).plan.map(|plan| meaning(&plan))
        };
        let formatted = swarmc_compiler::format_document(&loose).expect("it is KDL");
        assert_eq!(written(&loose), written(&formatted), "{path}");
        assert_eq!(swarmc_compiler::format_document(&formatted), Ok(formatted), "{path}");
    }
}

/// Three agents of which one reads issues, one holds a vault and one posts comments.
const TRIFECTA: &str = "provider claude { exec claude; provides tools }
agent reader provider=claude { can untrusted-input; tools }
agent keeper provider=claude { can private-data; tools }
agent poster provider=claude { can network; tools }
pipeline triage {
    task read agent=reader { prompt \"Sum up the newest issue.\" }
    task look-up agent=keeper { prompt \"Who is it?\\n<<output:read>>\" }
    task answer agent=poster { prompt \"Post:\\n<<output:look-up>>\" }
}
";

#[test]
fn sarif_is_what_the_standard_says_and_shows_the_way_of_an_injection() {
    let place = Place::new(TRIFECTA);
    place.write("größe 1.kdl", &format!("{HEAD}pipeline p {{ task a {{ prompt \"{{{{output:b}}}}\" }} }}\n"));
    let ended = place.swarmc(&["check", "--format", "sarif"]);
    assert_eq!(ended.code, Some(1));
    let log: Value = serde_json::from_str(&ended.out).expect("it is JSON");
    let schema: Value = serde_json::from_str(include_str!("sarif.schema.json")).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let wrong: Vec<String> =
        validator.iter_errors(&log).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let results = log["runs"][0]["results"].as_array().expect("there are results");
    let of = |code: &str| results.iter().find(|result| result["ruleId"] == code).expect("it is reported");
    let flow = &of("SW501")["codeFlows"][0]["threadFlows"][0]["locations"];
    assert!(flow.as_array().is_some_and(|steps| steps.len() >= 3), "{flow}");
    let legacy = of("SW213");
    let rules = &log["runs"][0]["tool"]["driver"]["rules"];
    assert_eq!(rules[legacy["ruleIndex"].as_u64().expect("a number") as usize]["id"], "SW213");
    let uri = &legacy["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(uri, "gr%C3%B6%C3%9Fe%201.kdl");
    assert_eq!(legacy["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"], "<<output:b>>");
}

#[test]
fn annotations_come_worst_first_and_cannot_be_broken_out_of() {
    let place = Place::new(
        "param unused type=string\npipeline p {\n    task a { run \"true\"; env A=\"<<param:%0A::error::x>>\" }\n    \
         task b { depends-on \"a,b\"; run \"\"\"\n      <<output:a>>\n      \"\"\" }\n}\n",
    );
    let ended = place.swarmc(&["check", "--format", "github", "--warn", "SW101"]);
    let lines: Vec<&str> = ended.out.lines().collect();
    assert!(lines.len() >= 2 && lines.iter().all(|line| line.starts_with("::")), "{lines:#?}");
    let kinds: Vec<usize> = lines
        .iter()
        .map(|line| ["::error ", "::warning ", "::notice "].iter().position(|kind| line.starts_with(kind)))
        .map(|kind| kind.expect("a kind that there is"))
        .collect();
    assert!(kinds.is_sorted(), "{lines:#?}");
    for line in lines {
        let properties = line[2..].split_once("::").expect("properties end").0;
        let one_line = |name: &str| properties.split([' ', ',']).find_map(|part| part.strip_prefix(name));
        let (start, end) = (one_line("line=").expect("a line"), one_line("endLine=").expect("an end"));
        assert_eq!(start == end, one_line("col=").is_some() && one_line("endColumn=").is_some(), "{line}");
    }
}

#[test]
fn junit_is_read_by_another_program() {
    let place = Place::new(TRIFECTA);
    place.write("right.kdl", "pipeline p { task a { run ls } }\n");
    let ended = place.swarmc(&["check", "--format", "junit", "--profile", "strict"]);
    let report = junit_parser::from_reader(ended.out.as_bytes()).expect("it is JUnit");
    let suites: Vec<_> = report.suites.iter().map(|suite| (suite.name.as_str(), suite.failures)).collect();
    assert_eq!(suites, [("flow.kdl", 1), ("right.kdl", 0)], "{}", ended.out);
    let failed = report.suites[0].cases.iter().find(|case| case.status.is_failure()).expect("one failed");
    assert_eq!(failed.name, "flow.kdl::SW501");
    assert!(failed.status.failure_as_ref().text.contains("flow.kdl:"), "{failed:?}");
}

#[test]
fn a_change_is_shown_as_the_difference_of_plans() {
    let place = Place::new(&format!("{HEAD}pipeline p {{ task a {{ prompt \"x\" }}; task b {{ run ls }} }}\n"));
    place.swarmc(&["plan", "flow.kdl", "-o", "old.json"]).expect(0, &[], &[]);
    let same = place.swarmc(&["plan", "flow.kdl", "--diff", "old.json", "--exit-code"]);
    assert_eq!((same.code, same.out.as_str()), (Some(0), "no differences\n"), "{same:?}");
    place.write("new.kdl", &read(&place, "flow.kdl").replace("run ls", "run rm all").replace("\"x\"", "\"y\""));
    let shown = place.swarmc(&["plan", "new.kdl", "--diff", "old.json"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let heads: Vec<&str> = shown.out.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(heads[..2], ["privilege", "behaviour"], "{}", shown.out);
    assert!(shown.out.contains("step `b` of `p`: body.run"), "{}", shown.out);
    let between = place.swarmc(&["plan", "new.kdl", "--diff", "flow.kdl", "--exit-code"]);
    assert_eq!((between.code, between.out), (Some(1), shown.out));
    let broken = place.swarmc(&["plan", "new.kdl", "--diff", "none.json"]);
    assert!(broken.code == Some(2) && broken.err.contains("none.json"), "{broken:?}");
}
