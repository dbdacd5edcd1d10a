//! Swarms, edges, packs and file contracts: what the plan holds of them, what `plan` shows, and what nobody can run.

pub(crate) mod members;
mod merging;
mod mixed;
mod recorded;
mod seen;
mod shapes;
mod team;
mod within;

use std::collections::BTreeMap;
use std::path::Path;

use swarmc_plan::{Connection, PackRule, Plan, When};

use crate::cli::Place;
use crate::specs::Project;

/// The plan of a fixture, whose files stand behind `//- PATH`.
fn plan(fixture: &str) -> Plan {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/swarm").join(fixture);
    let text = std::fs::read_to_string(path).expect("the fixture is there");
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut name = "spec.kdl".to_owned();
    for line in text.lines() {
        match line.strip_prefix("//- ") {
            Some(next) => name = next.to_owned(),
            None => files.entry(name.clone()).or_default().push_str(&format!("{line}\n")),
        }
    }
    swarmc_compiler::compile("spec.kdl", &files).plan.expect("the fixture has no error")
}

#[test]
fn a_swarm_is_in_the_plan_with_every_number() {
    let plan = plan("trap-research.kdl");
    assert_eq!(plan.default, "research");
    let swarm = plan.swarm("research").expect("the swarm is there");
    let written = serde_json::to_value(swarm).expect("a swarm can be written");
    let numbers = serde_json::json!({
        "limits": {"agents": 10, "iterations": 25, "timeout_ms": 600_000, "messages": 20, "proposals": 10, "items": 200, "summary_feed": 20, "context_reads": 3},
        "timeouts": {
            "turn": {"after_ms": 90_000, "retries": 2},
            "decompose": {"after_ms": 600_000, "retries": 3},
            "synthesize": {"after_ms": 600_000, "retries": 3},
        },
        "history": {"recent": 3, "recent_chars": 4000, "older_chars": 500, "prompt_chars": 400_000, "keep": 3},
        "workspace": {"per_topic": 5, "entries": 5, "snippet": 800},
        "ttl_ms": 172_800_000,
        "convergence": {"no_progress": 3, "errors": 3},
        "retry": {"backoff_ms": 5000, "max_backoff_ms": 30_000},
        "spawn": {"approval": "auto", "per_agent": 1},
    });
    for (key, value) in numbers.as_object().expect("an object") {
        assert_eq!(&written[key], value, "{key}");
    }
    assert_eq!(swarm.members.iter().map(|member| member.count).collect::<Vec<_>>(), [1, 1, 3]);
    let synthesize = swarm.synthesize.as_ref().expect("somebody sums up");
    let merger = plan.agent(&synthesize.agent).expect("the agent that sums up is in the plan");
    assert_eq!((merger.name.as_str(), merger.provider.as_str()), ("writer-large", "large-model"));
    assert!(plan.provider("large-model").is_some(), "the provider of the tier is in the plan");
    let edges: Vec<(&str, &str, bool)> =
        swarm.edges.iter().map(|edge| (edge.from.as_str(), edge.to.as_str(), edge.both)).collect();
    assert_eq!(edges, [("takao", "mitaka", true), ("lead", "takao", false)]);
    assert_eq!(swarmc_plan::read_plan(&swarmc_plan::write_plan(&plan)).expect("it can be read back"), plan);
}

#[test]
fn packs_and_files_are_in_the_plan_and_order_the_steps() {
    let plan = plan("trap-architecture.kdl");
    let pack = plan.packs.iter().find(|pack| pack.name == "impl").expect("the pack is there");
    let merges = |rule: &PackRule| matches!(rule, PackRule::Merge(name) if name == "base");
    assert_eq!(pack.rules.iter().position(merges), Some(5), "rules stand in the order of the spec");
    let pipeline = plan.pipeline("main").expect("the pipeline is there");
    let step = |name: &str| pipeline.all_steps().find(|step| step.name == name).expect("the step is there");
    let files = step("implement").files.as_ref().expect("it has files");
    assert_eq!(files.skill.as_deref(), Some("You code.\n"));
    let typed: Vec<(&str, bool)> = files.outputs.iter().map(|it| (it.path.as_str(), it.schema.is_some())).collect();
    assert_eq!(typed, [("report.md", false), ("result.json", true)]);
    let needs = |name: &str| -> Vec<(String, When)> {
        step(name).needs.iter().map(|need| (need.step.clone(), need.when)).collect()
    };
    // The pack names `review` as well, which waits for this task: the round before is meant.
    assert!(!needs("implement").iter().any(|(step, _)| step == "review"));
    assert!(needs("implement").iter().any(|(step, _)| step == "plan"));
    assert!(needs("review").contains(&("implement".to_owned(), When::Success)));
    assert!(needs("review").contains(&("team".to_owned(), When::Success)));
    assert_eq!(pipeline.edges.len(), 1);
}

