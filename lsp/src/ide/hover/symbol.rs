//! Hover of names: what they are, what their value is, and how a step stands among the others.

use std::fmt::Write as _;
use std::time::Duration;

use swarmc_compiler::index::{ShapeId, ShapeKind, Step, Symbol, SymbolId, SymbolKind};
use swarmc_compiler::{Bound, FileId, When};

use super::{quote_block, quote_code};
use crate::ide::{Analysis, flow};
use crate::runs::Runs;

/// How many of a list of names are shown.
const SHOWN: usize = 8;

/// What is known of a symbol; of its value, too, where runs are given.
pub(super) fn describe_symbol(analysis: &Analysis, id: SymbolId, runs: Option<&dyn Runs>) -> String {
    let index = &analysis.index;
    let symbol = index.symbol(id);
    // Of what the library declares, no editor shows the file.
    let library = analysis.compilation.sources.name(symbol.span.file).starts_with("std:");
    let preset = swarmc_compiler::find_preset(&symbol.name)
        .filter(|_| library && matches!(symbol.kind, SymbolKind::Agent | SymbolKind::Provider));
    let declared = match preset {
        Some(preset) => quote_block("kdl", preset),
        None => format!("```kdl\n{}\n```", describe_declaration(analysis, symbol)),
    };
    let mut parts = vec![declared, symbol_title(analysis, symbol)];
    parts.extend(symbol.doc.clone());
    if let (Some(shape), Some(_)) = (symbol.shape, runs)
        && !matches!(symbol.kind, SymbolKind::Type | SymbolKind::Field | SymbolKind::Param | SymbolKind::Stop)
    {
        parts.push(format!("Value: {}", describe_value(analysis, shape)));
    }
    let steps = index.steps.iter().enumerate().filter(|(_, step)| step.symbol == id);
    parts.extend(steps.take(SHOWN).map(|(position, step)| describe_position(analysis, position, step)));
    match symbol.kind {
        SymbolKind::Pipeline => parts.extend(describe_bounds(analysis, symbol)),
        SymbolKind::Agent => parts.extend(describe_uses(analysis, id)),
        SymbolKind::Item => parts.extend(describe_item(analysis, id)),
        kind if kind.is_step() => parts.extend(describe_turn(analysis, id, symbol)),
        _ => {}
    }
    parts.extend(describe_trust(analysis, id));
    if let Some(runs) = runs {
        parts.extend(describe_last_run(analysis, id, symbol, runs));
    }
    parts.join("\n\n")
}

/// The line that declares it, or all of a type.
fn describe_declaration(analysis: &Analysis, symbol: &Symbol) -> String {
    let (index, name) = (&analysis.index, &symbol.name);
    match (symbol.kind, symbol.shape) {
        (SymbolKind::Type, Some(shape)) => format!("type {name} {}", describe_body(analysis, shape)),
        (SymbolKind::Field, Some(shape)) => format!("{name} {}", index.shape(shape).text),
        _ => {
            let written = analysis.compilation.sources.slice(symbol.whole);
            let line = written.lines().next().unwrap_or_default();
            // A brace in a string would end it early, which is only shorter.
            let line = line.split('{').next().unwrap_or_default().trim();
            let line: String = line.chars().take(100).filter(|sign| *sign != '`').collect();
            if symbol.whole == symbol.span { format!("{} {name}", symbol.kind.as_str()) } else { line }
        }
    }
}

