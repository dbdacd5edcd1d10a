//! Recordings of agents that work by files: a replay collects what they left, copies nothing and starts nothing, and
//! what they were told is held against what they are told now.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::Place;
use crate::examples::edit;
use crate::specs::Project;

use super::are_alike;

const SPEC: &str = "specs/files/files.kdl";

const SAME: &str = ", and everything is as recorded";

/// A collector that hands on what it leaves, and tells of it; a reader that fails once, and is helped.
const FLOW: &str = r##"
workflow flow { default main }
type Data { values list<int> }
provider local { script { answer "mended" } }
agent mender provider=local { can write-files }
pipeline main {
    edges { collect -> told }
    task collect {
        run "sh" "-c" #"""
            cd "$SWARM_WORKSPACE"; cat inbox/in.txt >/dev/null
            echo '{"values": [1, 2]}' >outbox/data.json; echo "made in $PWD" >outbox/summary.md
            printf '\377\376\0x' >outbox/raw.bin; mkdir -p outbox/deep/er; echo x >outbox/deep/er/x.txt
            head -c 20000000 /dev/zero >outbox/vast.bin
            echo '{"to": "told", "type": "data_ready", "content": {"message": "It is there"}}' >messages/collect_to_told_001.json
            echo '{"state": "completed", "metrics": {"files": 3}}' >status.json
            """#
        files {
            input "in.txt" "What there is"
            output "data.json" "The data" type=Data copy-to="copied.json"
            output "raw.bin" required=#false
            requirement "Keep every value"
        }
    }
    task told { stdin "<<inbox>>"; run "cat" }
    task read {
        depends-on collect
        on-failure fix agent=mender
        run "sh" "-c" #"""
            cd "$SWARM_WORKSPACE"
            if test $SWARM_ATTEMPT = 1; then
                echo no >outbox/error_report.md
                echo '{"state": "failed", "error": {"type": "Wrong", "message": "not yet", "recoverable": true}}' >status.json
                exit 1
            fi
            cp inbox/data.json outbox/summary.md; echo '{"state": "completed"}' >status.json
            """#
        files { input "data.json" "The data" from=collect }
    }
    result read
}
"##;

/// What the collector left, as its line has it.
const VALUES: &str = r#""data.json":"{\"values\": [1, 2]}\n""#;

fn recorded(flow: &str) -> Place {
    let place = Place::new(flow);
    place.write("in.txt", "in");
    place.swarmc(&["run", "flow.kdl", "--record", "r"]).expect(0, &[], &[]);
    place
}

/// The folder of the last run.
fn last_run(home: &Path) -> PathBuf {
    let runs = fs::read_dir(home.join("runs")).expect("there are runs");
    let mut runs: Vec<PathBuf> = runs.map(|run| run.expect("an entry").path()).collect();
    runs.sort();
    runs.pop().expect("there is one")
}

#[test]
fn what_agents_left_is_collected_again_and_nothing_is_copied() {
    let place = recorded(FLOW);
    let whole = fs::read_to_string(place.work().join("r/recording.jsonl")).expect("a recording");
    let mut parts = vec![whole.into_bytes()];
    for part in fs::read_dir(place.work().join("r/texts")).expect("there are texts") {
        parts.push(fs::read(part.expect("an entry").path()).expect("it can be read"));
    }
    let all: String = parts.iter().map(|part| String::from_utf8_lossy(part)).collect();
    assert!(!all.contains(&*place.home().to_string_lossy()), "{all}");
    assert!(all.contains("made in ⟦run⟧/agents/collect/attempt-1"), "{all}");
    assert!(all.len() < 100_000, "what nobody asked for is not kept where it is large: {}", all.len());
    // What was copied is not there any more, and what there was to read is something else.
    fs::remove_file(place.work().join("copied.json")).expect("it is there");
    place.write("in.txt", "something else");
    for _ in 0..2 {
        let replayed = place.swarmc(&["run", "flow.kdl", "--replay", "r"]);
        let replayed = replayed.expect(0, &["{\"values\": [1, 2]}"], &[]);
        assert!(replayed.err.contains(SAME), "{replayed:#?}");
    }
    assert!(!place.work().join("copied.json").exists(), "nothing is copied in a replay");
    let folder = last_run(&place.home()).join("agents/collect/attempt-1");
    let read = |name: &str| fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(read("outbox/raw.bin"), b"\xff\xfe\0x");
    assert_eq!(read("outbox/deep/er/x.txt"), b"x\n");
    assert!(
        String::from_utf8_lossy(&read("outbox/summary.md")).contains(&*folder.to_string_lossy()),
        "filled in again"
    );
    assert!(String::from_utf8_lossy(&read("inbox/instructions.md")).contains("Keep every value"));
    assert!(!folder.join("outbox/vast.bin").exists() && !folder.join("inbox/in.txt").exists());
    place.swarmc(&["inspect", "last", "collect"]).expect(0, &["vast.bin", "completed"], &[]);
}

#[test]
fn the_same_agents_fail_are_helped_and_succeed_again() {
    let place = recorded(&FLOW.replace("made in $PWD", "made"));
    place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(0, &[], &[SAME]);
    are_alike(&place.home());
}

/// What the runner writes beside the inbox is not taken for what lies in it.
#[test]
fn an_input_may_be_called_as_the_runners_own_text_is() {
    let place = Place::new(&FLOW.replace("in.txt", "SKILL.md"));
    place.write("SKILL.md", "how to knit");
    place.swarmc(&["run", "flow.kdl", "--record", "r"]).expect(0, &[], &[]);
    let given = || {
        let told = place.swarmc(&["inspect", "last", "collect"]).expect(0, &[], &[]).out;
        told.lines().find(|line| line.contains("inbox   SKILL.md")).expect("it is listed").to_owned()
    };
    let recorded = given();
    place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(0, &[], &[SAME]);
    assert_eq!(given(), recorded);
}

#[test]
fn an_edited_requirement_is_shown_as_a_diff_and_nothing_else() {
    let project = Project::new();
    project.done(&["run", SPEC, "--record", "recorded"]);
    edit(&project, SPEC, "requirement \"Name every region once\"", "requirement \"Name every region twice\"");
    let replayed = project.swarmc(&["run", SPEC, "--replay", "recorded", "-q"]);
    assert_eq!(replayed.status.code(), Some(3));
    let out = String::from_utf8_lossy(&replayed.stdout);
    let changed = out.lines().filter(|line| line.starts_with(['-', '+']) && !line.starts_with("- "));
    let changed: Vec<&str> = changed.collect();
    assert_eq!(
        changed,
        ["--- recorded", "+++ now", "-1. Name every region once", "+1. Name every region twice"],
        "{out}"
    );
    let err = String::from_utf8_lossy(&replayed.stderr);
    assert!(err.contains("error: `analyst`: its `inbox/instructions.md` differs from the recording\n"), "{err}");
    edit(&project, SPEC, "requirement \"Name every region twice\"", "requirement \"Name every region once\"");
    edit(&project, "specs/files/skills/collector.md", "#", "##");
    let replayed = project.swarmc(&["run", SPEC, "--replay", "recorded", "-q"]);
    let err = String::from_utf8_lossy(&replayed.stderr);
    assert!(err.contains("error: `collector`: its `SKILL.md` differs from the recording\n"), "{err}");
}

#[test]
fn an_edited_file_is_what_the_agent_left() {
    let place = recorded(FLOW);
    let path = place.work().join("r/recording.jsonl");
    let whole = fs::read_to_string(&path).expect("a recording");
    assert!(whole.contains(VALUES), "{whole}");
    fs::write(&path, whole.replacen(VALUES, r#""data.json":"{\"values\": 7}\n""#, 1)).expect("it can be written");
    let failed = ["collect: failed after ", "`outbox/data.json` is not of its type"];
    let ended = place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(3, &[], &failed);
    assert!(!ended.err.contains(SAME), "{ended:#?}");
}

#[test]
fn hostile_folders_are_told_with_their_line() {
    let place = recorded(FLOW);
    let path = place.work().join("r/recording.jsonl");
    let whole = fs::read_to_string(&path).expect("a recording");
    let number = 1 + whole.lines().position(|line| line.contains("\"kind\":\"files\"")).expect("there is one");
    let at = format!("recording.jsonl:{number}: ");
    std::os::unix::fs::symlink("/etc/passwd", place.work().join("r/link")).expect("a link can be made");
    let digest = "a".repeat(64);
    let many: Vec<String> =
        (0..10_000).map(|file| format!("{{\"path\":\"f{file}\",\"bytes\":1,\"digest\":\"{digest}\"}},")).collect();
    let kept = "{\"path\":\"data.json\",\"bytes\":";
    let other = |path: &str| format!("{{\"path\":\"{path}\",\"bytes\":1,\"digest\":\"{digest}\"}},{kept}");
    for (from, to, expected) in [
        (kept, other("../x"), "`../x` goes up with `..`"),
        (kept, other("/etc/passwd"), "`/etc/passwd` is absolute"),
        (kept, other("a//b"), "`a//b` is no plain path"),
        (kept, other("data.json"), "`data.json` is there twice"),
        (kept, other("data.json/x"), "is there twice, or a file and a folder"),
        (kept, other(&"a/".repeat(600)), "is longer than the 1024 bytes"),
        (kept, other("⟦workspace⟧/x"), "is absolute"),
        (kept, format!("{}{kept}", many.concat()), "holds more than 10000 files"),
        ("\"files\":{", "\"files\":{\"more.txt\":\"x\",".to_owned(), "`more.txt` was not collected"),
        (VALUES, "\"data.json\":{\"file\":\"link\"}".to_owned(), "`link` leads out of the recording"),
        ("\"told\":{", "\"told\":{\"inbox/../x\":\"x\",".to_owned(), "the runner does not write `"),
        ("\"inputs\":[{", "\"inputs\":[{\"more\":1,".to_owned(), "unknown field `more`"),
    ] {
        assert!(whole.contains(from), "`{from}` is not in {whole}");
        fs::write(&path, whole.replacen(from, &to, 1)).expect("it can be written");
        let ended = place.swarmc(&["run", "flow.kdl", "--replay", "r"]);
        let told = ended.err.contains(&at) && ended.err.contains(expected);
        assert!(ended.code == Some(2) && told, "{at}{expected}: {ended:#?}");
    }
    assert!(!place.work().join("x").exists());
}
