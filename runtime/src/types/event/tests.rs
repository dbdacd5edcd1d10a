//! Tests that events stay within their bounds, and how they describe an attempt.

use super::*;

#[test]
fn texts_of_any_kind_leave_an_event_within_its_bound() {
    for piece in ["x", "\u{1}", "\"", "\n", "漢", "a\u{1f}é"] {
        let text = piece.repeat(9000 / piece.len());
        let mut inline: String = text.chars().take(INLINE / 3).collect();
        while !can_inline(&inline) {
            inline.pop();
        }
        let failure = Failure::Agent { message: text.clone() };
        let errors = Some(Content::Artifact { digest: "0".repeat(64), bytes: u64::MAX });
        let (output, session) = (Some(Content::Text(inline)), Some(text.clone()));
        let mut outcome =
            Outcome { failure: Some(failure), stderr: text.clone(), output, session, errors, ..Outcome::default() };
        let kept = |content| {
            ArtifactMeta::with_id(crate::types::artifact::ArtifactKind::Transcript, "0".repeat(16).into(), content)
        };
        outcome.artifacts = vec![kept(outcome.errors.clone().expect("it has errors")); 5];
        outcome.limit_size();
        assert!(!outcome.stderr.is_empty() && text.ends_with(&outcome.stderr), "the end is kept");
        let told = outcome.failure.as_ref().map(Failure::to_string).unwrap_or_default();
        assert!(told.strip_suffix('…').is_some_and(|told| text.starts_with(told) && told.len() > 300), "{told}");
        assert_eq!(outcome.session, None);
        let length = |outcome: Outcome| {
            let within = Some("w".repeat(LONGEST_PATH).into());
            let step = StepId { within, ..StepId::new(&"n".repeat(100), u32::MAX, u32::MAX) };
            let event = Event::AttemptEnded { step, attempt: u32::MAX, outcome };
            serde_json::to_string(&Record { seq: u64::MAX, at: u64::MAX, event }).unwrap().len()
        };
        assert!(length(outcome.clone()) < LARGEST, "{piece:?}: {}", length(outcome));
        let long: String = text.chars().take(300).collect();
        let mut violations = vec![long; 11];
        violations.push(text.clone());
        outcome.failure = Some(Failure::Invalid { violations });
        outcome.limit_size();
        let Some(Failure::Invalid { violations }) = &outcome.failure else { unreachable!() };
        assert!((1..12).contains(&violations.len()), "{violations:?}");
        assert!(length(outcome.clone()) < LARGEST, "{piece:?}: {}", length(outcome));
    }
    let mut outcome = Outcome { stderr: "short".to_owned(), session: Some("s1".to_owned()), ..Outcome::default() };
    let before = outcome.clone();
    outcome.limit_size();
    assert_eq!(outcome, before, "what fits stays as it is");
}

#[test]
fn the_error_of_an_attempt_is_its_stderr_or_our_words() {
    let check = |failure: Option<Failure>, exit: Option<i32>, stderr: &str, expected: Option<&str>| {
        let outcome = Outcome { failure, exit, stderr: stderr.to_owned(), ..Outcome::default() };
        assert_eq!(outcome.error().as_deref(), expected);
    };
    check(None, Some(0), "a warning", None);
    check(Some(Failure::Exit), Some(1), "no such file", Some("no such file"));
    check(Some(Failure::Exit), Some(137), "", Some("it exited with 137"));
    check(Some(Failure::Timeout { after_ms: 1_200_000 }), Some(143), "late", Some("it took longer than 20m"));
    check(Some(Failure::Idle { after_ms: 1_500 }), None, "", Some("it printed nothing for 1500ms"));
    let line = "cargo test".to_owned();
    let words = "the check `cargo test` exited with 101";
    check(Some(Failure::Check { line, exit: Some(101) }), Some(0), "", Some(words));
}
