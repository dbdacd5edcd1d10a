//! The JSON form of a plan: written with a version, read with every check that the types cannot express.

use std::fmt;

use schemars::Schema;
use serde::Deserialize;

use crate::Plan;
use crate::validate::{Judge, validate_plan};

/// The version of the format that this build writes, and the newest it reads.
pub const VERSION: u32 = 1;

/// The plan as JSON: two-space indentation, one final newline, the same bytes for the same plan.
pub fn write_plan(plan: &Plan) -> String {
    let mut text = serde_json::to_string_pretty(plan).expect("a plan has string keys only");
    text.push('\n');
    text
}

/// The plan as JSON on one line, for programs: less than half as long as [`write_plan`] makes it.
pub fn encode_plan(plan: &Plan) -> String {
    serde_json::to_string(plan).expect("a plan has string keys only")
}

/// Reads a plan, except for what expressions, texts with minijinja in them and JSON Schemas say: [`read_with`].
///
/// # Errors
/// Says what is wrong and where: not JSON, a newer version, a field that does not fit, a name that nothing declares.
pub fn read_plan(text: &str) -> Result<Plan, ReadError> {
    read_with(text, &|_, _| Ok(()))
}

/// Reads a plan; `judge` says what is wrong with the parts of it that have languages of their own.
///
/// # Errors
/// As [`read_plan`], and what `judge` says.
pub fn read_with(text: &str, judge: Judge<'_>) -> Result<Plan, ReadError> {
    #[derive(Deserialize)]
    struct Head {
        version: u32,
    }
    let plan = serde_json::from_str::<Plan>(text);
    // A newer plan may have a shape that this build does not know: only then the text is read a second time for its version.
    let version = match &plan {
        Ok(plan) => plan.version,
        Err(_) => serde_json::from_str::<Head>(text).map_err(ReadError::Malformed)?.version,
    };
    if version > VERSION {
        return Err(ReadError::Newer { found: version });
    }
    let plan = plan.map_err(ReadError::Malformed)?;
    validate_plan(&plan, judge)?;
    Ok(plan)
}

/// The JSON Schema (draft 2020-12) that every written plan satisfies.
pub fn plan_schema() -> Schema {
    schemars::schema_for!(Plan)
}

