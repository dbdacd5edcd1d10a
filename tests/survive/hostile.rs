//! What shims leave and hold, where programs and other processes do not behave.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{
    AGENT, assert_went_on, count, effects, journal, kill_runner, killed, processes, run_folder, shims, signal, spec,
    wait_until,
};
use crate::cli::Place;

/// A run whose agent has ended while no runner was there, and the folder of its process.
fn ended() -> (Place, PathBuf) {
    let place = killed(&spec("survive agents", ""));
    place.write("go", "");
    wait_until("the shim ends with its agent", || processes(&place).is_empty());
    let folder = run_folder(&place).join("attempts/one.1/0");
    assert!(folder.join("exit").exists());
    (place, folder)
}

#[test]
fn a_program_that_closes_its_output_and_lives_on_is_rejoined() {
    let closes = AGENT.replace("cat; until", "cat; echo over; exec >&- 2>&-; until").replace("; echo over\"", "\"");
    assert_ne!(closes, AGENT);
    let place = killed(&spec("survive agents", "").replace(AGENT, &closes));
    wait_until("it is at work", || effects(&place) == "start ");
    place.write("go", "");
    assert_went_on(&place, "1 attempt of the last runner");
}

#[test]
fn an_agent_whose_output_was_cut_off_starts_again() {
    let (place, folder) = ended();
    fs::write(folder.join("out"), "Be").expect("it can be written");
    place.swarmc(&["resume", "last"]).expect(0, &["Begin.over"], &["what it had put out was cut off"]);
    assert_eq!(effects(&place), "start done start done ");
}

#[test]
fn a_forged_end_is_neither_believed_nor_waited_for() {
    for forged in ["words", "huge", "link", "endless", "pipe", "folder"] {
        let (place, folder) = ended();
        let exit = folder.join("exit");
        let told = fs::read_to_string(&exit).expect("it says how it ended");
        fs::remove_file(&exit).expect("it can be removed");
        match forged {
            "words" => fs::write(&exit, "{\"cause\":\"exit\",").expect("it can be written"),
            "huge" => fs::write(&exit, " ".repeat(1 << 20) + &told).expect("it can be written"),
            "link" => {
                fs::write(folder.join("other"), told).expect("it can be written");
                symlink(folder.join("other"), &exit).expect("it can be made");
            }
            "endless" => symlink("/dev/zero", &exit).expect("it can be made"),
            "pipe" => assert!(Command::new("mkfifo").arg(&exit).status().expect("mkfifo starts").success()),
            _ => fs::create_dir(&exit).expect("it can be made"),
        }
        place.swarmc(&["resume", "last"]).expect(0, &["Begin.over"], &[]);
        assert_eq!(
            (effects(&place).as_str(), count(&place, "attempt_rejoined")),
            ("start done start done ", 0),
            "{forged}"
        );
    }
}

#[test]
fn a_pipe_in_place_of_the_output_is_not_waited_for() {
    let (place, folder) = ended();
    fs::remove_file(folder.join("out")).expect("it can be removed");
    assert!(Command::new("mkfifo").arg(folder.join("out")).status().expect("mkfifo starts").success());
    place.swarmc(&["resume", "last"]).expect(0, &["Begin.over"], &[]);
    assert_eq!(effects(&place), "start done start done ");
}

/// A runner that was stopped for long comes back when another one has taken over: it shows an older epoch.
#[test]
fn a_runner_with_a_stale_epoch_is_refused() {
    let place = killed(&spec("survive agents", ""));
    kill_runner(&place, &["resume", "last"]);
    let socket = run_folder(&place).join("attempts/one.1/0/sock");
    let script = "import socket, sys\nclient = socket.socket(socket.AF_UNIX)\nclient.connect(sys.argv[1])\nclient.settimeout(3)\nclient.sendall(b'{\"hello\":{\"epoch\":1}}\\n')\nsys.stdout.write(repr(client.recv(1000)))\n";
    let output = Command::new("python3").args(["-c", script]).arg(&socket).output().expect("python3 starts");
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!told.contains("lives"), "{told}");
    place.write("go", "");
    place.swarmc(&["resume", "last"]).expect(0, &["Begin.over"], &[]);
    assert_eq!(effects(&place), "start done ");
}