#[test]
fn plan_shows_a_swarm() {
    let place = Place::new(
        r#"
        provider local { script { answer "x" } }
        agent coder provider=local
        swarm build {
            goal "Build it"
            supervisor lead
            member one "Do this"
            members 2
            edges { one <-> lead }
        }
        pipeline main {
            task team { swarm build goal="Build that" }
        }
        "#,
    );
    let shown = ["swarm build: 3 members", "lead leads, agent coder (local)", "one <-> lead", "named from `stations`"];
    place.swarmc(&["plan", "flow.kdl"]).expect(0, &shown, &[]);
    place.swarmc(&["plan", "flow.kdl", "--pipeline", "build"]).expect(0, &shown, &[]);
    place.swarmc(&["check", "flow.kdl"]).expect(0, &[], &[]);
}

#[test]
fn what_a_run_refuses_of_a_plan_the_check_refuses_of_its_spec() {
    let spec = |more: &str| {
        format!(
            "provider local {{ script {{ answer x }} }}\nagent coder provider=local\n\
             swarm build {{\n    goal \"Build it\"\n    member one \"Do this\"\n    member two\n    {more}\n}}\n\
             pipeline main {{\n    task team {{ swarm build }}\n}}\n"
        )
    };
    let place = Place::new(&spec("edges { one -> two kind=signal }"));
    let said = "this version cannot run swarm `build`: its edge `one -> two` has `kind=`";
    let help = "remove it: a message to a member waits for its next turn";
    place.swarmc(&["check", "flow.kdl"]).expect(1, &["flow.kdl:7:13: error[SW706]:", said, help], &[]);
    place.swarmc(&["run", "flow.kdl"]).expect(1, &[], &[said]);
    place.write("flow.kdl", &spec(""));
    place.swarmc(&["plan", "flow.kdl", "-o", "plan.json"]).expect(0, &[], &[]);
    let path = place.work().join("plan.json");
    let mut plan: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).expect("it is written")).expect("a plan is JSON");
    let origin = plan["swarms"][0]["origin"].clone();
    plan["swarms"][0]["edges"] =
        serde_json::json!([{ "from": "one", "to": "two", "kind": "signal", "origin": origin }]);
    place.write("plan.json", &plan.to_string());
    place.swarmc(&["run", "plan.json"]).expect(2, &[], &[said, help]);
}

#[test]
fn the_spec_of_the_chapter_on_swarms_is_right() {
    let chapter = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/swarms.md"));
    let chapter = chapter.expect("there is a chapter");
    let (_, block) = chapter.split_once("```kdl\n").expect("it shows a spec");
    let (spec, _) = block.split_once("```").expect("the block ends");
    let files = BTreeMap::from([("spec.kdl".to_owned(), spec.to_owned())]);
    let compilation = swarmc_compiler::compile("spec.kdl", &files);
    assert!(compilation.diagnostics.is_empty(), "{:#?}", compilation.diagnostics);
    let numbers =
        plan("trap-research.kdl").swarm("research").map(|swarm| (swarm.limits, swarm.history, swarm.workspace));
    let (limits, history, workspace) = numbers.expect("a swarm of defaults");
    // What the table says of the seed's defaults is what a swarm has that says nothing.
    for row in [
        format!("| `limits {{ agents }}` | {} |", limits.agents),
        format!("| `limits {{ iterations }}` | {} |", limits.iterations),
        format!("| `limits {{ timeout }}` | {}s |", limits.timeout_ms / 1000),
        format!("| `limits {{ messages }}` | {} |", limits.messages),
        format!("| `history {{ older chars={0} }}` | {0} |", history.older_chars),
        format!("| `workspace {{ snippet }}` | {} |", workspace.snippet),
        format!("| `workspace {{ entries }}` | {} |", workspace.entries),
        format!("| `workspace {{ per-topic }}` | {} |", workspace.per_topic),
    ] {
        assert!(chapter.contains(&row), "{row}");
    }
}

#[test]
fn one_provider_is_put_in_the_place_of_another() {
    let place = Place::new(
        r#"
        provider recorded { script { answer "from the record" } }
        provider other { script { answer "from the other" }; allow SW103 reason="by --provider" }
        agent coder provider=recorded
        pipeline main {
            task say { prompt "Say it" }
            result say
        }
        "#,
    );
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["from the record"], &[]);
    let other = place.swarmc(&["run", "flow.kdl", "--provider", "recorded=other"]).expect(0, &["from the other"], &[]);
    assert!(!other.err.contains("warning"), "{other:#?}");
    let unknown = "there is no provider `record`";
    place.swarmc(&["run", "flow.kdl", "--provider", "record=other"]).expect(
        1,
        &[],
        &[unknown, "did you mean `recorded`?"],
    );
    place.swarmc(&["plan", "flow.kdl", "--provider", "recorded=other", "-o", "plan.json"]).expect(0, &[], &[]);
    place.swarmc(&["run", "plan.json"]).expect(0, &["from the other"], &[]);
    let said = "`plan.json` is a plan, whose providers are fixed";
    place.swarmc(&["run", "plan.json", "--provider", "recorded=other"]).expect(2, &[], &[said]);
}

