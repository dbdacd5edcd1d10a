//! Hover of names: what they are, what their value is, and how a step stands among the others.

use std::fmt::Write as _;
use std::time::Duration;

use swarmc_compiler::index::{ShapeId, ShapeKind, Step, Symbol, SymbolId, SymbolKind};
use swarmc_compiler::{Bound, FileId, When};

use super::{block, code};
use crate::ide::{Analysis, flow};
use crate::runs::Runs;

/// How many of a list of names are shown.
const SHOWN: usize = 8;

/// What is known of a symbol; of its value, too, where runs are given.
pub(super) fn describe(analysis: &Analysis, id: SymbolId, runs: Option<&dyn Runs>) -> String {
    let index = &analysis.index;
    let symbol = index.symbol(id);
    let mut parts = vec![format!("```kdl\n{}\n```", head(analysis, symbol)), title(analysis, symbol)];
    parts.extend(symbol.doc.clone());
    if let (Some(shape), Some(_)) = (symbol.shape, runs)
        && !matches!(symbol.kind, SymbolKind::Type | SymbolKind::Field | SymbolKind::Param | SymbolKind::Stop)
    {
        parts.push(format!("Value: {}", value(analysis, shape)));
    }
    let steps = index.steps.iter().enumerate().filter(|(_, step)| step.symbol == id);
    parts.extend(steps.take(SHOWN).map(|(position, step)| place(analysis, position, step)));
    match symbol.kind {
        SymbolKind::Pipeline => parts.extend(bounds(analysis, symbol)),
        SymbolKind::Agent => parts.extend(uses(analysis, id)),
        kind if kind.is_step() => parts.extend(turn(analysis, id, symbol)),
        _ => {}
    }
    parts.extend(trust(analysis, id));
    if let Some(runs) = runs {
        parts.extend(last(analysis, id, symbol, runs));
    }
    parts.join("\n\n")
}

/// The line that declares it, or all of a type.
fn head(analysis: &Analysis, symbol: &Symbol) -> String {
    let (index, name) = (&analysis.index, &symbol.name);
    match (symbol.kind, symbol.shape) {
        (SymbolKind::Type, Some(shape)) => format!("type {name} {}", body(analysis, shape)),
        (SymbolKind::Field, Some(shape)) => format!("{name} {}", index.shape(shape).text),
        _ => {
            let written = analysis.compilation.sources.slice(symbol.whole);
            let line = written.lines().next().unwrap_or_default();
            // A brace in a string would end it early, which is only shorter.
            let line = line.split('{').next().unwrap_or_default().trim();
            let line: String = line.chars().take(100).filter(|sign| *sign != '`').collect();
            if symbol.whole == symbol.span { format!("{} {name}", symbol.kind.noun()) } else { line }
        }
    }
}

/// The fields of a type, or its words.
fn body(analysis: &Analysis, shape: ShapeId) -> String {
    let index = &analysis.index;
    match &index.shape(shape).kind {
        ShapeKind::Record(fields) => {
            let mut text = "{\n".to_owned();
            for field in fields.iter().take(3 * SHOWN).map(|field| index.symbol(*field)) {
                let kind = field.shape.map_or("any", |shape| &index.shape(shape).text);
                let _ = writeln!(text, "    {} {kind}", field.name);
            }
            if fields.len() > 3 * SHOWN {
                text.push_str("    // …\n");
            }
            text + "}"
        }
        ShapeKind::Words(words) => format!("enum {}", words.join(" ")),
        _ => index.shape(shape).text.clone(),
    }
}

fn title(analysis: &Analysis, symbol: &Symbol) -> String {
    let mut title = capital(symbol.kind.noun());
    if let Some(within) = symbol.within {
        let within = analysis.index.symbol(within);
        let _ = write!(title, " of {} {}", within.kind.noun(), code(&within.name));
    }
    let file = analysis.compilation.sources.name(symbol.span.file);
    if symbol.span.file != FileId::new(0) {
        let _ = write!(title, ", declared in {}", code(file));
    }
    title
}

/// The type of a value, with the fields of a declared one.
pub(super) fn value(analysis: &Analysis, shape: ShapeId) -> String {
    let index = &analysis.index;
    let kind = index.shape(shape);
    match (&kind.kind, kind.declared) {
        (ShapeKind::Record(_) | ShapeKind::Words(_), Some(declared)) => {
            let name = &index.symbol(declared).name;
            format!("{}\n\n```kdl\ntype {name} {}\n```", code(&kind.text), body(analysis, shape))
        }
        _ => code(&kind.text),
    }
}

/// Where a step stands in a pipeline: who feeds it and whom it feeds.
fn place(analysis: &Analysis, position: usize, step: &Step) -> String {
    let index = &analysis.index;
    let count = index.steps_of(step.pipeline).count();
    let mut text = format!("Step {} of {count} of {}", step.position, code(&index.symbol(step.pipeline).name));
    if let Some(agent) = step.agent {
        let _ = write!(text, ", agent {}", code(&index.symbol(agent).name));
    }
    let name = |step: usize| code(&index.symbol(index.steps[step].symbol).name);
    let before: Vec<String> = step
        .needs
        .iter()
        .map(|need| match need.when {
            When::Success => name(need.step),
            when => format!("{} ({})", name(need.step), flow::word(when)),
        })
        .collect();
    let after: Vec<String> = flow::fed(index, position).map(name).collect();
    let listed = |names: &[String]| {
        let more = names.len().saturating_sub(SHOWN);
        let shown = names[..names.len() - more].join(", ");
        if more > 0 { format!("{shown} and {more} more") } else { shown }
    };
    if !before.is_empty() {
        let _ = write!(text, "  \nwaits for {}", listed(&before));
    }
    if !after.is_empty() {
        let _ = write!(text, "  \nfeeds {}", listed(&after));
    }
    text
}

