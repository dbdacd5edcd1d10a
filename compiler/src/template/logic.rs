//! The walk over the tree of a text or an expression: what is read, what is unknown, what holds where.
//!
//! Reads and problems come out; each directive learns what the conditions around it prove.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::applied::{self, Applied, FILTERS, TESTS};
use super::constant::{MAX_CONSTANT, constant_size, is_zero};
use super::directive::clip_word;
use super::divisor::{is_about_bound, is_computed, is_nonzero, may_filter_fail};
use super::fact::{self, Fact, Outcomes, Reading, Status, infer_outcomes, suggest_status};
use super::names::{DEPENDENCY_WORDS, FUNCTIONS, LOOP, READ_HABITS, list_roots};
use super::path::Path;
use super::region::template_error;
use super::tree::{Argument, Expr, ExprKind, Operator, Statement, Target, is_default};
use super::{MAX_PROBLEMS, Part, Problem, Read, Risks, Root, Spanned};
use crate::suggest::{Near, find_nearest, format_list};

/// Walks a text's tree; `parts` are those of the text. What it reads, and where it may be without a result.
pub(super) fn visit_template(
    tree: &[Statement],
    parts: &mut [Part],
    problems: &mut Vec<Problem>,
) -> (Vec<Read>, Risks) {
    let mut walk = Walk::new(parts, problems);
    walk.scopes.push(BTreeMap::new());
    walk.visit_statements(tree, &Facts::default());
    (walk.reads, walk.risks)
}

/// Walks a condition's tree. What it reads, and where it may be without a result.
pub(super) fn visit_condition(expr: &Expr, problems: &mut Vec<Problem>) -> (Vec<Read>, Risks) {
    let mut walk = Walk::new(&mut [], problems);
    walk.visit_expression(expr, &Facts::default());
    (walk.reads, walk.risks)
}

type Facts = Arc<[Fact]>;

/// Whether a missing value does harm.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Harms,
    Harmless,
    /// A default or a test stands behind an item or a field of it.
    HarmlessWithin,
}

impl Missing {
    /// The same for the value whose item or field it is.
    fn behind(self) -> Missing {
        match self {
            Missing::Harms => Missing::Harms,
            Missing::Harmless | Missing::HarmlessWithin => Missing::HarmlessWithin,
        }
    }
}

struct Walk<'a, 'd> {
    parts: &'d mut [Part],
    reads: Vec<Read>,
    risks: Risks,
    /// How many conditions and loops there are around.
    depth: usize,
    problems: &'d mut Vec<Problem>,
    /// Names that the text binds, innermost scope last; false where only some ways there bind it.
    scopes: Vec<BTreeMap<&'a str, bool>>,
}

impl<'a, 'd> Walk<'a, 'd> {
    fn new(parts: &'d mut [Part], problems: &'d mut Vec<Problem>) -> Walk<'a, 'd> {
        Walk { parts, reads: Vec::new(), risks: Risks::default(), depth: 0, problems, scopes: Vec::new() }
    }

    fn visit_statements(&mut self, statements: &'a [Statement], facts: &Facts) {
        let mut facts = facts.clone();
        for statement in statements {
            self.visit_statement(statement, &facts);
            // A name that the text binds anew is another number.
            if !matches!(statement, Statement::Text(_) | Statement::Emit(_) | Statement::Directive(_)) {
                facts = forget_bound(&facts);
            }
        }
    }

    /// Visits what only some ways through the text come to.
    fn visit_sometimes(&mut self, visit: impl FnOnce(&mut Self)) {
        self.depth += 1;
        visit(self);
        self.depth -= 1;
    }

    fn visit_scope(&mut self, statements: &'a [Statement], facts: &Facts) {
        self.scopes.push(BTreeMap::new());
        self.visit_statements(statements, facts);
        self.scopes.pop();
    }

