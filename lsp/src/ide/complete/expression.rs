//! Inside `{{ … }}`, `{% … %}`, `when`, `until` and `for-each`: names, fields, filters, tests and what a value may equal.

use swarmc_compiler::index::{Index, ShapeId, ShapeKind};
use swarmc_compiler::interpolation::{self, Term};
use swarmc_compiler::schema::{Kind, SPEC};

use super::super::hole::Logic;
use super::scope::Scope;
use super::steps::list_candidates;
use super::{Ask, Completion, Item, ItemKind, directive};

/// How many tokens of one expression are looked at.
const MOST: usize = 4000;

/// How far back the statements of a text are looked at, in bytes, and how long one of them may be.
const LOOK_BACK: usize = 64 << 10;
const LONGEST: usize = 1000;

/// How many names that a text declares itself are known.
const MOST_LOCALS: usize = 64;

/// A token of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'t> {
    Word(&'t str),
    Number,
    /// A string; whether it has its end.
    Text(&'t str, bool),
    Sign(&'t str),
}

/// A token, and where it starts.
type Placed<'t> = (usize, Token<'t>);

/// `root.name.field[0]`.
#[derive(Debug, Default)]
struct Path<'t> {
    names: Vec<&'t str>,
    /// Behind which of the names, by position, an index takes an item; one entry for each.
    items: Vec<usize>,
}

pub(super) fn complete_expression(ask: &Ask<'_>, scopes: &[Scope], logic: &Logic<'_>) -> Option<Completion> {
    let tokens = lex_tokens(logic.before);
    let end = logic.before.len();
    let rest = &ask.text()[ask.offset..];
    let is_word = |sign: char| sign.is_alphanumeric() || sign == '_';
    let after = ask.offset + rest.len() - rest.trim_start_matches(is_word).len();
    let place = |from: usize| logic.start + from..after;
    let names = Names { ask, scopes, logic };
    let (last, before) = match tokens.split_last() {
        Some((&(start, Token::Text(text, false)), before)) => {
            let values = before.split_last().map_or(Vec::new(), |(_, _)| names.list_equal_values(before));
            let quote = logic.before[start..].chars().next();
            // Most editors write the closing quote with the opening one.
            let closing = quote.filter(|quote| !ask.text()[after..].starts_with(*quote));
            let close = |item: Item| match closing {
                Some(quote) => Item { text: format!("{}{quote}", item.text), ..item },
                None => item,
            };
            let items = values.into_iter().filter(|item| item.kind == ItemKind::Value).map(close).collect();
            return Some(Completion { range: place(end - text.len()), items, incomplete: false });
        }
        Some((&(start, Token::Word(word)), before)) if start + word.len() == end => (Some((start, word)), before),
        _ => (None, tokens.as_slice()),
    };
    let range = place(last.map_or(end, |(start, _)| start));
    // The signs that open something else in template texts.
    let opens = match ask.trigger {
        Some('<' | ':' | '/' | '"') => false,
        Some('{' | '%') => tokens.is_empty(),
        Some('=') => tokens.last().is_some_and(|(_, token)| matches!(token, Token::Sign("==" | "!="))),
        _ => true,
    };
    if last.is_none() && !opens {
        return None;
    }
    let items = match before.split_last().map(|(last, _)| last.1) {
        None if logic.statement => list_statements(ask, logic),
        None => names.list_roots(),
        Some(Token::Sign(".")) => names.list_fields(&before[..before.len() - 1]),
        Some(Token::Sign("|")) => list_terms(interpolation::expression_filters().collect(), "filter"),
        Some(Token::Word("is")) => {
            [list_terms(interpolation::expression_tests().collect(), "test"), list_keywords(&["not"])].concat()
        }
        Some(Token::Word("not")) if before.len() > 1 && before[before.len() - 2].1 == Token::Word("is") => {
            list_terms(interpolation::expression_tests().collect(), "test")
        }
        Some(Token::Sign("==" | "!=")) => {
            let quoted = |item: Item| match item.kind {
                ItemKind::Value => Item { text: format!("'{}'", item.text), ..item },
                _ => item,
            };
            let values = names.list_equal_values(before).into_iter().map(quoted);
            values.chain(names.list_roots()).collect()
        }
        // What these declare or close is a new name, or nothing.
        Some(Token::Word("for" | "set" | "with" | "else")) if logic.statement && before.len() == 1 => Vec::new(),
        Some(Token::Word(_)) if logic.statement && before.len() == 1 => names.list_roots(),
        Some(Token::Word("in" | "and" | "or" | "not" | "if" | "else" | "elif")) => names.list_roots(),
        Some(Token::Word(_))
            if logic.statement
                && before.first().is_some_and(|first| first.1 == Token::Word("for"))
                && before.len() == 2 =>
        {
            list_keywords(&["in"])
        }
        Some(Token::Word(_) | Token::Number | Token::Text(..) | Token::Sign(")" | "]"))
            if last.is_some() || ask.trigger.is_none() =>
        {
            list_keywords(&["and", "or", "is", "in", "not", "if", "else"])
        }
        Some(Token::Sign(_)) => names.list_roots(),
        Some(_) => Vec::new(),
    };
    Some(Completion { range, items, incomplete: false })
}

