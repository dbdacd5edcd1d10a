//! What is written arrives in the typed tree, defaults included; what is hostile ends in reports.

use swarmc_plan as plan;

use super::lower_spec;
use crate::ast::{Body, Literal, OnFailure, PackRule, Spec, Step, Summary, TypeExpr, TypeKind};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::FileId;
use crate::syntax;

fn read(text: &str) -> (Spec, Vec<Diagnostic>) {
    let mut diagnostics = Diagnostics::default();
    let tree = syntax::parse(text, FileId::new(0));
    assert_eq!(tree.problems, [], "{text}");
    let spec = lower_spec(&tree.nodes, text, &mut diagnostics);
    (spec, diagnostics.into_sorted())
}

/// Reads a text in which nothing is wrong.
fn spec(text: &str) -> Spec {
    let (spec, diagnostics) = read(text);
    assert_eq!(diagnostics, [], "{text}");
    spec
}

/// The messages about a text.
fn messages(text: &str) -> Vec<String> {
    read(text).1.into_iter().map(|diagnostic| diagnostic.message).collect()
}

/// A type as it would be written, with its fields.
fn shown(kind: &TypeExpr) -> String {
    let written = match &kind.kind {
        TypeKind::String => "string".to_owned(),
        TypeKind::Int => "int".to_owned(),
        TypeKind::Float => "float".to_owned(),
        TypeKind::Bool => "bool".to_owned(),
        TypeKind::File => "file".to_owned(),
        TypeKind::Dir => "dir".to_owned(),
        TypeKind::Enum(words) => {
            format!("enum({})", words.iter().map(|word| word.value.as_str()).collect::<Vec<_>>().join(" "))
        }
        TypeKind::List(inner) => format!("list<{}>", shown(inner)),
        TypeKind::Map(inner) => format!("map<{}>", shown(inner)),
        TypeKind::Named(name) => name.value.clone(),
        TypeKind::Record(fields) => {
            let field = |field: &crate::ast::Field| format!("{} {}", field.name.value, shown(&field.kind));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        TypeKind::Unknown => "unknown".to_owned(),
    };
    if kind.optional { written + "?" } else { written }
}

fn step<'s>(spec: &'s Spec, name: &str) -> &'s Step {
    let steps = spec.pipelines.iter().flat_map(|pipeline| &pipeline.steps);
    steps.chain(&spec.tasks).find(|step| step.name.value == name).expect("the step is there")
}

#[test]
fn types_have_fields_limits_and_descriptions() {
    let spec = spec(
        "// What the reviewer says.\n\
         // In two lines.\n\
         type Verdict {\n\
         \x20   approved bool\n\
         \x20   // swarmc: allow(SW103) not in the description\n\
         \x20   /* How bad it is. */\n\
         \x20   severity enum low medium high\n\
         \x20   issues list<string>? max=10\n\
         \x20   plans list<list<Plan?>> min=1\n\
         \x20   score float min=0.5 max=1\n\
         \x20   id string pattern=#\"^[A-Z]+-\\d+$\"#\n\
         \x20   Camel_case-2 map<lib.Issue>\n\
         \x20   next \"list<enum a b>\"\n\
         \x20   last enum? x y\n\
         }\n\
         type Level enum low high\n",
    );
    let [verdict, level] = spec.types.as_slice() else { panic!("two types: {:?}", spec.types) };
    assert_eq!(verdict.description.as_deref(), Some("What the reviewer says. In two lines."));
    assert_eq!(
        shown(&verdict.kind),
        "{approved bool, severity enum(low medium high), issues list<string>?, plans list<list<Plan?>>, score float, \
         id string, Camel_case-2 map<lib.Issue>, next list<enum(a b)>, last enum(x y)?}"
    );
    let TypeKind::Record(fields) = &verdict.kind.kind else { panic!("a record") };
    assert_eq!(fields[1].description.as_deref(), Some("How bad it is."));
    let limit = |limit: &Option<crate::ast::Spanned<serde_json::Number>>| limit.as_ref().map(|it| it.value.to_string());
    assert_eq!((limit(&fields[2].min), limit(&fields[2].max)), (None, Some("10".into())));
    assert_eq!((limit(&fields[4].min), limit(&fields[4].max)), (Some("0.5".into()), Some("1".into())));
    assert_eq!(fields[5].pattern.as_ref().map(|pattern| pattern.value.as_str()), Some(r"^[A-Z]+-\d+$"));
    assert_eq!(shown(&level.kind), "enum(low high)");
}

