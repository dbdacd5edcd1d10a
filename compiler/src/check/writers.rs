//! SW211: steps that can run at once and write the same files, share a worktree, or continue one conversation.
//!
//! A step writes what it says, what its `files` copy to the workspace, and what the pipeline that it calls writes.
//! Patterns count as overlapping only where that is certain: they are equal, one names a path that the other matches, or
//! one takes a whole folder that the other writes in.

use std::collections::BTreeMap;

use super::written_paths::{Write, Written};
use crate::ast;
use crate::code::{Code, Severity};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flow::{Answer, Lazy};
use crate::model::{Pipeline, Step};
use crate::source::Span;

/// The pairs of different patterns that are compared.
const COMPARED: usize = 200_000;
/// The pairs of steps of one group that are looked at: those next to each other first.
const LOOKED_AT: usize = 2_000;

pub(super) fn check<'a>(
    pipeline: &Pipeline<'a>,
    written: &mut Written<'_, 'a>,
    flow: &mut Lazy<'_, 'a>,
    diagnostics: &mut Diagnostics,
) {
    let writes: Vec<Vec<Write>> = pipeline.steps.iter().map(|step| written.list_writes(step)).collect();
    let mut groups: BTreeMap<(&str, String), Vec<Use>> = BTreeMap::new();
    for (index, step) in pipeline.steps.iter().enumerate() {
        let add = |groups: &mut BTreeMap<_, Vec<Use>>, kind, name, span| {
            groups.entry((kind, name)).or_default().push(Use { step: index, span, inner: None });
        };
        let place = checkout_name(step);
        for write in &writes[index] {
            let Write { pattern, span, inner } = write;
            groups.entry(("writes", format!("{place}\n{pattern}"))).or_default().push(Use {
                step: index,
                span: *span,
                inner: *inner,
            });
        }
        if let Some(ast::Worktree { name: Some(name), .. }) = &step.ast.worktree {
            add(&mut groups, "worktree", name.value.clone(), name.span);
        }
        if let (Some(session), Some(agent)) = (&step.ast.session, step.agent) {
            add(&mut groups, "session", format!("{agent}\n{}", session.value), session.span);
        }
    }
    check_copies(pipeline, &writes, diagnostics);
    if pipeline.ast.concurrency == Some(1) {
        return;
    }
    let mut pairs: Vec<(&str, Pair)> = Vec::new();
    for ((kind, _), users) in &groups {
        pairs.extend(find_clash(users, flow).map(|pair| (*kind, pair)));
    }
    pairs.extend(find_overlaps(&groups, flow).into_iter().map(|pair| ("writes", pair)));
    // The worktree comes last of what two steps share, so that the report on their files is the one that stays.
    pairs.sort_by_key(|(kind, pair)| (pair.one.step, pair.other.step, *kind == "worktree"));
    // What a worktree or a file is shared for is said once of two steps.
    pairs.dedup_by_key(|(kind, pair)| (*kind == "session", pair.one.step, pair.other.step));
    for (kind, pair) in pairs {
        diagnostics.set_home(Some(pipeline.steps[pair.other.step].ast.name.span));
        diagnostics.push(report_shared(pipeline, kind, pair));
    }
    diagnostics.set_home(None);
}

/// A step that uses something, and where it says so.
#[derive(Clone, Copy)]
struct Use {
    step: usize,
    span: Span,
    /// Where a step of the pipeline that it calls says so.
    inner: Option<Span>,
}

/// The working tree that a step's files are in: none but its own where it has an unnamed one.
fn checkout_name(step: &Step<'_>) -> String {
    match &step.ast.worktree {
        Some(ast::Worktree { name: Some(name), .. }) => name.value.clone(),
        Some(ast::Worktree { name: None, .. }) => format!("\t{}", step.name()),
        None => String::new(),
    }
}

/// Two users of one thing that can run at once, or, where that is not certain, may.
#[derive(Clone, Copy)]
struct Pair {
    one: Use,
    other: Use,
    certain: bool,
}

