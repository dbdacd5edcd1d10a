//! The example `specs/feature`, its agents played by opencode on two workers, watched in the page.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use swarmc_endpoint::{Answer, Script};

use super::cluster::{Cluster, git};
use crate::agents::{self, Place};
use crate::serve::Server;

/// What each agent answers: the evaluator asks for a second round, and the coder adds a line for each round, once a person
/// has looked.
fn team() -> Script {
    let rounds = AtomicU32::new(0);
    let script = Script::new().decide(move |request| {
        let asks_for = |title: &str| request.user.iter().any(|text| text.contains(title));
        let offers_tools = !request.tools.is_empty();
        Some(match () {
            () if !offers_tools => Answer::text("A title."),
            () if asks_for("# Implement the plan") && request.results.is_empty() => {
                return agents::command(request, "until [ -e \"$GO\" ]; do sleep 0.05; done; echo hello >> greeting");
            }
            () if asks_for("# Implement the plan") => Answer::text("It greets."),
            () if asks_for("# Plan the feature") => Answer::text("1. Greet."),
            () if asks_for("# Evaluate the work") && rounds.fetch_add(1, Ordering::Relaxed) == 0 => {
                Answer::text("REVISE: greet twice.")
            }
            () if asks_for("# Evaluate the work") => Answer::text("APPROVED: it greets twice."),
            () if asks_for("# Judge the test run") => Answer::text("PASS: the tests ran."),
            () => return None,
        })
    });
    script.otherwise(Answer::text("There is no such part."))
}

#[test]
fn opencode_on_two_workers_builds_the_feature_and_the_page_shows_it() {
    let place = Place::new(agents::programs(), team());
    place.prepare_opencode();
    let cluster = Cluster::shared();
    let person = cluster.person("builder", "");
    fs::remove_file(person.work.join("flow.kdl")).expect("it is there");
    crate::specs::copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("specs/feature"), &person.work);
    let spec = fs::read_to_string(person.work.join("feature.kdl")).expect("it is there");
    let spec = spec.replace("/-provider team preset=claude-code", "provider team preset=opencode { env GO }");
    let spec = spec
        .replace("provider team {", "/-provider team {")
        .replace("pipeline feature {", "pipeline feature {\n    pool feature");
    let agent = |name: &str| {
        (format!("agent {name} provider=team {{"), format!("agent {name} provider=team model=\"scripted/scripted\" {{"))
    };
    let spec = ["planner", "coder", "evaluator", "tester"].iter().fold(spec, |spec, name| {
        let (from, to) = agent(name);
        spec.replace(&from, &to)
    });
    let spec = spec.replace("prompts/roles/coder.md\"", "prompts/roles/coder.md\"; can write-files run-commands");
    person.write("feature.kdl", &spec);
    git(&person.work, &["add", "-A"]);
    git(&person.work, &["commit", "-qm", "the feature"]);
    git(&person.work, &["push", "-q", "origin", "HEAD:refs/heads/feature"]);

    let go = cluster.path("builder-go");
    let mut command = Command::new("true");
    place.environment(&mut command);
    command.env("GO", &go);
    let text = |text: &OsStr| text.to_str().expect("it is text").to_owned();
    let variables: Vec<(String, String)> =
        command.get_envs().filter_map(|(name, value)| Some((text(name), text(value?)))).collect();
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (&**name, &**value)).collect();
    let worker = |name: &str| cluster.worker(name, "feature", &["--slots", "1"], &variables);
    let _workers = [worker("feature-one"), worker("feature-two")];

    let tests = "tests=test $(wc -l < greeting) = 2 && echo '2 passed, 0 failed'";
    let run = person.start(&["run", "feature.kdl", "--param", "goal=Greet", "--param", tests]);
    let server = Server::start_by(person.command(&["serve", "--listen", "127.0.0.1:0"]), &person.home);
    server.wait("/api/v1/runs", |page| page["runs"].as_array().is_some_and(|runs| !runs.is_empty()));
    let steps = [("STEPS", "planner coder evaluator unit-tests tester"), ("GO", go.to_str().expect("UTF-8"))];
    crate::web::run_script("cluster.mjs", &server, &server.last_run(), &steps);
    run.end().expect(0, &["PASS"], &[]);
    drop(server);
    for name in ["feature-one", "feature-two"] {
        let trees = cluster.path(&format!("{name}-home")).join("worker/feature/trees");
        assert!(fs::read_dir(trees).expect("it has had work").next().is_some(), "{name}");
    }
}
