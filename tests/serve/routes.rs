//! Routes of `swarmc serve` one by one: answers that race, archives, streams of several runs, a Unix socket, plans, the
//! timeline, and the items of a for-each in the graph.

use std::fs;
use std::io::Read as _;
use std::process::Command;

use serde_json::{Value, json};

use super::{Answer, Server, records};
use crate::cli::{Place, signal};

/// Many answers of one gate at the same moment: one is taken, and the others read what it said and who gave it.
#[test]
fn of_answers_that_race_the_losers_read_the_winner() {
    let place = Place::new(
        r#"
        workflow w
        pipeline p {
            gate first { message "1?"; options yes no; on-timeout no after="24h" }
            task after-first { when "output.first.choice == 'yes'"; run echo }
            gate second { message "2?"; options yes no; on-timeout no after="24h"; depends-on first }
            task after-second { when "output.second.choice == 'yes'"; run echo }
            gate third { message "3?"; options yes no; on-timeout no after="24h"; depends-on second }
            task after-third { when "output.third.choice == 'yes'"; run echo }
        }
        "#,
    );
    let (mut child, _) = place.until(&["run", "flow.kdl"], "first waits");
    let server = Server::start(&place, &[]);
    for gate in ["first", "second", "third"] {
        server.wait("/api/v1/waits", |waits| waits["waits"][0]["step"] == gate);
        let path = format!("/api/v1/runs/last/gates/{gate}");
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let send = |choice: &'static str| {
                let (server, path) = (&server, &path);
                scope.spawn(move || server.post(path, &json!({ "choice": choice })))
            };
            let all: Vec<_> = ["yes", "no", "yes", "no", "yes", "no"].into_iter().map(send).collect();
            all.into_iter().map(|one| one.join().expect("it answers")).collect()
        });
        let (taken, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
        assert_eq!(taken.len(), 1, "{answers:?}");
        let choice = if taken[0].body.contains(": yes") { "yes" } else { "no" };
        let words = format!("gate {gate} is already answered: {choice}, by a person");
        for answer in refused {
            assert!(answer.status == 409 && answer.body.contains(&words), "{words}: {answer:?}");
        }
    }
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_run_is_downloaded_as_an_archive() {
    let long = "a-very-long-name-of-a-task".repeat(3);
    let place = Place::new(&format!("workflow w\npipeline p {{ task {long} {{ run echo told }}; result {long} }}\n"));
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
    let server = Server::start(&place, &[]);
    let run = server.last_run();
    // What an agent put there leads nowhere.
    let folder = place.home().join("runs").join(&run);
    place.write("secret", "do not read");
    std::os::unix::fs::symlink(place.work().join("secret"), folder.join("logs/link")).expect("it can be made");
    let path = format!("/api/v1/runs/{run}/recording.tar");
    let mut bytes = Vec::new();
    server.send("GET", &path, &[("authorization", &server.bearer())], "").read_to_end(&mut bytes).expect("it answers");
    let head = bytes.windows(4).position(|part| part == b"\r\n\r\n").expect("it has a head") + 4;
    assert!(bytes.starts_with(b"HTTP/1.0 200"), "{}", String::from_utf8_lossy(&bytes[..head]));
    fs::create_dir(place.work().join("there")).expect("a folder can be made");
    let archive = place.work().join("run.tar");
    fs::write(&archive, &bytes[head..]).expect("it can be written");
    let unpacked = Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(place.work().join("there")).output();
    let unpacked = unpacked.expect("tar starts");
    assert!(unpacked.status.success() && unpacked.stderr.is_empty(), "{unpacked:?}");
    let there = place.work().join("there");
    for (from, to) in [(folder.join("journal.jsonl"), "runs"), (folder.join("plan.json"), "runs")] {
        let copy = there.join(to).join(&run).join(from.file_name().expect("it has a name"));
        assert_eq!(fs::read(&copy).expect("it is there"), fs::read(&from).expect("it is there"), "{}", copy.display());
    }
    let output = there.join("outputs").join(&run).join(format!("{long}.txt"));
    assert_eq!(fs::read_to_string(output).expect("its name is whole").trim(), "told");
    assert!(!there.join("runs").join(&run).join("logs/link").exists(), "no link is followed");
    // It is a run there as well.
    let mut inspect = place.command(&["inspect", "last"]);
    let inspect = inspect.env("SWARM_HOME", &there).output().expect("swarmc starts");
    assert!(inspect.status.success() && String::from_utf8_lossy(&inspect.stdout).contains("succeeded"), "{inspect:?}");
}

