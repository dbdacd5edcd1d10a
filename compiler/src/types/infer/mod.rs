//! Infers types: walks expressions and texts, finds the type of each value, and reports what does not fit.
//!
//! SW203 and SW206 for fields, SW204 for what may be missing, SW205 for what has the wrong type. What is wrong once is
//! said once: a wrong value counts as any afterwards.

mod batch;
mod call;
mod choice;
mod compare;
mod expr;
mod filled;
mod filter;
mod format;
mod given;
mod index;
mod narrow;
mod presence;
mod report;
mod report_use;

use std::collections::BTreeMap;
use std::ops::Range;

use choice::Choices;
pub(crate) use filled::{Filled, find_filled};
pub(crate) use given::{Unfit, Wanted};
use presence::{Known, Presence};

use super::env::normalize_name;
use super::{Classes, Env, Kind, Lack, Type};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::mapped_text::MappedText;
use crate::source::Span;
use crate::template::{Directive, Expr, ExprKind, Part, Path, Root, Spanned, Statement, Target, Template, is_default};

/// What `autoescape` takes besides `true` and `false`.
const ESCAPES: [&str; 2] = ["html", "none"];

/// Where an expression stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// In a text.
    Text,
    /// A `when` or an `until`, which holds no statements.
    Condition,
    /// The list of a `for-each`, which holds none either.
    List,
}

/// How much of a value must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// Nothing: it has a default, or is asked for.
    Nothing,
    /// Nothing of its last part: it is bound to a name, and needed where that is read.
    Bound,
    /// It must be there, and may be `null`.
    Present,
    /// A value.
    Value,
}

impl Need {
    /// Whether it may be missing.
    fn may_lack(self) -> bool {
        matches!(self, Need::Nothing | Need::Bound)
    }
}

/// Whether names are written as in a directive, or as in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    Directive,
    Expression,
}

/// Types the expressions of one text or condition.
pub(crate) struct Checker<'c> {
    env: &'c Env<'c>,
    passage: &'c MappedText,
    usage: Use,
    presence: Presence,
    /// The names that the text binds, innermost scope last; each binding has a number of its own.
    scopes: Vec<BTreeMap<String, (Type, usize)>>,
    bindings: usize,
    /// The places that bindings stand for, as `{% set n = output.a.n %}` has it.
    aliases: BTreeMap<usize, String>,
    /// The lists that bindings count, as `{% set n = output.a | length %}` has it.
    lengths: BTreeMap<usize, String>,
    /// Whether a condition or a binding before this place asks how many items there are.
    counted: bool,
    choices: Choices,
    diagnostics: &'c mut Diagnostics,
}