fn lex_tokens(text: &str) -> Vec<Placed<'_>> {
    let mut tokens: Vec<Placed<'_>> = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let run = |part: fn(char) -> bool| rest.len() - rest.trim_start_matches(part).len();
        let (token, length) = match first {
            sign if sign.is_whitespace() => {
                at += sign.len_utf8();
                continue;
            }
            // A string of the spec around the expression escapes the quotes in it.
            '\\' if rest[1..].starts_with('"') => text_of(rest, 2, "\\\""),
            '"' => text_of(rest, 1, "\""),
            '\'' => text_of(rest, 1, "'"),
            sign if sign.is_ascii_digit() => (Token::Number, run(|sign| sign.is_alphanumeric() || sign == '_')),
            sign if sign.is_alphabetic() || sign == '_' => {
                let length = run(|sign| sign.is_alphanumeric() || sign == '_');
                (Token::Word(&rest[..length]), length)
            }
            _ => {
                let pair = rest.get(..2).filter(|pair| matches!(*pair, "==" | "!=" | "<=" | ">=" | "//" | "**"));
                let length = pair.map_or(first.len_utf8(), str::len);
                (Token::Sign(&rest[..length]), length)
            }
        };
        tokens.push((at, token));
        at += length;
        if tokens.len() == MOST {
            break;
        }
    }
    tokens
}

/// A string, its quotes, and whether it ends.
fn text_of<'t>(rest: &'t str, opening: usize, quote: &str) -> (Token<'t>, usize) {
    let inner = &rest[opening..];
    match inner.find(quote) {
        Some(end) => (Token::Text(&inner[..end], true), opening + end + quote.len()),
        None => (Token::Text(inner, false), rest.len()),
    }
}

/// The path that ends at the end of some tokens, and where it begins among them.
fn path_before<'t>(tokens: &[Placed<'t>]) -> Option<(Path<'t>, usize)> {
    let mut names = Vec::new();
    let mut items = Vec::new();
    let mut at = tokens.len();
    loop {
        // What is in brackets says which item.
        while at > 0 && tokens[at - 1].1 == Token::Sign("]") {
            let mut depth = 0_usize;
            // The search begins at a `]`, so the depth is above 0 until its `[` is found.
            let opening = tokens[..at].iter().rposition(|(_, token)| {
                match token {
                    Token::Sign("]") => depth += 1,
                    Token::Sign("[") => depth -= 1,
                    _ => {}
                }
                depth == 0
            })?;
            items.push(names.len());
            at = opening;
        }
        let Token::Word(word) = tokens.get(at.checked_sub(1)?)?.1 else { return None };
        names.push(word);
        at -= 1;
        if at == 0 || tokens[at - 1].1 != Token::Sign(".") {
            break;
        }
        at -= 1;
    }
    names.reverse();
    // Names were counted from the end of the path: they stand the other way round now.
    let items = items.into_iter().map(|from_end| names.len() - 1 - from_end).collect();
    Some((Path { names, items }, at))
}

/// A name that a text declares itself.
struct Local<'t> {
    name: &'t str,
    /// What it is of, and whether an item of that.
    source: Option<(Path<'t>, bool)>,
    /// Whether it is the `loop` of a `{% for %}`.
    of_loop: bool,
}

/// What names mean where an expression stands.
struct Names<'a, 's> {
    ask: &'a Ask<'a>,
    scopes: &'s [Scope],
    logic: &'a Logic<'a>,
}