/// The fields of a type, or its words.
fn describe_body(analysis: &Analysis, shape: ShapeId) -> String {
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

fn symbol_title(analysis: &Analysis, symbol: &Symbol) -> String {
    let mut title = capitalize_first(symbol.kind.as_str());
    if let Some(within) = symbol.within {
        let within = analysis.index.symbol(within);
        let _ = write!(title, " of {} {}", within.kind.as_str(), quote_code(&within.name));
    }
    let file = analysis.compilation.sources.name(symbol.span.file);
    if symbol.span.file != FileId::new(0) {
        let _ = write!(title, ", declared in {}", quote_code(file));
    }
    title
}

/// The type of a value, with the fields of a declared one.
pub(super) fn describe_value(analysis: &Analysis, shape: ShapeId) -> String {
    let index = &analysis.index;
    let kind = index.shape(shape);
    match (&kind.kind, kind.declared) {
        (ShapeKind::Record(_) | ShapeKind::Words(_), Some(declared)) => {
            let name = &index.symbol(declared).name;
            format!("{}\n\n```kdl\ntype {name} {}\n```", quote_code(&kind.text), describe_body(analysis, shape))
        }
        _ => quote_code(&kind.text),
    }
}

/// Where a step stands in a pipeline: who feeds it and whom it feeds.
fn describe_position(analysis: &Analysis, position: usize, step: &Step) -> String {
    let index = &analysis.index;
    let count = index.steps_of(step.pipeline).count();
    let mut text = format!("Step {} of {count} of {}", step.position, quote_code(&index.symbol(step.pipeline).name));
    if let Some(agent) = step.agent {
        let _ = write!(text, ", agent {}", quote_code(&index.symbol(agent).name));
    }
    let name = |step: usize| quote_code(&index.symbol(index.steps[step].symbol).name);
    let before: Vec<String> = step
        .needs
        .iter()
        .map(|need| match need.when {
            When::Success => name(need.step),
            when => format!("{} ({})", name(need.step), flow::describe_when(when)),
        })
        .collect();
    let after: Vec<String> = flow::list_dependents(index, position).map(name).collect();
    if !before.is_empty() {
        let _ = write!(text, "  \nwaits for {}", list_shown(&before));
    }
    if !after.is_empty() {
        let _ = write!(text, "  \nfeeds {}", list_shown(&after));
    }
    text
}

/// The first of these names, and how many more there are.
fn list_shown(names: &[String]) -> String {
    let more = names.len().saturating_sub(SHOWN);
    let shown = names[..names.len() - more].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// The member that does an item, what the item waits for, and what waits for it.
fn describe_item(analysis: &Analysis, id: SymbolId) -> Option<String> {
    let index = &analysis.index;
    let item = index.items.iter().find(|item| item.symbol == id)?;
    let name = |symbol: SymbolId| quote_code(&index.symbol(symbol).name);
    let mut text = match item.owner {
        Some(owner) => format!("Owner {}", name(owner)),
        None => "No owner: the coordinator assigns it".to_owned(),
    };
    let before: Vec<String> = item.needs.iter().map(|need| name(*need)).collect();
    let waiting = index.items.iter().filter(|other| other.needs.contains(&id));
    let after: Vec<String> = waiting.map(|other| name(other.symbol)).collect();
    if !before.is_empty() {
        let _ = write!(text, "  \nwaits for {}", list_shown(&before));
    }
    if !after.is_empty() {
        let _ = write!(text, "  \n{} wait{} for it", list_shown(&after), if after.len() == 1 { "s" } else { "" });
    }
    Some(text)
}

/// What one run of a pipeline is likely to use, and uses at most.
fn describe_bounds(analysis: &Analysis, symbol: &Symbol) -> Option<String> {
    let bounds = analysis.token_counts().bounds.get(&symbol.name)?;
    // What is imported may have another name in the plan.
    if symbol.span.file != FileId::new(0) {
        return None;
    }
    let likely = bounds.likely.as_deref().map(|it| {
        let tokens = [&it.input_tokens, &it.output_tokens];
        format!("Likely: {}  \n", list_amounts([&it.launches, &it.turns], tokens, &it.cost, "unknown"))
    });
    let tokens = [&bounds.input_tokens, &bounds.output_tokens];
    let most = list_amounts([&bounds.launches, &bounds.turns], tokens, &bounds.cost, "without limit");
    Some(format!("{}At most: {most}", likely.unwrap_or_default()))
}

fn list_amounts(starts: [&Bound; 2], tokens: [&Bound; 2], cost: &Bound, open: &str) -> String {
    let cost = match cost {
        Bound::Most(millionths) => format!("${}.{:02}", millionths / 1_000_000, millionths % 1_000_000 / 10_000),
        Bound::Unbounded { .. } => "unknown".to_owned(),
    };
    let [launches, turns, read, written] = [starts[0], starts[1], tokens[0], tokens[1]].map(|bound| match bound {
        Bound::Most(most) => format_number(*most),
        Bound::Unbounded { .. } => open.to_owned(),
    });
    format!("launches {launches}, turns {turns}, tokens in {read}, tokens out {written}, cost {cost}")
}

/// The tokens that a turn of a step is given at most.
fn describe_turn(analysis: &Analysis, id: SymbolId, symbol: &Symbol) -> Option<String> {
    let index = &analysis.index;
    let pipeline = index.symbol(index.steps.iter().find(|step| step.symbol == id)?.pipeline);
    if pipeline.span.file != FileId::new(0) {
        return None;
    }
    let turn = analysis.token_counts().turns.get(&(pipeline.name.clone(), symbol.name.clone()))?;
    Some(match &turn.input {
        Bound::Most(tokens) => {
            let about = if turn.exact { "" } else { ", as other vocabularies count" };
            format!("A turn is given at most {} tokens{about}", format_number(*tokens))
        }
        Bound::Unbounded { because, .. } => format!("A turn is given any number of tokens: {because}"),
    })
}

/// What may have reached a step or a member.
fn describe_trust(analysis: &Analysis, id: SymbolId) -> Option<String> {
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
fn describe_uses(analysis: &Analysis, agent: SymbolId) -> Option<String> {
    let index = &analysis.index;
    let mut steps: Vec<SymbolId> =
        index.steps.iter().filter(|step| step.agent == Some(agent)).map(|step| step.symbol).collect();
    steps.dedup();
    let more = steps.len().saturating_sub(SHOWN);
    let names: Vec<String> = steps.iter().take(SHOWN).map(|step| quote_code(&index.symbol(*step).name)).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("Takes the turns of {}{more}", names.join(", ")))
}

/// How it went in the last run, where it is a pipeline, a step or a parameter.
fn describe_last_run(analysis: &Analysis, id: SymbolId, symbol: &Symbol, runs: &dyn Runs) -> Option<String> {
    let index = &analysis.index;
    let workflow = &index.workflow;
    if symbol.kind == SymbolKind::Pipeline {
        let run = runs.last_run(workflow, &symbol.name)?;
        return Some(format!("Last run: {} {}", run.state.as_str(), format_age(run.age)));
    }
    let step = index.steps.iter().find(|step| step.symbol == id)?;
    let run = runs.last_run(workflow, &index.symbol(step.pipeline).name)?;
    let known = run.steps.get(&symbol.name)?;
    let took = known.took.map_or(String::new(), |took| format!(" after {}", format_duration(took)));
    let mut text = format!("Last run, {}: {}{took}", format_age(run.age), known.status);
    if let Some(output) = &known.output {
        let _ = write!(text, "\n\n{}", quote_block("text", output));
    }
    Some(text)
}

/// How long ago something was: `3m ago`, `just now`.
pub(in crate::ide) fn format_age(age: Duration) -> String {
    if age < Duration::from_secs(1) { "just now".to_owned() } else { format!("{} ago", format_duration(age)) }
}

/// A time in its largest unit: `3m`.
fn format_duration(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{}ms", time.as_millis()),
        seconds @ 1..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// A number with commas.
pub(in crate::ide) fn format_number(number: u64) -> String {
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

fn capitalize_first(text: &str) -> String {
    let mut signs = text.chars();
    signs.next().map_or(String::new(), |first| first.to_uppercase().chain(signs).collect())
}
