//! The walk over the tree of a text or an expression: what is read, what is unknown, what holds where.
//!
//! Reads and problems come out; each directive learns what the conditions around it prove.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::applied::{self, Applied, FILTERS, TESTS};
use super::directive::clip;
use super::fact::{self, Fact, Outcomes, Reading, Status, outcomes};
use super::names::{FUNCTIONS, LOOP, roots};
use super::path::Path;
use super::region::template_error;
use super::tree::{Argument, Const, Expr, ExprKind, Operator, Statement, Target};
use super::{MAX_PROBLEMS, Part, Problem, Read, Root, Spanned};
use crate::suggest::{closest, list, nearest};

/// Walks a text's tree; `parts` are those of the text.
pub(super) fn template(tree: &[Statement], parts: &mut [Part], problems: &mut Vec<Problem>) -> Vec<Read> {
    let mut walk = Walk { parts, reads: Vec::new(), problems, scopes: vec![BTreeMap::new()] };
    walk.statements(tree, &Facts::default());
    walk.reads
}

/// Walks a condition's tree.
pub(super) fn condition(expr: &Expr, problems: &mut Vec<Problem>) -> Vec<Read> {
    let mut walk = Walk { parts: &mut [], reads: Vec::new(), problems, scopes: Vec::new() };
    walk.expression(expr, &Facts::default());
    walk.reads
}

type Facts = Arc<[Fact]>;

/// Whether a missing value does harm.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Harms,
    Harmless,
}

struct Walk<'a, 'd> {
    parts: &'d mut [Part],
    reads: Vec<Read>,
    problems: &'d mut Vec<Problem>,
    /// Names that the text binds, innermost scope last; false where only some ways there bind it.
    scopes: Vec<BTreeMap<&'a str, bool>>,
}

