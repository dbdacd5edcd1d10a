//! Bounds of small plans: those of specs that compile, and of plans that are written out where the language has more.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use swarmc_plan::{Bound, Bounds, Plan};

use super::{Used, compute_bounds, describe_excess};
use crate::tokens::{Bytes, O200k};

/// The bounds of the pipeline `p` of a spec, bytes for tokens.
fn of(spec: &str) -> Bounds {
    let head = "provider local { exec my-model; price input=\"$1\" output=\"$2\" }\nagent a provider=local\n";
    let files = BTreeMap::from([("spec.kdl".to_owned(), format!("{head}{spec}"))]);
    let compiled = crate::compile("spec.kdl", &files);
    let plan = compiled.plan.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    plan.bounds["p"].clone()
}

fn most(bound: &Bound) -> u64 {
    match bound {
        Bound::Most(most) => *most,
        Bound::Unbounded { because, .. } => panic!("unbounded because {because}"),
    }
}

fn why(bound: &Bound) -> &str {
    match bound {
        Bound::Most(most) => panic!("at most {most}"),
        Bound::Unbounded { because, .. } => because,
    }
}

#[test]
fn rounds_instances_and_retries_multiply() {
    let bounds = of("pipeline p { parallelism 4; iterations 3; until \"exit.b == 0\"
            task a { retry 1; prompt \"x\"; check \"true\" }
            task b { depends-on a when=always; retry 2; run cargo test } }");
    assert_eq!(most(&bounds.turns), 4 * 3 * 2);
    assert_eq!(most(&bounds.launches), 4 * 3 * (2 * 2 + 3));
    assert_eq!(most(&bounds.input_tokens), 4 * 3 * 2);
}

#[test]
fn loops_in_loops_and_calls_multiply_and_saturate() {
    let spec = "pipeline p { loop outer max=10 { loop inner max=5 { task a { prompt \"x\" } }; task c { call q } } }
        pipeline q { iterations 2; until \"status.b == 'failed'\"; task b { prompt \"x\" } }";
    assert_eq!(most(&of(spec).turns), 10 * (5 + 2));
    let nested = (0..8)
        .fold("task a { prompt \"x\" }".to_owned(), |inner, depth| format!("loop l{depth} max=1000000 {{ {inner} }}"));
    assert_eq!(most(&of(&format!("pipeline p {{ {nested} }}")).turns), u64::MAX);
}

#[test]
fn a_chain_of_calls_is_counted_once_each() {
    let calls = (0..40)
        .map(|depth| format!("pipeline q{depth} {{ task a {{ call q{0} }}; task b {{ call q{0} }} }}\n", depth + 1));
    let spec = format!("pipeline p {{ task a {{ call q0 }} }}\n{}pipeline q40 {{ task z {{ prompt \"x\" }} }}", {
        calls.collect::<String>()
    });
    assert_eq!(most(&of(&spec).turns), 1 << 40);
}

#[test]
fn of_steps_that_exclude_each_other_the_largest_counts() {
    let turns = |steps: &str| {
        let route = "task r { run route; output { kind enum red green blue; count int; deep bool } }";
        most(&of(&format!("pipeline p {{ allow SW207 reason=\"not all cases\"; {route}; {steps} }}")).turns)
    };
    let step = |name: &str, when: &str| format!("task {name} {{ when \"{when}\"; prompt \"x\" }}\n");
    let all = |whens: &[&str]| {
        whens.iter().enumerate().map(|(number, when)| step(&format!("t{number}"), when)).collect::<String>()
    };
    // One value of each kind, a value and all others, a condition and its contrary.
    assert_eq!(turns(&all(&["output.r.kind == 'red'", "'green' == output.r.kind", "output.r.kind == 'blue'"])), 1);
    assert_eq!(turns(&all(&["output.r.kind == 'red'", "output.r.kind != 'red'"])), 1);
    assert_eq!(turns(&all(&["output.r.deep", "not output.r.deep"])), 1);
    assert_eq!(turns(&all(&["output.r.count == 1", "output.r.count == 2 and output.r.deep"])), 1);
    assert_eq!(
        turns(&all(&["output.r.kind in ['red', 'green']", "output.r.kind == 'blue' or 'blue' == output.r.kind"])),
        1
    );
    assert_eq!(turns(&all(&["output.r.kind in ['red', 'green']", "output.r.kind in ['green', 'blue']"])), 2);
    // Two values are chosen apart from each other.
    let apart = ["output.r.kind == 'red'", "output.r.kind == 'blue'", "output.r.deep", "not output.r.deep"];
    assert_eq!(turns(&all(&apart)), 2);
    // What says more, or something else, counts as well.
    assert_eq!(turns(&all(&["output.r.count == 1", "output.r.count == 1.0", "output.r.count > 1"])), 3);
    // What needs such a step goes with it, unless it runs without it too.
    let red = step("red", "output.r.kind == 'red'");
    let blue = step("blue", "output.r.kind == 'blue'");
    let behind = |need: &str| format!("{red} {blue}\n task behind {{ {need}; prompt \"x\" }}\n");
    assert_eq!(turns(&behind("depends-on red")), 2);
    assert_eq!(turns(&behind("depends-on red blue; join any")), 2);
    assert_eq!(turns(&format!("{}{}", behind("depends-on red"), step("more", "output.r.kind == 'blue'"))), 2);
    let always = format!("{}{}", behind("depends-on red when=always"), step("more", "output.r.kind == 'blue'"));
    assert_eq!(turns(&always), 3);
    // A step either succeeds or fails.
    let ends = "task a { prompt \"x\" }
        task good { depends-on a; prompt \"x\" }
        task bad { depends-on a when=failure; prompt \"x\" }";
    assert_eq!(turns(ends), 2);
}

#[test]
fn of_ways_without_number_all_may_count() {
    let mut steps = String::from("task t0 { run x; output { go bool } }\n");
    for number in 1..400 {
        let before = number - 1;
        steps += &format!(
            "task t{number} {{ depends-on t{before}; run x; output {{ go bool }} }}
            task u{number} {{ when \"output.t{before}.go\"; prompt \"x\" }}
            task v{number} {{ when \"not output.t{before}.go\"; depends-on u{number} when=always; prompt \"x\" }}
            task w{number} {{ depends-on t{number} when=failure; prompt \"x\" }}\n"
        );
    }
    let turns = most(&of(&format!("pipeline p {{ {steps} }}")).turns);
    assert!((399..=3 * 399).contains(&turns), "{turns}");
}

#[test]
fn of_thousands_of_routes_one_counts() {
    let turns = |step: fn(u32) -> String| {
        let steps: String = (0..2000).map(step).collect();
        most(&of(&format!("pipeline p {{ task r {{ run x; output {{ n int }} }}\n{steps} }}")).turns)
    };
    let route = |number| format!("task t{number} {{ when \"output.r.n == {number}\"; prompt \"x\" }}\n");
    assert_eq!(turns(route), 1);
    // Each of these runs with nearly all others: looking at all pairs would take minutes, so all count.
    let other = |number| format!("task t{number} {{ when \"output.r.n != {number}\"; prompt \"x\" }}\n");
    assert_eq!(turns(other), 2000);
    let chain = |number: u32| {
        let needs = number.checked_sub(1).map(|before| format!("depends-on t{before};")).unwrap_or_default();
        format!("task t{number} {{ {needs} when \"output.r.n != {number}\"; prompt \"x\" }}\n")
    };
    assert_eq!(turns(chain), 2000);
}

#[test]
fn time_is_that_of_the_longest_chain() {
    let bounds = of("pipeline p { iterations 2; until \"exit.d == 0\"
            task a { timeout \"1m\"; run a }
            task b { depends-on a; timeout \"10m\"; run b }
            task c { depends-on a; retry 2 backoff=\"1s\"; timeout \"2m\"; run c }
            task d { depends-on b c; timeout \"1s\"; run d } }");
    assert_eq!(most(&bounds.critical_path_ms), 2 * 661_000);
    let bounds = of("pipeline p { task a { timeout \"1m\"; run a }; task b { depends-on a; run b } }");
    assert_eq!(why(&bounds.critical_path_ms), "`b` has no `timeout`");
    let escalated = "pipeline p { task a { timeout \"1m\"; run a; on-failure escalate } }";
    assert_eq!(why(&of(escalated).critical_path_ms), "`a` waits for a person, without `on-timeout`");
    let bounds = of(&format!("policy {{ on-timeout deny after=\"1h\" }}\n{escalated}"));
    assert_eq!(most(&bounds.critical_path_ms), 2 * 60_000 + 3_600_000);
}

#[test]
fn outputs_count_as_much_as_they_may_have() {
    let bounds = of("param version type=int
         pipeline p { task a { run a; output max=\"1KB\" }
            task b { prompt \"<<output:a | raw>> <<output:a | chars:10>> <<param:version>>{{ iteration }}\" } }");
    let input = most(&bounds.input_tokens);
    assert!((1024 + 40 + 50..1400).contains(&input), "{input}");
    let bounds = of("param goal\npipeline p { task b { prompt \"<<param:goal>>\" } }");
    assert_eq!(why(&bounds.input_tokens), "`<<param:goal>>` can be of any length");
}

#[test]
fn loops_count_as_often_as_their_lists_have_items() {
    let input = |types: &str, prompt: &str| {
        let spec = format!(
            "type Remark {{ file string\nsays string max=10\n{types} }}
             pipeline p {{ task a {{ run a; output list<Remark> max=\"1KB\" }}
                 task n {{ run n; output {{ list list<Remark> max=4 }} }}
                 task b {{ prompt #\"{prompt}\"# }} }}"
        );
        of(&spec).input_tokens
    };
    // The fixed text counts once, and once more for each round.
    assert_eq!(most(&input("", "{% for x in [1, 2] %}again{% endfor %}")), 5 + 2 * 5);
    let four = "{% for one in output.n.list %}";
    assert_eq!(most(&input("", &format!("{four}- {{% endfor %}}."))), 3 + 4 * 2);
    // Ten characters of four bytes, or six where JSON escapes them, in quotes.
    let says = most(&input("", &format!("{four}{{{{ one.says }}}}{{% endfor %}}")));
    assert!((4 * 40..=4 * 62).contains(&says), "{says}");
    // A file may have any name, and all of them stand in one output.
    let files = most(&input("", &format!("{four}{{{{ one.file }}}}{{{{ loop.index }}}}{{% endfor %}}")));
    assert_eq!(files, 102_400 + 4 * 25);
    // Two lists in each other; and what is read of the outer one in the inner one.
    let both = format!("{four}{{% for n in [1, 2, 3] %}}{{{{ one.file }}}}{{% endfor %}}{{% endfor %}}");
    assert_eq!(most(&input("", &both)), 3 * 4 * 102_400);
    let inner = format!("{four}{{% for tag in one.tags %}}{{{{ tag }}}}{{% endfor %}}{{% endfor %}}");
    assert_eq!(most(&input("tags list<bool> max=3", &inner)), 4 * 3 * 5);
    // A directive is repeated with the rest.
    let error = format!("{four}<<error:a | default:none>>{{% endfor %}}");
    assert_eq!(most(&input("", &error)), 4096 * 5);
    // What a text sets hides the item.
    let hidden = format!("{four}{{% set one = output.a %}}{{{{ one }}}}{{% endfor %}}");
    assert!(why(&input("", &hidden)).contains("`{% for one in output.n.list %}`"));
    let open = "Here: {% if true %}{% for one in output.a %}{{ one.says }}{% endfor %}{% endif %}";
    assert_eq!(why(&input("", open)), "`{% for one in output.a %}` can give any amount of text");
}

#[test]
fn a_budget_bounds_what_nothing_else_does() {
    let bounds = of("param goal\npipeline p { budget calls=7 tokens=1000 cost=\"$2\" time=\"1h\"
        task b { for-each \"[1, 2]\"; prompt \"<<param:goal>>\" } }");
    assert_eq!([most(&bounds.turns), most(&bounds.input_tokens), most(&bounds.output_tokens)], [2, 1000, 1000]);
    assert_eq!([most(&bounds.cost), most(&bounds.critical_path_ms)], [2_000_000, 3_600_000]);
}

#[test]
fn the_vocabulary_gives_fewer_tokens_than_bytes() {
    let files = BTreeMap::from([(
        "spec.kdl".to_owned(),
        "provider local { exec codex }\nagent a provider=local model=gpt-5\n\
         pipeline p { task a { prompt \"Write release notes about everything that has changed.\" } }"
            .to_owned(),
    )]);
    let plan = crate::compile("spec.kdl", &files).plan.expect("the spec is right");
    let (bytes, tokens) = (compute_bounds(&plan, &Bytes), compute_bounds(&plan, &O200k));
    let own = 11_000;
    assert_eq!([most(&bytes["p"].input_tokens), most(&tokens["p"].input_tokens)], [own + 54, own + 9]);
}

/// A plan with one pipeline `p` of these steps.
fn plan(steps: Value, more: Value) -> Plan {
    let origin = json!({ "file": "spec.kdl", "line": 1, "column": 1 });
    let mut document = json!({
        "version": swarmc_plan::VERSION, "workflow": "w", "default": "p", "sources": [],
        "providers": [{
            "name": "local", "origin": origin,
            "connection": { "llm": { "kind": "openai", "model": "gpt-5" } },
            "price": { "input": 1_000_000, "output": 2_000_000 },
        }],
        "agents": [{ "name": "a", "provider": "local", "max_output": 100, "origin": origin }],
        "pipelines": [{
            "name": "p", "origin": origin, "parallelism": 1, "steps": steps,
            "iteration": { "max": 1, "on_failure": "stop", "exhausted": "fail" },
        }],
    });
    for (key, value) in more.as_object().expect("an object") {
        document[key] = value.clone();
    }
    serde_json::from_value(document).expect("it is a plan")
}

fn step(name: &str, more: Value) -> Value {
    let origin = json!({ "file": "spec.kdl", "line": 2, "column": 3 });
    let mut step = json!({
        "name": name, "origin": origin, "grace_ms": 0, "output": { "max_bytes": 102_400 },
        "retry": { "times": 0, "backoff_ms": 0, "max_backoff_ms": 0 },
        "body": { "prompt": { "agent": "a", "prompt": { "digest": "", "segments": [{ "text": "abcd" }] } } },
    });
    for (key, value) in more.as_object().expect("an object") {
        step[key] = value.clone();
    }
    step
}

fn each(list: &str) -> Value {
    json!({ "list": { "source": list, "origin": { "file": "spec.kdl", "line": 2, "column": 9 } }, "join": "all" })
}

#[test]
fn lists_count_as_many_items_as_their_type_allows() {
    let list = json!({ "type": "array", "maxItems": 12, "items": { "$ref": "#/$defs/Issue" } });
    let issue = json!({ "type": "object", "properties": { "title": { "type": "string", "maxLength": 20 } } });
    let find = step("find", json!({ "output": { "max_bytes": 102_400, "repair": 2, "schema": list } }));
    let turns = |source: &str| {
        let triage = step(
            "triage",
            json!({ "for_each": each(source), "retry": {
            "times": 1, "backoff_ms": 0, "max_backoff_ms": 0 } }),
        );
        let plan = plan(json!([find, triage]), json!({ "$defs": { "Issue": issue } }));
        compute_bounds(&plan, &Bytes)["p"].turns.clone()
    };
    assert_eq!(most(&turns("output.find")), 3 + 12 * 2);
    assert_eq!(most(&turns("output.find[:5]")), 3 + 5 * 2);
    assert_eq!(most(&turns("output.find | selectattr('title') | list")), 3 + 12 * 2);
    assert_eq!(why(&turns("output.other")), "`triage` runs once for each item of `output.other`");
}

#[test]
fn answers_cost_what_their_price_says() {
    let bounds = compute_bounds(&plan(json!([step("one", json!({}))]), json!({})), &Bytes)["p"].clone();
    assert_eq!([most(&bounds.input_tokens), most(&bounds.output_tokens), most(&bounds.cost)], [4, 100, 204]);
}

#[test]
fn a_pipeline_that_calls_itself_has_no_end_and_does_not_hang() {
    let again = step("again", json!({ "body": { "call": { "pipeline": "p" } } }));
    let bounds = compute_bounds(&plan(json!([again]), json!({})), &Bytes);
    assert!(why(&bounds["p"].launches).contains("calls its own again"));
}

#[test]
fn a_run_beyond_its_bounds_is_told() {
    let bounds = of("pipeline p { task a { prompt \"x\" }; task b { run b } }");
    let used = Used { launches: Some(2), turns: Some(2), output_tokens: Some(1_000_000), ..Used::default() };
    assert_eq!(describe_excess(&bounds, &used), ["2 turns, and at most 1"]);
    assert_eq!(describe_excess(&bounds, &Used { turns: Some(1), ..Used::default() }), [""; 0]);
}

/// What is likely of the pipeline `p` of a spec: launches, turns, tokens in and out.
fn likely(spec: &str) -> [u64; 4] {
    let likely = of(spec).likely.expect("it was computed");
    [&likely.launches, &likely.turns, &likely.input_tokens, &likely.output_tokens].map(most)
}

#[test]
fn in_a_likely_run_nothing_fails_or_repeats() {
    let once = "task a { PROMPT; check \"true\" }\ntask b { depends-on a when=always; RETRY run cargo test }";
    let step = |prompt: &str, retry: &str| once.replace("PROMPT", prompt).replace("RETRY", retry);
    let plain = format!("pipeline p {{ {} }}", step("prompt \"x\"", ""));
    assert_eq!(likely(&plain), [3, 1, 1, 1_000]);
    let often = step("retry 5; prompt \"x\"", "retry 9; on-failure fix agent=a;");
    let spec = format!("pipeline p {{ iterations 7; until \"exit.b == 0\"; {often} }}");
    assert_eq!(likely(&spec), likely(&plain));
    let looped = format!("pipeline p {{ loop l max=9 {{ {often} }} }}");
    assert_eq!(likely(&looped), likely(&plain));
    assert!(most(&of(&looped).turns) > 9);
    // What runs beside each other does run.
    assert_eq!(likely(&spec.replace("iterations", "parallelism 4; iterations"))[1], 4);
}

#[test]
fn in_a_likely_run_texts_and_lists_have_their_usual_length_or_their_limit() {
    let read = |output: &str, more: &str| {
        let spec = format!(
            "param goal\ntype I {{ t string max=10 }}\nagent short provider=local {{ max-output 100 }}\n\
             pipeline p {{ budget calls=100; task n {{ run n; output {output} }}\n task a agent=short {{ {more} }} }}"
        );
        likely(&spec)
    };
    let size = |value: &str| read("max=\"50KB\"", &format!("prompt \"{value}\""));
    assert_eq!(size("x<<param:goal>>"), [2, 1, 1_001, 100]);
    assert_eq!(size("x<<output:n>>y")[2], 1_002);
    assert!(size("x{{ output.n }}")[2] == 1_001 && size("x<<exit:n>>")[2] < 30);
    let turns = |output: &str, list: &str| read(output, &format!("for-each \"{list}\"; prompt \"x\""))[1];
    assert_eq!(turns("list<I>", "output.n"), 10, "of any length");
    assert_eq!(turns("{ l list<I> max=3 }", "output.n.l"), 3);
    assert_eq!(turns("{ l list<I> max=50 }", "output.n.l"), 10);
    assert_eq!(turns("list<I>", &format!("[{}]", ["1"; 12].join(", "))), 12, "written out");
}

#[test]
fn in_a_likely_run_the_members_of_a_swarm_take_a_few_turns_and_what_is_unknown_stays_so() {
    let team = |limits: &str| {
        let spec = format!(
            "swarm s {{ goal \"x\"; member one agent=a \"y\"; members 2 agent=a; synthesize agent=a; {limits} }}\npipeline p {{ task t {{ swarm s }} }}"
        );
        likely(&spec)
    };
    assert_eq!(team(""), [13, 13, 13 * 2_000, 13_000]);
    assert_eq!(team("limits { iterations 2 }")[1], 3 * 2 + 1);
    // A budget says nothing of what is not known.
    let unknown = of(
        "provider free { exec x }\nagent f provider=free\npipeline p { budget cost=\"$5\"; task a agent=f { prompt \"x\" } }",
    );
    assert_eq!(most(&unknown.cost), 5_000_000);
    assert!(why(&unknown.likely.expect("it was computed").cost).contains("declares no `price`"));
}

#[test]
fn the_agents_of_a_coordinated_swarm_are_its_members_its_coordinator_and_those_that_it_may_add() {
    let team = |limits: Value, more: Value| {
        let head = "provider local { exec my-model }\nagent a provider=local\n";
        let spec = "swarm s { goal \"x\"; supervisor lead agent=a; member one agent=a; members 2 agent=a; decompose }";
        let files = BTreeMap::from([("spec.kdl".to_owned(), format!("{head}{spec}"))]);
        let plan = crate::compile("spec.kdl", &files).plan.expect("the spec is right");
        let mut plan = serde_json::to_value(plan).expect("a plan is JSON");
        let swarm = &mut plan["swarms"][0];
        swarm["lead"]["coordinator"] = true.into();
        swarm["decompose"].take();
        swarm["timeouts"]["turn"]["retries"] = 0.into();
        for (place, values) in [("limits", limits), ("spawns", more)] {
            for (key, value) in values.as_object().expect("an object") {
                swarm[place][key] = value.clone();
            }
        }
        compute_bounds(&serde_json::from_value(plan).expect("it is a plan"), &Bytes)["s"].clone()
    };
    let alone = team(json!({ "iterations": 5, "timeout_ms": 60_000 }), json!({}));
    assert_eq!([most(&alone.launches), most(&alone.turns)], [4 * 5, 4 * 5]);
    assert_eq!(most(&alone.critical_path_ms), 60_000, "it ends with its coordinator");
    let more = team(json!({ "iterations": 5 }), json!({ "agents": ["a"], "max": 2 }));
    assert_eq!(most(&more.turns), 6 * 5);
    assert_eq!(most(&more.likely.expect("it was computed").turns), 4 * 4, "those that are declared");
}