impl Names<'_, '_> {
    /// The words that an expression can begin with.
    fn list_roots(&self) -> Vec<Item> {
        let mut items: Vec<Item> =
            self.list_locals().into_iter().map(|local| Item::new(local.name, ItemKind::Variable)).collect();
        // The nearest declaration is the likeliest.
        items.reverse();
        let terms: Vec<interpolation::Term> = interpolation::directive_terms().collect();
        for root in interpolation::root_words() {
            let usable = self.scopes.iter().any(|scope| directive::is_usable(scope, root));
            if !usable || items.iter().any(|item| item.label == root) {
                continue;
            }
            let term = terms.iter().find(|term| term.word == root);
            let named = term.is_some_and(|term| term.usage.contains(':'));
            let item = Item::new(root, ItemKind::Word);
            let item = term.map_or(item.clone(), |term| item.doc(term.doc).detail(format_root(root, &term.usage)));
            items.push(if named { item.text(format!("{root}.")).suggest_next() } else { item });
        }
        items
    }

    /// What follows a `.`.
    fn list_fields(&self, tokens: &[Placed<'_>]) -> Vec<Item> {
        let Some((path, _)) = path_before(tokens) else { return Vec::new() };
        let underscored =
            |item: Item| Item { label: item.label.replace('-', "_"), text: item.text.replace('-', "_"), ..item };
        // A name that the text declares hides the root of that name; that of a loop is the `loop` that it declares.
        if let ([root], []) = (path.names.as_slice(), path.items.as_slice())
            && self.list_locals().iter().rfind(|local| local.name == *root).is_none_or(|local| local.of_loop)
        {
            let items: Vec<Item> = match *root {
                "output" | "previous" | "status" | "exit" | "error" => list_candidates(self.scopes, root)
                    .iter()
                    .map(|candidate| {
                        let item = candidate.item(root);
                        if candidate.earlier && *root == "output" { self.as_previous(item, tokens) } else { item }
                    })
                    .collect(),
                "param" => self.scopes.iter().flat_map(directive::list_params).collect(),
                "input" => self.scopes.iter().flat_map(directive::list_ports).collect(),
                "run" => list_keywords(&["id", "dir"]),
                "task" => list_keywords(&["name"]),
                "loop" => list_keywords(&["index", "index0", "first", "last", "length"]),
                _ => self
                    .resolve_shapes(&path)
                    .into_iter()
                    .flat_map(|(index, shape)| directive::of_shape(index, shape))
                    .collect(),
            };
            return dedup_items(items.into_iter().map(underscored).collect());
        }
        dedup_items(
            self.resolve_shapes(&path)
                .into_iter()
                .flat_map(|(index, shape)| directive::of_shape(index, shape))
                .collect(),
        )
    }

    /// A step that runs later: its value of the round before is read.
    fn as_previous(&self, mut item: Item, tokens: &[Placed<'_>]) -> Item {
        if let Some((start, Token::Word(word))) = tokens.last() {
            let start = self.logic.start + start;
            item.edits.push(super::Edit { range: start..start + word.len(), text: "previous".to_owned() });
        }
        item
    }

    /// What the value of a path is to each who reads.
    fn resolve_shapes(&self, path: &Path<'_>) -> Vec<(&Index, ShapeId)> {
        self.shapes_among(path, &self.list_locals())
    }

    /// The same where only some of the names of the text are declared yet; each leads to fewer, which bounds the recursion.
    fn shapes_among(&self, path: &Path<'_>, locals: &[Local<'_>]) -> Vec<(&Index, ShapeId)> {
        let Some((root, rest)) = path.names.split_first() else { return Vec::new() };
        if let Some(local) = locals.iter().rposition(|local| local.name == *root) {
            let Some((source, each)) = &locals[local].source else { return Vec::new() };
            let of = self.shapes_among(source, &locals[..local]).into_iter();
            let of = of.filter_map(|(index, shape)| Some((index, if *each { item_of(index, shape)? } else { shape })));
            return follow_fields(of.collect(), rest, &path.items, 1);
        }
        let named = *root != "item";
        let (name, fields) = match (named, rest.split_first()) {
            (true, Some((name, fields))) => (*name, fields),
            (true, None) => return Vec::new(),
            (false, _) => ("", rest),
        };
        follow_fields(directive::resolve_shapes(self.scopes, root, name), fields, &path.items, 1 + usize::from(named))
    }

    /// What a value before `==`, or before a list after `in`, may equal.
    fn list_equal_values(&self, tokens: &[Placed<'_>]) -> Vec<Item> {
        let operator =
            tokens.iter().rposition(|(_, token)| matches!(token, Token::Sign("==" | "!=") | Token::Word("in")));
        let Some(operator) = operator else { return Vec::new() };
        let between = &tokens[operator + 1..];
        if between.iter().any(|(_, token)| !matches!(token, Token::Sign("[" | "(" | ",") | Token::Text(..))) {
            return Vec::new();
        }
        let mut until = operator;
        if until > 0 && tokens[until - 1].1 == Token::Word("not") {
            until -= 1;
        }
        let Some((path, _)) = path_before(&tokens[..until]) else { return Vec::new() };
        if path.names.first() == Some(&"status") {
            return step_ends();
        }
        let mut items = Vec::new();
        for (index, shape) in self.resolve_shapes(&path) {
            match &index.shape(shape).kind {
                ShapeKind::Words(words) => items.extend(
                    words.iter().map(|word| Item::new(word, ItemKind::Value).detail(index.shape(shape).text.clone())),
                ),
                ShapeKind::Bool => items.extend(list_keywords(&["true", "false"])),
                _ => {}
            }
        }
        dedup_items(items)
    }

    /// The names that loops and assignments before the cursor declare. The text of a spec's own expression has none.
    fn list_locals(&self) -> Vec<Local<'_>> {
        let mut found: Vec<Local<'_>> = Vec::new();
        let mut depths: Vec<usize> = Vec::new();
        for inside in statements_before(self.ask, self.logic) {
            let mut words = inside.split_whitespace();
            match words.next() {
                Some("for") => {
                    depths.push(found.len());
                    if let (Some(name), Some("in")) = (words.next(), words.next()) {
                        let list = inside.split_once(" in ").map_or("", |(_, list)| list);
                        found.push(Local { name, source: parse_source(list).map(|path| (path, true)), of_loop: false });
                        found.push(Local { name: "loop", source: None, of_loop: true });
                    }
                }
                // The names of a loop end with it.
                Some("endfor") => found.truncate(depths.pop().unwrap_or(0)),
                Some("set") => {
                    if let Some((name, value)) = inside.trim_start_matches("set").split_once('=') {
                        found.push(Local {
                            name: name.trim(),
                            source: parse_source(value).map(|path| (path, false)),
                            of_loop: false,
                        });
                    }
                }
                _ => {}
            }
        }
        found.split_off(found.len().saturating_sub(MOST_LOCALS))
    }
}

/// The path that a value is; none where it is more than that, but for what a filter or a condition makes of a list.
fn parse_source(value: &str) -> Option<Path<'_>> {
    let tokens = lex_tokens(value);
    let end = tokens.iter().position(|(_, token)| matches!(token, Token::Sign("|") | Token::Word("if")));
    let (path, from) = path_before(&tokens[..end.unwrap_or(tokens.len())])?;
    (from == 0).then_some(path)
}