/// The program that an agent is once a provider stands in for that of the spec, which declares `more` besides.
fn stands_in(more: &str, provider: &str) -> Result<String, String> {
    let place = Place::new(&format!(
        "{more}\nprovider recorded {{ script {{ answer \"from the record\" }} }}\nagent coder provider=recorded\n\
         pipeline main {{ task say {{ prompt \"Say it\" }} }}\n"
    ));
    place.write("lib.kdl", "provider codex { exec cat }\nprovider mine { exec dog }\n");
    let said = format!("recorded={provider}");
    let ended = place.swarmc(&["plan", "flow.kdl", "--provider", &said, "-o", "plan.json"]);
    if ended.code != Some(0) {
        return Err(ended.err);
    }
    // An import that only others would need is not of use here.
    assert!(more.contains("import") || !ended.err.contains("warning"), "{ended:#?}");
    let text = std::fs::read_to_string(place.work().join("plan.json")).expect("there is a plan");
    let plan = swarmc_plan::read_plan(&text).expect("a plan can be read");
    let provider = plan.provider(&plan.agents[0].provider).expect("it is in the plan");
    match &provider.connection {
        Connection::Exec { argv, .. } | Connection::Acp { argv, .. } => Ok(argv.join(" ")),
        other => panic!("a program, not {other:?}"),
    }
}

#[test]
fn a_preset_is_put_in_the_place_of_a_provider_by_its_name() {
    assert_eq!(stands_in("", "opencode-acp").as_deref(), Ok("opencode acp"));
    // What the spec itself means by a name comes first, be it of its own or imported.
    assert_eq!(stands_in("provider codex { exec cat }", "codex").as_deref(), Ok("cat"));
    let with = |import: &str, provider: &str| stands_in(&format!("import \"{import}\""), provider);
    assert_eq!(with("lib.kdl", "codex").as_deref(), Ok("cat"));
    let gemini = "gemini --output-format stream-json --approval-mode auto_edit";
    assert_eq!(with("std:providers", "gemini").as_deref(), Ok(gemini));
    let aliased = "import \"std:providers\" as=std\nimport \"lib.kdl\" as=lib";
    assert_eq!(stands_in(aliased, "gemini").as_deref(), Ok(gemini));
    let unknown = stands_in("", "opencode-apc").expect_err("there is none");
    assert!(unknown.contains("did you mean `opencode-acp`?"), "{unknown}");
}

/// The seed's own example, offline: three agents, a question and its answer, one helper, and the merged report.
#[test]
fn the_research_swarm_runs_offline() {
    let project = Project::new();
    let printed = project.done(&["run", "specs/research-swarm/research-swarm.kdl"]);
    assert!(printed.contains("All three depend on few factories"), "{printed}");
    let prompts = project.prompts();
    let asked = |name: &str, iteration: u32| -> &String {
        let (you, budget) = (format!("- **{name} (you)**: "), format!("## Budget: Iteration {iteration} of 10\n"));
        let mut fit = prompts.iter().filter(|prompt| prompt.contains(&you) && prompt.contains(&budget));
        fit.next().unwrap_or_else(|| panic!("{name} was asked in iteration {iteration}: {prompts:#?}"))
    };
    // What was there to read is in the prompts, and it came from files that are kept in their folder.
    assert!(asked("takao", 2).contains("- Iteration 1: tool_call:file_read → <data>"));
    assert!(asked("takao", 2).contains("NVIDIA sells about 80% of the accelerators"));
    assert!(asked("takao", 4).contains("- From swarm-supervisor (accept): {"));
    let last = asked("kichijoji", 4);
    let sections: Vec<&str> = last.lines().filter(|line| line.starts_with("## ")).collect();
    let budget = "## Budget: Iteration 4 of 10";
    let team = "## Your Team (shared session workspace)";
    assert_eq!(sections, ["## Task", team, "## Shared Findings", "## Previous Actions", budget], "{last}");
    // Three of the team, and a helper that a station lends its name.
    let names = prompts.iter().filter_map(|prompt| prompt.split_once("- **")?.1.split_once(" (you)**"));
    let names: std::collections::BTreeSet<&str> = names.map(|(name, _)| name).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(["takao", "mitaka", "kichijoji"].iter().all(|name| names.contains(name)), "{names:?}");
}