    fn visit_statement(&mut self, statement: &'a Statement, facts: &Facts) {
        match statement {
            Statement::Text(_) => {}
            Statement::Emit(expr) | Statement::Do(expr) => self.visit_expression(expr, facts),
            Statement::Directive(part) => {
                if let Some(Part::Directive(directive)) = self.parts.get_mut(*part) {
                    directive.assumes = facts.clone();
                }
            }
            Statement::For { target, list, filter, body, otherwise } => {
                // Before the scope opens: the list does not see `loop` and the names of the target.
                self.visit_expression(list, facts);
                self.scopes.push(BTreeMap::from([("loop", true)]));
                self.bind_target(target);
                let facts = &forget_bound(facts);
                self.visit_sometimes(|walk| {
                    if let Some(filter) = filter {
                        walk.visit_expression(filter, facts);
                    }
                    let facts = match filter {
                        Some(filter) => narrow_facts(facts, infer_outcomes(filter, Reading::Outcome).yes),
                        None => facts.clone(),
                    };
                    walk.visit_statements(body, &facts);
                });
                self.scopes.pop();
                // The `else` runs where there is no item, so it sees neither `loop` nor the names of the target.
                self.visit_sometimes(|walk| walk.visit_scope(otherwise, facts));
            }
            Statement::If { condition, then, otherwise } => self.visit_branch(condition, then, otherwise, facts),
            Statement::With { assignments, body } => {
                self.scopes.push(BTreeMap::new());
                // Each value sees the names that stand before it.
                for (target, value) in assignments {
                    self.visit_expression(value, facts);
                    self.bind_target(target);
                }
                self.visit_statements(body, &forget_bound(facts));
                self.scopes.pop();
            }
            Statement::Set { target, value } => {
                self.visit_expression(value, facts);
                self.bind_target(target);
            }
            Statement::Capture { target, filter, body } => {
                self.visit_scope(body, facts);
                if let Some(filter) = filter {
                    self.visit_expression(filter, facts);
                }
                self.bind_target(target);
            }
            Statement::AutoEscape { enabled, body } => {
                self.visit_expression(enabled, facts);
                self.visit_statements(body, facts);
            }
            Statement::Filter { filter, body } => {
                self.visit_expression(filter, facts);
                self.visit_scope(body, facts);
            }
        }
    }

    fn visit_branch(&mut self, condition: &'a Expr, then: &'a [Statement], otherwise: &'a [Statement], facts: &Facts) {
        self.visit_expression(condition, facts);
        let Outcomes { yes, no } = infer_outcomes(condition, Reading::Evaluated);
        self.scopes.push(BTreeMap::new());
        self.visit_sometimes(|walk| walk.visit_statements(then, &narrow_facts(facts, yes)));
        let mut names = self.scopes.pop().unwrap_or_default();
        self.scopes.push(BTreeMap::new());
        self.visit_sometimes(|walk| walk.visit_statements(otherwise, &narrow_facts(facts, no)));
        let others = self.scopes.pop().unwrap_or_default();
        // What only one branch sets may not be there afterwards.
        for (name, sure) in &mut names {
            *sure &= others.get(name).is_some_and(|sure| *sure);
        }
        for name in others.into_keys() {
            names.entry(name).or_insert(false);
        }
        for (name, sure) in names {
            let sure = sure || self.find_binding(name) == Some(true);
            if let Some(scope) = self.scopes.last_mut() {
                scope.insert(name, sure);
            }
        }
    }