/// The fields of values, through the items of lists that an index takes; `first` is the position of the first field.
fn follow_fields<'s>(
    mut shapes: Vec<(&'s Index, ShapeId)>,
    fields: &[&str],
    items: &[usize],
    first: usize,
) -> Vec<(&'s Index, ShapeId)> {
    let taken = |position: usize| items.iter().filter(|item| **item == position).count();
    let each = |shapes: Vec<(&'s Index, ShapeId)>, count: usize| {
        (0..count).fold(shapes, |shapes, _| {
            shapes.into_iter().filter_map(|(index, shape)| Some((index, item_of(index, shape)?))).collect::<Vec<_>>()
        })
    };
    shapes = each(shapes, taken(first - 1));
    for (position, field) in fields.iter().enumerate() {
        shapes.retain_mut(|(index, shape)| match directive::resolve_fields(index, *shape, &[field]) {
            Some(inner) => {
                *shape = inner;
                true
            }
            None => false,
        });
        shapes = each(shapes, taken(first + position));
    }
    shapes
}

/// What the items of a list are.
fn item_of(index: &Index, shape: ShapeId) -> Option<ShapeId> {
    match index.shape(shape).kind {
        ShapeKind::List(item) | ShapeKind::Map(item) => Some(item),
        _ => None,
    }
}

