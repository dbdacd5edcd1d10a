//! What a condition's outcome says about the run: which values are there, how steps ended.
//!
//! Facts are conservative: one that is left out costs a guard that the author must write, a wrong one a failed run.

use minijinja::machinery::ast::{self, BinOpKind, Expr, UnaryOpKind};

use super::Root;
use super::path::{Path, path};

/// The facts that are kept of one place; a real condition has a handful.
pub(super) const MAX_FACTS: usize = 32;

/// Something that holds at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    /// The value is there.
    Defined {
        /// What is read.
        root: Root,
        /// Of which step, port or parameter, as written.
        name: Option<String>,
        /// Fields of the value, outermost first.
        fields: Vec<String>,
    },
    /// The step ended in one of these ways; with `succeeded` and `failed` it ran.
    Ended {
        /// The step, as written.
        step: String,
        /// The ways, in order, each once; none when the conditions contradict each other.
        any_of: Vec<Status>,
    },
}

/// How a step ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// It did what it should.
    Succeeded,
    /// It ran and did not.
    Failed,
    /// It did not run.
    Skipped,
}

impl Status {
    pub(super) const ALL: [Status; 3] = [Status::Succeeded, Status::Failed, Status::Skipped];

    /// The word for it in expressions.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::Skipped => "skipped",
        }
    }

    pub(super) fn find(word: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.word() == word)
    }
}

/// Whether two spellings name one thing: in expressions `_` stands for `-`.
pub(crate) fn same_name(a: &str, b: &str) -> bool {
    let plain = |byte: u8| if byte == b'_' { b'-' } else { byte };
    a.len() == b.len() && a.bytes().zip(b.bytes()).all(|(a, b)| plain(a) == plain(b))
}

/// How much a condition's evaluation is taken to say.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Only what its outcome says.
    Outcome,
    /// Also that it could be evaluated: what it reads without a guard is there, or it failed before.
    Evaluated,
}

/// What follows from each outcome of a condition.
pub(super) struct Outcomes {
    /// From its holding.
    pub(super) yes: Vec<Fact>,
    /// From its not holding.
    pub(super) no: Vec<Fact>,
}

/// What follows from each outcome of `expr`.
pub(super) fn outcomes(expr: &Expr<'_>, reading: Reading) -> Outcomes {
    match expr {
        Expr::UnaryOp(not) if matches!(not.op, UnaryOpKind::Not) => {
            let Outcomes { yes, no } = outcomes(&not.expr, reading);
            Outcomes { yes: no, no: yes }
        }
        Expr::BinOp(op) if matches!(op.op, BinOpKind::ScAnd) => {
            let (left, right) = (outcomes(&op.left, reading), outcomes(&op.right, reading));
            // It fails by the left side, or by the right side after the left one held.
            let no = either(&left.no, &both(&left.yes, right.no));
            Outcomes { yes: both(&left.yes, right.yes), no }
        }
        Expr::BinOp(op) if matches!(op.op, BinOpKind::ScOr) => {
            let (left, right) = (outcomes(&op.left, reading), outcomes(&op.right, reading));
            let yes = either(&left.yes, &both(&left.no, right.yes));
            Outcomes { yes, no: both(&left.no, right.no) }
        }
        Expr::BinOp(op) => {
            let evaluated = evaluated([&op.left, &op.right], reading);
            Outcomes { yes: comparison(op, true, &evaluated), no: comparison(op, false, &evaluated) }
        }
        Expr::Compare(chain) => always(evaluated([&chain.expr], reading)),
        Expr::Test(test) => match (test.name, path(&test.expr)) {
            ("defined", Some(path)) => Outcomes { yes: vec![defined(&path)], no: Vec::new() },
            ("undefined", Some(path)) => Outcomes { yes: Vec::new(), no: vec![defined(&path)] },
            _ => always(evaluated([&test.expr], reading)),
        },
        Expr::GetAttr(_) | Expr::GetItem(_) => always(evaluated([expr], reading)),
        _ => always(Vec::new()),
    }
}

fn always(facts: Vec<Fact>) -> Outcomes {
    Outcomes { yes: facts.clone(), no: facts }
}

/// What the mere evaluation of these says.
fn evaluated<'a, 'b: 'a>(operands: impl IntoIterator<Item = &'a Expr<'b>>, reading: Reading) -> Vec<Fact> {
    match reading {
        Reading::Outcome => Vec::new(),
        Reading::Evaluated => {
            let paths = operands.into_iter().filter_map(path).filter(|path| path.root != Root::Status);
            paths.map(|path| defined(&path)).collect()
        }
    }
}

