//! minijinja's tree to ours.
//!
//! Goes in: the borrowed tree of a text or an expression, and where directives stand in the text. Comes out: the owned
//! tree. Names that the text binds are told from roots here, once.

use std::collections::BTreeSet;
use std::ops::Range;

use minijinja::Value;
use minijinja::machinery::Span;
use minijinja::machinery::ast::{self, BinOpKind, CallArg, CompareOpKind, Stmt, UnaryOpKind};
use minijinja::value::ValueKind;

use super::path::{Path, Segment};
use super::tree::{Argument, Comparison, Const, Expr, ExprKind, Operator, Statement, Target};
use super::{Root, Spanned};

/// Takes a text's tree over; `directives` are the places of the directives, in order, with their part.
pub(super) fn lower_statements(children: &[Stmt<'_>], directives: &[(Range<usize>, usize)]) -> Vec<Statement> {
    Lowering { directives, scopes: vec![BTreeSet::new()] }.lower_statements(children)
}

/// Takes a lone expression's tree over.
pub(super) fn lower_expression(expr: &ast::Expr<'_>) -> Expr {
    Lowering { directives: &[], scopes: Vec::new() }.lower_expression(expr)
}

struct Lowering<'d, 'a> {
    directives: &'d [(Range<usize>, usize)],
    /// Names that the text binds, innermost scope last.
    scopes: Vec<BTreeSet<&'a str>>,
}

fn lower_text(text: Range<usize>, lowered: &mut Vec<Statement>) {
    if !text.is_empty() {
        lowered.push(Statement::Text(text));
    }
}

impl<'a> Lowering<'_, 'a> {
    fn lower_statements(&mut self, statements: &[Stmt<'a>]) -> Vec<Statement> {
        let mut lowered = Vec::new();
        statements.iter().for_each(|statement| self.lower_statement(statement, &mut lowered));
        lowered
    }

    fn lower_scope(&mut self, statements: &[Stmt<'a>]) -> Vec<Statement> {
        self.scopes.push(BTreeSet::new());
        let lowered = self.lower_statements(statements);
        self.scopes.pop();
        lowered
    }

    fn lower_statement(&mut self, statement: &Stmt<'a>, lowered: &mut Vec<Statement>) {
        lowered.push(match statement {
            Stmt::Template(template) => {
                return template.children.iter().for_each(|child| self.lower_statement(child, lowered));
            }
            Stmt::EmitRaw(raw) => {
                let text = span_range(raw.span());
                // The directives stand in the order of the text, so a search replaces a walk over all of them for each
                // piece.
                let first = self.directives.partition_point(|(range, _)| range.start < text.start);
                let inside = self.directives[first..].iter().take_while(|(range, _)| range.start < text.end);
                let mut from = text.start;
                for (range, part) in inside {
                    lower_text(from..range.start, lowered);
                    lowered.push(Statement::Directive(*part));
                    from = range.end;
                }
                return lower_text(from..text.end, lowered);
            }
            Stmt::EmitExpr(emit) => Statement::Emit(self.lower_expression(&emit.expr)),
            Stmt::ForLoop(each) => self.lower_for(each),
            Stmt::IfCond(branch) => Statement::If {
                condition: self.lower_expression(&branch.expr),
                // What a branch sets is there after it.
                then: self.lower_statements(&branch.true_body),
                otherwise: self.lower_statements(&branch.false_body),
            },
            Stmt::WithBlock(with) => {
                self.scopes.push(BTreeSet::new());
                let assignment = |(target, value): &(ast::Expr<'a>, ast::Expr<'a>)| {
                    let value = self.lower_expression(value);
                    (self.lower_target(target), value)
                };
                let assignments = with.assignments.iter().map(assignment).collect();
                let body = self.lower_statements(&with.body);
                self.scopes.pop();
                Statement::With { assignments, body }
            }
            Stmt::Set(set) => {
                // Ahead of the name: the value may read what the name meant before.
                let value = self.lower_expression(&set.expr);
                Statement::Set { target: self.lower_target(&set.target), value }
            }
            Stmt::SetBlock(set) => {
                let body = self.lower_scope(&set.body);
                let filter = set.filter.as_ref().map(|filter| self.lower_expression(filter));
                Statement::Capture { target: self.lower_target(&set.target), filter, body }
            }
            Stmt::AutoEscape(escape) => Statement::AutoEscape {
                enabled: self.lower_expression(&escape.enabled),
                body: self.lower_statements(&escape.body),
            },
            Stmt::FilterBlock(filter) => Statement::Filter {
                filter: self.lower_expression(&filter.filter),
                body: self.lower_scope(&filter.body),
            },
            Stmt::Do(call) => Statement::Do(self.lower_call(&call.call)),
        });
    }

    fn lower_for(&mut self, each: &ast::ForLoop<'a>) -> Statement {
        let list = self.lower_expression(&each.iter);
        self.scopes.push(BTreeSet::from(["loop"]));
        let target = self.lower_target(&each.target);
        let filter = each.filter_expr.as_ref().map(|filter| self.lower_expression(filter));
        let body = self.lower_statements(&each.body);
        self.scopes.pop();
        let otherwise = self.lower_scope(&each.else_body);
        Statement::For { target, list, filter, body, otherwise }
    }

    fn lower_target(&mut self, target: &ast::Expr<'a>) -> Target {
        match target {
            ast::Expr::Var(var) => {
                if let Some(scope) = self.scopes.last_mut() {
                    scope.insert(var.id);
                }
                Target::Name(Spanned { value: var.id.to_owned(), range: span_range(var.span()) })
            }
            ast::Expr::List(list) => Target::Items(list.items.iter().map(|item| self.lower_target(item)).collect()),
            ast::Expr::Tuple(tuple) => Target::Items(tuple.items.iter().map(|item| self.lower_target(item)).collect()),
            other => Target::Field(self.lower_expression(other)),
        }
    }

    /// The root that a name means here.
    fn find_root(&self, name: &str) -> Option<Root> {
        let bound = || self.scopes.iter().any(|scope| scope.contains(name));
        Root::from_word(name).filter(|root| !(root.is_free() && bound()))
    }

    fn lower_boxed(&self, expr: &ast::Expr<'a>) -> Box<Expr> {
        Box::new(self.lower_expression(expr))
    }

    fn lower_expression(&self, expr: &ast::Expr<'a>) -> Expr {
        if let Some(path) = self.lower_path(expr) {
            return path;
        }
        let own = span_range(expr.span());
        let kind = match expr {
            ast::Expr::Const(constant) => ExprKind::Const(lower_literal(&constant.value)),
            ast::Expr::Var(var) => ExprKind::Variable(var.id.to_owned()),
            ast::Expr::GetAttr(attr) => {
                // minijinja keeps no place of the name, but the span ends with it.
                let name = own.end - attr.name.len()..own.end;
                ExprKind::Attribute { of: self.lower_boxed(&attr.expr), name: box_name(attr.name, name) }
            }
            ast::Expr::GetItem(item) => {
                ExprKind::Item { of: self.lower_boxed(&item.expr), index: self.lower_boxed(&item.subscript_expr) }
            }
            ast::Expr::Slice(slice) => {
                let bound = |bound: &Option<ast::Expr<'a>>| bound.as_ref().map(|bound| self.lower_boxed(bound));
                let bounds = [bound(&slice.start), bound(&slice.stop), bound(&slice.step)];
                ExprKind::Slice { of: self.lower_boxed(&slice.expr), bounds }
            }
            ast::Expr::UnaryOp(op) => match op.op {
                UnaryOpKind::Not => ExprKind::Not(self.lower_boxed(&op.expr)),
                UnaryOpKind::Neg => match self.lower_expression(&op.expr) {
                    Expr { kind: ExprKind::Const(Const::Int(number)), .. } => {
                        ExprKind::Const(Const::Int(number.wrapping_neg()))
                    }
                    Expr { kind: ExprKind::Const(Const::Float(number)), .. } => ExprKind::Const(Const::Float(-number)),
                    operand => ExprKind::Negative(Box::new(operand)),
                },
            },
            ast::Expr::BinOp(op) => self.lower_operation(op),
            ast::Expr::Compare(chain) => ExprKind::Chain {
                first: self.lower_boxed(&chain.expr),
                rest: chain.ops.iter().map(|op| (lower_comparison(op.op), self.lower_expression(&op.expr))).collect(),
            },
            ast::Expr::IfExpr(choice) => ExprKind::Choice {
                condition: self.lower_boxed(&choice.test_expr),
                then: self.lower_boxed(&choice.true_expr),
                otherwise: choice.false_expr.as_ref().map(|otherwise| self.lower_boxed(otherwise)),
            },
            ast::Expr::Filter(filter) => ExprKind::Filter {
                of: filter.expr.as_ref().map(|of| self.lower_boxed(of)),
                name: applied_name(filter.name, &own),
                arguments: self.lower_arguments(&filter.args),
            },
            ast::Expr::Test(test) => ExprKind::Test {
                of: self.lower_boxed(&test.expr),
                name: applied_name(test.name, &own),
                arguments: self.lower_arguments(&test.args),
            },
            ast::Expr::Call(call) => return self.lower_call(call),
            ast::Expr::List(list) => {
                ExprKind::List(list.items.iter().map(|item| self.lower_expression(item)).collect())
            }
            ast::Expr::Tuple(tuple) => {
                ExprKind::List(tuple.items.iter().map(|item| self.lower_expression(item)).collect())
            }
            ast::Expr::Map(map) => ExprKind::Map(
                map.keys
                    .iter()
                    .zip(&map.values)
                    .map(|(key, value)| (self.lower_expression(key), self.lower_expression(value)))
                    .collect(),
            ),
        };
        let range = expression_range(&kind, own);
        Expr { kind, range }
    }

    fn lower_operation(&self, op: &ast::BinOp<'a>) -> ExprKind {
        let comparison = match op.op {
            BinOpKind::ScAnd => return ExprKind::And(self.lower_terms(op)),
            BinOpKind::ScOr => return ExprKind::Or(self.lower_terms(op)),
            BinOpKind::Concat => return ExprKind::Concat(self.lower_boxed(&op.left), self.lower_boxed(&op.right)),
            BinOpKind::Eq => Ok(Comparison::Eq),
            BinOpKind::Ne => Ok(Comparison::Ne),
            BinOpKind::Lt => Ok(Comparison::Lt),
            BinOpKind::Lte => Ok(Comparison::Lte),
            BinOpKind::Gt => Ok(Comparison::Gt),
            BinOpKind::Gte => Ok(Comparison::Gte),
            BinOpKind::In => Ok(Comparison::In),
            BinOpKind::Add => Err(Operator::Add),
            BinOpKind::Sub => Err(Operator::Sub),
            BinOpKind::Mul => Err(Operator::Mul),
            BinOpKind::Div => Err(Operator::Div),
            BinOpKind::FloorDiv => Err(Operator::FloorDiv),
            BinOpKind::Rem => Err(Operator::Rem),
            BinOpKind::Pow => Err(Operator::Pow),
        };
        let (left, right) = (self.lower_boxed(&op.left), self.lower_boxed(&op.right));
        match comparison {
            Ok(op) => ExprKind::Compare { left, op, right },
            Err(op) => ExprKind::Arithmetic { left, op, right },
        }
    }

    /// The terms of `a and b and c`, or of `a or b or c`, in order.
    fn lower_terms<'e>(&self, op: &'e ast::BinOp<'a>) -> Vec<Expr> {
        let operation = |term: &'e ast::Expr<'a>| match term {
            ast::Expr::BinOp(inner) if std::mem::discriminant(&inner.op) == std::mem::discriminant(&op.op) => {
                Some(&**inner)
            }
            _ => None,
        };
        let operations = || std::iter::successors(Some(op), |op| operation(&op.left));
        // Large conditions are most of the memory of a check, so each list has the room that it needs.
        let mut terms = Vec::with_capacity(operations().count() + 1);
        for op in operations() {
            terms.push(self.lower_expression(&op.right));
            if operation(&op.left).is_none() {
                terms.push(self.lower_expression(&op.left));
            }
        }
        terms.reverse();
        terms
    }

    fn lower_call(&self, call: &ast::Spanned<ast::Call<'a>>) -> Expr {
        let own = span_range(call.span());
        let place = span_range(call.expr.span());
        let of = match &call.expr {
            // What is called is a function or a method, whatever it looks like.
            ast::Expr::Var(var) => Expr { kind: ExprKind::Variable(var.id.to_owned()), range: place },
            ast::Expr::GetAttr(attr) => {
                let name = box_name(attr.name, place.end - attr.name.len()..place.end);
                Expr { kind: ExprKind::Attribute { of: self.lower_boxed(&attr.expr), name }, range: place }
            }
            other => self.lower_expression(other),
        };
        let range = of.range.start.min(own.start)..own.end;
        Expr { kind: ExprKind::Call { of: Box::new(of), arguments: self.lower_arguments(&call.args) }, range }
    }

    fn lower_arguments(&self, arguments: &[CallArg<'a>]) -> Vec<Argument> {
        let argument = |argument: &CallArg<'a>| {
            let (name, value, spread) = match argument {
                CallArg::Pos(value) => (None, value, false),
                CallArg::Kwarg(name, value) => (Some((*name).to_owned()), value, false),
                CallArg::PosSplat(value) | CallArg::KwargSplat(value) => (None, value, true),
            };
            Argument { name, value: self.lower_expression(value), spread }
        };
        arguments.iter().map(argument).collect()
    }

    /// The expression as a path, if it is one of a root.
    fn lower_path(&self, expr: &ast::Expr<'a>) -> Option<Expr> {
        let mut segments = Vec::new();
        let end = span_range(expr.span()).end;
        let mut expr = expr;
        loop {
            match expr {
                ast::Expr::Var(var) => {
                    segments.reverse();
                    let root = self.find_root(var.id)?;
                    // As for the terms: large conditions have hundreds of thousands of these.
                    segments.shrink_to_fit();
                    let range = span_range(var.span()).start..end;
                    return Some(Expr { kind: ExprKind::Path(Path { root, segments }), range });
                }
                ast::Expr::GetAttr(attr) => {
                    let end = span_range(attr.span()).end;
                    let text = attr.name.to_owned();
                    segments.push(Segment { text, index: None, range: end - attr.name.len()..end });
                    expr = &attr.expr;
                }
                ast::Expr::GetItem(item) => {
                    let ast::Expr::Const(constant) = &item.subscript_expr else { return None };
                    let (text, index) = match lower_literal(&constant.value) {
                        Const::Text(text) => (text, None),
                        Const::Int(number) => (number.to_string(), Some(number)),
                        _ => return None,
                    };
                    segments.push(Segment { text, index, range: span_range(constant.span()) });
                    expr = &item.expr;
                }
                _ => return None,
            }
        }
    }
}

/// A name with its place, as nodes of expressions hold it.
fn box_name(name: &str, range: Range<usize>) -> Box<Spanned<String>> {
    Box::new(Spanned { value: name.to_owned(), range })
}

/// The name of a filter or a test, which its span begins with.
fn applied_name(name: &str, own: &Range<usize>) -> Box<Spanned<String>> {
    box_name(name, own.start..(own.start + name.len()).min(own.end))
}

/// From the first part to the last: minijinja's spans begin with the token before, or with a filter's name.
fn expression_range(kind: &ExprKind, own: Range<usize>) -> Range<usize> {
    let between = |first: &Expr, last: &Expr| first.range.start..last.range.end;
    match kind {
        ExprKind::And(terms) | ExprKind::Or(terms) => match terms.as_slice() {
            [first, .., last] => between(first, last),
            _ => own,
        },
        ExprKind::Compare { left, right, .. }
        | ExprKind::Arithmetic { left, right, .. }
        | ExprKind::Concat(left, right) => between(left, right),
        ExprKind::Chain { first, rest } => match rest.last() {
            Some((_, last)) => between(first, last),
            None => own,
        },
        ExprKind::Choice { condition, then, otherwise } => between(then, otherwise.as_ref().unwrap_or(condition)),
        ExprKind::Filter { of: Some(of), .. }
        | ExprKind::Test { of, .. }
        | ExprKind::Attribute { of, .. }
        | ExprKind::Item { of, .. }
        | ExprKind::Slice { of, .. } => of.range.start..own.end.max(of.range.end),
        // `is not defined` begins with its operand, `not x` with its word.
        ExprKind::Not(of) => own.start.min(of.range.start)..own.end.max(of.range.end),
        _ => own,
    }
}

fn lower_comparison(op: CompareOpKind) -> Comparison {
    match op {
        CompareOpKind::Eq => Comparison::Eq,
        CompareOpKind::Ne => Comparison::Ne,
        CompareOpKind::Lt => Comparison::Lt,
        CompareOpKind::Lte => Comparison::Lte,
        CompareOpKind::Gt => Comparison::Gt,
        CompareOpKind::Gte => Comparison::Gte,
        CompareOpKind::In => Comparison::In,
        CompareOpKind::NotIn => Comparison::NotIn,
    }
}

/// A literal; a whole number beyond 64 bits is taken as one that is not.
fn lower_literal(value: &Value) -> Const {
    match value.kind() {
        ValueKind::Bool => Const::Bool(value.is_true()),
        ValueKind::Number => match value.as_i64().filter(|_| value.is_integer()) {
            Some(number) => Const::Int(number),
            None => Const::Float(f64::try_from(value.clone()).unwrap_or(f64::INFINITY)),
        },
        _ => value.as_str().map_or(Const::None, |text| Const::Text(text.to_owned())),
    }
}

/// A span of minijinja as a range of bytes.
pub(super) fn span_range(span: Span) -> Range<usize> {
    span.start_offset as usize..span.end_offset as usize
}
