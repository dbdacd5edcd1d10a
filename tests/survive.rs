//! Agents that outlive their runner: what `resume` makes of an attempt whose processes a shim holds, for each way in which
//! the runner, the shim, the machine or the agent can end first.

mod acp;
mod hostile;
mod members;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::cli::{Place, signal};

/// An agent that notes its start and its end, says what it is told, and ends when the file `go` is there.
const AGENT: &str = "provider script { exec sh \"-c\" \"echo start >> effects; cat; until [ -e go ]; do sleep 0.02; done; echo done >> effects; echo over\" }\nagent a provider=script\n";

fn spec(survive: &str, task: &str) -> String {
    format!(
        "workflow w {{ {survive}; default main }}\n{AGENT}pipeline main {{\n task one agent=a {{ prompt \"Begin.\"; {task} }}\n task two {{ depends-on one; run cat; stdin \"<<output:one>>\" }}\n result two\n}}\n"
    )
}

/// A run whose agent is under way, and whose runner was killed.
fn killed(spec: &str) -> Place {
    let place = Place::new(spec);
    kill_runner(&place, &["run", "flow.kdl"]);
    place
}

fn kill_runner(place: &Place, arguments: &[&str]) {
    let mut child = place.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    wait_until("its process is recorded, and has begun", || {
        assert_eq!(child.try_wait().expect("it can be asked"), None, "the run has ended");
        let records = journal(place);
        let last = records.rfind("run_resumed").map_or(&*records, |resumed| &records[resumed..]);
        last.contains("process_started") && !effects(place).is_empty()
    });
    signal(&child, "KILL");
    child.wait().expect("it ends");
}

#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn run_folder(place: &Place) -> PathBuf {
    let runs = fs::read_dir(place.home().join("runs")).expect("there are runs");
    runs.flatten().map(|run| run.path()).next().expect("there is one")
}

fn journal(place: &Place) -> String {
    let runs = fs::read_dir(place.home().join("runs")).into_iter().flatten().flatten();
    runs.map(|run| fs::read_to_string(run.path().join("journal.jsonl")).unwrap_or_default()).collect()
}

fn count(place: &Place, event: &str) -> usize {
    journal(place).matches(&format!("\"event\":\"{event}\"")).count()
}

fn effects(place: &Place) -> String {
    fs::read_to_string(place.work().join("effects")).unwrap_or_default().replace('\n', " ")
}

/// The processes of the run: its shims, and those that carry its mark.
fn processes(place: &Place) -> Vec<i32> {
    let home = place.home().display().to_string();
    let is_of_run = |pid: i32| {
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let has = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).contains(&home);
        let is_dead = String::from_utf8_lossy(&read("stat")).contains(") Z ");
        !is_dead && (has(read("cmdline")) || has(read("environ")))
    };
    let all = fs::read_dir("/proc").expect("it is there").flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|&pid| is_of_run(pid)).collect()
}

fn shims(place: &Place) -> Vec<i32> {
    let is_shim = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|&byte| byte == 0).nth(1) == Some(b"shim")
    };
    processes(place).into_iter().filter(is_shim).collect()
}

fn kill(pid: i32) {
    let sent = Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill starts");
    assert!(sent.success());
}

/// How many times a runner is killed: so many, unless `SURVIVE_KILLS` says another number, for a long trial.
fn count_kills(count: usize) -> usize {
    std::env::var("SURVIVE_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(count)
}

/// Kills runners at random moments of their first `span` milliseconds, `kills` times in all, and `most` of each run, until
/// the run ends with `result`. Then `check` looks at it, and no process of it is left.
fn kill_at_random(
    kills: usize,
    place: impl Fn() -> Place,
    (span, most): (u64, usize),
    result: &str,
    mut check: impl FnMut(&Place, u64),
) {
    let (mut hits, mut moment) = (0, 0_u64);
    while hits < kills {
        let place = place();
        let mut arguments = vec!["run", "flow.kdl"];
        for _ in 0..most.min(kills - hits) {
            moment += 1;
            assert!(moment < 40 * kills as u64, "only {hits} kills hit a run in progress");
            let mut child =
                place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
            // Moments that differ from run to run, and cover the time of some steps.
            std::thread::sleep(Duration::from_millis(moment * 137 % span));
            signal(&child, "KILL");
            child.wait().expect("it ends");
            if count(&place, "run_started") == 0 {
                continue;
            }
            arguments = vec!["resume", "last"];
            if count(&place, "run_finished") > 0 {
                break;
            }
            hits += 1;
        }
        if count(&place, "run_finished") == 0 {
            place.swarmc(&arguments).expect(0, &[result], &[]);
        }
        check(&place, moment);
        assert_eq!(processes(&place), Vec::<i32>::new(), "moment {moment}");
    }
}

/// The run ends as if its runner had never been killed.
#[track_caller]
fn assert_went_on(place: &Place, told: &str) {
    place.swarmc(&["resume", "last"]).expect(0, &["Begin.over"], &[told]);
    assert_eq!(effects(place), "start done ");
    assert_eq!((count(place, "attempt_rejoined"), count(place, "attempt_started")), (1, 2), "{}", journal(place));
    assert_eq!(processes(place), Vec::<i32>::new());
    assert!(!run_folder(place).join("attempts").exists());
}

#[test]
fn an_agent_that_goes_on_is_rejoined() {
    let place = killed(&spec("survive agents", "survive #true"));
    assert_eq!(shims(&place).len(), 1);
    let going = place.work();
    let opens = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        fs::write(going.join("go"), "").expect("it can be written");
    });
    assert_went_on(&place, "1 attempt of the last runner: still under way, and rejoined");
    opens.join().expect("it ends");
}

