//! The walk over minijinja's tree: what is read, what is unknown, what holds where.
//!
//! Goes in: the tree of a text or an expression. Comes out: reads and problems; each directive learns what the
//! conditions around it prove. The tree's depth is bounded before it gets here.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use minijinja::machinery::ast::{self, BinOpKind, CallArg, CallType, Expr, Stmt};

use super::directive::clip;
use super::fact::{self, Fact, Outcomes, Reading, Status, outcomes};
use super::names::{self, FILTERS, FUNCTIONS, LOOP, TESTS, roots};
use super::path::{Path, path, range};
use super::region::template_error;
use super::{Directive, MAX_PROBLEMS, Problem, Read, Root};
use crate::suggest::{closest, list};

/// Walks a text's tree.
pub(super) fn template<'a>(
    children: &'a [Stmt<'a>],
    directives: &mut [&mut Directive],
    problems: &mut Vec<Problem>,
) -> Vec<Read> {
    let mut walk = Walk { directives, reads: Vec::new(), problems, scopes: vec![BTreeMap::new()] };
    walk.statements(children, &Facts::default());
    walk.reads
}

/// Walks a condition's tree.
pub(super) fn condition<'a>(expr: &'a Expr<'a>, problems: &mut Vec<Problem>) -> Vec<Read> {
    let mut walk = Walk { directives: &mut [], reads: Vec::new(), problems, scopes: Vec::new() };
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

struct Walk<'a, 'd, 'p> {
    directives: &'d mut [&'p mut Directive],
    reads: Vec<Read>,
    problems: &'d mut Vec<Problem>,
    /// Names that the text binds, innermost scope last; false where only some ways there bind it.
    scopes: Vec<BTreeMap<&'a str, bool>>,
}

