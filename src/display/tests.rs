//! The display, with memory in place of the two streams.

use serde_json::json;
use swarmc_runtime::{Event, Failure, Outcome};

use super::*;

/// What was written, by whomever.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Memory {
    fn take(&self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut *self.0.lock().unwrap())).into_owned()
    }
}

struct Closed;

impl Write for Closed {
    fn write(&mut self, _bytes: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn plan() -> swarmc_plan::Plan {
    let step = |name: &str| {
        format!(
            r#"{{ "name": "{name}", "body": {{ "run": {{ "argv": ["true"] }} }}, "output": {{ "max_bytes": 1 }},
            "retry": {{ "times": 1, "backoff_ms": 0, "max_backoff_ms": 0 }}, "grace_ms": 0,
            "origin": {{ "file": "f", "line": 1, "column": 1 }} }}"#
        )
    };
    let text = format!(
        r#"{{ "version": 1, "workflow": "w", "default": "p", "sources": [], "pipelines": [{{ "name": "p",
        "iteration": {{ "max": 1, "on_failure": "stop", "exhausted": "fail" }}, "parallelism": 1,
        "steps": [{}, {}], "origin": {{ "file": "f", "line": 1, "column": 1 }} }}] }}"#,
        step("draft"),
        step("review")
    );
    swarmc_plan::read_plan(&text).unwrap()
}

fn screen(terminal: bool, json: bool) -> (Screen, Memory, Memory) {
    let (out, err) = (Memory::default(), Memory::default());
    let sink = |memory: &Memory| Sink {
        writer: Box::new(memory.clone()),
        terminal,
        paint: Paint { colour: false },
        broken: false,
    };
    let plan = plan();
    let ledger = RunReport::new(&plan, &plan.pipelines[0], None);
    let live = terminal.then(Live::new);
    let show = Show { json, events: false, quiet: false, logs: LogLines::Full };
    (Screen::new(&plan.pipelines[0], ledger, show, [sink(&out), sink(&err)], live), out, err)
}

fn id(name: &str) -> StepId {
    StepId::new(name, 1, 1)
}

fn record(event: Event) -> Record {
    Record { seq: 1, at: 1000, event }
}

#[test]
fn lines_of_tasks_at_once_are_never_torn() {
    let (mut screen, out, err) = screen(false, false);
    let (draft, review) = (id("draft"), id("review"));
    screen.write_output(&draft, 1, false, b"one, begun");
    screen.write_output(&review, 1, false, b"other\nand");
    screen.write_output(&draft, 1, false, b" and ended\n\nraw \x1b[31m\xff\n");
    screen.handle_record(&record(Event::AttemptEnded { step: review, attempt: 1, outcome: Outcome::default() }));
    screen.write_output(&draft, 1, false, b"last");
    screen.flush_all();
    let expected = "review │ other\ndraft  │ one, begun and ended\ndraft  │ \ndraft  │ raw \x1b[31m\u{FFFD}\n\
                    review │ and\n✓ review: succeeded in 0.0s\ndraft  │ last\n";
    assert_eq!(err.take(), expected);
    assert_eq!(out.take(), "", "standard output is for the result alone");
}

#[test]
fn of_a_failed_attempt_alone_the_last_lines_are_shown() {
    for (lines, shown) in [(0_u32, 0..0), (20, 0..20), (23, 3..23)] {
        let (mut screen, _, err) = screen(false, false);
        (screen.show.logs, screen.ledger.run) = (LogLines::Tail, "R".to_owned());
        for number in 0..lines {
            screen.write_output(&id("draft"), 1, number % 2 == 1, format!("line {number}\n").as_bytes());
            screen.write_output(&id("review"), 1, false, b"line\n");
        }
        assert_eq!(err.take(), "", "nothing is known yet");
        let failed = Outcome { failure: Some(Failure::Exit), exit: Some(3), ..Outcome::default() };
        let ended = |step: &str, outcome| Event::AttemptEnded { step: id(step), attempt: 1, outcome };
        screen.handle_record(&record(ended("draft", failed)));
        let note = if lines > 20 { "draft  │ (3 lines before: swarmc logs R draft)\n" } else { "" };
        let expected: String = shown.map(|number| format!("draft  │ line {number}\n")).collect();
        let said = err.take();
        assert!(said.starts_with(&format!("{note}{expected}! draft: attempt 1 of 2 failed")), "{said}");
        screen.handle_record(&record(ended("review", Outcome::default())));
        assert!(!err.take().contains('│') && screen.tails.is_empty());
    }
}