impl<'a> Walk<'a, '_> {
    fn statements(&mut self, statements: &'a [Statement], facts: &Facts) {
        for statement in statements {
            self.statement(statement, facts);
        }
    }

    fn scoped(&mut self, statements: &'a [Statement], facts: &Facts) {
        self.scopes.push(BTreeMap::new());
        self.statements(statements, facts);
        self.scopes.pop();
    }

    fn statement(&mut self, statement: &'a Statement, facts: &Facts) {
        match statement {
            Statement::Emit(expr) | Statement::Do(expr) => self.expression(expr, facts),
            Statement::Directive(part) => {
                if let Some(Part::Directive(directive)) = self.parts.get_mut(*part) {
                    directive.assumes = facts.clone();
                }
            }
            Statement::For { target, list, filter, body, otherwise } => {
                self.expression(list, facts);
                self.scopes.push(BTreeMap::from([("loop", true)]));
                self.bind(target);
                if let Some(filter) = filter {
                    self.expression(filter, facts);
                }
                self.statements(body, facts);
                self.scopes.pop();
                self.scoped(otherwise, facts);
            }
            Statement::If { condition, then, otherwise } => self.branch(condition, then, otherwise, facts),
            Statement::With { assignments, body } => {
                self.scopes.push(BTreeMap::new());
                for (target, value) in assignments {
                    self.expression(value, facts);
                    self.bind(target);
                }
                self.statements(body, facts);
                self.scopes.pop();
            }
            Statement::Set { target, value } => {
                self.expression(value, facts);
                self.bind(target);
            }
            Statement::Capture { target, filter, body } => {
                self.scoped(body, facts);
                if let Some(filter) = filter {
                    self.expression(filter, facts);
                }
                self.bind(target);
            }
            Statement::AutoEscape { enabled, body } => {
                self.expression(enabled, facts);
                self.statements(body, facts);
            }
            Statement::Filter { filter, body } => {
                self.expression(filter, facts);
                self.scoped(body, facts);
            }
        }
    }

    fn branch(&mut self, condition: &'a Expr, then: &'a [Statement], otherwise: &'a [Statement], facts: &Facts) {
        self.expression(condition, facts);
        let Outcomes { yes, no } = outcomes(condition, Reading::Evaluated);
        self.scopes.push(BTreeMap::new());
        self.statements(then, &narrowed(facts, yes));
        let mut names = self.scopes.pop().unwrap_or_default();
        self.scopes.push(BTreeMap::new());
        self.statements(otherwise, &narrowed(facts, no));
        let others = self.scopes.pop().unwrap_or_default();
        // What only one branch sets may not be there afterwards.
        for (name, sure) in &mut names {
            *sure &= others.get(name).is_some_and(|sure| *sure);
        }
        for name in others.into_keys() {
            names.entry(name).or_insert(false);
        }
        for (name, sure) in names {
            let sure = sure || self.bound(name) == Some(true);
            if let Some(scope) = self.scopes.last_mut() {
                scope.insert(name, sure);
            }
        }
    }

    /// Whether the text binds the name: surely, or on some ways only.
    fn bound(&self, name: &str) -> Option<bool> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name).copied())
    }

    fn bind(&mut self, target: &'a Target) {
        match target {
            Target::Name(name) => {
                // `directive` is how the runtime reaches the directives of a text.
                if Root::find(&name.value).is_some_and(|root| !root.is_free()) || name.value == "directive" {
                    self.problems.push(
                        template_error(
                            name.range.clone(),
                            format!("`{}` is taken", name.value),
                            "a name of the language",
                        )
                        .help("choose another name"),
                    );
                }
                if let Some(scope) = self.scopes.last_mut() {
                    scope.insert(&name.value, true);
                }
            }
            Target::Items(targets) => targets.iter().for_each(|target| self.bind(target)),
            // `namespace.field`: the namespace must be there.
            Target::Field(Expr { kind: ExprKind::Attribute { of, .. }, .. }) => {
                self.expression(of, &Facts::default());
            }
            Target::Field(_) => {}
        }
    }

    fn expression(&mut self, expr: &'a Expr, facts: &Facts) {
        self.operand(expr, facts, Missing::Harms);
    }

    fn operand(&mut self, expr: &'a Expr, facts: &Facts, missing: Missing) {
        match &expr.kind {
            ExprKind::Const(_) => {}
            ExprKind::Path(path) => self.path(path, &expr.range, facts, missing),
            ExprKind::Variable(name) => self.variable(name, expr.range.clone(), missing),
            ExprKind::Attribute { of, name } => self.attribute(of, name, facts, missing),
            ExprKind::Item { of, index } => {
                self.operand(of, facts, missing);
                self.expression(index, facts);
            }
            ExprKind::Slice { of, bounds } => {
                self.expression(of, facts);
                bounds.iter().flatten().for_each(|bound| self.expression(bound, facts));
            }
            ExprKind::Not(of) | ExprKind::Negative(of) => self.expression(of, facts),
            ExprKind::And(terms) => self.terms(terms, facts, |outcomes| outcomes.yes),
            ExprKind::Or(terms) => self.terms(terms, facts, |outcomes| outcomes.no),
            ExprKind::Chain { first, rest } => {
                self.expression(first, facts);
                rest.iter().for_each(|(_, operand)| self.expression(operand, facts));
            }
            ExprKind::Arithmetic { left, op, right } => {
                let known = self.problems.len();
                self.expression(left, facts);
                self.expression(right, facts);
                if matches!(op, Operator::Div | Operator::FloorDiv | Operator::Rem) && is_zero(right) {
                    self.zero(right);
                }
                self.constant(expr, known);
            }
            ExprKind::Concat(left, right) => {
                let known = self.problems.len();
                self.expression(left, facts);
                self.expression(right, facts);
                self.constant(expr, known);
            }
            ExprKind::Compare { left, right, .. } => {
                self.expression(left, facts);
                self.expression(right, facts);
            }
            ExprKind::Choice { condition, then, otherwise } => {
                self.expression(condition, facts);
                let Outcomes { yes, no } = outcomes(condition, Reading::Evaluated);
                self.operand(then, &narrowed(facts, yes), missing);
                if let Some(otherwise) = otherwise {
                    self.operand(otherwise, &narrowed(facts, no), missing);
                }
            }
            ExprKind::Filter { of, name, arguments } => {
                if let Some(of) = of {
                    let default = matches!(name.value.as_str(), "default" | "d");
                    self.operand(of, facts, if default { Missing::Harmless } else { Missing::Harms });
                }
                self.applied("filter", name, arguments.len(), FILTERS);
                self.arguments(arguments, facts);
            }
            ExprKind::Test { of, name, arguments } => {
                let presence = matches!(name.value.as_str(), "defined" | "undefined");
                self.operand(of, facts, if presence { Missing::Harmless } else { Missing::Harms });
                self.applied("test", name, arguments.len(), TESTS);
                self.arguments(arguments, facts);
                if let Some(by) = arguments.first().filter(|by| name.value == "divisibleby" && is_zero(&by.value)) {
                    self.zero(&by.value);
                }
            }
            ExprKind::Call { of, arguments } => self.call(expr, of, arguments, facts),
            ExprKind::List(items) => {
                let known = self.problems.len();
                items.iter().for_each(|item| self.expression(item, facts));
                self.constant(expr, known);
            }
            ExprKind::Map(items) => items.iter().for_each(|(key, value)| {
                self.expression(key, facts);
                self.expression(value, facts);
            }),
        }
    }

    fn zero(&mut self, divisor: &Expr) {
        self.problems.push(
            template_error(divisor.range.clone(), "a division by zero has no value", "zero")
                .help("divide by another number"),
        );
    }

    /// Reports a constant that is huge, unless something in it was reported: minijinja computes constants when it
    /// compiles them, where nothing bounds it.
    fn constant(&mut self, expr: &Expr, known: usize) {
        if self.problems.len() == known && size(expr).is_some_and(|size| size > MAX_CONSTANT) {
            let message = format!("a constant of more than {MAX_CONSTANT} characters or items");
            self.problems.push(
                template_error(expr.range.clone(), message, "too large")
                    .help("repeat it less often, or read it from a file: `<<file:PATH>>`"),
            );
        }
    }

    fn attribute(&mut self, of: &'a Expr, name: &'a Spanned<String>, facts: &Facts, missing: Missing) {
        match &of.kind {
            ExprKind::Variable(variable) if variable == "loop" && self.bound("loop").is_some() => {
                if !LOOP.contains(&name.value.as_str()) {
                    self.unknown("attribute of `loop`", &name.value, name.range.clone(), &LOOP);
                }
            }
            _ => self.operand(of, facts, missing),
        }
    }

    /// Of `a and b and c`, `c` is reached when `a` and `b` held; of `a or b or c`, when neither did.
    fn terms(&mut self, terms: &'a [Expr], facts: &Facts, reached: fn(Outcomes) -> Vec<Fact>) {
        let mut facts = facts.clone();
        for (index, term) in terms.iter().enumerate() {
            self.expression(term, &facts);
            if index + 1 < terms.len() {
                facts = narrowed(&facts, reached(outcomes(term, Reading::Evaluated)));
            }
        }
    }

    fn path(&mut self, path: &Path, whole: &Range<usize>, facts: &Facts, missing: Missing) {
        let root = path.root;
        let word = root.word();
        let named = usize::from(root.of().is_some());
        let bare = whole.start..whole.start + word.len();
        if let (Some(of), None) = (root.of(), path.segments.first()) {
            let (message, help) = match root.properties() {
                Some(known) => (format!("`{word}` needs {of}"), format!("write `{word}.{}`", known[0])),
                None => (format!("`{word}` needs the name of {of}"), format!("write `{word}.NAME`")),
            };
            self.problems.push(template_error(bare, message, format!("{of} is missing")).help(help));
            return;
        }
        if let (Some(known), Some(segment)) = (root.properties(), path.segments.first())
            && !known.contains(&segment.text.as_str())
        {
            let message = format!("`{word}` has no `{}`", clip(&segment.text));
            let write = known.iter().map(|known| format!("{word}.{known}")).collect::<Vec<_>>();
            self.problems.push(
                template_error(segment.range.clone(), message, "no such property")
                    .help(format!("write {}", list(write.iter().map(String::as_str), "or"))),
            );
            return;
        }
        if let (false, Some(surplus)) = (root.has_fields() || root.is_free(), path.segments.get(named)) {
            self.problems.push(
                template_error(surplus.range.clone(), format!("`{word}` has no fields"), "surplus")
                    .help("leave it out"),
            );
            return;
        }
        let name = path.name().map(str::to_owned);
        let harmless = missing == Missing::Harmless;
        let guarded = harmless || fact::prove(facts, root, name.as_deref());
        let follows = guarded && !harmless && !fact::tested(facts, root, name.as_deref());
        self.reads.push(Read {
            root,
            fields: path.field_names(),
            range: path.segments.first().map_or(bare, |segment| segment.range.clone()),
            whole: whole.clone(),
            guarded,
            follows,
            via_directive: false,
            assumes: facts.clone(),
            steps: match path.segments.split_last() {
                Some((_, before)) if harmless => before.iter().map(|segment| segment.range.end).collect(),
                _ => Vec::new(),
            },
            name,
        });
    }

    fn variable(&mut self, name: &'a str, range: Range<usize>, missing: Missing) {
        match self.bound(name) {
            Some(true) => return,
            Some(false) if missing == Missing::Harmless => return,
            Some(false) => {
                self.problems.push(
                    template_error(range, format!("`{name}` is not set on every way here"), "may be missing")
                        .help(format!("set it before, or write `{name} | default(\"\")`")),
                );
                return;
            }
            None if FUNCTIONS.contains(&name) => return,
            None => {}
        }
        if let Some(status) = meant(name).filter(|_| Status::find(name).is_some()) {
            self.problems.push(
                template_error(range.clone(), format!("unknown name `{name}`"), "a word needs quotes")
                    .help(format!("write `\"{status}\"`"))
                    .fix(format!("write `\"{status}\"`"), range, format!("\"{status}\""), true),
            );
            return;
        }
        if self.problems.len() > 2 * MAX_PROBLEMS {
            return;
        }
        let mut known: Vec<&str> = roots().collect();
        known.extend(self.scopes.iter().flat_map(BTreeMap::keys).take(100));
        self.unknown("name", name, range, &known);
    }

    fn unknown(&mut self, what: &str, name: &str, range: Range<usize>, known: &[&str]) {
        if self.problems.len() > 2 * MAX_PROBLEMS {
            return;
        }
        let problem = template_error(
            range.clone(),
            format!("unknown {what} `{}`", clip(name)),
            format!("no {what} has this name"),
        );
        let near = (name.len() <= 40).then(|| nearest(name, known.iter().copied())).flatten();
        self.problems.push(match near {
            Some(near) => problem.help(format!("did you mean `{near}`?")).fix(
                format!("write `{near}`"),
                range,
                near.name,
                near.certain,
            ),
            None => problem.help(format!("the {what}s are {}", list(known.iter().copied(), "and"))),
        });
    }

    /// Reports a filter or a test that there is not, or that lacks arguments.
    fn applied(&mut self, what: &str, name: &Spanned<String>, given: usize, known: &'static [Applied]) {
        match applied::find(known, &name.value).map(applied::needs) {
            None => {
                let words: Vec<&str> = known.iter().map(|(word, ..)| *word).collect();
                self.unknown(what, &name.value, name.range.clone(), &words);
            }
            Some(needs) if given < needs => self.too_few(what, &name.value, name.range.clone(), needs),
            Some(_) => {}
        }
    }

    fn too_few(&mut self, what: &str, name: &str, range: Range<usize>, needs: usize) {
        let (many, example) = if needs == 1 { ("an argument", "…") } else { ("two arguments", "…, …") };
        self.problems.push(
            template_error(range, format!("{what} `{name}` needs {many}"), "missing")
                .help(format!("write `{name}({example})`")),
        );
    }

    fn call(&mut self, call: &'a Expr, of: &'a Expr, arguments: &'a [Argument], facts: &Facts) {
        match &of.kind {
            ExprKind::Variable(name) => {
                let known = FUNCTIONS.contains(&name.as_str()) || self.bound(name).is_some();
                if !known {
                    self.unknown("function", name, of.range.clone(), &FUNCTIONS);
                }
            }
            ExprKind::Attribute { of, name } => self.method(of, name, facts),
            _ => {
                self.problems.push(
                    template_error(call.range.clone(), "a value cannot be called", "not a function")
                        .help("use a filter: `VALUE | FILTER`"),
                );
                self.expression(of, facts);
            }
        }
        self.arguments(arguments, facts);
    }

    fn method(&mut self, of: &'a Expr, name: &Spanned<String>, facts: &Facts) {
        let of_loop = matches!(&of.kind, ExprKind::Variable(variable) if variable == "loop");
        if of_loop && self.bound("loop").is_some() && matches!(name.value.as_str(), "cycle" | "changed") {
            return;
        }
        let problem = template_error(
            name.range.clone(),
            format!("values have no method `{}`", clip(&name.value)),
            "a value cannot be called",
        );
        self.problems.push(match name.value.as_str() {
            name if applied::find(FILTERS, name).is_some() => problem.help(format!("write `| {name}`")),
            "contains" | "includes" => problem.help("write `'TEXT' in VALUE`"),
            "startswith" | "startsWith" | "starts_with" => problem.help("write `VALUE is startingwith('TEXT')`"),
            "endswith" | "endsWith" | "ends_with" => problem.help("write `VALUE is endingwith('TEXT')`"),
            _ => problem.help("use a filter: `VALUE | FILTER`"),
        });
        self.expression(of, facts);
    }

    fn arguments(&mut self, arguments: &'a [Argument], facts: &Facts) {
        arguments.iter().for_each(|argument| self.expression(&argument.value, facts));
    }
}