/// Why a text is not a plan that this build can run.
#[derive(Debug)]
pub enum ReadError {
    /// Not JSON, or not of a plan's shape.
    Malformed(serde_json::Error),
    /// Written by a newer swarmc.
    Newer {
        /// The version found.
        found: u32,
    },
    /// Something that no spec comes to: a name that nothing declares, or one declared twice, a count out of its range.
    Inconsistent {
        /// Where it stands, as a JSON pointer.
        place: String,
        /// What it is.
        problem: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Malformed(error) => write!(f, "the plan is malformed: {error}"),
            ReadError::Newer { found } => {
                write!(f, "the plan has version {found}, but this swarmc reads up to {VERSION}: update swarmc")
            }
            ReadError::Inconsistent { place, problem } if place.is_empty() => {
                write!(f, "the plan is inconsistent: {problem}")
            }
            ReadError::Inconsistent { place, problem } => write!(f, "the plan is inconsistent at `{place}`: {problem}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Malformed(error) => Some(error),
            ReadError::Newer { .. } | ReadError::Inconsistent { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A plan of two steps, the second needing the first.
    fn plan() -> Value {
        let origin = json!({ "file": "flow.kdl", "line": 1, "column": 1 });
        let step = |name: &str, needs: Value| {
            json!({
                "name": name, "needs": needs, "body": { "run": { "argv": ["echo", name] } },
                "output": { "max_bytes": 102_400 }, "grace_ms": 30_000, "origin": origin,
                "concurrency": 1, "retry": { "times": 0, "backoff_ms": 1000, "max_backoff_ms": 300_000 },
            })
        };
        let need = json!([{ "step": "draft", "when": "success", "origin": origin }]);
        json!({
            "version": VERSION, "workflow": "flow", "default": "main", "sources": [],
            "pipelines": [{
                "name": "main", "parallelism": 1, "result": ["review"], "origin": origin,
                "iteration": { "max": 1, "on_failure": "stop", "exhausted": "fail" },
                "steps": [step("draft", json!([])), step("review", need)],
            }],
        })
    }

    /// What reading says of the plan with `value` at `place`.
    fn refused(place: &str, value: Value) -> String {
        let mut plan = plan();
        *plan.pointer_mut(place).expect("the plan has this place") = value;
        read_plan(&plan.to_string()).expect_err("the plan is wrong").to_string()
    }

    #[test]
    fn what_is_written_is_read_and_written_alike() {
        let first = write_plan(&read_plan(&plan().to_string()).unwrap());
        assert_eq!(write_plan(&read_plan(&first).unwrap()), first);
        assert_eq!(write_plan(&read_plan(&encode_plan(&read_plan(&first).unwrap())).unwrap()), first);
    }

    #[test]
    fn a_newer_plan_is_refused_whatever_else_is_in_it() {
        let error = read_plan(r#"{ "version": 2, "shape": "unknown" }"#).unwrap_err().to_string();
        assert_eq!(error, "the plan has version 2, but this swarmc reads up to 1: update swarmc");
    }

    #[test]
    fn the_steps_of_a_loop_are_a_list_of_their_own() {
        let body = |needed: &str| {
            let mut inner = plan().pointer("/pipelines/0/steps/1").cloned().unwrap();
            inner["name"] = json!("inner");
            inner["needs"][0]["step"] = json!(needed);
            let iteration = json!({ "max": 3, "on_failure": "stop", "exhausted": "fail" });
            json!({ "loop": { "iteration": iteration, "steps": [inner] } })
        };
        assert!(refused("/pipelines/0/steps/1/body", body("draft")).contains("names step `draft`"));
        assert!(refused("/pipelines/0/steps/1/body", body("inner")).contains("waits for itself"));
        let mut twice = body("inner");
        twice["loop"]["steps"][0]["name"] = json!("draft");
        assert!(refused("/pipelines/0/steps/1/body", twice).contains("step `draft` is declared twice"));
    }

    #[test]
    fn names_must_hold_and_waiting_must_end() {
        let need = |step: &str| {
            let origin = json!({ "file": "flow.kdl", "line": 1, "column": 1 });
            json!([{ "step": step, "when": "success", "origin": origin }])
        };
        assert!(refused("/default", json!("other")).contains("does not declare the default pipeline `other`"));
        assert!(refused("/pipelines/0/result/0", json!("gone")).contains("names step `gone`"));
        assert!(refused("/pipelines/0/steps/1/needs", need("gone")).contains("names step `gone`"));
        assert!(refused("/pipelines/0/steps/0/name", json!("review")).contains("step `review` is declared twice"));
        assert!(refused("/pipelines/0/steps/0/needs", need("review")).contains("waits for itself"));
        assert!(refused("/pipelines/0/parallelism", json!(0)).contains("a count of 0"));
        assert!(refused("/pipelines/0/steps/0/concurrency", json!(0)).contains("a count of 0"));
        let call = |name: &str| json!({ "call": { "pipeline": name } });
        assert!(refused("/pipelines/0/steps/0/body", call("gone")).contains("calls pipeline `gone`"));
        assert!(refused("/pipelines/0/steps/0/body", call("main")).contains("calls itself"));
        let gate = |options: Value| {
            json!({ "gate": {
                "message": { "segments": [], "digest": "" }, "options": options,
                "headless": { "option": "yes" },
            } })
        };
        assert!(refused("/pipelines/0/steps/0/body", gate(json!([]))).contains("gate `draft` has no options"));
        assert!(refused("/pipelines/0/steps/0/body", gate(json!(["no"]))).contains("has no option `yes`"));
        assert!(refused("/workflow", json!(1)).contains("the plan is malformed"));
        assert!(read_plan("{").unwrap_err().to_string().contains("the plan is malformed"));
    }

    /// A plan with something of everything.
    fn rich() -> Value {
        let origin = json!({ "file": "flow.kdl", "line": 1, "column": 1 });
        let text = |text: &str| json!({ "segments": [{ "text": text }], "digest": "" });
        let directive =
            |kind: &str, name: &str| json!({ "directive": { "kind": kind, "name": name, "origin": origin } });
        let mut plan = plan();
        plan["providers"] = json!([{
            "name": "tool", "origin": origin,
            "connection": { "exec": { "argv": ["agent", "-p"], "prompt": "stdin", "reads": "text" } },
        }]);
        plan["agents"] = json!([
            { "name": "one", "provider": "tool", "origin": origin, "fallback": "two", "temperature": 1.0 },
            { "name": "two", "provider": "tool", "origin": origin },
        ]);
        plan["secrets"] = json!([{ "name": "key", "env": "KEY" }]);
        plan["hooks"] = json!([{ "event": "start", "run": { "shell": "date" }, "origin": origin }]);
        plan["$defs"] =
            json!({ "A": { "anyOf": [{ "$ref": "#/$defs/B" }, { "type": "null" }] }, "B": { "type": "string" } });
        plan["params"] = json!([{ "name": "count", "type": "int", "default": "3", "origin": origin }]);
        plan["budget"] = json!({ "tokens": 5, "warn": 80, "origin": origin });
        plan["packs"] = json!([
            { "name": "all", "origin": origin, "rules": [{ "merge": "some" }, { "docs": { "path": "a.md", "lines": [1, 3] } }] },
            { "name": "some", "origin": origin, "rules": [{ "artifacts": { "kind": "diff", "from": "draft" } }] },
        ]);
        let step = &mut plan["pipelines"][0]["steps"][0];
        step["body"] = json!({ "prompt": { "agent": "one", "prompt": {
            "segments": [directive("param", "count"), directive("context", "all"), directive("file", "a.md")], "digest": "",
        } } });
        step["reads"] = json!(["src/**"]);
        step["files"] = json!({ "outputs": [{ "path": "a.json", "required": true, "copy_to": "out" }] });
        step["env"] = json!([{ "set": { "name": "MODE", "value": text("x") } }]);
        step["checks"] = json!([{ "argv": ["true"] }]);
        let limit = json!({ "after_ms": 1000, "retries": 1 });
        plan["swarms"] = json!([{
            "name": "team", "origin": origin, "decompose": 3, "ttl_ms": 1000,
            "lead": { "name": "lead", "agent": "one" },
            "members": [
                { "name": "a", "count": 1, "agent": "one", "origin": origin },
                { "names": "stations", "count": 2, "agent": "two", "origin": origin },
            ],
            "limits": { "agents": 5, "iterations": 5, "timeout_ms": 1000, "messages": 5 },
            "timeouts": { "turn": limit, "decompose": limit, "synthesize": limit },
            "history": { "recent": 3, "recent_chars": 10, "older_chars": 10, "prompt_chars": 100, "keep": 1 },
            "workspace": { "per_topic": 1, "entries": 1, "snippet": 10 },
            "convergence": { "no_progress": 3, "errors": 3 },
            "retry": { "backoff_ms": 10, "max_backoff_ms": 100 },
            "spawn": { "approval": "auto", "per_agent": 1 },
            "edges": [{ "from": "lead", "to": "a", "origin": origin }],
            "items": [{ "name": "i", "text": "i" }, { "name": "j", "text": "j", "depends_on": ["i"] }],
        }]);
        plan
    }

    #[test]
    fn what_no_spec_comes_to_is_refused_where_it_stands() {
        read_plan(&rich().to_string()).expect("the plan is right");
        let many: Value = (0..18).fold(json!({ "value": { "segments": [], "digest": "" } }), |body, depth| {
            let mut step = plan()["pipelines"][0]["steps"][0].take();
            step["name"] = json!(format!("s{depth}"));
            step["body"] = body;
            json!({ "loop": { "iteration": { "max": 1, "on_failure": "stop", "exhausted": "fail" }, "steps": [step] } })
        });
        let edits = [
            ("/version", json!(0), "versions count from 1"),
            ("/providers/0/name", json!("Tool"), "`Tool` is not a name"),
            ("/providers/0/connection/exec/argv", json!([]), "names no program"),
            ("/providers/0/connection/exec/argv/1", json!("a\0b"), "a NUL"),
            ("/agents/1/name", json!("one"), "agent `one` is declared twice"),
            ("/agents/0/provider", json!("gone"), "uses provider `gone`"),
            ("/agents/0/fallback", json!("one"), "falls back on itself"),
            ("/agents/0/temperature", json!(3.5), "from 0 to 2"),
            ("/secrets/0/env", json!("A=B"), "environment variable"),
            ("/hooks/0/run/shell", json!("  "), "an empty command"),
            ("/$defs/A/anyOf/0/$ref", json!("#/$defs/C"), "no type of the plan"),
            ("/$defs/A/anyOf/0/$ref", json!("#/$defs/A"), "type `A` refers only to itself"),
            ("/params/0/default", json!("three"), "not a whole number"),
            ("/budget/tokens", json!(0), "at least 1 is needed"),
            ("/budget/warn", json!(101), "from 1 to 100"),
            ("/budget/tokens", json!(u64::MAX), "is allowed"),
            ("/packs/1/rules/0", json!({ "merge": "all" }), "merges itself"),
            ("/packs/0/rules/0/merge", json!("gone"), "merges pack `gone`"),
            ("/packs/0/rules/1/docs/lines", json!([3, 1]), "count from 1"),
            ("/packs/1/rules/0/artifacts/kind", json!("gossip"), "no artifacts `gossip`"),
            ("/pipelines/0/parallelism", json!(10_001), "from 1 to 10000"),
            ("/pipelines/0/iteration/max", json!(0), "a count of 0"),
            ("/pipelines/0/steps", json!([]), "there is no step"),
            ("/pipelines/0/steps/0/name", json!("../x"), "`../x` is not a name"),
            ("/pipelines/0/steps/0/body", many, "in more than 16 loops"),
            ("/pipelines/0/steps/0/body/prompt/agent", json!("gone"), "uses agent `gone`"),
            ("/pipelines/0/steps/0/body/prompt/prompt/segments/0/directive/name", json!("gone"), "no parameter `gone`"),
            (
                "/pipelines/0/steps/0/body/prompt/prompt/segments/1/directive/name",
                json!("gone"),
                "no context pack `gone`",
            ),
            ("/pipelines/0/steps/0/body/prompt/prompt/segments/2/directive/name", json!("/etc/passwd"), "leads out"),
            ("/pipelines/0/steps/0/reads/0", json!("../**"), "leads out"),
            ("/pipelines/0/steps/0/files/outputs/0/copy_to", json!("a/../../b"), "leads out"),
            ("/pipelines/0/steps/0/env/0/set/name", json!(""), "environment variable"),
            ("/pipelines/0/steps/0/checks/0/argv", json!([""]), "names no program"),
            ("/pipelines/0/steps/0/retry/times", json!(1001), "from 0 to 1000"),
            ("/swarms/0/members/0/name", json!("lead"), "member `lead` is declared twice"),
            ("/swarms/0/members/1/count", json!(0), "a count of 0"),
            ("/swarms/0/members/1/count", json!(5), "6 members, but allows 5 agents"),
            ("/swarms/0/members/1/names", json!("rivers"), "no list of names `rivers`"),
            ("/swarms/0/members", json!([]), "has no member"),
            ("/swarms/0/limits/agents", json!(5000), "from 1 to 1000"),
            ("/swarms/0/lead", json!(null), "no leader to split the goal"),
            ("/swarms/0/convergence/errors", json!(0), "a count of 0"),
            ("/swarms/0/edges/0/from", json!("gone"), "names member `gone`"),
            ("/swarms/0/edges/0/from", json!("a"), "leads from `a` to itself"),
            ("/swarms/0/items/0/name", json!("j"), "item `j` is declared twice"),
            ("/swarms/0/items/1/depends_on/0", json!("j"), "waits for itself"),
            ("/swarms/0/name", json!("main"), "is declared twice"),
        ];
        for (place, value, problem) in edits {
            let mut plan = rich();
            *plan.pointer_mut(place).expect("the plan has this place") = value;
            let said = read_plan(&plan.to_string()).expect_err(place).to_string();
            assert!(said.contains(problem) && said.contains("at `/"), "{place}: {said}");
        }
    }
}