#[test]
fn a_line_without_an_end_is_passed_on_in_pieces() {
    let (mut screen, _, err) = screen(false, false);
    for _ in 0..100 {
        screen.write_output(&id("draft"), 1, false, "é".repeat(5001).as_bytes());
    }
    screen.flush_all();
    let text = err.take();
    assert_eq!(text.matches('é').count(), 500_100);
    assert!(!text.contains('\u{FFFD}'), "a character was torn");
    assert!(text.lines().all(|line| line.len() < output::MAX_LINE + 20));
}

#[test]
fn a_terminal_obeys_only_us() {
    let (mut screen, _, err) = screen(true, false);
    screen.write_output(&id("draft"), 1, false, b"\x1b[2J\x1b]0;title\x07 10%\r 20%\x08\n");
    assert_eq!(err.take(), "draft  │  10%␍ 20%\u{FFFD}\n");
}

#[test]
fn a_reader_that_went_away_is_given_up() {
    let (mut screen, _, err) = screen(false, true);
    screen.out.writer = Box::new(Closed);
    screen.write_output(&id("draft"), 1, false, b"line\n");
    screen.write_output(&id("draft"), 1, false, b"line\n");
    assert!(screen.out.broken);
    screen.show.json = false;
    screen.write_notice("still here");
    assert_eq!(err.take(), "note: still here\n");
}

#[test]
fn a_pipe_gets_one_plain_line_for_each_change() {
    let (mut screen, _, err) = screen(false, false);
    let failed = Outcome { failure: Some(Failure::Exit), exit: Some(3), ..Outcome::default() };
    let ended =
        |attempt, outcome: &Outcome| Event::AttemptEnded { step: id("draft"), attempt, outcome: outcome.clone() };
    screen.handle_record(&record(Event::AttemptStarted {
        step: id("draft"),
        attempt: 1,
        reserved: None,
        summarizer: None,
    }));
    screen.handle_record(&record(ended(1, &failed)));
    screen.handle_record(&record(Event::AttemptStarted {
        step: id("draft"),
        attempt: 2,
        reserved: None,
        summarizer: None,
    }));
    screen.handle_record(&record(ended(2, &failed)));
    let need = swarmc_runtime::SkipReason::Need { step: "draft".to_owned(), status: Status::Failed };
    screen.handle_record(&record(Event::StepSkipped { step: id("review"), reason: need }));
    insta::assert_snapshot!(err.take(), @r"
      draft: started
    ! draft: attempt 1 of 2 failed: exit 3
      draft: attempt 2 started
    ✗ draft: failed after 0.0s: exit 3
    - review: skipped: `draft` failed
    ");
}

#[test]
fn json_lines_are_versioned() {
    let (mut screen, out, err) = screen(false, true);
    screen.handle_record(&record(Event::AttemptStarted {
        step: id("draft"),
        attempt: 1,
        reserved: None,
        summarizer: None,
    }));
    screen.write_output(&id("draft"), 1, true, b"a \"line\"\n");
    screen.write_notice("careful");
    let text = out.take();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["version"] == 1));
    assert_eq!(lines[0]["event"], "attempt_started");
    assert_eq!((&lines[1]["text"], &lines[1]["stream"]), (&json!("a \"line\""), &json!("stderr")));
    assert_eq!(lines[2]["type"], "notice");
    assert_eq!(err.take(), "");
}

#[test]
fn live_lines_are_taken_away_before_others_come() {
    let (mut screen, _, err) = screen(true, false);
    let started = Event::run_started("r", "p");
    screen.handle_record(&record(started));
    screen.handle_record(&record(Event::AttemptStarted {
        step: id("draft"),
        attempt: 1,
        reserved: None,
        summarizer: None,
    }));
    err.take();
    screen.advance_frame();
    let frame = err.take();
    assert!(frame.contains("draft") && frame.contains("0 done, 1 running of 2"), "{frame:?}");
    screen.write_output(&id("draft"), 1, false, b"line\n");
    let around = err.take();
    assert!(around.starts_with("\x1b[2A\r\x1b[Jdraft  │ line\n"), "{around:?}");
    screen.live_off();
    assert_eq!(err.take(), "\x1b[2A\r\x1b[J");
}

fn start(step: &str) -> Record {
    record(Event::AttemptStarted { step: id(step), attempt: 1, reserved: None, summarizer: None })
}