#[test]
fn an_agent_that_has_ended_meanwhile_is_read() {
    let place = killed(&spec("survive agents", "survive #true"));
    place.write("go", "");
    wait_until("the shim ends with its agent", || processes(&place).is_empty());
    assert_eq!(effects(&place), "start done ");
    assert_went_on(&place, "1 attempt of the last runner: ended meanwhile, and read");
}

#[test]
fn an_agent_of_several_runners_that_are_killed_is_one_agent() {
    let place = killed(&spec("survive agents", "survive #true"));
    for _ in 0..3 {
        kill_runner(&place, &["resume", "last"]);
    }
    place.write("go", "");
    place.swarmc(&["resume", "last"]).expect(0, &["Begin.over"], &[]);
    assert_eq!(effects(&place), "start done ");
}

#[test]
fn where_no_runner_comes_back_an_agent_is_ended_and_starts_again() {
    let place = killed(&spec("survive agents for=\"1s\"", "survive #true"));
    wait_until("it is ended", || processes(&place).is_empty());
    let exit = fs::read_to_string(run_folder(&place).join("attempts/one.1/0/exit")).expect("the shim says why");
    assert!(exit.contains("\"orphaned\""), "{exit}");
    place.write("go", "");
    place.swarmc(&["resume", "last"]).expect(0, &["Begin.over"], &[]);
    assert_eq!(effects(&place), "start start done ");
}

#[test]
fn limits_hold_while_no_runner_is_there() {
    let place = killed(&spec("survive agents", "timeout \"2s\""));
    wait_until("it is ended", || processes(&place).is_empty());
    place.swarmc(&["resume", "last"]).expect(3, &[], &["one: failed", "it took longer than 2s"]);
    assert_eq!((effects(&place).as_str(), count(&place, "attempt_rejoined")), ("start ", 1));
}

#[test]
fn a_shim_that_is_killed_fails_its_attempt_and_nothing_of_it_goes_on() {
    let place = Place::new(&spec("survive agents", "retry 1 backoff=\"1ms\""));
    let mut child =
        place.command(&["run", "flow.kdl"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    wait_until("the agent has begun", || effects(&place) == "start ");
    kill(shims(&place)[0]);
    wait_until("the next attempt has begun", || effects(&place) == "start start ");
    place.write("go", "");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(effects(&place), "start start done ");
    assert!(journal(&place).contains("was ended from outside"), "{}", journal(&place));
}

#[test]
fn an_attempt_whose_runner_and_shim_are_killed_starts_again_without_a_survivor() {
    let place = killed(&spec("survive agents", "survive #true"));
    kill(shims(&place)[0]);
    let left = processes(&place);
    assert!(!left.is_empty(), "the agent itself lives");
    let going = place.work();
    let opens = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        fs::write(going.join("go"), "").expect("it can be written");
    });
    place.swarmc(&["resume", "last"]).expect(0, &["Begin.over"], &["left by the last runner: ended"]);
    opens.join().expect("it ends");
    assert_eq!((effects(&place).as_str(), count(&place, "attempt_rejoined")), ("start start done ", 0));
}