/// The status that a word means.
pub(crate) fn meant(word: &str) -> Option<&'static str> {
    let lower = word.to_ascii_lowercase();
    match lower.as_str() {
        "success" | "successful" | "ok" | "done" | "passed" | "pass" | "completed" => Some("succeeded"),
        "failure" | "fail" | "error" | "errored" => Some("failed"),
        "skip" | "cancelled" | "canceled" => Some("skipped"),
        _ if lower.len() > 40 => None,
        _ => closest(&lower, Status::ALL.map(Status::word)),
    }
}

/// Whether zero is written there.
fn is_zero(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Const(Const::Int(number)) => *number == 0,
        ExprKind::Const(Const::Float(number)) => *number == 0.0,
        ExprKind::Const(Const::Bool(truth)) => !truth,
        ExprKind::Negative(of) => is_zero(of),
        _ => false,
    }
}

/// The largest constant that an expression may compute, in characters or items.
const MAX_CONSTANT: f64 = 1_000_000.0;

/// How large a text or list is that an expression computes from nothing but constants, where it computes one.
fn size(expr: &Expr) -> Option<f64> {
    let all = |items: &[Expr]| items.iter().map(|item| size(item).or_else(|| number(item).map(|_| 1.0))).sum();
    match &expr.kind {
        // What is written out is there already.
        ExprKind::Const(Const::Text(text)) => Some((text.len() as f64).min(MAX_CONSTANT)),
        ExprKind::List(items) => all(items),
        ExprKind::Concat(left, right) | ExprKind::Arithmetic { left, op: Operator::Add, right } => {
            match (size(left), size(right)) {
                (None, None) => None,
                (left, right) => Some(left.unwrap_or(1.0) + right.unwrap_or(1.0)),
            }
        }
        ExprKind::Arithmetic { left, op: Operator::Mul, right } => match (size(left), size(right)) {
            (Some(of), None) => Some(of * number(right)?.max(0.0)),
            (None, Some(of)) => Some(of * number(left)?.max(0.0)),
            _ => None,
        },
        _ => None,
    }
}

/// The number that an expression computes from nothing but constants, nearly.
fn number(expr: &Expr) -> Option<f64> {
    match &expr.kind {
        ExprKind::Const(Const::Int(number)) => Some(*number as f64),
        ExprKind::Const(Const::Float(number)) => Some(*number),
        ExprKind::Const(Const::Bool(truth)) => Some(f64::from(u8::from(*truth))),
        ExprKind::Negative(of) => number(of).map(|number| -number),
        ExprKind::Arithmetic { left, op, right } => {
            let (left, right) = (number(left)?, number(right)?);
            Some(match op {
                Operator::Add => left + right,
                Operator::Sub => left - right,
                Operator::Mul => left * right,
                Operator::Div => left / right,
                Operator::FloorDiv => (left / right).floor(),
                Operator::Rem => left % right,
                Operator::Pow => left.powf(right),
            })
        }
        _ => None,
    }
}

/// The facts and more of them.
fn narrowed(facts: &Facts, more: Vec<Fact>) -> Facts {
    if more.is_empty() {
        return facts.clone();
    }
    let mut all = facts.to_vec();
    fact::merge(&mut all, more);
    all.into()
}