#[test]
fn parts_of_a_type_know_their_places() {
    let text = "type A { x \"list< map<Plan?>>?\" }";
    let spec = spec(text);
    let TypeKind::Record(fields) = &spec.types[0].kind.kind else { panic!("a record") };
    let mut kind = &fields[0].kind;
    let mut places = vec![&text[kind.span.range()]];
    while let TypeKind::List(inner) | TypeKind::Map(inner) = &kind.kind {
        kind = inner;
        places.push(&text[kind.span.range()]);
    }
    assert_eq!(places, ["list< map<Plan?>>?", "map<Plan?>", "Plan?"]);
}

#[test]
fn any_text_for_a_type_is_read_or_reported_once() {
    let deep = |depth: usize| format!("{}string{}", "list<".repeat(depth), ">".repeat(depth));
    assert_eq!(messages(&format!("param a type=\"{}\"", deep(16))), [""; 0]);
    assert_eq!(messages(&format!("param a type=\"{}\"", deep(17))), ["a type nests 16 deep at most"]);
    assert_eq!(messages(&format!("param a type=\"{}\"", deep(100_000))).len(), 1);
    let hostile = [
        "",
        " ",
        "<",
        ">",
        "?",
        "list<",
        "list<>",
        "list<string",
        "list<string>>",
        "map<string, int>",
        "string[]",
        "string | int",
        "[string]",
        "{}",
        "String",
        "str",
        "verdict",
        "int??",
        "enum",
        "enum ?",
        "enum a a",
        "enum<a>",
        "list<enum>",
        "é",
        "a.b.C",
        ".",
        "lib.",
        "A<B>",
        "string string",
        "list<list<list<",
        "file[]",
        "?int",
        "Plan.Step",
        "-",
        "list <string>",
        "list<string>?>",
        "any",
    ];
    for text in hostile {
        let written = format!("param a type=#\"{text}\"#");
        let found = messages(&written);
        assert!(found.len() <= 1, "{text}: {found:?}");
        assert_eq!(found.is_empty(), text == "list <string>", "{text}: {found:?}");
    }
}

#[test]
fn loops_nest_as_deep_as_blocks_and_hold_gates_and_stops() {
    let depth = 60;
    let inner = "task t { run echo }; gate g { message go }; stop s; until \"true\"";
    let text =
        (0..depth).fold(inner.to_owned(), |inner, level| format!("loop l{level} max={} {{ {inner} }}", level + 1));
    let spec = spec(&format!("pipeline p {{ {text} }}"));
    let mut steps = &spec.pipelines[0].steps;
    for level in (0..depth).rev() {
        let [Step { body: Some(Body::Loop(found)), .. }] = steps.as_slice() else { panic!("a loop in {level}") };
        assert_eq!(found.max.as_ref().map(|max| max.value), Some(level + 1));
        assert_eq!(found.exhausted, plan::Exhausted::Fail);
        assert_eq!(found.until.len(), usize::from(level == 0));
        steps = &found.steps;
    }
    let bodies: Vec<bool> =
        steps.iter().map(|step| matches!(step.body, Some(Body::Run(_) | Body::Gate(_) | Body::Stop { .. }))).collect();
    assert_eq!(bodies, [true; 3]);
}