    /// Whether the text binds the name: surely, or on some ways only.
    fn find_binding(&self, name: &str) -> Option<bool> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name).copied())
    }

    fn bind_target(&mut self, target: &'a Target) {
        match target {
            Target::Name(name) => {
                // `directive` is how the runtime reaches the directives of a text.
                if Root::from_word(&name.value).is_some_and(|root| !root.is_free()) || name.value == "directive" {
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
            Target::Items(targets) => targets.iter().for_each(|target| self.bind_target(target)),
            // `namespace.field`: the namespace must be there.
            Target::Field(Expr { kind: ExprKind::Attribute { of, .. }, .. }) => {
                self.visit_expression(of, &Facts::default());
            }
            Target::Field(_) => {}
        }
    }

    fn visit_expression(&mut self, expr: &'a Expr, facts: &Facts) {
        self.visit_operand(expr, facts, Missing::Harms);
    }

    fn visit_operand(&mut self, expr: &'a Expr, facts: &Facts, missing: Missing) {
        match &expr.kind {
            ExprKind::Const(_) => {}
            ExprKind::Path(path) => self.visit_path(path, &expr.range, facts, missing),
            ExprKind::Variable(name) => self.visit_variable(name, expr.range.clone(), missing),
            ExprKind::Attribute { of, name } => self.visit_attribute(of, name, facts, missing),
            ExprKind::Item { of, index } => {
                self.visit_operand(of, facts, missing.behind());
                self.visit_expression(index, facts);
            }
            ExprKind::Slice { of, bounds } => {
                self.visit_expression(of, facts);
                bounds.iter().flatten().for_each(|bound| self.visit_expression(bound, facts));
                // A step of zero goes nowhere.
                self.risks.certain |= bounds[2].as_deref().is_some_and(is_computed);
            }
            ExprKind::Not(of) | ExprKind::Negative(of) => self.visit_expression(of, facts),
            ExprKind::And(terms) => self.visit_terms(terms, facts, |outcomes| outcomes.yes),
            ExprKind::Or(terms) => self.visit_terms(terms, facts, |outcomes| outcomes.no),
            ExprKind::Chain { first, rest } => {
                self.visit_expression(first, facts);
                self.visit_sometimes(|walk| rest.iter().for_each(|(_, operand)| walk.visit_expression(operand, facts)));
            }
            ExprKind::Arithmetic { left, op, right } => {
                let known = self.problems.len();
                self.visit_expression(left, facts);
                self.visit_expression(right, facts);
                if matches!(op, Operator::Div | Operator::FloorDiv | Operator::Rem) {
                    self.check_divisor(right, facts);
                }
                // A power may be too large for a number.
                self.risks.certain |= *op == Operator::Pow && is_computed(expr);
                // A text is not repeated less often than never.
                let repeats = |one: &Expr, other: &Expr| {
                    one.as_text().is_some() && is_computed(other) && other.as_length().is_none()
                };
                self.risks.certain |= *op == Operator::Mul && (repeats(left, right) || repeats(right, left));
                self.check_constant(expr, known);
            }
            ExprKind::Concat(left, right) => {
                let known = self.problems.len();
                self.visit_expression(left, facts);
                self.visit_expression(right, facts);
                self.check_constant(expr, known);
            }
            ExprKind::Compare { left, right, .. } => {
                self.visit_expression(left, facts);
                self.visit_expression(right, facts);
            }
            ExprKind::Choice { condition, then, otherwise } => {
                self.visit_expression(condition, facts);
                let Outcomes { yes, no } = infer_outcomes(condition, Reading::Evaluated);
                self.visit_sometimes(|walk| {
                    walk.visit_operand(then, &narrow_facts(facts, yes), missing);
                    if let Some(otherwise) = otherwise {
                        walk.visit_operand(otherwise, &narrow_facts(facts, no), missing);
                    }
                });
            }
            ExprKind::Filter { of, name, arguments } => {
                let has_default = is_default(&name.value);
                if let Some(of) = of {
                    self.visit_operand(of, facts, if has_default { Missing::Harmless } else { Missing::Harms });
                }
                self.check_applied("filter", name, arguments.len(), FILTERS);
                match arguments.as_slice() {
                    // Another default stands behind it.
                    [default] if missing == Missing::Harmless && default.value.is_bare_path() && has_default => {
                        self.visit_operand(&default.value, facts, missing);
                    }
                    arguments => self.visit_arguments(arguments, facts),
                }
                self.risks.certain |= may_filter_fail(of.as_deref(), &name.value, arguments);
                // The test may be named by a text: `select("divisibleby", 2)`.
                let tested = match name.value.as_str() {
                    "select" | "reject" => 0,
                    "selectattr" | "rejectattr" => 1,
                    _ => arguments.len(),
                };
                if let Some([test, by, ..]) = arguments.get(tested..)
                    && test.value.as_text() == Some("divisibleby")
                {
                    // There may be no item.
                    self.visit_sometimes(|walk| walk.check_divisor(&by.value, facts));
                }
            }
            ExprKind::Test { of, name, arguments } => {
                let presence = matches!(name.value.as_str(), "defined" | "undefined");
                self.visit_operand(of, facts, if presence { Missing::Harmless } else { Missing::Harms });
                self.check_applied("test", name, arguments.len(), TESTS);
                self.visit_arguments(arguments, facts);
                if let Some(by) = arguments.first().filter(|_| name.value == "divisibleby") {
                    self.check_divisor(&by.value, facts);
                }
            }
            ExprKind::Call { of, arguments } => self.visit_call(expr, of, arguments, facts),
            ExprKind::List(items) => {
                let known = self.problems.len();
                items.iter().for_each(|item| self.visit_expression(item, facts));
                self.check_constant(expr, known);
            }
            ExprKind::Map(items) => items.iter().for_each(|(key, value)| {
                self.visit_expression(key, facts);
                self.visit_expression(value, facts);
            }),
        }
    }

    /// Reports a division by zero; what only the run knows may be zero.
    fn check_divisor(&mut self, divisor: &Expr, facts: &Facts) {
        if is_zero(divisor) {
            self.problems.push(
                template_error(divisor.range.clone(), "a division by zero has no value", "zero")
                    .help("divide by another number"),
            );
        }
        if !is_computed(divisor) || is_nonzero(divisor, facts) {
            return;
        }
        self.risks.add_divisor(divisor, self.depth == 0);
    }

    /// Reports a constant that is huge, unless something in it was reported: minijinja computes constants when it
    /// compiles them, where nothing bounds it.
    fn check_constant(&mut self, expr: &Expr, known: usize) {
        if self.problems.len() == known && constant_size(expr).is_some_and(|size| size > MAX_CONSTANT) {
            let message = format!("a constant of more than {MAX_CONSTANT} characters or items");
            self.problems.push(
                template_error(expr.range.clone(), message, "too large")
                    .help("repeat it less often, or read it from a file: `<<file:PATH>>`"),
            );
        }
    }

    fn visit_attribute(&mut self, of: &'a Expr, name: &'a Spanned<String>, facts: &Facts, missing: Missing) {
        match &of.kind {
            ExprKind::Variable(variable) if variable == "loop" && self.find_binding("loop").is_some() => {
                if !LOOP.contains(&name.value.as_str()) {
                    self.report_unknown("attribute of `loop`", &name.value, name.range.clone(), &LOOP);
                }
            }
            _ => self.visit_operand(of, facts, missing.behind()),
        }
    }

    /// Of `a and b and c`, `c` is reached when `a` and `b` held; of `a or b or c`, when neither did.
    fn visit_terms(&mut self, terms: &'a [Expr], facts: &Facts, reached: fn(Outcomes) -> Vec<Fact>) {
        let mut facts = facts.clone();
        for (index, term) in terms.iter().enumerate() {
            self.depth += usize::from(index > 0);
            self.visit_expression(term, &facts);
            self.depth -= usize::from(index > 0);
            if index + 1 < terms.len() {
                facts = narrow_facts(&facts, reached(infer_outcomes(term, Reading::Evaluated)));
            }
        }
    }

    fn visit_path(&mut self, path: &Path, whole: &Range<usize>, facts: &Facts, missing: Missing) {
        let root = path.root;
        let word = root.as_str();
        let named = usize::from(root.required_name().is_some());
        let bare = whole.start..whole.start + word.len();
        if let (Some(of), None) = (root.required_name(), path.segments.first()) {
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
            let message = format!("`{word}` has no `{}`", clip_word(&segment.text));
            let write = known.iter().map(|known| format!("{word}.{known}")).collect::<Vec<_>>();
            self.problems.push(
                template_error(segment.range.clone(), message, "no such property")
                    .help(format!("write {}", format_list(write.iter().map(String::as_str), "or"))),
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
        let harmless = missing != Missing::Harms;
        let guarded = harmless || fact::can_prove(facts, root, name.as_deref());
        let follows = guarded && !harmless && !fact::is_tested(facts, root, name.as_deref());
        self.reads.push(Read {
            root,
            fields: path.field_names().into(),
            range: path.segments.first().map_or(bare, |segment| segment.range.clone()),
            whole: whole.clone(),
            guarded,
            follows,
            keyed: missing == Missing::HarmlessWithin,
            via_directive: false,
            assumes: facts.clone(),
            steps: match path.segments.split_last() {
                Some((_, before)) if missing == Missing::Harmless => {
                    before.iter().map(|segment| segment.range.end).collect()
                }
                Some(_) if harmless => path.segments.iter().map(|segment| segment.range.end).collect(),
                _ => Box::default(),
            },
            name,
        });
    }

    fn visit_variable(&mut self, name: &'a str, range: Range<usize>, missing: Missing) {
        match self.find_binding(name) {
            Some(true) => return,
            Some(false) if missing == Missing::Harmless => return,
            Some(false) => {
                self.problems.push(
                    template_error(range.clone(), format!("`{name}` is not set on every way here"), "may be missing")
                        .help(format!("set it before, or write `{name} | default(\"\")`"))
                        .fix("add a default", range.end..range.end, " | default('')", false),
                );
                return;
            }
            None if FUNCTIONS.contains(&name) => return,
            None => {}
        }
        if let Some(status) = suggest_status(name).filter(|_| Status::from_word(name).is_some()) {
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
        let mut known: Vec<&str> = list_roots().collect();
        known.extend(self.scopes.iter().flat_map(BTreeMap::keys).take(100));
        self.report_unknown("name", name, range, &known);
    }

    fn report_unknown(&mut self, what: &str, name: &str, range: Range<usize>, known: &[&str]) {
        if self.problems.len() > 2 * MAX_PROBLEMS {
            return;
        }
        let problem = template_error(
            range.clone(),
            format!("unknown {what} `{}`", clip_word(name)),
            format!("no {what} has this name"),
        );
        let near = (name.len() <= 40).then(|| find_nearest(name, known.iter().copied())).flatten();
        let habit = READ_HABITS.iter().find(|(_, words)| what == "name" && words.contains(&name));
        let near = habit.map(|(root, _)| Near { name: root, certain: false }).or(near);
        self.problems.push(match near {
            _ if what == "name" && DEPENDENCY_WORDS.contains(&name) => problem.help(format!(
                "`when` takes a condition; how a step must end is said with it: `depends-on STEP when={name}`"
            )),
            Some(near) => problem.help(format!("did you mean `{near}`?")).fix(
                format!("write `{near}`"),
                range,
                near.name,
                near.certain,
            ),
            None if what == "name" => problem.help(format!(
                "write `param.{0}` for a parameter, or `output.{0}` for what a step gave; the names are {1}",
                clip_word(name),
                format_list(known.iter().copied(), "and")
            )),
            None => problem.help(format!("the {what}s are {}", format_list(known.iter().copied(), "and"))),
        });
    }

    /// Reports a filter or a test that there is not, or that lacks arguments.
    fn check_applied(&mut self, what: &str, name: &Spanned<String>, given: usize, known: &'static [Applied]) {
        match applied::find_applied(known, &name.value).map(applied::count_required) {
            None => {
                let words: Vec<&str> = known.iter().map(|(word, ..)| *word).collect();
                self.report_unknown(what, &name.value, name.range.clone(), &words);
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

    fn visit_call(&mut self, call: &'a Expr, of: &'a Expr, arguments: &'a [Argument], facts: &Facts) {
        match &of.kind {
            ExprKind::Variable(name) => {
                let known = FUNCTIONS.contains(&name.as_str()) || self.find_binding(name).is_some();
                if !known {
                    self.report_unknown("function", name, of.range.clone(), &FUNCTIONS);
                }
            }
            ExprKind::Attribute { of, name } => self.check_method(of, name, facts),
            _ => {
                self.problems.push(
                    template_error(call.range.clone(), "a value cannot be called", "not a function")
                        .help("use a filter: `VALUE | FILTER`"),
                );
                self.visit_expression(of, facts);
            }
        }
        // The number of its items is limited, and zero is no step.
        let is_range = matches!(&of.kind, ExprKind::Variable(name) if name == "range");
        let is_odd = |argument: &Argument| is_computed(&argument.value) && argument.value.as_length().is_none();
        self.risks.certain |= is_range && arguments.iter().any(is_odd);
        self.visit_arguments(arguments, facts);
    }

    fn check_method(&mut self, of: &'a Expr, name: &Spanned<String>, facts: &Facts) {
        let of_loop = matches!(&of.kind, ExprKind::Variable(variable) if variable == "loop");
        if of_loop && self.find_binding("loop").is_some() && matches!(name.value.as_str(), "cycle" | "changed") {
            return;
        }
        let problem = template_error(
            name.range.clone(),
            format!("values have no method `{}`", clip_word(&name.value)),
            "a value cannot be called",
        );
        self.problems.push(match name.value.as_str() {
            name if applied::find_applied(FILTERS, name).is_some() => problem.help(format!("write `| {name}`")),
            "contains" | "includes" => problem.help("write `'TEXT' in VALUE`"),
            "startswith" | "startsWith" | "starts_with" => problem.help("write `VALUE is startingwith('TEXT')`"),
            "endswith" | "endsWith" | "ends_with" => problem.help("write `VALUE is endingwith('TEXT')`"),
            _ => problem.help("use a filter: `VALUE | FILTER`"),
        });
        self.visit_expression(of, facts);
    }

    fn visit_arguments(&mut self, arguments: &'a [Argument], facts: &Facts) {
        arguments.iter().for_each(|argument| self.visit_expression(&argument.value, facts));
    }
}

/// The facts and more of them.
fn narrow_facts(facts: &Facts, more: Vec<Fact>) -> Facts {
    if more.is_empty() {
        return facts.clone();
    }
    let mut all = facts.to_vec();
    fact::merge_facts(&mut all, more);
    all.into()
}

/// The facts without those about names that the text binds.
fn forget_bound(facts: &Facts) -> Facts {
    match facts.iter().any(is_about_bound) {
        true => facts.iter().filter(|fact| !is_about_bound(fact)).cloned().collect(),
        false => facts.clone(),
    }
}