fn both(facts: &[Fact], more: Vec<Fact>) -> Vec<Fact> {
    let mut facts = facts.to_vec();
    merge(&mut facts, more);
    facts
}

/// Adds facts that hold as well.
pub(super) fn merge(facts: &mut Vec<Fact>, more: Vec<Fact>) {
    for fact in more {
        let known = facts.iter().position(|known| match (known, &fact) {
            (Fact::Ended { step, .. }, Fact::Ended { step: other, .. }) => same_name(step, other),
            (known, fact) => known == fact,
        });
        match known {
            Some(index) => {
                if let (Fact::Ended { any_of, .. }, Fact::Ended { any_of: more, .. }) = (&mut facts[index], &fact) {
                    any_of.retain(|status| more.contains(status));
                }
            }
            None if facts.len() < MAX_FACTS => facts.push(fact),
            None => {}
        }
    }
}

/// What holds when one or the other list holds.
fn either(a: &[Fact], b: &[Fact]) -> Vec<Fact> {
    // A contradiction never comes about: the other way is the only one.
    if contradictory(a) {
        return b.to_vec();
    }
    if contradictory(b) {
        return a.to_vec();
    }
    a.iter().filter_map(|fact| common(fact, b)).collect()
}

fn common(fact: &Fact, others: &[Fact]) -> Option<Fact> {
    match fact {
        Fact::Defined { .. } => others.contains(fact).then(|| fact.clone()),
        Fact::Ended { step, any_of } => others.iter().find_map(|other| match other {
            Fact::Ended { step: same, any_of: more } if same_name(step, same) => {
                let all = Status::ALL.into_iter().filter(|status| any_of.contains(status) || more.contains(status));
                let any_of: Vec<Status> = all.collect();
                (any_of.len() < Status::ALL.len()).then(|| Fact::Ended { step: step.clone(), any_of })
            }
            _ => None,
        }),
    }
}

/// Whether the facts cannot hold together.
pub(super) fn contradictory(facts: &[Fact]) -> bool {
    facts.iter().any(|fact| matches!(fact, Fact::Ended { any_of, .. } if any_of.is_empty()))
}

/// Whether the facts say that the value of `root` and `name` is there.
pub(super) fn prove(facts: &[Fact], root: Root, name: Option<&str>) -> bool {
    facts.iter().any(|fact| match fact {
        Fact::Defined { root: known, name: Some(step), .. } => {
            *known == root && name.is_some_and(|name| same_name(step, name))
        }
        Fact::Defined { root: known, name: None, .. } => *known == root,
        Fact::Ended { .. } => false,
    })
}

fn comparison(op: &ast::BinOp<'_>, truth: bool, evaluated: &[Fact]) -> Vec<Fact> {
    let mut facts = evaluated.to_vec();
    for (side, other) in [(&op.left, &op.right), (&op.right, &op.left)] {
        let Some(path) = path(side) else { continue };
        let Some(step) = path.name().map(str::to_owned) else { continue };
        match path.root {
            Root::Status => {
                let ended = statuses(op.op, other, truth).map(|any_of| Fact::Ended { step, any_of });
                merge(&mut facts, ended.into_iter().collect());
            }
            // Only a step that ran has an exit code.
            Root::Exit => {
                let any_of = vec![Status::Succeeded, Status::Failed];
                merge(&mut facts, vec![Fact::Ended { step, any_of }, defined(&path)]);
            }
            _ => {}
        }
    }
    facts
}

/// The ways to end that a comparison with `other` leaves.
fn statuses(op: BinOpKind, other: &Expr<'_>, truth: bool) -> Option<Vec<Status>> {
    let (listed, positive) = match op {
        BinOpKind::Eq => (vec![status(other)?], truth),
        BinOpKind::Ne => (vec![status(other)?], !truth),
        BinOpKind::In => (items(other)?.iter().map(status).collect::<Option<_>>()?, truth),
        _ => return None,
    };
    Some(Status::ALL.into_iter().filter(|status| listed.contains(status) == positive).collect())
}

/// The items of a list or tuple that is written out.
pub(super) fn items<'a, 'b>(expr: &'a Expr<'b>) -> Option<&'a [Expr<'b>]> {
    match expr {
        Expr::List(list) => Some(&list.items),
        Expr::Tuple(tuple) => Some(&tuple.items),
        _ => None,
    }
}

fn status(expr: &Expr<'_>) -> Option<Status> {
    match expr {
        Expr::Const(constant) => constant.value.as_str().and_then(Status::find),
        _ => None,
    }
}

fn defined(path: &Path) -> Fact {
    let name = path.name().map(str::to_owned);
    Fact::Defined { root: path.root, name, fields: path.fields().map(str::to_owned).collect() }
}