#[test]
fn tasks_hold_all_that_a_turn_has() {
    let spec = spec(
        r##"
        task shared { value { a-b "x"; c "{{ 1 }}" } }
        pipeline p {
            use shared other partial=#true
            worktree main-tree; budget tokens=1000 cost="$0.25" time="1h" calls=3
            task plan agent=a {
                prompt "Do it" context=base
                context impl more
                session talk
                output list<Plan>? max="1MB" default="[]" repair=2
                for-each "param.items" parallel=4 join=settled
                on-failure escalate
                worktree
                budget calls=2 warn=50
                files {
                    skill "skills/writer.md"
                    input "data/*.csv" "The numbers" copy-to="source_data/" reference=#true
                    input "findings.md" from=research
                    output "verdict.json" "What you think" type=Verdict copy-to="out/"
                    output "notes/" required=#false
                    requirement "Be brief"; criterion "It adds up"; constraint "One hour"
                    wait-for collect validate
                }
            }
            task whole { prompt "x"; output { verdict enum yes no; why string? } }
            task sub { call other goal="<<output:plan>>" count="3" }
            task team { swarm research goal="Find out"; on-failure escalate }
            task alone { run make; on-failure fix agent=medic }
            gate human {
                message "Go?"; options approve revise reject; ask feedback string?; ask level enum low high
                on-timeout revise after="24h"; headless fail
            }
            gate plain { message "Go?" }
            edges { plan -> sub carries=Plan response=required; sub <-> team; team -> log kind=signal max=20 }
        }
        "##,
    );
    let pipeline = &spec.pipelines[0];
    assert!(pipeline.uses[0].partial && pipeline.uses[0].tasks.len() == 2);
    let budget = pipeline.budget.as_ref().expect("a budget");
    assert_eq!(budget.cost.as_ref().map(|cost| cost.value), Some(250_000));
    assert_eq!((budget.time_ms.as_ref().map(|time| time.value), budget.warn), (Some(3_600_000), 80));
    let edges: Vec<_> = pipeline
        .edges
        .as_ref()
        .expect("edges")
        .list
        .iter()
        .map(|edge| (edge.both, edge.kind, edge.response.value))
        .collect();
    let (handoff, none) = (plan::EdgeKind::Handoff, plan::Response::None);
    assert_eq!(
        edges,
        [(false, handoff, plan::Response::Required), (true, handoff, none), (false, plan::EdgeKind::Signal, none)]
    );

    let task = step(&spec, "plan");
    let names: Vec<&str> = task.context.iter().map(|name| name.value.as_str()).collect();
    assert_eq!(names, ["impl", "more", "base"]);
    assert_eq!(task.session.as_ref().map(|name| name.value.as_str()), Some("talk"));
    assert_eq!(task.output.kind.as_ref().map(shown).as_deref(), Some("list<Plan>?"));
    assert_eq!((task.output.max, task.output.repair), (1 << 20, 2));
    let each = task.for_each.as_ref().expect("a for-each");
    assert!(matches!(&each.list, crate::ast::EachList::Expression(list) if list.as_str() == "param.items"));
    assert_eq!(each.join, plan::EachJoin::Settled);
    assert!(matches!(&task.on_failure, OnFailure::Escalate(_)));
    assert!(matches!(&step(&spec, "alone").on_failure, OnFailure::Fix(agent) if agent.value == "medic"));
    assert!(task.worktree.as_ref().is_some_and(|worktree| worktree.name.is_none()));
    let files = task.files.as_ref().expect("files");
    assert_eq!((files.inputs.len(), files.outputs.len(), files.wait_for.len()), (2, 2, 2));
    assert!(files.inputs[0].reference && !files.inputs[1].reference);
    assert!(files.outputs[0].required && !files.outputs[1].required);

    let whole = &step(&spec, "whole").output;
    assert_eq!(whole.kind.as_ref().map(shown).as_deref(), Some("{verdict enum(yes no), why string?}"));
    assert_eq!((whole.max, whole.repair), (102_400, 1));
    assert!(matches!(&step(&spec, "sub").body, Some(Body::Call { args, .. }) if args.len() == 2));
    assert!(matches!(&step(&spec, "team").on_failure, OnFailure::Escalate(_)));
    let Some(Body::Gate(gate)) = &step(&spec, "human").body else { panic!("a gate") };
    assert_eq!((gate.options.len(), gate.asks.len()), (3, 2));
    assert_eq!(gate.on_timeout.as_ref().map(|timeout| timeout.after_ms.value), Some(86_400_000));
    let Some(Body::Gate(gate)) = &step(&spec, "plain").body else { panic!("a gate") };
    assert_eq!(gate.options.iter().map(|option| option.value.as_str()).collect::<Vec<_>>(), ["approve"]);
    assert!(matches!(&step(&spec, "shared").body, Some(Body::Fields(fields)) if fields.len() == 2));
}