#[test]
fn after_another_boot_nothing_is_rejoined() {
    let place = killed(&spec("survive agents", "survive #true"));
    place.write("go", "");
    wait_until("the shim ends with its agent", || processes(&place).is_empty());
    place.write("boot", "11111111-2222-3333-4444-555555555555\n");
    // In a namespace of its own the machine has another boot.
    let script = format!(
        "mount --bind boot /proc/sys/kernel/random/boot_id && exec {} resume last",
        env!("CARGO_BIN_EXE_swarmc")
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]).current_dir(place.work());
    let output = command.env("SWARM_HOME", place.home()).env_remove("CI").output().expect("unshare starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((effects(&place).as_str(), count(&place, "attempt_rejoined")), ("start done start done ", 0));
}

#[test]
fn what_is_not_to_survive_ends_with_the_next_runner() {
    for (workflow, task) in [("survive none", ""), ("survive agents", "survive #false")] {
        let place = killed(&spec(workflow, task));
        assert_eq!(shims(&place), Vec::<i32>::new());
        place.write("go", "");
        place.swarmc(&["resume", "last"]).expect(0, &["Begin.over"], &[]);
        assert!(
            effects(&place).starts_with("start start") || effects(&place) == "start done start done ",
            "{}",
            effects(&place)
        );
        assert_eq!(count(&place, "attempt_rejoined"), 0);
    }
}

#[test]
fn stop_ends_what_a_killed_runner_has_left() {
    let place = killed(&spec("survive agents", ""));
    place.swarmc(&["stop", "last"]).expect(0, &[], &[]);
    assert_eq!(processes(&place), Vec::<i32>::new());
    assert_eq!(effects(&place), "start ");
}

#[test]
fn commands_survive_where_the_spec_says_so_and_long_ones_by_themselves() {
    let command = "echo start >> effects; until [ -e go ]; do sleep 0.02; done; echo done >> effects; echo Begin.over";
    for (workflow, task, survives) in [
        ("survive all", "", true),
        ("survive agents", "timeout \"5m\"", true),
        ("survive none", "survive #true", true),
        ("survive agents", "timeout \"4m\"", false),
    ] {
        let place = killed(&format!(
            "workflow w {{ {workflow}; default main }}\npipeline main {{ task one {{ run \"{command}\"; {task} }}; result one }}\n"
        ));
        place.write("go", "");
        place.swarmc(&["resume", "last"]).expect(0, &["Begin.over"], &[]);
        assert_eq!(count(&place, "attempt_rejoined"), usize::from(survives), "{workflow}, {task}");
    }
}