impl<'c> Checker<'c> {
    pub(crate) fn new(
        env: &'c Env<'c>,
        passage: &'c MappedText,
        usage: Use,
        diagnostics: &'c mut Diagnostics,
    ) -> Checker<'c> {
        let mut presence = Presence::default();
        // The list of the `for-each` itself is read before there is an `index`.
        if usage == Use::Text {
            presence.learn(env.counted.iter().map(|list| Known::claim_defined(&format!("{list}.[index]"))).collect());
        }
        presence.learn(env.sizes.least.iter().map(|(list, least)| Known::claim_items(list, *least)).collect());
        Checker {
            env,
            passage,
            usage,
            presence,
            scopes: vec![BTreeMap::new()],
            bindings: 0,
            aliases: BTreeMap::new(),
            lengths: BTreeMap::new(),
            counted: false,
            choices: Choices::default(),
            diagnostics,
        }
    }

    /// Takes for granted what a condition proves, as the `when` of a step does for its texts.
    pub(crate) fn assume_condition(&mut self, condition: &Expr) {
        let known = self.narrow_condition(condition, true);
        self.presence.learn(known);
        self.counted |= batch::has_length(condition);
    }

    /// Types a text.
    pub(crate) fn infer_template(&mut self, template: &Template) {
        let logic = template.parts.iter().any(|part| matches!(part, Part::Logic(_)));
        if logic {
            return self.visit_statements(&template.logic, &template.parts);
        }
        for part in &template.parts {
            if let Part::Directive(directive) = part {
                self.infer_directive(directive);
            }
        }
    }

    /// Types a text that is a value and may be `null`: a directive that is all of it may find nothing.
    pub(crate) fn infer_nullable(&mut self, template: &Template) {
        match template.as_directive() {
            Some(directive) => _ = self.walk_directive(directive, Need::Nothing),
            None => self.infer_template(template),
        }
    }

    /// Types a text that is a value: a single interpolation keeps its type.
    pub(crate) fn infer_value(&mut self, template: &Template) -> Type {
        match (template.parts.as_slice(), template.logic.as_slice()) {
            ([Part::Directive(directive)], _) => {
                let kind = self.infer_directive(directive);
                match directive.filters.is_empty() && self.may_render_nothing(directive) {
                    true => kind.with_lack(Lack::NULL),
                    false => kind,
                }
            }
            ([Part::Logic(_)], [Statement::Emit(expr)]) => self.infer_operand(expr, Need::Present),
            _ => {
                self.infer_template(template);
                Type::TEXT
            }
        }
    }

    /// Whether a directive may have no value, unless the `when` of its step asked for it.
    fn may_render_nothing(&self, directive: &Directive) -> bool {
        let crate::template::Kind::Read(root) = directive.kind else { return false };
        let name = directive.name.as_ref().map(|name| name.value.as_str());
        let may_lack = match root {
            Root::Param => self.env.may_leave_out(name),
            _ => matches!(root, Root::Previous | Root::Stdin | Root::Error),
        };
        may_lack && !self.presence.is_defined(&expr::root_key(root, name))
    }

    /// Types the list of a for-each and gives the type of an item.
    pub(crate) fn infer_items(&mut self, list: &Expr) -> Type {
        let kind = self.type_of(list);
        if let Some(found) = self.find_misfit(&kind, Classes::SEQUENCE.union(Classes::NONE)) {
            self.not_a_list(list, &found);
            return Type::ANY;
        }
        self.item_of(&kind)
    }

    fn visit_statements(&mut self, statements: &[Statement], parts: &[Part]) {
        for statement in statements {
            self.visit_statement(statement, parts);
        }
    }

    fn visit_scope(&mut self, statements: &[Statement], parts: &[Part]) -> BTreeMap<String, (Type, usize)> {
        self.scopes.push(BTreeMap::new());
        self.visit_statements(statements, parts);
        self.scopes.pop().unwrap_or_default()
    }

    fn visit_statement(&mut self, statement: &Statement, parts: &[Part]) {
        self.counted |= batch::asks_length(statement);
        match statement {
            Statement::Text(_) => {}
            Statement::Emit(expr) => {
                self.infer_operand(expr, Need::Present);
            }
            Statement::Do(expr) => {
                self.type_of(expr);
            }
            Statement::Directive(part) => {
                if let Some(Part::Directive(directive)) = parts.get(*part) {
                    self.infer_directive(directive);
                }
            }
            Statement::For { target, list, filter, body, otherwise } => {
                let (item, sized) = self.infer_iteration(list);
                let mark = self.presence.mark();
                self.scopes.push(BTreeMap::new());
                self.bind_name("loop", Type::iter(Type::ANY, sized));
                self.unpack_target(target, item, list);
                self.check_batches(target, list);
                let chosen = self.enter_loop(target, list);
                // Something is in the list where the body is reached.
                let filled = self.place_key(list).map(|key| Known::claim_filled(&key));
                let current = self.claim_place(list, &count_from_zero(list));
                self.presence.learn(filled.into_iter().chain(current).collect());
                let known = self.claim_filled_items(target, list);
                self.presence.learn(known);
                let zero = count_from_zero(list);
                self.presence.learn(self.claim_equal_places(list, &zero));
                // As is each name that a map was gone through by.
                if let Some((map, name)) = find_named_map(target, list) {
                    let named = Expr { kind: ExprKind::Variable(name.value.clone()), range: name.range.clone() };
                    self.presence.learn(self.claim_key(map, &named).into_iter().collect());
                    // And each place of a list whose length was counted up to.
                    let counted = find_counted_list(list).and_then(|counted| self.claim_place(counted, &named));
                    self.presence.learn(counted.into_iter().collect());
                    let equal = find_counted_list(list).map(|counted| self.claim_equal_places(counted, &named));
                    self.presence.learn(equal.unwrap_or_default());
                }
                if let Some(filter) = filter {
                    self.check_truth(filter);
                    let known = self.narrow_condition(filter, true);
                    self.presence.learn(known);
                }
                self.visit_statements(body, parts);
                self.scopes.pop();
                self.leave_loop(chosen);
                self.presence.forget(mark);
                // Only now: the `else` is reached where the list is empty.
                self.visit_scope(otherwise, parts);
            }
            Statement::If { condition, then, otherwise } => self.visit_branch(condition, then, otherwise, parts),
            Statement::With { assignments, body } => {
                self.scopes.push(BTreeMap::new());
                for (target, value) in assignments {
                    self.assign_target(target, value);
                }
                self.visit_statements(body, parts);
                self.scopes.pop();
            }
            Statement::Set { target, value } => self.assign_target(target, value),
            Statement::Capture { target, filter, body } => {
                self.visit_scope(body, parts);
                let kind = filter.as_ref().map_or(Type::STRING, |filter| self.type_of(filter));
                self.bind_target(target, kind);
            }
            Statement::Filter { filter, body } => {
                self.type_of(filter);
                self.visit_scope(body, parts);
            }
            Statement::AutoEscape { enabled, body } => {
                self.type_of(enabled);
                if enabled.as_text().is_some_and(|how| !ESCAPES.contains(&how)) {
                    self.unknown_escape(enabled);
                }
                self.visit_statements(body, parts);
            }
        }
    }

    fn visit_branch(&mut self, condition: &Expr, then: &[Statement], otherwise: &[Statement], parts: &[Part]) {
        let asked = self.choices.enter_condition(condition);
        self.check_truth(condition);
        let side = |checker: &mut Checker<'_>, statements: &[Statement], truth: bool| {
            let mark = checker.presence.mark();
            let known = checker.narrow_condition(condition, truth);
            checker.presence.learn(known);
            let set = checker.visit_scope(statements, parts);
            checker.presence.forget(mark);
            set
        };
        let mut set = side(self, then, true);
        for (name, (kind, _)) in side(self, otherwise, false) {
            let kind = match set.remove(&name) {
                Some((other, _)) => kind.or(other),
                None => Type::ANY,
            };
            self.bind_name(&name, kind);
        }
        // What only one way sets is what it was before on the other.
        for name in set.into_keys() {
            self.bind_name(&name, Type::ANY);
        }
        self.choices.leave_condition(asked);
    }

    /// What is bound may be missing: it is needed where it is read.
    fn assign_target(&mut self, target: &Target, value: &Expr) {
        let kind = match is_namespace(value) {
            // More may be set in it.
            true => {
                self.type_of(value);
                Type::map(Type::ANY)
            }
            false => self.infer_operand(value, Need::Bound),
        };
        // Ahead of the binding: in `{% set n = n %}` the value is the older `n`.
        let key = self.place_key(value);
        let counted = self.counted_key(value);
        self.unpack_target(target, kind, value);
        if let (Target::Name(_), Some(counted)) = (target, counted) {
            self.lengths.insert(self.bindings, counted);
        }
        if let (Target::Name(_), Some(key)) = (target, key) {
            // `unpack_target` has just bound the name under this number.
            self.aliases.insert(self.bindings, key);
        } else if let (Target::Name(name), true) = (target, self.is_filled(Some(value))) {
            let key = format!("{}#{}", name.value, self.bindings);
            self.presence.learn(vec![Known::claim_filled(&key)]);
        }
        self.record_list(target, value);
    }

    /// Binds the names of a target, and reports a value that cannot be unpacked into them.
    fn unpack_target(&mut self, target: &Target, kind: Type, value: &Expr) {
        let Target::Items(targets) = target else { return self.bind_target(target, kind) };
        let unpackable = Classes::SEQUENCE.union(Classes::OBJECT);
        let wrong = self.find_misfit(&kind, unpackable);
        let kinds = self.env.whole.types.possible_kinds(&kind.kind);
        let count = |kind: &Kind| match kind {
            Kind::Tuple(tuple) => Some(tuple.items.len()),
            Kind::Record(record) => {
                let sure = record.fields.iter().filter(|field| field.kind.lack == Lack::NEVER).count();
                Some(targets.len().clamp(sure, record.fields.len()))
            }
            _ => None,
        };
        let other = kinds.iter().filter_map(count).find(|count| *count != targets.len());
        match (&wrong, other) {
            (Some(found), _) => self.not_unpackable(value, found, targets.len()),
            (None, Some(count)) => self.unpacked_wrongly(value, count, targets.len()),
            (None, None) if kind.lack != Lack::NEVER => self.missing_to_unpack(value),
            (None, None) => {}
        }
        for (index, target) in targets.iter().enumerate() {
            let part = |kind: &Kind| match kind {
                Kind::Tuple(tuple) => tuple.items.get(index).cloned().unwrap_or(Type::ANY),
                Kind::Map(_) | Kind::Record(_) => Type::STRING,
                kind => kind.item_type().unwrap_or(Type::ANY),
            };
            let kind = kinds.iter().map(part).reduce(Type::or).unwrap_or(Type::ANY);
            match target {
                Target::Items(_) => self.unpack_target(target, kind, value),
                target => self.bind_target(target, kind),
            }
        }
    }

    fn bind_target(&mut self, target: &Target, kind: Type) {
        match target {
            Target::Name(name) => self.bind_name(&name.value, kind),
            Target::Items(targets) => targets.iter().for_each(|target| self.bind_target(target, Type::ANY)),
            Target::Field(_) => {}
        }
    }

    fn bind_name(&mut self, name: &str, kind: Type) {
        self.bindings += 1;
        let number = self.bindings;
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), (kind, number));
        }
    }

    fn find_binding(&self, name: &str) -> Option<&(Type, usize)> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// Types a directive.
    fn infer_directive(&mut self, directive: &Directive) -> Type {
        let default = directive.filters.iter().any(|filter| matches!(filter.value, swarmc_plan::Filter::Default(_)));
        // With a default it is given wherever something is missing on the way.
        self.walk_directive(directive, if default { Need::Nothing } else { Need::Value })
    }

    fn walk_directive(&mut self, directive: &Directive, need: Need) -> Type {
        let crate::template::Kind::Read(root) = directive.kind else { return Type::TEXT };
        let name = directive.name.as_ref().map(|name| name.value.as_str());
        if directive.fields.is_empty() && directive.filters.is_empty() {
            // Whether there is one is for another check; an item may be `null` all the same.
            return self.env.root_type(root, name).only_null();
        }
        let word = directive.range.start + 2..directive.range.start + 2 + root.as_str().len();
        let place = directive.name.as_ref().map_or(word, |name| name.range.clone());
        let mut fields = directive.fields.as_slice();
        let qualified = self.env.qualified_name(root, name, fields.first().map(|field| field.value.as_str()));
        if qualified.is_some() {
            fields = &fields[1..];
        }
        let mut walk = expr::Walk::from_root(self.env, root, qualified.as_deref().or(name), place);
        walk.start = directive.range.start + 2;
        for field in fields {
            self.require_present(&mut walk, need);
            walk.kind.lack = Lack::NEVER;
            self.walk_field(&mut walk, &field.value, None, &field.range);
        }
        self.require_present(&mut walk, need);
        match directive.filters.as_slice() {
            [] => walk.kind.with_lack(Lack::NEVER),
            _ => Type::TEXT,
        }
    }

    /// The key of an expression that names a place.
    fn place_key(&self, expr: &Expr) -> Option<String> {
        match &expr.kind {
            ExprKind::Path(path) => Some(path_key(path)),
            ExprKind::Variable(name) => self.find_binding(name).map(|(_, number)| match self.aliases.get(number) {
                Some(key) => key.clone(),
                // Another binding of the same name is another place.
                None => format!("{name}#{number}"),
            }),
            ExprKind::Attribute { of, name } => Some(self.place_key(of)? + "." + &normalize_name(&name.value)),
            ExprKind::Item { of, index } => self.index_key(Some(&self.place_key(of)?), index),
            _ => None,
        }
    }

    /// The key of a field or an item of a place.
    fn index_key(&self, of: Option<&str>, index: &Expr) -> Option<String> {
        let of = of?;
        Some(match index.as_text() {
            Some(name) => format!("{of}.{}", normalize_name(name)),
            None => format!("{of}.[{}]", self.place_key(index)?),
        })
    }

    /// What is known of a name in a map, or of an item that it was gone through by.
    fn claim_key(&self, map: &Expr, key: &Expr) -> Option<Known> {
        let types = self.env.whole.types;
        let is_map = |kind: &Kind| matches!(kind, Kind::Map(_) | Kind::Record(_));
        let map = find_map(map);
        let kinds = types.possible_kinds(&self.peek_type(map).kind);
        let place = self.place_key(map).filter(|_| kinds.iter().all(is_map))?;
        Some(Known::claim_defined(&self.index_key(Some(&place), key)?))
    }

    /// What is known of a place up to which a list was counted.
    fn claim_place(&self, list: &Expr, place: &Expr) -> Option<Known> {
        let kinds = self.env.whole.types.possible_kinds(&self.peek_type(list).kind);
        let key = self.place_key(list).filter(|_| kinds.iter().all(|kind| kind.item_type().is_some()))?;
        Some(Known::claim_defined(&self.index_key(Some(&key), place)?))
    }

    fn span(&self, range: &Range<usize>) -> Span {
        self.passage.span(range.clone())
    }

    /// What is written there, cut to what a message can hold.
    fn clip_source(&self, expr: &Expr) -> String {
        let text = self.passage.text();
        crate::template::clip_word(&text[balance_brackets(text, expr.range.clone())])
    }

    fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }
}