#[test]
fn swarms_have_the_numbers_of_the_running_system() {
    let text = "swarm s { supervisor lead; member takao \"Research\"; members 3 }";
    let spec = spec(text);
    let swarm = &spec.swarms[0];
    assert_eq!((swarm.limits.agents, swarm.limits.iterations, swarm.limits.messages), (10, 25, 20));
    assert_eq!((swarm.limits.timeout_ms, swarm.ttl_ms), (600_000, 48 * 3_600_000));
    let timeouts = [&swarm.timeouts.turn, &swarm.timeouts.decompose, &swarm.timeouts.synthesize];
    assert_eq!(timeouts.map(|limit| (limit.time_ms, limit.retries)), [(90_000, 2), (600_000, 3), (600_000, 3)]);
    let history = &swarm.history;
    assert_eq!((history.recent, history.recent_chars, history.older_chars), (3, 4000, 500));
    assert_eq!((history.prompt_chars, history.keep), (400_000, 3));
    let workspace = &swarm.workspace;
    assert_eq!((workspace.per_topic, workspace.entries, workspace.snippet), (5, 5, 800));
    assert_eq!((swarm.convergence.no_progress, swarm.convergence.errors), (3, 3));
    assert_eq!((swarm.retry.transient_ms, swarm.retry.max_ms), (5_000, 30_000));
    assert!(swarm.spawn.approval.is_none() && swarm.spawn.per_agent == 1);
    assert!(swarm.edges.is_none() && swarm.synthesize.is_none() && swarm.decompose.is_none());
}

#[test]
fn swarms_are_what_is_written() {
    let spec = spec(
        r#"
        swarm research {
            goal "Compare <<param:regions>>"
            coordinator lead agent=lead
            member takao agent=researcher "Research the US market"
            member mitaka agent=researcher
            members 3 agent=researcher names=stations
            decompose
            limits { agents 4; iterations 5; timeout "1m"; messages 6 }
            timeouts { turn "9s" retries=0; decompose "1m" retries=1; synthesize "2m" }
            history { recent 1 chars=10; older chars=20; prompt chars=30 keep=2 }
            workspace { per-topic 1; entries 2; snippet 3 }
            ttl "1h"
            convergence { no-progress 4 counts=findings; errors 5 }
            retry { transient "1s" max="2s" }
            spawn approval=coordinator per-agent=2
            channel parser { members takao mitaka }
            item api "Define the API" owner=takao priority=high
            item parser "Refactor the parser" owner=mitaka { depends-on api }
            worktree parser manager=mitaka { members takao mitaka }
            edges { takao <-> mitaka }
            synthesize agent=writer tier=large
            budget cost="$5"
        }
        "#,
    );
    let swarm = &spec.swarms[0];
    assert_eq!((swarm.members.len(), swarm.groups[0].count.value), (2, 3));
    assert!(swarm.members[0].task.is_some() && swarm.members[1].task.is_none());
    assert_eq!(swarm.decompose.as_ref().map(|decompose| decompose.max), Some(10));
    assert_eq!(swarm.convergence.counts, plan::ProgressRule::Findings);
    assert_eq!((swarm.timeouts.turn.retries, swarm.timeouts.synthesize.retries), (0, 3));
    assert_eq!((swarm.history.prompt_chars, swarm.history.keep), (30, 2));
    assert_eq!(swarm.spawn.approval.as_ref().map(|approval| approval.value), Some(plan::Approval::Coordinator));
    assert_eq!((swarm.items[0].priority, swarm.items[1].needs.len()), (plan::Priority::High, 1));
    assert_eq!((swarm.channels[0].members.len(), swarm.worktrees[0].members.len()), (2, 2));
    assert!(swarm.edges.as_ref().is_some_and(|edges| edges.list[0].both));
    assert!(swarm.synthesize.as_ref().is_some_and(|synthesize| synthesize.tier.is_some()));
}

