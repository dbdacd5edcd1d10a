//! `swarmc check --stats`: its numbers against specs that were counted by hand.

use serde_json::{Value, json};

use crate::cli::Place;
use crate::schema::fits;

/// Names: a provider, an agent twice, a type, two results. `never` is the one step that no run comes to.
pub(crate) const FLOW: &str = r#"
provider model {
    exec cat
    context-window 9000
}

agent writer provider=model { max-output 100 }

type Verdict {
    kind enum yes no
    why string max=80
}

pipeline main {
    result good bad
    task ask agent=writer {
        prompt "Judge it in round <<iteration>>."
        output Verdict
    }
    task good {
        when "output.ask.kind == 'yes'"
        run "echo fine"
        output max="1KB"
    }
    task bad agent=writer {
        when "output.ask.kind == 'no'"
        prompt "Because of <<output:ask.why>>, and <<output:good | default:\"nothing\">>"
    }
    task never {
        allow SW302 reason="kept for later"
        when "1 == 2"
        run "echo never"
    }
}
"#;

/// What was counted.
fn stats(place: &Place, arguments: &[&str]) -> Value {
    let checked = place.swarmc(&[&["check", "--stats", "--format", "json"], arguments].concat());
    fits("check", &checked.out)["stats"].take()
}

#[test]
fn numbers_are_those_of_a_count_by_hand() {
    let place = Place::new(FLOW);
    let mut stats = stats(&place, &["flow.kdl"]);
    let all = stats["all"].take();
    assert_eq!(
        all,
        json!({
            "files": 1,
            "references": 6,
            // The round, `ask.why`, `good`; and the two conditions.
            "directives": 3,
            "expressions": 2,
            "fields": { "read": 3, "typed": 3 },
            "steps": { "all": 4, "can_run": 3, "never_run": 1 },
            // `ask` three times, and `good` with a default.
            "outputs": { "read": 4, "present": 3, "guarded": 1 },
            "routes": { "branches": 1, "exhaustive": 1 },
            "prompts": { "all": 2, "bounded": 2 },
            // From `ask` and from `good` to `bad`; from `ask.kind` no free text passes.
            "flows": { "ways": 2, "untrusted": 0, "private": 0, "exits": 0 },
            "suppressions": { "written": 1, "used": 1, "hidden": 1 },
        })
    );
    let main = &stats["specs"][0]["pipelines"][0];
    // `ask`, once more to mend its answer, and `bad`; besides these `never`, as `good` runs in the place of `bad`.
    assert_eq!((&main["turns"], &main["launches"]), (&json!({ "most": 3 }), &json!({ "most": 4 })));
    let largest = &main["prompts"]["largest"];
    assert_eq!((&largest["step"], &largest["window"]), (&json!("bad"), &json!(9000)));
    assert!(largest["tokens"].as_u64().is_some_and(|tokens| (1024..9000).contains(&tokens)), "{largest}");
    // The table says the same.
    let table = ["6", "5", "3/3", "4/4", "1/1", "3/4", "2", "1"];
    let checked = place.swarmc(&["check", "flow.kdl", "--stats"]).expect(0, &["no problems in 1 spec"], &[]);
    let line = checked.out.lines().find(|line| line.contains("flow.kdl ")).expect("the spec has a line");
    assert_eq!(line.split_whitespace().skip(2).collect::<Vec<_>>(), table, "{line}");
}

#[test]
fn what_is_not_proved_is_not_counted_as_proved() {
    let place = Place::new(
        &FLOW
            .replace("when \"output.ask.kind == 'no'\"", "depends-on good when=always")
            .replace(" | default:\\\"nothing\\\"", "")
            .replace("enum yes no", "enum yes no unclear"),
    );
    place.swarmc(&["check", "flow.kdl"]).expect(1, &["SW202"], &[]);
    let all = stats(&place, &["flow.kdl"])["all"].take();
    assert_eq!(all["outputs"], json!({ "read": 3, "present": 2, "guarded": 0 }));
    assert_eq!(all["prompts"], Value::Null);
    // One case of three is left over.
    let place = Place::new(&FLOW.replace("enum yes no", "enum yes no unclear"));
    let all = stats(&place, &["flow.kdl"])["all"].take();
    assert_eq!(all["routes"], json!({ "branches": 1, "exhaustive": 0 }));
}