#[test]
fn a_turn_of_an_agent_ends_with_what_it_used() {
    let (mut screen, _, err) = screen(false, false);
    let usage = swarmc_runtime::Usage { input: 1_200, output: 34, cost: Some(0.25), ..Default::default() };
    screen.handle_record(&start("draft"));
    let outcome = Outcome { usage: Some(usage), ..Outcome::default() };
    screen.handle_record(&record(Event::AttemptEnded { step: id("draft"), attempt: 1, outcome }));
    assert_eq!(err.take(), "  draft: started\n✓ draft: succeeded in 0.0s, 1,234 tokens, $0.2500\n");
}

#[test]
fn after_a_silence_plain_output_says_what_runs_and_what_waits() {
    let (mut screen, _, err) = screen(false, false);
    screen.handle_record(&record(Event::run_started("r", "p")));
    screen.handle_record(&start("draft"));
    err.take();
    screen.silence.restart(1_000);
    let waiting = || vec!["review: waits for other steps (draft: it runs)".to_owned()];
    screen.show_waiting(waiting(), 30_999);
    assert_eq!(err.take(), "", "it is not over yet");
    screen.show_waiting(waiting(), 31_000);
    insta::assert_snapshot!(err.take(), @r"
      still running: 0 done, 1 running of 2, 30s
        draft     30s
        review: waits for other steps (draft: it runs)
    ");
    // The next time comes after a minute, then two; and what is printed begins anew.
    assert!(!screen.silence.is_over(90_999) && screen.silence.is_over(91_000));
    screen.show_waiting(Vec::new(), 91_000);
    assert!(!screen.silence.is_over(210_999) && screen.silence.is_over(211_000));
    screen.write_output(&id("draft"), 1, false, b"line\n");
    assert!(!screen.silence.is_over(swarmc_view::now_ms()) && screen.silence.is_over(swarmc_view::now_ms() + 30_000));
}

#[test]
fn a_terminal_shows_what_waits_below_what_runs_until_something_happens() {
    let (mut screen, _, err) = screen(true, false);
    screen.handle_record(&record(Event::run_started("r", "p")));
    screen.handle_record(&start("draft"));
    err.take();
    screen.show_waiting(vec!["review: waits for other steps (draft: it runs)".to_owned()], 3_000);
    screen.advance_frame();
    let frame = err.take();
    let (draft, review) = (frame.find("draft  ").unwrap(), frame.find("review: waits").unwrap());
    assert!(draft < review && review < frame.find("0 done").unwrap(), "{frame:?}");
    screen.handle_record(&record(Event::AttemptEnded { step: id("draft"), attempt: 1, outcome: Outcome::default() }));
    // What stood there is taken away with the next frame.
    err.take();
    screen.advance_frame();
    assert!(!err.take().contains("review: waits"));
}

#[test]
fn messages_and_findings_of_swarms_are_short_lines_that_no_terminal_obeys() {
    use swarmc_runtime::AttemptId;
    use swarmc_runtime::swarm::{MemberMessage, MessageType};
    let (mut screen, _, err) = screen(false, false);
    let swarm = || AttemptId::new(&id("draft"), 1);
    let send = |payload: &str| {
        let (from, to, payload) = ("ann\x1b[2J".into(), "bob".into(), Content::Text(payload.to_owned()));
        let message = MemberMessage { number: 1, from, to, kind: MessageType::Info, payload, person: false };
        record(Event::MessageSent { swarm: swarm(), message })
    };
    screen.handle_record(&send(r#"{"message":"Lit.\nAll\u001b[2J of them."}"#));
    screen.handle_record(&send(r#"{"a":1,"b":"\u202e"}"#));
    screen.handle_record(&send(&format!("\"{}\"", "x".repeat(5_000))));
    let data = Content::Artifact { digest: "d".to_owned(), bytes: 70_000 };
    let (number, topic, author) = (1, "lamps".into(), "bob".into());
    screen.handle_record(&record(Event::DataPublished { swarm: swarm(), number, topic, author, data }));
    let said = err.take();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "› draft: ann to bob (info): Lit. All of them.");
    assert_eq!(lines[1], r#"› draft: ann to bob (info): {"a":1,"b":"\u202e"}"#);
    assert!(lines[2].ends_with("xx…") && lines[2].chars().count() < 140, "{}", lines[2]);
    assert_eq!(lines[3..], ["+ draft: bob publishes lamps: (68 KB)"]);
}