#[test]
fn several_runs_come_in_one_stream_that_goes_on_where_it_was() {
    let place = Place::new("workflow w\npipeline p { task a { run echo }; task b { run echo } }\n");
    for _ in 0..2 {
        place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
    }
    let server = Server::start(&place, &[]);
    let runs = server.read("/api/v1/runs");
    let runs: Vec<String> = runs["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| run["run"].as_str().expect("an id").to_owned())
        .collect();
    let path = format!("/api/v1/events?runs={}", runs.join(","));
    let all = records(server.follow(&format!("{path}&from=0"), None));
    for run in &runs {
        let printed = place.swarmc(&["events", run]).out;
        let of_run = |(_, data): &(String, String)| {
            let event: Value = serde_json::from_str(data).expect("it is JSON");
            (event["run"] == **run).then(|| event["data"].clone())
        };
        let found: Vec<Value> = all.iter().filter_map(of_run).collect();
        let expected: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(found, expected, "{run}");
    }
    // From the middle on, each record comes once.
    let middle = &all[all.len() / 2].0;
    let mut rest: Vec<String> = records(server.follow(&path, Some(middle))).into_iter().map(|(_, data)| data).collect();
    let mut expected: Vec<String> = all[all.len() / 2 + 1..].iter().map(|(_, data)| data.clone()).collect();
    rest.sort();
    expected.sort();
    assert_eq!(rest, expected);
    let bearer = server.bearer();
    let last = &all.last().expect("there are records").0;
    let over = server.ask("GET", &path, &[("authorization", &bearer), ("last-event-id", last)], "");
    assert_eq!(over.status, 204);
    for (wrong, status) in [("/api/v1/events?runs=none", 404), (&*format!("{path}&from=x"), 400)] {
        assert_eq!(server.get(wrong).status, status, "{wrong}");
    }
}

#[test]
fn a_socket_answers_its_owner_and_no_process_of_a_run() {
    let place = Place::new(
        r#"
        workflow w
        pipeline p {
            gate human { message "?"; options yes no; on-timeout no after="24h" }
            task after { when "output.human.choice == 'yes'"; run echo }
            task ask { run sh "-c" "until [ -e go ]; do sleep 0.02; done; sh ask.sh" }
            result ask
        }
        "#,
    );
    let socket = place.home().with_file_name("serve.sock");
    // What a server left behind that was killed.
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("it can be made"));
    let server = Server::start(&place, &["--unix", socket.to_str().expect("a path")]);
    let ask = |path: &str, more: &[&str]| {
        let mut command = Command::new("curl");
        command.args(["-s", "--unix-socket"]).arg(&socket).args(["-w", " %{http_code}"]).args(more);
        let output = command.arg(format!("http://localhost/api/v1{path}")).output().expect("curl starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let bearer = format!("Authorization: {}", server.bearer());
    assert!(ask("/health", &["-H", &bearer]).ends_with(" 200"));
    assert!(ask("/health", &[]).ends_with(" 401"));
    assert!(ask("/health", &["-H", &bearer, "-H", "Host: evil.test"]).ends_with(" 403"));
    let mode = fs::metadata(&socket).expect("it is there").permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
    let (mut child, _) = place.until(&["run", "flow.kdl"], "human waits");
    let answer = ["-H", &*bearer, "-H", "Content-Type: application/json", "-d", r#"{"choice":"yes"}"#];
    let line: Vec<String> = answer.iter().map(|word| format!("'{word}'")).collect();
    place.write(
        "ask.sh",
        &format!(
            "curl -s --unix-socket '{}' {} http://localhost/api/v1/runs/last/gates/human",
            socket.display(),
            line.join(" ")
        ),
    );
    place.write("go", "");
    server.wait("/api/v1/runs/last/steps?state=succeeded", |page| page["steps"][0]["label"] == "ask");
    let output = place.home().join("outputs").join(server.last_run()).join("ask.txt");
    crate::top::until("its output is written", || output.exists());
    let told = fs::read_to_string(output).expect("it has an output");
    assert!(told.contains("\"status\":403") && told.contains("cannot approve"), "{told}");
    assert!(ask("/runs/last/gates/human", &answer).ends_with(" 200"));
    assert!(child.wait().expect("it ends").success());
    let taken =
        place.swarmc(&["serve", "--listen", "127.0.0.1:0", "--read-only", "--unix", socket.to_str().expect("a path")]);
    taken.expect(2, &[], &["cannot listen on", "another server may listen there"]);
    signal(&server.child, "TERM");
    crate::top::until("the socket goes with its server", || !socket.exists());
}

#[test]
fn a_plan_runs_only_where_the_server_takes_plans() {
    let place = Place::new("workflow greet\npipeline p { task a { run sh \"-c\" \"pwd; echo hello\" }; result a }\n");
    let plan = place.swarmc(&["plan", "flow.kdl", "-o", "-"]).expect(0, &[], &[]).out;
    let plan: Value = serde_json::from_str(&plan).expect("it is JSON");
    let strict = Server::start(&place, &[]);
    let refused = strict.post("/api/v1/runs", &json!({ "plan": plan }));
    assert!(refused.status == 409 && refused.body.contains("--allow-plans"), "{refused:?}");
    drop(strict);
    let server = Server::start(&place, &["--allow-plans"]);
    let both = server.post("/api/v1/runs", &json!({ "plan": plan, "spec": "flow.kdl" }));
    assert_eq!(both.status, 409, "{both:?}");
    let broken = server.post("/api/v1/runs", &json!({ "plan": { "workflow": "x" } }));
    assert_eq!(broken.status, 409, "{broken:?}");
    let begun = server.post("/api/v1/runs", &json!({ "plan": plan }));
    assert_eq!(begun.status, 202, "{begun:?}");
    let begun: Value = serde_json::from_str(&begun.body).expect("it is JSON");
    let run = begun["run"].as_str().expect("it begins at once");
    server.wait(&format!("/api/v1/runs/{run}"), |run| run["state"] == "succeeded");
    let output = fs::read_to_string(place.home().join("outputs").join(run).join("a.txt")).expect("it has an output");
    let work = place.work().canonicalize().expect("it is there");
    assert_eq!(output.lines().collect::<Vec<_>>(), [work.to_str().expect("a path"), "hello"]);
}

#[test]
fn the_timeline_has_the_turns_and_the_tools_of_each_attempt() {
    let place = Place::new(
        r##"
        policy { tool shell auto }
        provider p {
            script {
                answer #"{"action": "tool_call", "tool": "shell", "tool_params": {"command": "echo one"}}"# turn=1
                answer #"{"action": "done", "response": "done"}"#
            }
        }
        agent a provider=p { tools shell; can run-commands }
        swarm team { goal "Do it"; member takao agent=a "Do it" }
        pipeline main { task go { swarm team }; result go }
        "##,
    );
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
    let server = Server::start(&place, &[]);
    let timeline = server.read("/api/v1/runs/last/timeline");
    let parts: Vec<(&Value, &Value, &Value)> =
        timeline["parts"].as_array().expect("parts").iter().map(|part| (&part[3], &part[4], &part[5])).collect();
    let (turn, done) = (json!("turn"), json!("succeeded"));
    assert_eq!(
        parts,
        [(&turn, &json!("takao"), &done), (&json!("tool"), &json!("shell"), &done), (&turn, &json!("takao"), &done)]
    );
    let bar = &timeline["bars"][0];
    for part in timeline["parts"].as_array().expect("parts") {
        assert!(part[0] == bar[0] && part[1].as_u64() >= bar[1].as_u64() && part[2].as_u64() <= bar[2].as_u64());
    }
}

#[test]
fn the_items_of_a_for_each_are_boxes_where_it_is_opened() {
    let place = Place::new(
        r#"
        workflow w
        pipeline p {
            task list { run echo }
            task each { depends-on list; for-each "[1, 2, 3]" join=settled; run sh "-c" "read n; test $n != 2"; stdin "<<item>>" }
            task after { depends-on each; run echo }
        }
        "#,
    );
    place.swarmc(&["run", "flow.kdl"]);
    let server = Server::start(&place, &[]);
    let closed = server.read("/api/v1/runs/last/graph");
    assert_eq!(closed["boxes"]["step"], json!(["list", "each", "after"]));
    let open = server.read("/api/v1/runs/last/graph?open=each");
    let ids: Vec<&str> =
        open["boxes"]["id"].as_array().expect("ids").iter().map(|id| id.as_str().expect("id")).collect();
    let item = |number: u32| format!("n_p__each[each[{number}]]");
    for id in [item(0), item(1), item(2)] {
        assert!(ids.contains(&&*id), "{id}: {ids:?}");
    }
    assert!(ids.len() == 5 && open["frames"]["id"].as_array().expect("ids").contains(&json!("n_p__each")), "{open:#}");
    // The wires that led to the box lead to the frame.
    assert!(open["wires"]["to"].as_array().expect("ends").contains(&json!("n_p__each")), "{open:#}");
    let states = server.read("/api/v1/runs/last/graph/states?open=each");
    let state = |id: String| (states["boxes"][&id]["state"].clone(), states["boxes"][&id]["label"].clone());
    assert_eq!(state(item(0)), (json!("succeeded"), json!("each[0]")));
    assert_eq!(state(item(1)), (json!("failed"), json!("each[1]")));
    // What has no items, or is not there, opens nothing.
    assert_eq!(server.read("/api/v1/runs/last/graph?open=after,none"), closed);
}