#[test]
fn packs_keep_the_order_of_their_rules() {
    let spec = spec(
        r#"
        context-pack small { goal "x" }
        context-pack tight { budget tokens=500; goal "x" }
        context-pack impl {
            budget tokens=9000 min=10
            goal "Implement <<param:goal>>"
            definition-of-done "tests pass" "docs updated"
            docs "docs/PLAN.md" lines="1-40"
            files "src/**/*.rs" summary=#true
            fact language rust
            inputs planner
            artifacts kind=diff from=coder
            constraint no-new-dependencies #true
            constraint max-files 3
            constraint style terse
            merge base
            on-overflow truncate
        }
        "#,
    );
    assert_eq!((spec.packs[0].tokens.value, spec.packs[0].min_tokens), (6000, 2000));
    assert_eq!((spec.packs[1].tokens.value, spec.packs[1].min_tokens), (500, 500));
    let pack = &spec.packs[2];
    assert_eq!((pack.tokens.value, pack.min_tokens, pack.on_overflow), (9000, 10, plan::Overflow::Truncate));
    let rules: Vec<&PackRule> = pack.rules.iter().map(|rule| &rule.value).collect();
    assert!(matches!(rules[2], PackRule::Docs { lines: Some(lines), .. } if lines.value == (1, 40)));
    assert!(matches!(rules[3], PackRule::Files { summary: Summary::Rule, max: 20, .. }));
    let constants: Vec<String> = rules
        .iter()
        .filter_map(|rule| match rule {
            PackRule::Constraint { value: Literal::Bool(on), .. } => Some(on.to_string()),
            PackRule::Constraint { value: Literal::Number(number), .. } => Some(number.to_string()),
            PackRule::Constraint { value: Literal::Text(text), .. } => Some(text.as_str().to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(constants, ["true", "3", "terse"]);
    assert!(matches!(rules.last(), Some(PackRule::Merge(_))));
}

#[test]
fn the_top_level_declares_who_works_and_under_which_rules() {
    let spec = spec(
        r#"
        workflow w { default research; edition "2026"; docs-root "docs"; mode planning }
        import "common.kdl" as=common
        import "std:types"
        param items type=list<string> default="[\"a\"]"
        param verdict type=Verdict?
        param level type="enum low high" default=low
        param count type=int default=1_000
        provider api {
            llm anthropic base-url="http://localhost:1" model=claude
            context-window 200_000
            price input="$3" output="$15" cache-read="$0.30"
            provides schema tools
        }
        provider live { acp claude-agent-acp }
        provider cli { exec agent; resume-args --resume "{session}"; schema-flag "--schema" as=file; provides }
        tiers { small cli; large api model=opus }
        agent coder provider=cli template=base {
            mode implementation; temperature 0.3; max-output 2048
            tools read-file git; can write-files run-commands; permissions skip; fallback other; budget calls=5
            files { output "changes.md" }
        }
        agent thinker tier=large { tools }
        tool-server git { exec git-mcp; env TOKEN }
        tool-server web url="https://example.org/mcp"
        budget tokens=100_000 cost="$5"
        policy { spawn human; tool "git push" human; tool read auto; plan-update coordinator; unattended fail; on-timeout deny after="10m" }
        hook failure { run notify "it failed" }
        hook complete { run file="done.sh" }
        "#,
    );
    let workflow = spec.workflow.as_ref().expect("a workflow");
    assert_eq!(workflow.mode.as_ref().map(|mode| mode.value), Some(plan::Mode::Planning));
    assert_eq!(spec.imports.iter().map(|import| import.alias.is_some()).collect::<Vec<_>>(), [true, false]);
    let kinds: Vec<String> = spec.params.iter().map(|param| shown(&param.kind)).collect();
    assert_eq!(kinds, ["list<string>", "Verdict?", "enum(low high)", "int"]);
    assert_eq!(spec.params[3].default.as_ref().map(|default| default.value.as_str()), Some("1000"));
    let api = &spec.providers[0];
    assert_eq!(api.llm.as_ref().map(|llm| llm.kind.value), Some(plan::LlmKind::Anthropic));
    let price = api.price.as_ref().expect("a price");
    assert_eq!(price.cache_read.as_ref().map(|price| price.value), Some(300_000));
    assert!(price.cache_write.is_none());
    assert_eq!(api.provides.as_ref().map(Vec::len), Some(2));
    let cli = &spec.providers[2];
    assert_eq!(cli.schema_flag, Some(plan::SchemaFlag::File("--schema".into())));
    assert_eq!(cli.provides.as_ref().map(Vec::len), Some(0));
    assert_eq!(spec.tiers.len(), 2);
    let coder = &spec.agents[0];
    assert_eq!(coder.temperature.as_ref().map(|temperature| temperature.value), Some(0.3));
    assert_eq!((coder.tools.as_ref().map(|tools| tools.names.len()), coder.can.len()), (Some(2), 2));
    assert_eq!(spec.agents[1].tools.as_ref().map(|tools| tools.names.len()), Some(0));
    assert!(spec.tool_servers[0].exec.is_some() && spec.tool_servers[1].url.is_some());
    let policy = spec.policy.as_ref().expect("a policy");
    assert_eq!((policy.tools.len(), policy.unattended.value), (2, plan::Unattended::Fail));
    let timeout = plan::RequestTimeout { then: plan::Unattended::Deny, after_ms: 600_000 };
    assert_eq!(policy.on_timeout.as_ref().map(|it| it.value), Some(timeout));
    assert!(matches!(&spec.hooks[0].body, Some(Body::Run(_))) && matches!(&spec.hooks[1].body, Some(Body::Script(_))));
}

#[test]
fn an_older_spelling_gives_the_same_plan() {
    let spec = |word: &str| {
        format!(
            "pipeline p {{\n    task a {{ run echo a }}\n    task b {{ run echo b }}\n    task c {{ {word} a b when=any; join any; run echo c }}\n}}\n"
        )
    };
    let plan = |word: &str| {
        let files = std::collections::BTreeMap::from([("spec.kdl".to_owned(), spec(word))]);
        let compilation = crate::compile("spec.kdl", &files);
        let mut plan = compilation.plan.expect("the spec has no errors");
        plan.sources.clear();
        (plan, compilation.diagnostics.len())
    };
    let ((older, warnings), (newer, none)) = (plan("depends_on"), plan("depends-on"));
    assert_eq!(older, newer);
    assert_eq!((warnings, none), (1, 0));
}

#[test]
fn fields_of_one_name_are_reported_wherever_they_are_declared() {
    for (body, what) in [
        ("gate g { ask a-b string; ask a_b int; options ok }", "given"),
        ("task t { value { a-b \"1\"; a_b \"2\" } }", "given"),
        ("task t { run date; output { a-b string; a_b int } }", "declared"),
    ] {
        let one_name = "the fields `a-b` and `a_b` have the same name in an expression";
        assert_eq!(messages(&format!("pipeline p {{ {body} }}")), [one_name], "{body}");
        let twice = format!("pipeline p {{ {} }}", body.replace("a-b", "a_b"));
        assert_eq!(messages(&twice), [format!("field `a_b` is {what} twice")], "{body}");
    }
}