/// The first pair that can run at once; where there is none, the first of which that is not known.
fn first_at_once(pairs: impl Iterator<Item = (Use, Use)>, flow: &mut Lazy<'_, '_>) -> Option<Pair> {
    let mut open = None;
    for (one, other) in pairs.filter(|(one, other)| one.step != other.step) {
        let answer = flow.get().at_once(one.step, other.step);
        let (one, other) = if one.step < other.step { (one, other) } else { (other, one) };
        match answer {
            Answer::Yes => return Some(Pair { one, other, certain: true }),
            Answer::Unknown => open = open.or(Some(Pair { one, other, certain: false })),
            Answer::No => {}
        }
    }
    open
}

/// Two users of one thing that can run at once.
fn find_clash(users: &[Use], flow: &mut Lazy<'_, '_>) -> Option<Pair> {
    if users.len() < 2 {
        return None;
    }
    let mut users = users.to_vec();
    users.sort_by_key(|user| flow.get().position(user.step));
    // Where each waits for the one before it, all are ordered.
    let near = users.windows(2).map(|pair| (pair[0], pair[1]));
    let far = (2..users.len()).flat_map(|gap| (gap..users.len()).map(move |at| (at - gap, at)));
    let far = far.take(LOOKED_AT).map(|(one, other)| (users[one], users[other]));
    first_at_once(near.chain(far), flow)
}

/// Users of different patterns that overlap.
fn find_overlaps(groups: &BTreeMap<(&str, String), Vec<Use>>, flow: &mut Lazy<'_, '_>) -> Vec<Pair> {
    let patterns: Vec<(&str, &Vec<Use>)> = groups
        .iter()
        .filter(|((kind, _), _)| *kind == "writes")
        .map(|((_, name), users)| (name.as_str(), users))
        .collect();
    let globs: Vec<usize> = (0..patterns.len()).filter(|&index| is_glob(patterns[index].0)).collect();
    if globs.len().saturating_mul(patterns.len()) > COMPARED {
        return Vec::new();
    }
    let mut found = Vec::new();
    for glob in globs {
        let (pattern, users) = patterns[glob];
        for (index, (other, others)) in patterns.iter().enumerate() {
            // Two patterns are compared once.
            if index == glob || is_glob(other) && index < glob || !is_overlapping(pattern, other) {
                continue;
            }
            let pairs = users.iter().flat_map(|one| others.iter().map(move |other| (*one, *other)));
            found.extend(first_at_once(pairs.take(LOOKED_AT), flow));
        }
    }
    found
}

fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?', '[', '{'])
}

/// Whether two different patterns surely match one path; the first is no plain path.
pub(super) fn is_overlapping(glob: &str, other: &str) -> bool {
    // Both begin with the checkout that they are about.
    let ((checkout, glob), (other_checkout, other)) = (split_checkout(glob), split_checkout(other));
    if checkout != other_checkout {
        return false;
    }
    match is_glob(other) {
        false => fast_glob::glob_match(glob, other),
        true => takes_folder(glob, other) || takes_folder(other, glob),
    }
}

fn split_checkout(pattern: &str) -> (&str, &str) {
    pattern.split_once('\n').unwrap_or(("", pattern))
}

/// Whether a pattern takes everything in a folder in which the other one writes.
fn takes_folder(glob: &str, other: &str) -> bool {
    let folder = if glob == "**" { Some("") } else { glob.strip_suffix("**") };
    folder.is_some_and(|folder| {
        (folder.is_empty() || folder.ends_with('/')) && !is_glob(folder) && other.starts_with(folder)
    })
}

/// Copies of one step that run at once: instances of the pipeline, items of a list.
fn check_copies(pipeline: &Pipeline<'_>, writes: &[Vec<Write>], diagnostics: &mut Diagnostics) {
    let instances =
        pipeline.ast.parallelism > 1 && pipeline.ast.worktree.is_none() && pipeline.ast.concurrency != Some(1);
    for (step, writes) in pipeline.steps.iter().zip(writes) {
        // An unnamed tree is each item's own, a named one that of the instance.
        let apart = step.ast.worktree.is_some();
        let own = step.ast.worktree.as_ref().is_some_and(|worktree| worktree.name.is_none());
        let items = match &step.ast.for_each {
            Some(each) => {
                each.parallel.as_ref().is_none_or(|parallel| parallel.value > 1) && step.ast.concurrency != Some(1)
            }
            None => false,
        };
        // Items write files of their own under a pattern, and one file under its name.
        let clashing = |write: &&Write| instances && !apart || items && !own && !is_glob(&write.pattern);
        let Some(write) = writes.iter().find(clashing) else { continue };
        let (name, pattern) = (step.name(), &write.pattern);
        let (what, help) = match items && !own && !is_glob(pattern) {
            true => (
                format!("the items of `{name}` run at once, and each writes `{pattern}`"),
                "say `parallel=1` in its `for-each`, give each item a `worktree`, or put the items together in a step after it",
            ),
            false => (
                format!("{} instances of `{name}` run at once, and each writes `{pattern}`", pipeline.ast.parallelism),
                "give each instance its own working tree: `worktree` in the pipeline",
            ),
        };
        diagnostics.set_home(Some(step.ast.name.span));
        let diagnostic = Diagnostic::new(Code::ParallelWriters, what).label(write.span, "written by all of them");
        diagnostics.push(label_callee(diagnostic, write.inner).help(help));
    }
    diagnostics.set_home(None);
}

/// With the place in the pipeline that is called.
fn label_callee(diagnostic: Diagnostic, inner: Option<Span>) -> Diagnostic {
    match inner {
        Some(inner) => diagnostic.label(inner, "written in the pipeline that it calls"),
        None => diagnostic,
    }
}

fn report_shared(pipeline: &Pipeline<'_>, kind: &str, pair: Pair) -> Diagnostic {
    let Pair { one, other, certain } = pair;
    let (first, second) = (pipeline.steps[one.step].name(), pipeline.steps[other.step].name());
    let (what, how) = match kind {
        "worktree" => ("share a worktree", "works in it too"),
        "session" => ("continue one conversation", "continues it too"),
        _ => ("write the same files", "writes them too"),
    };
    let help = match kind {
        "session" => format!(
            "let one wait for the other, `depends-on {first}` in `{second}`, or give each a `session` of its own"
        ),
        "worktree" => format!(
            "let one wait for the other, `depends-on {first}` in `{second}`, or give each a `worktree` of its own"
        ),
        _ => format!(
            "let one wait for the other, `depends-on {first}` in `{second}`, or give one of them a `worktree` of its own"
        ),
    };
    let (can, why) = match certain {
        true => ("can", "neither waits for the other"),
        false => ("may", "neither waits for the other, and too many conditions lead here to tell whether both run"),
    };
    let message = format!("`{first}` and `{second}` {can} run at once, and {what}");
    let diagnostic = Diagnostic::new(Code::ParallelWriters, message);
    let severity = if certain { diagnostic.severity } else { Some(Severity::Warning) };
    let diagnostic =
        Diagnostic { severity, ..diagnostic }.label(other.span, why).label(one.span, format!("`{first}` {how}"));
    let diagnostic = label_callee(diagnostic, other.inner);
    let inner = one.inner.filter(|_| one.inner != other.inner);
    label_callee(diagnostic, inner).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_overlap_only_where_that_is_certain() {
        for (one, other) in [
            ("src/**", "src/a/b.rs"),
            ("src/*.rs", "src/a.rs"),
            ("src/**", "src/*.rs"),
            ("src/*/x", "src/**"),
            ("**", "docs/*.md"),
        ] {
            assert!(is_overlapping(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("src/**", "tests/a.rs"),
            ("src/*.rs", "src/a/b.rs"),
            ("src/*.rs", "src/*.md"),
            ("src/a*", "src/*b"),
            ("src/**", "source/*.rs"),
            ("a\nsrc/**", "b\nsrc/a.rs"),
        ] {
            assert!(!is_overlapping(one, other), "{one} {other}");
        }
    }
}