#[test]
fn an_orphan_that_ignores_its_end_is_killed() {
    let stubborn = AGENT.replace("echo start", "trap '' TERM; echo start");
    let place = killed(&spec("survive agents for=\"1s\"", "").replace(AGENT, &stubborn));
    wait_until("it is killed", || processes(&place).is_empty());
    let exit = fs::read_to_string(run_folder(&place).join("attempts/one.1/0/exit")).expect("the shim says why");
    assert!(exit.contains("\"orphaned\""), "{exit}");
    place.write("go", "");
    place.swarmc(&["resume", "last"]).expect(0, &["Begin.over"], &[]);
}

#[test]
fn prune_and_stop_end_what_no_runner_has() {
    for ending in ["prune", "stop"] {
        let place = killed(&spec("survive agents", ""));
        // A run that can be resumed is removed only by name.
        place.swarmc(&["prune", "--older-than", "0s"]).expect(0, &[], &[]);
        assert_eq!(shims(&place).len(), 1, "its agent goes on");
        let run = run_folder(&place);
        let name = run.file_name().and_then(|name| name.to_str()).expect("its name is text").to_owned();
        place.swarmc(&[ending, &name]).expect(0, &[], &[]);
        assert_eq!((processes(&place), run.exists()), (Vec::<i32>::new(), ending == "stop"), "{ending}");
    }
}

/// The runner is killed in a check: its turn, which is read once more, has left one diff.
#[test]
fn the_diff_of_a_turn_is_recorded_once() {
    let place = Place::new(
        "provider script { exec sh \"-c\" \"cat >/dev/null; echo changed > file.txt; echo over\" }\nagent a provider=script { can write-files }\npipeline main {\n task one agent=a { prompt \"Do it.\"; check \"echo start >> effects; until [ -e go ]; do sleep 0.02; done\" }\n result one\n}\n",
    );
    place.write("file.txt", "as it was\n");
    kill_runner(&place, &["run", "flow.kdl"]);
    assert_eq!(count(&place, "artifact_stored"), 1, "{}", journal(&place));
    place.write("go", "");
    place.swarmc(&["resume", "last"]).expect(0, &["over"], &["ended meanwhile, and read"]);
    assert_eq!((count(&place, "artifact_stored"), count(&place, "attempt_rejoined")), (1, 1), "{}", journal(&place));
}

/// The agent has the value in its environment; no file of its run has, while it goes on alone and after its end.
#[test]
fn no_file_of_a_run_whose_agent_goes_on_has_the_value_of_a_secret() {
    const VALUE: &str = "sesame-opens-7731";
    let text = spec("survive agents", "env token").replace("echo start", "echo start ${#TOKEN}");
    let place = Place::new(&format!("secret token env=TOKEN\n{text}"));
    let command = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env("TOKEN", VALUE).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let assert_hidden = || {
        let found =
            Command::new("grep").args(["-r", "-a", "-l", VALUE]).arg(place.home()).output().expect("grep starts");
        assert_eq!((found.status.code(), String::from_utf8_lossy(&found.stdout).as_ref()), (Some(1), ""));
    };
    let mut child = command(&["run", "flow.kdl"]).spawn().expect("it starts");
    wait_until("it is at work", || effects(&place) == "start 17 " && count(&place, "process_started") > 0);
    signal(&child, "KILL");
    child.wait().expect("it ends");
    assert_hidden();
    place.write("go", "");
    assert!(command(&["resume", "last"]).status().expect("it starts").success());
    assert_eq!((effects(&place).as_str(), count(&place, "attempt_rejoined")), ("start 17 done ", 1));
    assert_hidden();
}
