//! Expressions of a spec through the binary: what `check` accepts has its value in a run, and what has none fails its
//! step and nothing else.

use std::fs;

use crate::cli::Place;

#[test]
fn slices_names_bound_anew_and_guarded_fields_have_their_values_in_a_run() {
    let place = Place::new(
        r##"
workflow w
type Found { files list<string>; open-points list<string>; note string? }
provider local { exec cat }
agent echo provider=local
param q type=list<string> default="[\"x\", \"y\", \"z\"]"
pipeline p {
    task find { run "printf '{\"files\":[\"a\",\"b\",\"c\"],\"open-points\":[\"o\"]}'"; output Found }
    task never { when "output.find.files | length > 9"; run echo; output Found }
    task each agent=echo {
        for-each "output.find.files[:2]"
        prompt "{% set item = item | upper %}{{ item }}{{ index }}"
    }
    task params { for-each "param.q[1:]"; value "<<item>>" }
    task shown {
        depends-on each params never when=always
        value "{{ output.find.files[1:] }} {{ output.each | join('+') }} {{ output.params }} {{ output.find.open_points | first | default('') }} {{ output.never.note | default('none') }} {{ output.never.open_points[3] is defined }} {{ output.find['open-points'] | length }}"
    }
    result shown
}
"##,
    );
    place.swarmc(&["check"]).expect(0, &["no problems"], &[]);
    let ended = place.swarmc(&["run", "flow.kdl", "-q"]).expect(0, &[], &[]);
    assert_eq!(ended.out.trim_end(), r#"["b","c"] A0+B1 ["y","z"] o none false 1"#, "{ended:#?}");
}

/// A division by zero that only the run can know, in a `when`.
const ZERO: &str = r##"
workflow w
type N { n int }
pipeline p {
    task count { run "printf '{\"n\":0}'"; output N }
    task divided { when "6 is divisibleby(output.count.n)"; run echo }
    task wide { value "{{ 'a' | indent(output.count.n + 99999999999, true) }}" }
    task other { run "echo done >other" }
}
test zero { fake count #"{"n": 0}"#; fake other; expect { status failure; step divided failed; step other succeeded } }
test three { fake count #"{"n": 3}"#; fake divided; fake other; expect { step divided succeeded } }
"##;

#[test]
fn an_expression_without_a_value_fails_its_step_and_the_run_goes_on() {
    let place = Place::new(ZERO);
    let ended = place.swarmc(&["run", "flow.kdl"]).expect(
        3,
        &[],
        &["nothing is divisible by 0", "what is computed here needs more than 256 MiB"],
    );
    assert!(!ended.err.contains("panic"), "{ended:#?}");
    assert_eq!(fs::read_to_string(place.work().join("other")).expect("the other task ran"), "done\n");
    let tested = place.swarmc(&["test"]).expect(0, &["2 tests passed"], &[]);
    assert!(!tested.err.contains("panic"), "{tested:#?}");
}

#[test]
fn a_division_by_zero_that_the_text_tells_is_reported() {
    let place = Place::new("workflow w\npipeline p {\n    task a { when \"6 is divisibleby(0)\"; run echo }\n}\n");
    place.swarmc(&["check"]).expect(1, &["a division by zero has no value"], &[]);
}

#[test]
fn errors_of_items_that_settle_are_always_a_list() {
    let place = Place::new(
        r#"
workflow w
pipeline p {
    task each { for-each "[1, 2]" join=settled; run "test \"$SWARM_WITHIN\" != each[1]" }
    task told { depends-on each; value "{{ error.each | length }}" }
    result told
}
"#,
    );
    place.swarmc(&["check"]).expect(0, &["no problems"], &[]);
}

#[test]
fn results_of_items_hold_their_items_where_the_spec_asks() {
    let place = Place::new(
        r##"
workflow w
pipeline p {
    task each { for-each "['1', 'x', '3']" join=settled with-item=#true; run cat; stdin "<<item>>"; output int }
    result each
}
test fakes-fit {
    fake each "5" index=1
    fake each "4"
    expect { result equals=#"[{"item":"1","output":4},{"item":"x","output":5},{"item":"3","output":4}]"# }
}
"##,
    );
    place.swarmc(&["check"]).expect(0, &["no problems"], &[]);
    // The item that failed has no result: the others still say whose they are.
    let ran = place.swarmc(&["run", "-q"]).expect(0, &[], &[]);
    assert_eq!(ran.out.trim_end(), r#"[{"item":"1","output":1},{"item":"3","output":3}]"#);
    place.swarmc(&["test"]).expect(0, &["1 test passed"], &[]);
}

#[test]
fn the_default_of_a_call_stands_for_the_value_that_it_ended_without() {
    let place = Place::new(
        r##"
workflow w { default main }
pipeline sub {
    param x type=bool
    task a { when "param.x"; run echo a }
    result a
}
pipeline main {
    task given { call sub x="true"; output default="none" }
    task lacking { call sub x="false"; output default="none" }
    task all { value "{{ output.given }} {{ output.lacking }}" }
    task text { run cat; stdin "<<output:lacking>>" }
    result all text lacking
}
"##,
    );
    place.swarmc(&["check"]).expect(0, &["no problems"], &[]);
    let ran = place.swarmc(&["run", "-q"]).expect(0, &[], &[]);
    assert_eq!(ran.out.trim_end(), "a none");
    place.swarmc(&["logs", "last", "text"]).expect(0, &["none"], &[]);
}

#[test]
fn a_script_lies_beside_the_spec_wherever_tasks_run() {
    let place = Place::new("");
    for folder in ["repo/.git", "repo/flows/scripts", "repo/flows/sub", "elsewhere/flows/sub"] {
        fs::create_dir_all(place.work().join(folder)).expect("a folder can be made");
    }
    place.write("repo/flows/scripts/say.sh", "echo \"from $(basename \"$PWD\")\"\n");
    place.write(
        "repo/flows/flow.kdl",
        "workflow w\npipeline p {\n    task say { run file=\"scripts/say.sh\" }\n    result say\n}\npipeline q {\n    working-dir \"sub\"\n    task say { run file=\"scripts/say.sh\" }\n    result say\n}\n",
    );
    let said = |arguments: &[&str]| {
        let mut all = vec!["run", "repo/flows/flow.kdl", "-q"];
        all.extend(arguments);
        place.swarmc(&all).expect(0, &[], &[]).out.trim_end().to_owned()
    };
    assert_eq!(said(&[]), "from repo");
    assert_eq!(said(&["--workspace", "elsewhere"]), "from elsewhere");
    assert_eq!(said(&["--workspace", "elsewhere", "--pipeline", "q"]), "from sub");
    assert_eq!(said(&["--workspace", "repo"]), "from repo");
}

#[test]
fn fakes_fit_items_of_calls_and_loops_and_skipped_is_what_did_not_run() {
    let place = Place::new(
        r#"
workflow w { default p }
provider model { exec model }
agent coder provider=model
param more type=bool default=#false
pipeline one {
    param what
    loop rounds max=2 exhausted=success {
        task build agent=coder { prompt "Build <<param:what>>" }
        until "output.build == 'good'"
    }
    result build
}
pipeline p {
    task all { for-each "['a', 'b']"; call one what="<<item>>" }
    loop later max=2 exhausted=success {
        when "param.more"
        task after { run echo }
        until "status.after == 'succeeded'"
    }
    task called { when "param.more"; call one what="c" }
}
test items {
    fake build index=1 iteration=2 "good"
    fake build index=1 "bad"
    fake build "good"
    expect {
        status success
        step build succeeded index=1
        rounds 2 of=rounds
        prompt build index=1 contains="Build b"
        prompt build index=0 contains="Build a"
        output build index=0 equals="good"
        step after skipped
        launches 3
    }
}
test slips {
    fake build index=7 "never"
    fake build "good"
    expect { step after succeeded; step build skipped; step build succeeded index=4 }
}
"#,
    );
    let ended = place.swarmc(&["test"]).expect(
        3,
        &["never answered", "`after` was not reached at all", "`build` was not reached in item 4"],
        &[],
    );
    assert!(ended.out.contains("`build` succeeded"), "{ended:#?}");
}

#[test]
fn what_a_failed_command_wrote_to_stderr_is_in_the_next_prompt() {
    let place = Place::new(
        r#"
workflow w
provider local { exec cat }
agent echo provider=local
pipeline p {
    loop rounds max=2 exhausted=success {
        task ask agent=echo { prompt "round <<iteration>> {% if iteration > 1 %}<<previous:build>>{% endif %}" }
        task build { depends-on ask; run "echo compiling; echo 'error[E0308]: mismatched types' >&2; exit 1" }
        task judge agent=echo { depends-on build when=any; prompt "<<output:build>> ended with <<exit:build>>" }
        until "exit.build == 0"
    }
    task told { depends-on rounds; value "<<output:ask>>\n<<output:judge>>" }
    result told
}
"#,
    );
    let ended = place.swarmc(&["run", "flow.kdl", "-q"]).expect(0, &["round 2", "ended with 1"], &[]);
    let both = ended.out.matches("error[E0308]: mismatched types").count();
    assert_eq!((both, ended.out.matches("compiling").count()), (2, 2), "{ended:#?}");
}

#[test]
fn the_log_of_a_command_has_both_of_its_streams() {
    let place = Place::new(
        r#"
workflow w
provider local { exec cat }
agent echo provider=local
pipeline p {
    loop rounds max=3 exhausted=success {
        task ask agent=echo { prompt "round <<iteration>>: <<log:build>>." }
        task build {
            depends-on ask
            run "echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three; test {{iteration}} = 2"
            env iteration="<<iteration>>"
        }
        task judge { value "{{ log.build }}" }
        until "exit.build == 0"
    }
    task own { retry 1 backoff="1ms"; run "echo failing >&2; cat; test -e again || { touch again; exit 1; }"; stdin "<<log:own>>" }
    task long { run "yes 0123456789 | head -c 200000; echo the end >&2" }
    task size { value "{{ log.long | length }} {{ log.long[-8:] }}" }
    task told { value "<<output:ask>>|<<output:judge>>|<<log:own>>|<<output:size>>|<<output:quiet>>"; depends-on rounds own }
    task nothing { run "true" }
    task quiet { value "[{{ log.nothing }}]" }
    result told
}
"#
        .replace("test {{iteration}}", "test $iteration")
        .as_str(),
    );
    let streams = "one\ntwo\nthree\n";
    let told = format!("round 2: {streams}.|{streams}|failing\nfailing\n|65536 the end\n|[]");
    let says = |out: &str| assert!(out.contains(told.trim_end()), "{out:?} is not {told:?}");
    says(&place.swarmc(&["run", "flow.kdl", "-q", "--record", "recorded"]).expect(0, &[], &[]).out);
    fs::remove_file(place.work().join("again")).expect("it was made");
    says(&place.swarmc(&["run", "flow.kdl", "-q", "--replay", "recorded"]).expect(0, &[], &[]).out);
    assert!(!place.work().join("again").exists(), "nothing is started in a replay");
}
