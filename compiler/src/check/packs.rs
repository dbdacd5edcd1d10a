//! SW402: a context pack whose own text is longer than its budget: the end of it would never be seen.
//!
//! What is there before a run counts: goals, documents, facts, constraints, those of merged packs too. Outputs, artifacts
//! and listings of files come on top, and what surrounds the rules always. Bytes stand for tokens until they go beyond the budget.

use std::collections::HashMap;

use swarmc_plan::Overflow;

use crate::ast::{ContextPack, Literal, PackRule, Spanned, Spec};
use crate::code::{Code, Severity};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::load::Loader;
use crate::source::Span;
use crate::syntax::Text;
use crate::tokens::{Bytes, O200k, Tokenizer};

/// The tokens that surround the rules of any pack: the names of its fields, its ids, and the lines above and below.
const FRAME: u64 = 90;

/// How many of the rules that would be cut are shown.
const SHOWN: usize = 3;

pub(crate) fn check(spec: &Spec, loader: &Loader<'_>, diagnostics: &mut Diagnostics) {
    let packs: HashMap<&str, &ContextPack> = spec.packs.iter().map(|pack| (pack.name.value.as_str(), pack)).collect();
    for pack in &spec.packs {
        let allowed = u64::from(pack.tokens.value);
        if allowed < FRAME {
            diagnostics.push(too_small(pack, allowed));
            continue;
        }
        let bytes = measure_rules(pack, &packs, loader, &Bytes);
        if FRAME + bytes.iter().map(|part| part.tokens).sum::<u64>() <= allowed {
            continue;
        }
        let parts = measure_rules(pack, &packs, loader, &O200k);
        let sum: u64 = FRAME + parts.iter().map(|part| part.tokens).sum::<u64>();
        if sum > allowed {
            diagnostics.push(report_over_budget(pack, allowed, sum, &parts));
        }
    }
}

/// What a rule puts into a pack.
struct Part {
    span: Span,
    tokens: u64,
}

/// The rules of a pack, those of merged packs where they are merged, each pack once.
fn measure_rules(
    pack: &ContextPack,
    packs: &HashMap<&str, &ContextPack>,
    loader: &Loader<'_>,
    tokenizer: &dyn Tokenizer,
) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut seen = vec![pack.name.value.as_str()];
    // The rules that are left of each pack that is being walked, the innermost last.
    let mut open = vec![(pack.rules.iter(), None)];
    while let Some((rules, merged)) = open.last_mut() {
        let merged: Option<Span> = *merged;
        let Some(rule) = rules.next() else {
            open.pop();
            continue;
        };
        match &rule.value {
            PackRule::Merge(name) => {
                // Each pack is entered once, so packs that merge each other end here too.
                if let Some(other) = packs.get(name.value.as_str())
                    && !seen.contains(&other.name.value.as_str())
                {
                    seen.push(&other.name.value);
                    open.push((other.rules.iter(), merged.or(Some(rule.span))));
                }
            }
            _ => parts
                .push(Part { span: merged.unwrap_or(rule.span), tokens: count_rule_tokens(rule, loader, tokenizer) }),
        }
    }
    parts
}

/// What is certain of a rule.
fn count_rule_tokens(rule: &Spanned<PackRule>, loader: &Loader<'_>, tokenizer: &dyn Tokenizer) -> u64 {
    let text = |text: &Text| tokenizer.count(text.as_str());
    match &rule.value {
        PackRule::Goal(goal) => text(goal),
        PackRule::DefinitionOfDone(items) => items.iter().map(text).sum(),
        PackRule::Docs { path, lines } => {
            let Some(document) = loader.peek_text(path.as_str(), path.span(0..0)) else { return 0 };
            match lines.as_ref().map(|lines| lines.value) {
                None => tokenizer.count(&document),
                Some((first, last)) => {
                    let skip = first.saturating_sub(1);
                    let take = last.saturating_sub(skip);
                    let lines = document.split_inclusive('\n').skip(skip as usize).take(take as usize);
                    tokenizer.count(&lines.collect::<String>())
                }
            }
        }
        PackRule::Fact { name, value } => tokenizer.count(&name.value) + text(value),
        PackRule::Constraint { name, value } => {
            tokenizer.count(&name.value)
                + match value {
                    Literal::Text(value) => text(value),
                    Literal::Bool(_) | Literal::Number(_) => 1,
                }
        }
        PackRule::Files { .. } | PackRule::Inputs(_) | PackRule::Artifacts { .. } | PackRule::Merge(_) => 0,
    }
}

/// Of a budget in which no pack fits, whatever its rules.
fn too_small(pack: &ContextPack, allowed: u64) -> Diagnostic {
    let name = &pack.name.value;
    let message = format!("nothing of context pack `{name}` fits into {allowed} tokens");
    let mut diagnostic = Diagnostic::new(Code::PackOverBudget, message)
        .label(pack.tokens.span, format!("the frame around the rules takes {FRAME}"))
        .help("write `budget tokens=2000`, or as many as its rules need");
    diagnostic.severity = Some(Severity::Error);
    diagnostic
}

fn report_over_budget(pack: &ContextPack, allowed: u64, sum: u64, parts: &[Part]) -> Diagnostic {
    let name = &pack.name.value;
    let message =
        format!("the texts of context pack `{name}` have about {sum} tokens, and its budget allows {allowed}");
    let mut diagnostic = Diagnostic::new(Code::PackOverBudget, message)
        .label(pack.tokens.span, format!("allows {allowed}"))
        .help(format!("write `budget tokens={}`, or less: `docs … lines=\"1-40\"`", sum.next_multiple_of(500)));
    let (what, severity) = match pack.on_overflow {
        Overflow::Drop => ("would be left out", Severity::Warning),
        Overflow::Truncate => ("would be cut", Severity::Warning),
        Overflow::Error => ("exceeds the budget, which is an error here", Severity::Error),
    };
    let mut left = sum;
    let mut shown: Vec<Span> = Vec::new();
    // Rules are cut from the last upwards, until the rest fits.
    for part in parts.iter().rev().filter(|part| part.tokens > 0) {
        if left <= allowed || shown.len() == SHOWN {
            break;
        }
        left -= part.tokens;
        if !shown.contains(&part.span) {
            shown.push(part.span);
            diagnostic = diagnostic.label(part.span, format!("{what}: {} tokens", part.tokens));
        }
    }
    diagnostic.severity = Some(severity);
    diagnostic
}