/// What one run of a pipeline uses at most.
fn bounds(analysis: &Analysis, symbol: &Symbol) -> Option<String> {
    let bounds = analysis.counted().bounds.get(&symbol.name)?;
    // What is imported may have another name in the plan.
    if symbol.span.file != FileId::new(0) {
        return None;
    }
    let cost = match &bounds.cost {
        Bound::Most(millionths) => format!("${}.{:02}", millionths / 1_000_000, millionths % 1_000_000 / 10_000),
        Bound::Unbounded { .. } => "unknown".to_owned(),
    };
    let parts = [
        ("launches", amount(&bounds.launches)),
        ("turns", amount(&bounds.turns)),
        ("tokens in", amount(&bounds.input_tokens)),
        ("tokens out", amount(&bounds.output_tokens)),
        ("cost", cost),
    ];
    let shown: Vec<String> = parts.into_iter().map(|(what, amount)| format!("{what} {amount}")).collect();
    Some(format!("At most: {}", shown.join(", ")))
}

/// The tokens that a turn of a step is given at most.
fn turn(analysis: &Analysis, id: SymbolId, symbol: &Symbol) -> Option<String> {
    let index = &analysis.index;
    let pipeline = index.symbol(index.steps.iter().find(|step| step.symbol == id)?.pipeline);
    if pipeline.span.file != FileId::new(0) {
        return None;
    }
    let turn = analysis.counted().turns.get(&(pipeline.name.clone(), symbol.name.clone()))?;
    Some(match &turn.input {
        Bound::Most(tokens) => {
            let about = if turn.exact { "" } else { ", as other vocabularies count" };
            format!("A turn is given at most {} tokens{about}", grouped(*tokens))
        }
        Bound::Unbounded { because, .. } => format!("A turn is given any number of tokens: {because}"),
    })
}

/// What may have reached a step or a member.
fn trust(analysis: &Analysis, id: SymbolId) -> Option<String> {
    let trust = analysis.index.trust.get(&id)?;
    let what = match (trust.strangers, trust.private) {
        (true, true) => "text of strangers, and private data",
        (true, false) => "text of strangers, which can steer an agent",
        (false, true) => "private data",
        (false, false) => return None,
    };
    Some(format!("Trust: reached by {what}"))
}

/// Who takes turns as an agent.
fn uses(analysis: &Analysis, agent: SymbolId) -> Option<String> {
    let index = &analysis.index;
    let mut steps: Vec<SymbolId> =
        index.steps.iter().filter(|step| step.agent == Some(agent)).map(|step| step.symbol).collect();
    steps.dedup();
    let more = steps.len().saturating_sub(SHOWN);
    let names: Vec<String> = steps.iter().take(SHOWN).map(|step| code(&index.symbol(*step).name)).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("Takes the turns of {}{more}", names.join(", ")))
}

/// How it went in the last run, where it is a pipeline, a step or a parameter.
fn last(analysis: &Analysis, id: SymbolId, symbol: &Symbol, runs: &dyn Runs) -> Option<String> {
    let index = &analysis.index;
    let workflow = &index.workflow;
    if symbol.kind == SymbolKind::Pipeline {
        let run = runs.last(workflow, &symbol.name)?;
        return Some(format!("Last run: {} {}", run.state.word(), age(run.age)));
    }
    let step = index.steps.iter().find(|step| step.symbol == id)?;
    let run = runs.last(workflow, &index.symbol(step.pipeline).name)?;
    let known = run.steps.get(&symbol.name)?;
    let took = known.took.map_or(String::new(), |took| format!(" after {}", span(took)));
    let mut text = format!("Last run, {}: {}{took}", age(run.age), known.status);
    if let Some(output) = &known.output {
        let _ = write!(text, "\n\n{}", block("text", output));
    }
    Some(text)
}

/// A bound in words.
fn amount(bound: &Bound) -> String {
    match bound {
        Bound::Most(most) => grouped(*most),
        Bound::Unbounded { .. } => "without limit".to_owned(),
    }
}

/// How long ago something was: `3m ago`, `just now`.
pub(in crate::ide) fn age(age: Duration) -> String {
    if age < Duration::from_secs(1) { "just now".to_owned() } else { format!("{} ago", span(age)) }
}

/// A time in its largest unit: `3m`.
fn span(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{}ms", time.as_millis()),
        seconds @ 1..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// A number with commas.
pub(in crate::ide) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn capital(text: &str) -> String {
    let mut signs = text.chars();
    signs.next().map_or(String::new(), |first| first.to_uppercase().chain(signs).collect())
}