/// The key of a path.
pub(crate) fn path_key(path: &Path) -> String {
    let mut key = expr::root_key(path.root, path.name());
    for field in path.fields() {
        key.push('.');
        key.push_str(&normalize_name(&field.text));
    }
    key
}

/// The map that a loop goes through, and what it calls the names in it.
fn find_named_map<'t>(target: &'t Target, list: &'t Expr) -> Option<(&'t Expr, &'t Spanned<String>)> {
    match (target, &find_map(list).kind) {
        (Target::Name(name), _) => Some((list, name)),
        (Target::Items(targets), ExprKind::Filter { of: Some(of), name: pairs, .. })
            if matches!(pairs.value.as_str(), "items" | "dictsort") =>
        {
            match targets.first()? {
                Target::Name(name) => Some((of, name)),
                Target::Items(_) | Target::Field(_) => None,
            }
        }
        _ => None,
    }
}

/// The list whose places an expression counts: `range(LIST | length)`.
fn find_counted_list(list: &Expr) -> Option<&Expr> {
    let ExprKind::Call { of, arguments } = &list.kind else { return None };
    let last = match arguments.as_slice() {
        [last] => last,
        [first, last] if call::parse_whole(&first.value).is_some_and(|first| first >= 0) => last,
        _ => return None,
    };
    match &of.kind {
        ExprKind::Variable(range) if range == "range" => last.value.as_length(),
        _ => None,
    }
}

