//! What the steps of a plan do, in words.

use swarmc_plan::{Body, Command, Plan, Segment, Step, Template};

use crate::{format_count, format_limit, format_size, make_printable};

/// All of a step that its box in a picture and its line in a list do not show otherwise: what it does, with what, and how
/// often and how long it may.
pub fn describe_step(plan: &Plan, step: &Step) -> String {
    let mut parts = vec![match &step.body {
        Body::Prompt(body) => {
            let provider = plan.agent(&body.agent).map_or("", |agent| agent.provider.as_str());
            format!("agent {} ({provider}), prompt of {}", body.agent, describe_template(&body.prompt))
        }
        Body::Run(command) => format!("run {}", format_command(command)),
        Body::Value(template) => format!("value of {}", describe_template(template)),
        Body::Fields(_) => "value with fields".to_owned(),
        Body::Stop { status, .. } => format!("stop with {}", format!("{status:?}").to_lowercase()),
        Body::Call(_) | Body::Swarm(_) => {
            format!("{} {}", step.body.kind().name(), step.body.target().unwrap_or_default())
        }
        Body::Gate(gate) => format!("a person chooses {}", gate.options.join(", ")),
        Body::Loop(body) => {
            format!(
                "{} of {}",
                format_count(body.iteration.max.into(), "round"),
                format_count(body.steps.len() as u64, "step")
            )
        }
    }];
    if let Some(stdin) = &step.stdin {
        parts.push(format!("stdin of {}", describe_template(stdin)));
    }
    if step.retry.times > 0 {
        parts.push(match step.retry.times {
            1 => "1 retry".to_owned(),
            times => format!("{times} retries"),
        });
    }
    if let Some(timeout) = step.timeout_ms {
        parts.push(format!("ended after {}", format_limit(timeout)));
    }
    parts.join("; ")
}

/// A command on one line, cut where it gets long.
pub fn format_command(command: &Command) -> String {
    let whole = match command {
        Command::Argv(argv) | Command::Script { argv, .. } => {
            argv.iter().map(|word| quote_word(word)).collect::<Vec<_>>().join(" ")
        }
        Command::Shell(line) => line.trim().replace('\n', " ⏎ "),
    };
    let whole = make_printable(&whole).into_owned();
    match whole.char_indices().nth(72) {
        Some((at, _)) => format!("{}…", &whole[..at]),
        None => whole,
    }
}

/// A word as one would type it in a shell.
pub fn quote_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%^".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The size of a text: its fixed part, and how many values come into it.
pub fn describe_template(template: &Template) -> String {
    let fixed = |segment: &Segment| match segment {
        Segment::Text(text) => text.len() as u64,
        Segment::Directive(_) | Segment::Logic(_) => 0,
    };
    let holes = template.segments.iter().filter(|segment| !matches!(segment, Segment::Text(_))).count() as u64;
    let bytes: u64 = template.segments.iter().map(fixed).sum();
    match (bytes, holes) {
        (0, 1..) => format_count(holes, "value"),
        (_, 0) => format_size(bytes),
        _ => format!("{} and {}", format_size(bytes), format_count(holes, "value")),
    }
}
