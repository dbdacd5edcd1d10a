//! Loops, items, calls and gates with real processes, interrupted and resumed.

use serde_json::json;
use swarmc_plan::{
    Agent, Ask, Body, Call, Connection, EachJoin, Expression, ForEach, Format, Gate, GateDefault, GateTimeout, Hook,
    HookEvent, Iteration, Loop as Rounds, PromptBody, PromptDelivery, Provider, Schema, Step,
};

use super::world::*;
use super::*;
use crate::types::event::AnsweredBy;
use crate::types::user_request::GateAnswer;

fn expression(source: &str) -> Expression {
    Expression { source: source.to_owned(), reads: None, origin: origin() }
}

fn looped(name: &str, max: u32, until: &str, steps: Vec<Step>) -> Step {
    let iteration = Iteration { max, until: vec![expression(until)], ..Iteration::default() };
    step(name, Body::Loop(Rounds { iteration, steps }), &[])
}

fn each(name: &str, list: &str, body: Body) -> Step {
    let for_each = ForEach { list: expression(list), parallel: None, join: EachJoin::All, record: None };
    Step { for_each: Some(for_each), ..step(name, body, &[]) }
}

fn gate(name: &str) -> Gate {
    Gate {
        message: template(vec![Segment::Text(format!("{name}?"))]),
        options: vec!["approve".to_owned(), "reject".to_owned()],
        ask: vec![
            Ask {
                name: "stars".to_owned(),
                schema: Schema(json!({ "type": "integer", "minimum": 1 })),
                optional: false,
                description: None,
            },
            Ask {
                name: "why".to_owned(),
                schema: Schema(json!({ "type": "string" })),
                optional: true,
                description: None,
            },
        ],
        on_timeout: None,
        headless: None,
    }
}

fn answer(gate: &str, choice: &str, fields: &[(&str, &str)]) -> GateAnswer {
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    GateAnswer { gate: gate.to_owned(), choice: choice.to_owned(), fields, ..GateAnswer::default() }
}

/// Starts a run, and calls `then` when it asks.
fn asked(world: &World, plan: &Plan, then: impl FnOnce(&Control) + Send) -> Outcome {
    let control = Control::new();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| world.start_with(plan, world.options(), control.clone()).unwrap());
        let events = world.events.lock().unwrap();
        let opened =
            |seen: &Seen| matches!(seen, Seen::Record(record) if matches!(record.event, Event::GateOpened { .. }));
        while !opened(&events.recv().unwrap()) {}
        drop(events);
        then(&control);
        run.join().unwrap()
    })
}