#[test]
fn a_spec_with_errors_is_counted_as_far_as_it_could_be_read() {
    let place =
        Place::new(&FLOW.replace("run \"echo fine\"", "runs \"echo fine\"").replace("<<iteration>>", "<<output:no>>"));
    place.write("whole.kdl", FLOW);
    place.write("empty.kdl", "/* ");
    let stats = stats(&place, &["flow.kdl", "whole.kdl", "empty.kdl", "none.kdl"]);
    let [broken, whole, empty, none] = stats["specs"].as_array().expect("a list").as_slice() else {
        panic!("not four specs: {stats:#}")
    };
    // `good` could not be read, and `bad` waits for it.
    assert_eq!(broken["steps"], json!({ "all": 4, "can_run": 1, "never_run": 1 }));
    assert_eq!((&broken["directives"], &broken["prompts"]), (&json!(2), &Value::Null));
    assert_eq!(broken["pipelines"][0]["turns"], Value::Null);
    assert_eq!((&empty["files"], &empty["steps"]["all"], &none["files"]), (&json!(1), &json!(0), &json!(0)));
    for count in ["/files", "/references", "/fields/typed", "/steps/can_run", "/flows/ways", "/suppressions/used"] {
        let number = |value: &Value| value.pointer(count).and_then(Value::as_u64).expect("it is a number");
        let sum: u64 = [broken, whole, empty, none].map(number).iter().sum();
        assert_eq!(number(&stats["all"]), sum, "{count}");
    }
    assert_eq!(stats["all"]["prompts"], whole["prompts"]);
    // Programs read standard output: there the table goes to the other one.
    let short = place.swarmc(&["check", "whole.kdl", "--stats", "--format", "short"]);
    assert_eq!(short.expect(0, &[], &["no problems in 1 spec", "what was checked"]).out, "");
}

#[test]
fn of_the_examples_everything_is_proved() {
    let place = Place::new("");
    let specs = concat!(env!("CARGO_MANIFEST_DIR"), "/specs");
    let stats = stats(&place, &[specs]);
    let examples = stats["specs"].as_array().expect("a list");
    assert!(examples.len() > 4, "{stats:#}");
    for example in examples {
        let number = |path: &str| example.pointer(path).and_then(Value::as_u64).expect("it is a number");
        for (some, all) in [
            ("/fields/typed", "/fields/read"),
            ("/steps/can_run", "/steps/all"),
            ("/routes/exhaustive", "/routes/branches"),
            ("/suppressions/used", "/suppressions/written"),
        ] {
            assert_eq!(number(some), number(all), "{some} of {}", example["spec"]);
        }
        assert_eq!(number("/outputs/present") + number("/outputs/guarded"), number("/outputs/read"));
        // What is passed on by files, by envelopes or in a swarm is no output that a prompt of a step reads.
        let spec = example["spec"].as_str().expect("a path");
        let is_one_of = |names: &[&str]| names.iter().any(|name| spec.ends_with(name));
        for (path, lacking) in [
            ("/references", &[][..]),
            ("/directives", &["files.kdl"]),
            ("/steps/all", &[]),
            ("/flows/ways", &[]),
            ("/prompts/all", &["research-swarm.kdl", "refactor-swarm.kdl"]),
            ("/outputs/read", &["research-swarm.kdl", "refactor-swarm.kdl", "handoffs.kdl"]),
        ] {
            assert_eq!(number(path) > 0, !is_one_of(lacking), "{path} of {spec}");
        }
        for pipeline in example["pipelines"].as_array().expect("a list") {
            assert!(pipeline["launches"].is_object() && pipeline["turns"].is_object(), "{pipeline:#}");
        }
    }
}
