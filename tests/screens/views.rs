//! The views of `swarmc top` beside the list: the team and the plan of a swarm, how a run went, and what a question says.

use std::fs;
use std::path::Path;

use super::Tmux;
use crate::cli::Place;

/// A run of the spec of a team whose agents work by a plan.
fn run_team() -> Place {
    let place = Place::new("");
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("specs/refactor-swarm/refactor-swarm.kdl");
    fs::copy(spec, place.work().join("flow.kdl")).expect("it can be copied");
    place.swarmc(&["run", "flow.kdl", "--quiet"]).expect(0, &[], &[]);
    place
}

#[test]
fn a_team_and_its_plan_are_drawn_as_they_were() {
    let place = run_team();
    let tmux = Tmux::open(&place, 140, 40, "exec swarmc top last");
    tmux.wait("succeeded");
    tmux.press("2");
    let screen = tmux.wait("└─ ✓ a2");
    assert!(screen.contains("✓ lead") && screen.contains("├─ ✓ a1    2/2  completed"), "{screen}");
    // Who wrote to whom, and how often.
    assert!(screen.contains("▸ #parser  1 message") && screen.contains("the run "), "{screen}");
    tmux.press("3");
    tmux.wait("✓ api a1 1/1 ─ ✓ parser a2 ─ ✓ tests a1");
    tmux.press("a");
    tmux.wait("no proposal waits");
    // A record before the end, and the end again.
    tmux.press(",");
    let screen = tmux.wait(" record ");
    assert!(screen.contains(", . back and forward"), "{screen}");
    tmux.press(".");
    tmux.wait("succeeded");
    // From the beginning to the end: the plan of before, and the states of then.
    tmux.press("Space");
    tmux.wait("◌ parser a2");
    tmux.press("Space");
    let stands = tmux.wait(" record ");
    let record = |screen: &str| screen.lines().next().and_then(|head| head.split(" record ").nth(1).map(str::to_owned));
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(record(&tmux.screen()), record(&tmux.wait(" record ")), "it stands: {stands}");
    // Nothing of the past can be answered, stopped or resumed.
    tmux.press("!");
    tmux.wait("Nothing waits for an answer");
    tmux.press("Escape");
    // A letter right behind this key is another key.
    tmux.wait_for("the run again", |screen| !screen.contains("Nothing waits"));
    tmux.press("r");
    tmux.wait("is running, or has ended");
    tmux.press("Space");
    tmux.wait("● parser a2");
    tmux.press("1");
    tmux.press("Escape");
    tmux.wait("succeeded");
    let events = place.swarmc(&["events", "last"]).expect(0, &[], &[]).out;
    assert!(!events.contains("run_resumed"), "{events}");
}

#[test]
fn a_run_that_goes_on_has_no_past_yet_and_a_for_each_counts_its_items() {
    let place = Place::new(
        r#"
        workflow each
        pipeline p {
            task list { run seq 1 4 }
            task triage {
                for-each "(output.list | lines)[:10]" parallel=2 join=settled
                env VALUE="<<item>>"
                run sh "-c" "until [ -e go ] || [ $VALUE != 3 ]; do sleep 0.02; done; [ $VALUE != 2 ]"
            }
        }
        "#,
    );
    let mut child = place.command(&["run", "flow.kdl", "--quiet"]).spawn().expect("swarmc starts");
    let tmux =
        Tmux::open(&place, 140, 30, "until swarmc ps | grep -q running; do sleep 0.05; done; exec swarmc top last");
    // The item at work is selected, and not the step that it is one of.
    let screen = tmux.wait("✓ 2  ✗ 1  ● 1");
    assert!(screen.contains("Log of triage[2]"), "{screen}");
    tmux.press(",");
    tmux.wait("it goes on: how it went");
    tmux.press("f");
    let screen = tmux.wait("Steps, failed");
    assert!(screen.contains("✗ triage[1]") && !screen.contains("triage[0]"), "{screen}");
    place.write("go", "");
    assert!(child.wait().expect("it ends").success());
    tmux.wait("succeeded");
}

#[test]
fn a_question_and_a_reason_are_read_to_their_ends_on_a_narrow_screen() {
    let words: Vec<String> = (0..60).map(|word| format!("word{word}")).collect();
    let place = Place::new(&format!(
        "workflow long\npipeline p {{\n    gate human {{ message \"{} thelast\"; options yes no; on-timeout no after=\"24h\" }}\n    \
         task last {{ when \"output.human.choice == 'yes'\"; run sh \"-c\" \"exit 3\" }}\n}}\n",
        words.join(" ")
    ));
    let (mut child, _) = place.until(&["run", "flow.kdl"], "human waits");
    let tmux = Tmux::open(&place, 60, 24, "exec swarmc top last");
    tmux.wait("waits for you");
    tmux.press("!");
    let screen = tmux.wait("thelast");
    assert!(words.iter().all(|word| screen.split_whitespace().any(|shown| shown == word)), "{screen}");
    tmux.answer("1");
    assert_eq!(child.wait().expect("it ends").code(), Some(3));
    tmux.wait("failed");
    tmux.press("Down");
    tmux.press("Tab");
    tmux.wait_for("why it failed", |screen| screen.lines().nth(1).is_some_and(|line| line.contains("exit 3")));
}