/// How a root is written in an expression.
fn format_root(root: &str, directive: &str) -> String {
    let name = directive.trim_matches(['<', '>']).split_once(':').map(|(_, name)| name);
    name.map_or(root.to_owned(), |name| format!("{root}.{name}"))
}

/// The ways a step ends.
fn step_ends() -> Vec<Item> {
    let step = ["test", "expect", "step"].into_iter().try_fold(&SPEC, |node, name| node.find_child(name));
    let kind = step.and_then(|step| step.arguments.get(1)).map(|argument| argument.kind);
    match kind {
        Some(Kind::Choice(words)) => {
            words.iter().map(|word| Item::new(word.word, ItemKind::Value).doc(word.doc)).collect()
        }
        _ => Vec::new(),
    }
}

/// What stands in the `{% … %}` of the text before a piece of logic, as far as that is near.
fn statements_before<'a>(ask: &'a Ask<'_>, logic: &Logic<'_>) -> impl Iterator<Item = &'a str> {
    let whole = ask.text();
    let from = whole.floor_char_boundary(logic.start.saturating_sub(LOOK_BACK).max(logic.text));
    let text = &whole[from..logic.start];
    text.match_indices("{%").filter_map(move |(at, _)| {
        let rest = &text[at + 2..text.floor_char_boundary((at + 2 + LONGEST).min(text.len()))];
        Some(rest.split_once("%}")?.0.trim_matches(|sign: char| sign == '-' || sign.is_whitespace()))
    })
}

fn list_statements(ask: &Ask<'_>, logic: &Logic<'_>) -> Vec<Item> {
    let mut open: Vec<&str> = Vec::new();
    for inside in statements_before(ask, logic) {
        let word = inside.split_whitespace().next().unwrap_or_default();
        match word.strip_prefix("end") {
            Some(_) => {
                open.pop();
            }
            None if matches!(word, "for" | "if" | "with" | "filter") => open.push(word),
            None => {}
        }
    }
    let mut items = Vec::new();
    if let Some(innermost) = open.last() {
        if matches!(*innermost, "if" | "for") {
            items.extend(list_keywords(if *innermost == "if" { &["else", "elif"] } else { &["else"] }));
        }
        items.insert(0, Item::new(format!("end{innermost}"), ItemKind::Word).detail(format!("ends `{innermost}`")));
    }
    let rest = &ask.text()[ask.offset..];
    let line = rest.split('\n').next().unwrap_or_default();
    let closed = line.find("%}").is_some_and(|end| !line[..end].contains("{%"));
    let statement = |word: &'static str| {
        let item = Item::new(word, ItemKind::Word).detail("statement");
        let item = match interpolation::describe_statement(word) {
            Some((_, doc)) => item.doc(doc),
            None => item,
        };
        match word {
            // A snippet would close the tag once more.
            _ if closed => item,
            "if" => item.snippet("if $1 %}$0{% endif %}"),
            "for" => item.snippet("for ${1:item} in $2 %}$0{% endfor %}"),
            "set" => item.snippet("set ${1:name} = $2 %}$0"),
            _ => item,
        }
    };
    items.extend(interpolation::statement_words().map(statement));
    items
}

fn list_keywords(words: &[&str]) -> Vec<Item> {
    words.iter().map(|word| Item::new(*word, ItemKind::Word)).collect()
}

/// Filters or tests, those that most texts need first.
fn list_terms(mut list: Vec<Term>, what: &str) -> Vec<Item> {
    const COMMON: &[&str] = &[
        "default",
        "length",
        "join",
        "json",
        "first",
        "last",
        "lower",
        "upper",
        "trim",
        "selectattr",
        "rejectattr",
        "map",
        "defined",
        "undefined",
        "none",
        "in",
        "startingwith",
        "endingwith",
    ];
    list.sort_by_key(|term| COMMON.iter().position(|common| *common == term.word).unwrap_or(COMMON.len()));
    let item = |term: Term| {
        let detail = if term.usage == term.word { what.to_owned() } else { format!("{what} {}", term.usage) };
        Item::new(term.word, ItemKind::Filter).detail(detail).doc(term.doc)
    };
    list.into_iter().map(item).collect()
}

fn dedup_items(mut items: Vec<Item>) -> Vec<Item> {
    let mut seen = std::collections::BTreeSet::new();
    items.retain(|item| seen.insert(item.label.clone()));
    items
}