/// The first answer does not fit its type, and the runner is killed in the turn that mends it: the first is not asked
/// again, and the second goes on.
#[test]
fn a_turn_that_mends_an_answer_is_rejoined() {
    let script = "cat >/dev/null; echo start >> effects; if [ $(wc -l <effects) -lt 2 ]; then echo none; else until [ -e go ]; do sleep 0.02; done; echo 7; fi";
    let place = Place::new(&format!(
        "provider script {{ exec sh \"-c\" \"{script}\" }}\nagent a provider=script\npipeline main {{ task one agent=a {{ prompt \"How many?\"; output int }}; result one }}\n"
    ));
    let mut child =
        place.command(&["run", "flow.kdl"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    wait_until("the second turn has begun", || effects(&place) == "start start ");
    signal(&child, "KILL");
    child.wait().expect("it ends");
    place.write("go", "");
    place.swarmc(&["resume", "last"]).expect(0, &["7"], &[]);
    assert_eq!((effects(&place).as_str(), count(&place, "attempt_rejoined")), ("start start ", 1));
}

/// What an agent changed before its runner was killed is in its diff.
#[test]
fn the_diff_of_a_turn_holds_what_it_changed_before_the_kill() {
    let script = "cat >/dev/null; echo changed > file.txt; echo start >> effects; until [ -e go ]; do sleep 0.02; done; echo more > other.txt; echo over";
    for is_checkout in [false, true] {
        let place = Place::new(&format!(
            "provider script {{ exec sh \"-c\" \"{script}\" }}\nagent a provider=script {{ can write-files }}\npipeline main {{ task one agent=a {{ prompt \"Do it.\" }}; result one }}\n"
        ));
        place.write("file.txt", "as it was\n");
        if is_checkout {
            for arguments in [
                &["init", "-q"][..],
                &["add", "."],
                &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"],
            ] {
                assert!(
                    Command::new("git")
                        .args(arguments)
                        .current_dir(place.work())
                        .status()
                        .expect("git starts")
                        .success()
                );
            }
        }
        kill_runner(&place, &["run", "flow.kdl"]);
        place.write("go", "");
        place.swarmc(&["resume", "last"]).expect(0, &["over"], &[]);
        let folder = run_folder(&place).join("artifacts");
        let texts: String = fs::read_dir(folder)
            .expect("there are artifacts")
            .flatten()
            .map(|file| fs::read_to_string(file.path()).unwrap_or_default())
            .collect();
        for line in ["-as it was", "+changed", "+more"] {
            assert!(texts.contains(line), "{is_checkout}: the diff lacks `{line}`: {texts}");
        }
    }
}

/// A run of ten slow agents, killed at random moments: each begins once, and none is left.
#[test]
fn ten_agents_begin_once_however_often_their_runner_is_killed() {
    let script = "cat >/dev/null; echo $SWARM_TASK >> effects; for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.05; done; echo $SWARM_TASK >> ended";
    let tasks: String = (0..10).map(|number| format!(" task t{number} agent=a {{ prompt \"Go.\" }}\n")).collect();
    let text = format!(
        "provider script {{ exec sh \"-c\" \"{script}\" }}\nagent a provider=script\npipeline main {{\n concurrency 4\n{tasks} task all {{ {} run echo all }}\n result all\n}}\n",
        (0..10).map(|number| format!("depends-on t{number}; ")).collect::<String>()
    );
    kill_at_random(
        count_kills(30),
        || Place::new(&text),
        (900, 4),
        "all",
        |place, moment| {
            for file in ["effects", "ended"] {
                let text = fs::read_to_string(place.work().join(file)).expect("it was written");
                let mut tasks: Vec<&str> = text.lines().collect();
                tasks.sort_unstable();
                assert_eq!(
                    tasks,
                    ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"],
                    "{file}, moment {moment}"
                );
            }
        },
    );
}

/// An agent that tells the id of its conversation, and says how it was started and what it was told.
const TALKER: &str = r#"
provider talker { exec sh "talker.sh"; resume-args "{session}"; reads claude-stream-json }
agent a provider=talker
"#;
const TALKER_SCRIPT: &str = r#"
echo '{"type":"system","subtype":"init","session_id":"c-1"}'
echo "${1:-new}: $(cat | tr '\n' ' ')" >> effects
result() { echo '{"type":"result","subtype":"success","is_error":false,"result":"'"$1"'","session_id":"c-1"}'; }
if [ -n "$1" ]; then [ -e lost ] && exit 1; result "went on"; exit; fi
until [ -e go ]; do sleep 0.02; done
result over
"#;

#[test]
fn an_agent_that_starts_again_goes_on_with_its_conversation() {
    let spec = |retry: &str| {
        format!(
            "workflow w {{ survive none; default main }}\n{TALKER}pipeline main {{ task one agent=a {{ prompt \"Begin.\"; {retry} }}; result one }}\n"
        )
    };
    let killed = |retry: &str| {
        let place = Place::new(&spec(retry));
        place.write("talker.sh", TALKER_SCRIPT);
        let mut child =
            place.command(&["run", "flow.kdl"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        wait_until("its conversation is known", || count(&place, "session_known") == 1 && !effects(&place).is_empty());
        signal(&child, "KILL");
        child.wait().expect("it ends");
        place.write("go", "");
        place
    };
    let place = killed("");
    place.swarmc(&["resume", "last"]).expect(0, &["went on"], &[]);
    let told = effects(&place);
    assert!(told.starts_with("new: Begin. c-1: The program that runs you was ended"), "{told}");

    // A conversation that is gone is no reason to fail.
    let place = killed("");
    place.write("lost", "");
    place.swarmc(&["resume", "last"]).expect(0, &["over"], &["its conversation does not go on", "a new one begins"]);
    assert!(effects(&place).ends_with("new: Begin. "), "{}", effects(&place));

    let place = killed("retry 1 fresh=#true");
    place.swarmc(&["resume", "last"]).expect(0, &["over"], &[]);
    assert_eq!(effects(&place), "new: Begin. new: Begin. ");
}

/// An agent sends an envelope while no runner is there: the call waits for the next one, which knows the token.
#[test]
fn what_an_agent_sends_while_no_runner_is_there_reaches_the_next_one() {
    let swarmc = env!("CARGO_BIN_EXE_swarmc");
    let script = format!(
        "cat >/dev/null; echo start >> effects; until [ -e send ]; do sleep 0.02; done; {swarmc} agent send-handoff --to reader --message late > sent 2>&1; echo over"
    );
    let place = Place::new(&format!(
        "provider script {{ exec sh \"-c\" \"{script}\" }}\nprovider reading {{ exec cat }}\nagent a provider=script\nagent b provider=reading\npipeline main {{\n task writer agent=a {{ prompt \"Write.\" }}\n task reader agent=b {{ depends-on writer; prompt \"Read.\" }}\n edges {{ writer -> reader }}\n result reader\n}}\n"
    ));
    kill_runner(&place, &["run", "flow.kdl"]);
    place.write("send", "");
    std::thread::sleep(Duration::from_millis(500));
    let ended = place.swarmc(&["resume", "last"]);
    let sent = fs::read_to_string(place.work().join("sent")).unwrap_or_default();
    ended.expect(0, &["late"], &[]);
    assert_eq!(count(&place, "sent"), 1, "{sent}");
}

/// An orphan of one agent, with an empty environment, asks the shim of another one for its token, and to be its runner.
#[test]
fn a_process_of_a_run_is_no_runner() {
    let attack = r#"
import glob, socket, time
deadline = time.time() + 10
while not (found := glob.glob(HOME + "/runs/*/attempts/two.1/0/sock")) and time.time() < deadline: time.sleep(0.05)
told = []
for line in ['"ask"', '{"hello":{"epoch":999999}}', '"stop"']:
    client = socket.socket(socket.AF_UNIX)
    client.connect(found[0])
    client.settimeout(2)
    try:
        client.sendall((line + "\n").encode())
        told.append(client.recv(1000).decode())
    except OSError as error: told.append(type(error).__name__)
open("told", "w").write(repr(told))
"#;
    let one = "cat >/dev/null; (setsid env -i python3 attack.py &) ; until [ -e told ]; do sleep 0.02; done; echo one";
    let two = "cat >/dev/null; until [ -e told ]; do sleep 0.02; done; echo two";
    let place = Place::new(&format!(
        "provider attacks {{ exec sh \"-c\" \"{one}\" }}\nprovider waits {{ exec sh \"-c\" \"{two}\" }}\nagent a provider=attacks\nagent b provider=waits\npipeline main {{\n task one agent=a {{ prompt \"Go.\" }}\n task two agent=b {{ prompt \"Go.\" }}\n result two\n}}\n"
    ));
    let home = place.home();
    place.write("attack.py", &format!("HOME = {:?}\n{attack}", home.display().to_string()));
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["two"], &[]);
    let told = fs::read_to_string(place.work().join("told")).expect("it was written");
    assert!(!told.contains("lives"), "{told}");
}

/// On a disk that is full an agent waits for a minute. Meanwhile its shim ends it at once where a person asks for that.
#[test]
fn a_shim_answers_while_the_disk_is_full() {
    let agent =
        "touch started; until [ -e go ]; do sleep 0.02; done; head -c 16000000 /dev/zero; touch written; sleep 60";
    let place = Place::new(&format!(
        "provider script {{ exec \"sh\" \"-c\" \"{agent}\" }}\nagent a provider=script\npipeline main {{ task one agent=a {{ prompt \"Begin.\" }}; result one }}\n"
    ));
    // In a namespace of its own it has a disk of its own.
    let script = "mkdir -p \"$SWARM_HOME\" && mount -t tmpfs -o size=4m tmpfs \"$SWARM_HOME\" || exit 90
        \"$SWARMC\" run flow.kdl >/dev/null 2>&1 & runner=$!
        until [ -e started ]; do sleep 0.02; done
        kill -9 $runner; wait $runner
        touch go
        until [ \"$(stat -f -c %f \"$SWARM_HOME\")\" -lt 16 ]; do sleep 0.02; done
        before=$(date +%s)
        \"$SWARMC\" stop last || exit 91
        echo took $(($(date +%s) - before))";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).current_dir(place.work());
    command.env("SWARM_HOME", place.home()).env("SWARMC", env!("CARGO_BIN_EXE_swarmc")).env_remove("CI");
    let output = command.output().expect("unshare starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let took = printed.lines().find_map(|line| line.strip_prefix("took ")?.parse::<u64>().ok());
    assert!(took.is_some_and(|took| took < 10), "{printed}");
    assert!(!place.work().join("written").exists(), "nothing that it put out was dropped");
}

/// What is too much for a pipe, a window and a log: all of it passes, and its end is the answer.
#[test]
fn a_process_that_is_held_can_put_out_more_than_is_kept() {
    let command = "head -c 300000000 /dev/zero; echo; head -c 1000000 /dev/zero >&2; echo end";
    let place = Place::new(&format!(
        "workflow w {{ survive all }}\npipeline main {{ task one {{ run \"{command}\" }}; task two {{ depends-on one; run \"tail\" \"-c\" \"4\"; stdin \"<<output:one>>\" }}; result two }}\n"
    ));
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["end"], &[]);
    let log = fs::metadata(run_folder(&place).join("logs/one.1.err")).expect("there is a log");
    assert_eq!(log.len(), 1_000_000);
}