/// `loop.index0`, in a loop through `list`.
fn count_from_zero(list: &Expr) -> Expr {
    let range = list.range.clone();
    let of = Box::new(Expr { kind: ExprKind::Variable("loop".to_owned()), range: range.clone() });
    let name = Box::new(Spanned { value: "index0".to_owned(), range: range.clone() });
    Expr { kind: ExprKind::Attribute { of, name }, range }
}

/// The map of whose names an expression gives some.
fn find_map(list: &Expr) -> &Expr {
    match &list.kind {
        ExprKind::Slice { of, .. } => find_map(of),
        // Nothing is found in the default, so the map is there.
        ExprKind::Filter { of: Some(of), name, arguments }
            if is_default(&name.value)
                && matches!(&arguments.first().map(|argument| &argument.value.kind), Some(ExprKind::Map(entries)) if entries.is_empty()) =>
        {
            find_map(of)
        }
        ExprKind::Filter { of: Some(of), name, .. }
            if matches!(name.value.as_str(), "list" | "sort" | "unique" | "reverse" | "select" | "reject") =>
        {
            find_map(of)
        }
        _ => list,
    }
}

fn is_namespace(value: &Expr) -> bool {
    let ExprKind::Call { of, .. } = &value.kind else { return false };
    matches!(&of.kind, ExprKind::Variable(name) if name == "namespace")
}

/// A range of a text with the brackets around it that its own ones need: minijinja leaves those out that open it.
fn balance_brackets(text: &str, range: Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let (mut opened, mut closed, mut quote) = (0_usize, 0_usize, None);
    let mut inside = bytes[range.clone()].iter();
    while let Some(&byte) = inside.next() {
        match (quote, byte) {
            (Some(_), b'\\') => _ = inside.next(),
            (Some(open), byte) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'(' | b'[' | b'{') => opened += 1,
            (None, b')' | b']' | b'}') if opened > 0 => opened -= 1,
            (None, b')' | b']' | b'}') => closed += 1,
            (None, _) => {}
        }
    }
    let blank = |byte: &u8| byte.is_ascii_whitespace();
    let Range { mut start, mut end } = range;
    for _ in 0..closed {
        match bytes[..start].iter().rposition(|byte| !blank(byte)) {
            Some(at) if matches!(bytes[at], b'(' | b'[' | b'{') => start = at,
            _ => break,
        }
    }
    for _ in 0..opened {
        match bytes[end..].iter().position(|byte| !blank(byte)) {
            Some(at) if matches!(bytes[end + at], b')' | b']' | b'}') => end += at + 1,
            _ => break,
        }
    }
    start..end
}