impl<'a> Walk<'a, '_, '_> {
    fn statements(&mut self, statements: &'a [Stmt<'a>], facts: &Facts) {
        for statement in statements {
            self.statement(statement, facts);
        }
    }

    fn statement(&mut self, statement: &'a Stmt<'a>, facts: &Facts) {
        match statement {
            Stmt::Template(template) => self.statements(&template.children, facts),
            Stmt::EmitExpr(emit) => self.expression(&emit.expr, facts),
            Stmt::EmitRaw(raw) => self.text(range(raw.span()), facts),
            Stmt::ForLoop(each) => self.each(each, facts),
            Stmt::IfCond(branch) => self.branch(branch, facts),
            Stmt::WithBlock(with) => {
                self.scopes.push(BTreeMap::new());
                for (target, value) in &with.assignments {
                    self.expression(value, facts);
                    self.bind(target);
                }
                self.statements(&with.body, facts);
                self.scopes.pop();
            }
            Stmt::Set(set) => {
                self.expression(&set.expr, facts);
                self.bind(&set.target);
            }
            Stmt::SetBlock(set) => {
                self.scopes.push(BTreeMap::new());
                self.statements(&set.body, facts);
                self.scopes.pop();
                if let Some(filter) = &set.filter {
                    self.expression(filter, facts);
                }
                self.bind(&set.target);
            }
            Stmt::AutoEscape(escape) => {
                self.expression(&escape.enabled, facts);
                self.statements(&escape.body, facts);
            }
            Stmt::FilterBlock(filter) => {
                self.expression(&filter.filter, facts);
                self.scopes.push(BTreeMap::new());
                self.statements(&filter.body, facts);
                self.scopes.pop();
            }
            Stmt::Do(call) => self.call(&call.call, facts),
        }
    }

    /// Directives in a stretch of text hold what its place holds.
    fn text(&mut self, range: Range<usize>, facts: &Facts) {
        let first = self.directives.partition_point(|directive| directive.range.start < range.start);
        for directive in &mut self.directives[first..] {
            if directive.range.start >= range.end {
                break;
            }
            directive.assumes = facts.clone();
        }
    }

    fn each(&mut self, each: &'a ast::ForLoop<'a>, facts: &Facts) {
        self.expression(&each.iter, facts);
        self.scopes.push(BTreeMap::from([("loop", true)]));
        self.bind(&each.target);
        if let Some(filter) = &each.filter_expr {
            self.expression(filter, facts);
        }
        self.statements(&each.body, facts);
        self.scopes.pop();
        self.scopes.push(BTreeMap::new());
        self.statements(&each.else_body, facts);
        self.scopes.pop();
    }

    fn branch(&mut self, branch: &'a ast::IfCond<'a>, facts: &Facts) {
        self.expression(&branch.expr, facts);
        let Outcomes { yes, no } = outcomes(&branch.expr, Reading::Evaluated);
        self.scopes.push(BTreeMap::new());
        self.statements(&branch.true_body, &narrowed(facts, yes));
        let mut names = self.scopes.pop().unwrap_or_default();
        self.scopes.push(BTreeMap::new());
        self.statements(&branch.false_body, &narrowed(facts, no));
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

    fn bind(&mut self, target: &'a Expr<'a>) {
        match target {
            Expr::Var(var) => {
                // `directive` is how the runtime reaches the directives of a text.
                if Root::find(var.id).is_some() || var.id == "directive" {
                    self.problems.push(
                        template_error(range(var.span()), format!("`{}` is taken", var.id), "a name of the language")
                            .help("choose another name"),
                    );
                }
                if let Some(scope) = self.scopes.last_mut() {
                    scope.insert(var.id, true);
                }
            }
            Expr::List(list) => list.items.iter().for_each(|item| self.bind(item)),
            // `namespace.field`: the namespace must be there.
            Expr::GetAttr(attr) => self.expression(&attr.expr, &Facts::default()),
            _ => {}
        }
    }

    fn expression(&mut self, expr: &'a Expr<'a>, facts: &Facts) {
        self.operand(expr, facts, Missing::Harms);
    }

    fn operand(&mut self, expr: &'a Expr<'a>, facts: &Facts, missing: Missing) {
        if let Some(path) = path(expr) {
            return self.path(&path, facts, missing);
        }
        match expr {
            Expr::Const(_) => {}
            Expr::Var(var) => self.variable(var.id, range(var.span()), missing),
            Expr::GetAttr(attr) => self.attribute(attr, facts, missing),
            Expr::GetItem(item) => {
                self.operand(&item.expr, facts, missing);
                self.expression(&item.subscript_expr, facts);
            }
            Expr::Slice(slice) => {
                self.expression(&slice.expr, facts);
                for bound in [&slice.start, &slice.stop, &slice.step].into_iter().flatten() {
                    self.expression(bound, facts);
                }
            }
            Expr::UnaryOp(op) => self.expression(&op.expr, facts),
            Expr::BinOp(op) => self.operation(op, facts),
            Expr::Compare(chain) => {
                self.expression(&chain.expr, facts);
                chain.ops.iter().for_each(|op| self.expression(&op.expr, facts));
            }
            Expr::IfExpr(choice) => {
                self.expression(&choice.test_expr, facts);
                let Outcomes { yes, no } = outcomes(&choice.test_expr, Reading::Evaluated);
                self.operand(&choice.true_expr, &narrowed(facts, yes), missing);
                if let Some(otherwise) = &choice.false_expr {
                    self.operand(otherwise, &narrowed(facts, no), missing);
                }
            }
            Expr::Filter(filter) => self.filter(filter, facts),
            Expr::Test(test) => self.test(test, facts),
            Expr::Call(call) => self.call(call, facts),
            Expr::List(list) => list.items.iter().for_each(|item| self.expression(item, facts)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.expression(item, facts)),
            Expr::Map(map) => map.keys.iter().chain(&map.values).for_each(|item| self.expression(item, facts)),
        }
    }

    fn attribute(&mut self, attr: &'a ast::Spanned<ast::GetAttr<'a>>, facts: &Facts, missing: Missing) {
        let end = range(attr.span()).end;
        match &attr.expr {
            Expr::Var(var) if var.id == "loop" && self.bound("loop").is_some() => {
                if !LOOP.contains(&attr.name) {
                    let place = end - attr.name.len()..end;
                    self.unknown("attribute of `loop`", attr.name, place, &LOOP);
                }
            }
            inner => self.operand(inner, facts, missing),
        }
    }

    fn operation(&mut self, op: &'a ast::BinOp<'a>, facts: &Facts) {
        let both = match op.op {
            BinOpKind::ScAnd => true,
            BinOpKind::ScOr => false,
            kind => {
                if matches!(kind, BinOpKind::Eq | BinOpKind::Ne | BinOpKind::In) {
                    self.comparison(op);
                }
                self.expression(&op.left, facts);
                return self.expression(&op.right, facts);
            }
        };
        // Of `a and b and c`, `c` is reached when `a` and `b` held; of `a or b or c`, when neither did.
        let mut facts = facts.clone();
        let terms = terms(op);
        for (index, term) in terms.iter().enumerate() {
            self.expression(term, &facts);
            if index + 1 < terms.len() {
                let Outcomes { yes, no } = outcomes(term, Reading::Evaluated);
                facts = narrowed(&facts, if both { yes } else { no });
            }
        }
    }

    /// Reports comparisons that nothing can fulfil.
    fn comparison(&mut self, op: &'a ast::BinOp<'a>) {
        for (side, other) in [(&op.left, &op.right), (&op.right, &op.left)] {
            let Some(path) = path(side) else { continue };
            let listed = fact::items(other).filter(|_| matches!(op.op, BinOpKind::In));
            let words = listed.unwrap_or(std::slice::from_ref(other));
            for word in words {
                match path.root {
                    Root::Status => self.status_word(word),
                    Root::Exit | Root::Iteration => self.number(path.root, word),
                    _ => {}
                }
            }
        }
    }

    fn status_word(&mut self, word: &'a Expr<'a>) {
        // A word without quotes is reported as an unknown name.
        let Expr::Const(constant) = word else { return };
        let (text, range) = (constant.value.as_str(), range(constant.span()));
        if text.is_some_and(|text| Status::find(text).is_some()) {
            return;
        }
        let shown = text.map_or_else(|| "this".to_owned(), |text| format!("`'{}'`", clip(text)));
        let problem = template_error(range.clone(), format!("no step ends as {shown}: this never holds"), "never");
        self.problems.push(match text.and_then(meant) {
            Some(near) => problem.help(format!("did you mean `'{near}'`?")).fix(
                format!("write `'{near}'`"),
                range,
                format!("'{near}'"),
                false,
            ),
            None => problem.help("steps end as `'succeeded'`, `'failed'` or `'skipped'`"),
        });
    }

    fn number(&mut self, root: Root, word: &Expr<'_>) {
        let Expr::Const(constant) = word else { return };
        let Some(text) = constant.value.as_str() else { return };
        let range = range(constant.span());
        let message = format!("`{}` is a number, never a text: this never holds", root.word());
        let problem = template_error(range.clone(), message, "a text");
        self.problems.push(match text.parse::<i64>() {
            Ok(number) => problem.help(format!("write `{number}` without quotes")).fix(
                format!("write `{number}`"),
                range,
                number.to_string(),
                true,
            ),
            Err(_) => problem.help("compare it with a number, as in `== 0`"),
        });
    }

    fn path(&mut self, path: &Path<'_>, facts: &Facts, missing: Missing) {
        let root = path.root;
        let word = root.word();
        let named = usize::from(root.of().is_some());
        let bare = path.whole.start..path.whole.start + word.len();
        if let (Some(of), None) = (root.of(), path.segments.first()) {
            let (message, help) = match root.properties() {
                Some(known) => (format!("`{word}` needs {of}"), format!("write `{word}.{}`", known[0])),
                None => (format!("`{word}` needs the name of {of}"), format!("write `{word}.NAME`")),
            };
            self.problems.push(template_error(bare, message, format!("{of} is missing")).help(help));
            return;
        }
        if let (Some(known), Some(segment)) = (root.properties(), path.segments.first())
            && !known.contains(&&*segment.text)
        {
            let message = format!("`{word}` has no `{}`", clip(&segment.text));
            let write = known.iter().map(|known| format!("{word}.{known}")).collect::<Vec<_>>();
            self.problems.push(
                template_error(segment.range.clone(), message, "no such property")
                    .help(format!("write {}", list(write.iter().map(String::as_str), "or"))),
            );
            return;
        }
        if let (false, Some(surplus)) = (root.has_fields(), path.segments.get(named)) {
            self.problems.push(
                template_error(surplus.range.clone(), format!("`{word}` has no fields"), "surplus")
                    .help("leave it out"),
            );
            return;
        }
        let name = path.name().map(str::to_owned);
        // A field of a missing value is an error, whatever stands around the field.
        let harmless = missing == Missing::Harmless && path.fields().next().is_none();
        let guarded = harmless || fact::prove(facts, root, name.as_deref());
        self.reads.push(Read {
            root,
            fields: path.fields().map(str::to_owned).collect(),
            range: path.segments.first().map_or(bare, |segment| segment.range.clone()),
            whole: path.whole.clone(),
            guarded,
            via_directive: false,
            assumes: facts.clone(),
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
        let near = (name.len() <= 40).then(|| closest(name, known.iter().copied())).flatten();
        self.problems.push(match near {
            Some(near) => {
                problem.help(format!("did you mean `{near}`?")).fix(format!("write `{near}`"), range, near, false)
            }
            None => problem.help(format!("the {what}s are {}", list(known.iter().copied(), "and"))),
        });
    }

    fn filter(&mut self, filter: &'a ast::Spanned<ast::Filter<'a>>, facts: &Facts) {
        if let Some(expr) = &filter.expr {
            let default = matches!(filter.name, "default" | "d");
            self.operand(expr, facts, if default { Missing::Harmless } else { Missing::Harms });
        }
        if !FILTERS.contains(&filter.name) {
            let place = self.filter_place(filter);
            self.unknown("filter", filter.name, place, FILTERS);
        } else if filter.args.len() < names::filter_needs(filter.name) {
            let place = self.filter_place(filter);
            self.too_few("filter", filter.name, place, names::filter_needs(filter.name));
        }
        self.arguments(&filter.args, facts);
    }

    /// The place of a filter's name, as closely as the tree tells.
    fn filter_place(&self, filter: &ast::Spanned<ast::Filter<'_>>) -> Range<usize> {
        let span = range(filter.span());
        span.start..(span.start + filter.name.len()).min(span.end)
    }

    fn too_few(&mut self, what: &str, name: &str, range: Range<usize>, needs: usize) {
        let (many, example) = if needs == 1 { ("an argument", "…") } else { ("two arguments", "…, …") };
        self.problems.push(
            template_error(range, format!("{what} `{name}` needs {many}"), "missing")
                .help(format!("write `{name}({example})`")),
        );
    }

    fn test(&mut self, test: &'a ast::Spanned<ast::Test<'a>>, facts: &Facts) {
        let presence = matches!(test.name, "defined" | "undefined");
        self.operand(&test.expr, facts, if presence { Missing::Harmless } else { Missing::Harms });
        if !TESTS.contains(&test.name) {
            let span = range(test.span());
            self.unknown("test", test.name, span.start..(span.start + test.name.len()).min(span.end), TESTS);
        } else if test.args.len() < names::test_needs(test.name) {
            self.too_few("test", test.name, range(test.span()), names::test_needs(test.name));
        }
        self.arguments(&test.args, facts);
    }

    fn call(&mut self, call: &'a ast::Spanned<ast::Call<'a>>, facts: &Facts) {
        match call.identify_call() {
            CallType::Function(name) => {
                let known = FUNCTIONS.contains(&name) || self.bound(name).is_some();
                if !known {
                    let place = range(call.expr.span());
                    self.unknown("function", name, place, &FUNCTIONS);
                }
            }
            CallType::Method(Expr::Var(var), "cycle" | "changed")
                if var.id == "loop" && self.bound("loop").is_some() => {}
            CallType::Method(object, name) => {
                let end = range(call.expr.span()).end;
                let problem = template_error(
                    end - name.len()..end,
                    format!("values have no method `{}`", clip(name)),
                    "a value cannot be called",
                );
                self.problems.push(match name {
                    _ if FILTERS.contains(&name) => problem.help(format!("write `| {name}`")),
                    "contains" | "includes" => problem.help("write `'TEXT' in VALUE`"),
                    "startswith" | "startsWith" | "starts_with" => {
                        problem.help("write `VALUE is startingwith('TEXT')`")
                    }
                    "endswith" | "endsWith" | "ends_with" => problem.help("write `VALUE is endingwith('TEXT')`"),
                    _ => problem.help("use a filter: `VALUE | FILTER`"),
                });
                self.expression(object, facts);
            }
            CallType::Object(object) => {
                self.problems.push(
                    template_error(range(call.span()), "a value cannot be called", "not a function")
                        .help("use a filter: `VALUE | FILTER`"),
                );
                self.expression(object, facts);
            }
        }
        self.arguments(&call.args, facts);
    }

    fn arguments(&mut self, arguments: &'a [CallArg<'a>], facts: &Facts) {
        for argument in arguments {
            match argument {
                CallArg::Pos(value)
                | CallArg::Kwarg(_, value)
                | CallArg::PosSplat(value)
                | CallArg::KwargSplat(value) => self.expression(value, facts),
            }
        }
    }
}

/// The terms of `a and b and c`, or of `a or b or c`, in order.
fn terms<'a>(op: &'a ast::BinOp<'a>) -> Vec<&'a Expr<'a>> {
    let mut terms = vec![&op.right];
    let mut left = &op.left;
    while let Expr::BinOp(inner) = left
        && std::mem::discriminant(&inner.op) == std::mem::discriminant(&op.op)
    {
        terms.push(&inner.right);
        left = &inner.left;
    }
    terms.push(left);
    terms.reverse();
    terms
}

/// The status that a word means.
fn meant(word: &str) -> Option<&'static str> {
    let lower = word.to_ascii_lowercase();
    match lower.as_str() {
        "success" | "successful" | "ok" | "done" | "passed" | "pass" | "completed" => Some("succeeded"),
        "failure" | "fail" | "error" | "errored" => Some("failed"),
        "skip" | "cancelled" | "canceled" => Some("skipped"),
        _ if lower.len() > 40 => None,
        _ => closest(&lower, Status::ALL.map(Status::word)),
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