#[test]
fn rounds_and_items_have_outputs_logs_and_variables_of_their_own() {
    let world = World::new();
    let count = sh("echo x >> count; wc -l < count");
    let inner = looped("again", 5, "output.count == '3'", vec![step("count", count, &[])]);
    let mut names = each("names", "['a', 'b c']", sh("cat; printf \" $SWARM_WITHIN\""));
    names.stdin = Some(template(vec![Segment::Directive(Directive {
        kind: DirectiveKind::Item,
        name: None,
        fields: Vec::new(),
        filters: Vec::new(),
        wrap: false,
        origin: origin(),
    })]));
    let outcome = world.start(&plan(vec![inner, names]));
    assert_eq!((outcome.ended, outcome.values[0].as_str()), (Ended::Succeeded, r#"["a names[0]","b c names[1]"]"#));
    assert_eq!(world.read(world.output("again/count.txt")), "3\n");
    assert_eq!(world.read(world.output("names[1]/names.txt")), "b c names[1]");
    assert_eq!(world.read(world.output("names.txt")), r#"["a names[0]","b c names[1]"]"#);
    assert_eq!(world.read(world.in_run("logs/again/count.2.1.out")), "2\n");
}

#[test]
fn a_run_goes_on_inside_of_what_was_open() {
    let world = World::new();
    let inner =
        looped("again", 9, "output.count == '3'", vec![step("count", sh("echo x >> count; wc -l < count"), &[])]);
    let mut called =
        step("called", Body::Call(Call { pipeline: "sub".to_owned(), params: BTreeMap::new() }), &["again"]);
    called.retry = Retry::default();
    let mut plan = plan(vec![inner, called]);
    let mut sub = plan.pipelines[0].clone();
    sub.name = "sub".to_owned();
    sub.steps = vec![each("e", "[1, 2, 3]", sh("echo $SWARM_TASK >> items; echo done"))];
    sub.result = vec!["e".to_owned()];
    plan.pipelines.push(sub);
    let outcome = world.start(&plan);
    assert_eq!(outcome.values, [r#"["done","done","done"]"#]);
    let folder = world.home().find(&outcome.run).unwrap();
    let records = folder.read_records().unwrap();
    for length in 1..records.len() {
        std::fs::remove_file(folder.journal_path()).unwrap();
        let mut journal = Box::new(FileJournal::create(&folder.journal_path(), |error| panic!("{error}")).unwrap());
        records[..length].iter().for_each(|record| journal.append(record));
        journal.close().unwrap();
        let ended = |label: &str| {
            let inside = |record: &&Record| match &record.event {
                Event::AttemptEnded { step, .. } => step.label().starts_with(label),
                _ => false,
            };
            records[..length].iter().filter(inside).count()
        };
        std::fs::write(world.workspace().join("count"), "x\n".repeat(ended("again/count"))).unwrap();
        std::fs::write(world.workspace().join("items"), "e\n".repeat(ended("called/e["))).unwrap();
        let resumed = world.resume(&outcome.run).unwrap();
        assert_eq!((resumed.ended, resumed.values), (Ended::Succeeded, outcome.values.clone()), "{length} records");
        assert_eq!(world.read(world.workspace().join("count")), "x\n".repeat(3), "{length} records");
        assert_eq!(world.read(world.workspace().join("items")), "e\n".repeat(3), "{length} records");
    }
}

#[test]
fn a_person_s_answer_is_checked_typed_and_recorded() {
    let world = World::new();
    let mut after = step("after", argv(&["cat"]), &["human"]);
    after.stdin = Some(template(vec![output_of("human", false)]));
    let plan = plan(vec![step("human", Body::Gate(gate("Human")), &[]), after]);
    let outcome = asked(&world, &plan, |control| {
        let problem = |given: GateAnswer| control.answer(given).unwrap_err();
        assert_eq!(problem(answer("humen", "approve", &[])), "no gate `humen` waits for an answer: there is `human`");
        assert_eq!(
            problem(answer("human", "aprove", &[])),
            "gate `human` has no option `aprove`: it has approve, reject"
        );
        assert_eq!(problem(answer("human", "approve", &[])), "gate `human` asks for `stars`: add `--ask stars=…`");
        assert_eq!(problem(answer("human", "approve", &[("star", "1")])), "gate `human` does not ask for `star`");
        let many = problem(answer("human", "approve", &[("stars", "many")]));
        assert!(many.starts_with("`stars` is not what gate `human` asks for: "), "{many}");
        let folder = world.home().find("last").unwrap();
        let state = world.state();
        let asking = state.open_steps().filter(|open| open.asking).map(|open| open.step.label());
        assert_eq!(asking.collect::<Vec<_>>(), ["human"]);
        let taken =
            crate::answer_gate(&folder, &answer("human", "reject", &[("stars", "5"), ("why", "{{ 7 }} <<x:y>>")]));
        taken.unwrap();
        let answered = |record: &Record| matches!(record.event, Event::GateAnswered { .. });
        assert!(folder.read_records().unwrap().iter().any(answered), "it is on disk when that is said");
    });
    let expected = json!({ "choice": "reject", "stars": 5, "why": "{{ 7 }} <<x:y>>" });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&outcome.values[0]).unwrap(), expected);
}

#[test]
fn a_gate_outlives_a_stop_and_is_answered_after_resuming() {
    let world = World::new();
    let plan = plan(vec![step("human", Body::Gate(gate("Human")), &[])]);
    let outcome = asked(&world, &plan, |control| control.stop());
    assert_eq!(outcome.ended, Ended::Stopped);
    let control = Control::new();
    let (home, waiting) = (world.home(), control.clone());
    std::thread::scope(|scope| {
        let resumed = scope.spawn(|| {
            resume_run(&home, "last", environment(), false, control.clone(), Box::new(Watcher(world.sender.clone())))
                .unwrap()
        });
        while waiting.answer(answer("human", "approve", &[("stars", "1")])).is_err() {
            std::thread::yield_now();
        }
        assert_eq!(resumed.join().unwrap().values, [r#"{"choice":"approve","stars":1}"#]);
    });
    let opened = world.records().iter().filter(|record| matches!(record.event, Event::GateOpened { .. })).count();
    assert_eq!(opened, 1);
}

#[test]
fn an_unanswered_gate_takes_its_default() {
    let by = |world: &World| {
        world.records().iter().find_map(|record| match &record.event {
            Event::GateAnswered { by, choice, .. } => Some((*by, choice.clone())),
            _ => None,
        })
    };
    let late = Gate {
        on_timeout: Some(GateTimeout { then: GateDefault::Option("reject".to_owned()), after_ms: 30 }),
        headless: Some(GateDefault::Fail),
        ..gate("Late")
    };
    let plan = plan(vec![step("late", Body::Gate(late), &[])]);
    let world = World::new();
    let outcome = world.start(&plan);
    assert_eq!((outcome.ended, outcome.values[0].as_str()), (Ended::Succeeded, r#"{"choice":"reject"}"#));
    assert_eq!(by(&world), Some((AnsweredBy::Timeout, Some("reject".to_owned()))));
    let world = World::new();
    let headless = Options { headless: true, ..world.options() };
    assert_eq!(world.start_with(&plan, headless, Control::new()).unwrap().ended, Ended::Failed);
    assert_eq!(by(&world), Some((AnsweredBy::Headless, None)));
    // Without `headless`, the gate takes the default of its timeout at once: no person will come.
    let mut timed = plan.clone();
    if let Body::Gate(gate) = &mut timed.pipelines[0].steps[0].body {
        gate.headless = None;
        gate.on_timeout.as_mut().expect("it has one").after_ms = u64::MAX;
    }
    let world = World::new();
    let headless = Options { headless: true, ..world.options() };
    assert_eq!(world.start_with(&timed, headless, Control::new()).unwrap().ended, Ended::Succeeded);
    assert_eq!(by(&world), Some((AnsweredBy::Headless, Some("reject".to_owned()))));
}

#[test]
fn what_cannot_be_run_yet_is_refused_before_anything_starts() {
    let world = World::new();
    let mut tree = plan(vec![step("a", argv(&["true"]), &[])]);
    tree.pipelines[0].steps[0].body = Body::Value(Default::default());
    tree.pipelines[0].steps[0].files = Some(swarmc_plan::FileProtocol::default());
    let error = world.start_with(&tree, world.options(), Control::new()).unwrap_err().to_string();
    assert_eq!(
        error,
        "flow.kdl:1:1: this version cannot run `a`: `files` is for prompts and commands only; take `files` \
         out, or move it to a task with a `prompt` or a `run`"
    );
    let mut items = plan(vec![each("a", "[1]", argv(&["true"])), step("b", argv(&["true"]), &[])]);
    items.pipelines[0].edges = vec![crate::core::samples::edge("a -> b optional")];
    let error = world.start_with(&items, world.options(), Control::new()).unwrap_err().to_string();
    let expected = "this version cannot run pipeline `main`: `a` uses `for-each`, so it cannot receive answers from `b`; \
                    take `response=` out, or the `for-each`";
    assert!(error.ends_with(expected), "{error}");
    assert!(!world.home().root().exists());
}

#[test]
fn a_conversation_goes_on_through_rounds_and_tasks_of_one_item_and_not_beyond() {
    let world = World::new();
    let say = r#"cat >/dev/null; printf '{"type":"thread.started","thread_id":"%s"}\n' "${1:-fresh-$SWARM_WITHIN}"
        printf '{"type":"item.completed","item":{"type":"agent_message","text":"%s"}}\n' "${1:-new}"
        printf '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}\n'"#;
    let say = say.replace("$SWARM_WITHIN", "$(printf %s \"$SWARM_WITHIN\" | tr -c 'a-z0-9' _)");
    let argv: Vec<String> = ["sh", "-c", &say, "agent"].map(str::to_owned).to_vec();
    let connection = Connection::Exec {
        resume: Some([argv.as_slice(), &["{session}".to_owned()]].concat()),
        argv,
        prompt: PromptDelivery::Stdin,
        reads: Format::CodexJsonl,
        model_flag: None,
        system_flag: None,
        schema: None,
        mcp: swarmc_plan::McpConfig::default(),
    };
    let talk = |name: &str, needs: &[&str]| {
        let prompt = template(vec![Segment::Text("Go on.".to_owned())]);
        let body = Body::Prompt(PromptBody { agent: "ada".to_owned(), prompt, context: Vec::new() });
        Step { session: Some("talk".to_owned()), ..step(name, body, needs) }
    };
    let rounds = looped("rounds", 2, "iteration == 2", vec![talk("first", &[]), talk("second", &["first"])]);
    let mut items = each("items", "[1, 2]", talk("items", &[]).body);
    items.session = Some("talk".to_owned());
    items.needs = talk("x", &["rounds"]).needs;
    let mut plan = plan(vec![rounds, items]);
    plan.agents = vec![Agent { name: "ada".to_owned(), provider: "p".to_owned(), ..Agent::default() }];
    plan.providers = vec![Provider { name: "p".to_owned(), connection, ..Provider::default() }];
    let outcome = world.start(&plan);
    assert_eq!(outcome.values, [r#"["new","new"]"#], "{:?}", world.ends());
    let said: Vec<Option<Content>> = world.ends().into_iter().map(|(_, outcome)| outcome.output).collect();
    let text = |text: &str| Some(Content::Text(text.to_owned()));
    assert_eq!(said[..4], [text("new"), text("fresh-rounds"), text("fresh-rounds"), text("fresh-rounds")]);
}

#[test]
fn a_run_ends_when_the_time_of_its_budget_is_over() {
    let world = World::new();
    let mut plan = plan(vec![step("slow", sh("sleep 100"), &[]), step("after", argv(&["true"]), &["slow"])]);
    plan.budget = Some(swarmc_plan::Budget { time_ms: Some(100), warn: 80, ..Default::default() });
    assert_eq!(world.start(&plan).ended, Ended::OverBudget);
    assert!(world.notices().contains(&"the time budget of the workflow is spent".to_owned()));
    assert!(matches!(world.resume("last"), Err(RunError::Ended { status: RunStatus::OverBudget, .. })));
}

#[test]
fn hooks_run_beside_the_steps_and_change_nothing() {
    let world = World::new();
    let mut plan = plan(vec![step("a", argv(&["false"]), &[])]);
    let hook = |event, line: &str| Hook { event, run: Command::Shell(line.to_owned()), origin: origin() };
    let note = "echo $SWARM_EVENT $SWARM_RUN $SWARM_STATUS >> hooks";
    plan.hooks = vec![
        hook(HookEvent::Start, "echo oh no >&2; exit 3"),
        hook(HookEvent::Complete, note),
        hook(HookEvent::Failure, note),
    ];
    let outcome = world.start(&plan);
    assert_eq!(outcome.ended, Ended::Failed);
    assert_eq!(world.read(world.workspace().join("hooks")), format!("failure {} failed\n", outcome.run));
    let told = "flow.kdl:1:1: the hook of `start` failed: it exited with 3: oh no".to_owned();
    assert!(world.notices().contains(&told));
}

#[test]
fn every_event_has_its_hook_and_its_variables() {
    let world = World::new();
    let mut ask = gate("ask");
    ask.ask.clear();
    let mut plan = plan(vec![step("ask", Body::Gate(ask), &[])]);
    let events = [HookEvent::Start, HookEvent::Complete, HookEvent::Failure, HookEvent::Gate, HookEvent::Stop];
    // Several of one event all run, each in the workspace.
    let told = "echo $SWARM_EVENT:$SWARM_RUN:$SWARM_WORKFLOW:$SWARM_STATUS:$SWARM_GATE >>$SWARM_EVENT; test -d $SWARM_RUN_DIR/artifacts -o -f $SWARM_RUN_DIR/journal.jsonl";
    let hook = |event| Hook { event, run: Command::Shell(told.to_owned()), origin: origin() };
    plan.hooks = events.into_iter().chain([HookEvent::Stop]).map(hook).collect();
    let stopped = asked(&world, &plan, Control::stop);
    assert_eq!(stopped.ended, Ended::Stopped);
    let said = |event: &str| std::fs::read_to_string(world.workspace().join(event)).unwrap_or_default();
    let run = &stopped.run;
    assert_eq!(said("start"), format!("start:{run}:test::\n"));
    assert_eq!(said("gate"), format!("gate:{run}:test::ask\n"));
    assert_eq!(said("stop"), format!("stop:{run}:test::\n").repeat(2));
    let control = Control::new();
    std::thread::scope(|scope| {
        let again = scope.spawn(|| {
            let watcher = Box::new(Watcher(world.sender.clone()));
            resume_run(&world.home(), run, environment(), false, control.clone(), watcher).unwrap()
        });
        while control.answer(answer("ask", "approve", &[])).is_err() {
            std::thread::yield_now();
        }
        assert_eq!(again.join().unwrap().ended, Ended::Succeeded);
    });
    assert_eq!(said("complete"), format!("complete:{run}:test:succeeded:\n"));
    assert_eq!((said("start").lines().count(), said("gate").lines().count()), (1, 1), "no event happens again");
    assert_eq!(said("failure"), "");
    let failures = world.notices().into_iter().filter(|notice| notice.contains("hook")).collect::<Vec<_>>();
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn a_long_list_is_computed_in_turns_between_which_a_person_is_heard() {
    let world = World::new();
    let item = || Body::Value(template(vec![Segment::Text("x".to_owned())]));
    let outcome = world.start(&plan(vec![each("each", "range(1500)", item())]));
    assert_eq!(outcome.values[0].matches('x').count(), 1500);
    let long = plan(vec![each("each", "range(20000)", item())]);
    let control = Control::new();
    let world = World::new();
    let outcome = std::thread::scope(|scope| {
        let run = scope.spawn(|| world.start_with(&long, world.options(), control.clone()).unwrap());
        let ended =
            |seen: Seen| matches!(seen, Seen::Record(record) if matches!(record.event, Event::AttemptEnded { .. }));
        let events = world.events.lock().unwrap();
        while !ended(events.recv().unwrap()) {}
        control.stop();
        run.join().unwrap()
    });
    assert_eq!(outcome.ended, Ended::Stopped, "it is not computed to its end first");
}
