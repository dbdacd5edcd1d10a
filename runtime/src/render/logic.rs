//! minijinja: templates with `{{ … }}` or `{% … %}` in them, and the expressions of `when` and `until`.
//!
//! The source comes from the spec, never from an agent: what agents wrote enters as values of the context. Fuel and a
//! bound on the result keep a template from running or growing for ever.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use minijinja::escape_formatter;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value};
use serde::Serialize;
use serde_json::Value as Json;
use serde_json::ser::{PrettyFormatter, Serializer};
use swarmc_plan::{Expression, Origin, Segment};

use super::{LONGEST, RenderError, Values, directive, too_long};

/// Instructions that one template or expression may execute: some hundred milliseconds.
const FUEL: u64 = 10_000_000;

/// The templates that are kept compiled; a plan with more of them has them compiled again.
const COMPILED: usize = 1000;

/// The long outputs that are kept parsed, and from how many bytes on they are.
const KEPT: usize = 4;
const LONG: usize = 4096;

pub(super) struct Logic {
    environment: RefCell<Environment<'static>>,
    /// What each compiled template reads.
    read: RefCell<HashMap<String, Rc<HashSet<String>>>>,
    kept: Kept,
}

/// Long outputs, parsed: each item of a for-each may read the same one. Whether it is a record, and its text,
/// come first.
type Kept = RefCell<Vec<(bool, String, Value)>>;

impl Logic {
    pub(super) fn new() -> Logic {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_syntax(
            SyntaxConfig::builder().keep_trailing_newline(true).build().expect("the usual delimiters differ"),
        );
        environment.set_formatter(|out, state, value| match value.kind() {
            // As directives show them: `true`, `null`, JSON.
            ValueKind::Bool | ValueKind::None | ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => {
                let text = serde_json::to_string(value)
                    .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
                out.write_str(&text).map_err(Error::from)
            }
            _ => escape_formatter(out, state, value),
        });
        environment.add_filter("json", as_text);
        environment.add_filter("tojson", as_text);
        environment.set_fuel(Some(FUEL));
        Logic { environment: RefCell::new(environment), read: RefCell::default(), kept: RefCell::default() }
    }

    pub(super) fn text(&self, segments: &[Segment], values: &dyn Values) -> Result<String, RenderError> {
        let source = Source::of(segments);
        let failed = |error: Error| source.problem(&error);
        let read = self.compiled(&source.text).map_err(failed)?;
        let mut context =
            context(&read, values, &self.kept).map_err(|message| RenderError { message, missing: false })?;
        let (function, asked) = directives(segments, values);
        context.insert("directive".to_owned(), function);
        let environment = self.environment.borrow();
        let template = environment.get_template(&source.text).map_err(failed)?;
        let mut text = Bounded::default();
        let rendered = template.render_captured_to(Value::from(context), &mut text).map(drop);
        match rendered {
            Err(_) if text.full => return Err(RenderError { message: too_long(), missing: false }),
            Err(error) => return Err(source.problem(&error)),
            Ok(()) => {}
        }
        asked.missed().for_each(|what| values.missed(what));
        Ok(String::from_utf8(text.bytes).expect("minijinja writes UTF-8"))
    }

    /// What is wrong with the grammar of a template, where something is.
    pub(super) fn check_template(&self, segments: &[Segment]) -> Result<(), RenderError> {
        let source = Source::of(segments);
        let parsed = self.environment.borrow().template_from_str(&source.text).map(drop);
        parsed.map_err(|error| source.problem(&error))
    }

    /// What is wrong with the grammar of an expression, where something is.
    pub(super) fn check_expression(&self, expression: &Expression) -> Result<(), RenderError> {
        let parsed = self.environment.borrow().compile_expression(&expression.source).map(drop);
        parsed.map_err(|error| problem(&expression.origin, &error))
    }

    /// Sees to it that a template is there by its own text, and says what it reads.
    fn compiled(&self, source: &str) -> Result<Rc<HashSet<String>>, Error> {
        let mut known = self.read.borrow_mut();
        if let Some(read) = known.get(source) {
            return Ok(Rc::clone(read));
        }
        let mut environment = self.environment.borrow_mut();
        if known.len() >= COMPILED {
            environment.clear_templates();
            known.clear();
        }
        environment.add_template_owned(source.to_owned(), source.to_owned())?;
        let read = Rc::new(environment.get_template(source)?.undeclared_variables(true));
        known.insert(source.to_owned(), Rc::clone(&read));
        Ok(read)
    }

    pub(super) fn holds(&self, expression: &Expression, values: &dyn Values) -> Result<bool, RenderError> {
        Ok(self.evaluate(&expression.source, &expression.origin, values)?.is_true())
    }

    /// What an expression comes to.
    pub(super) fn json(&self, expression: &Expression, values: &dyn Values) -> Result<Json, RenderError> {
        let value = self.evaluate(&expression.source, &expression.origin, values)?;
        as_json(&value, &expression.origin)
    }

    /// The value of a piece of logic that is one `{{…}}`; none for a statement, or where nothing is there.
    pub(super) fn value(&self, logic: &Expression, values: &dyn Values) -> Option<Result<Json, RenderError>> {
        match self.evaluate(expression(&logic.source)?, &logic.origin, values) {
            // `{{ a if b }}` renders as nothing; rendering knows it from a mistake.
            Err(error) if error.missing => None,
            Err(error) => Some(Err(error)),
            Ok(value) => Some(as_json(&value, &logic.origin)),
        }
    }

    fn evaluate(&self, source: &str, origin: &Origin, values: &dyn Values) -> Result<Value, RenderError> {
        let failed = |error: Error| problem(origin, &error);
        let environment = self.environment.borrow();
        let compiled = environment.compile_expression(source).map_err(failed)?;
        let context = context(&compiled.undeclared_variables(true), values, &self.kept)
            .map_err(|problem| RenderError::at(origin, problem))?;
        let value = compiled.eval(Value::from(context)).map_err(failed)?;
        match value.is_undefined() {
            true => Err(problem(origin, &Error::from(ErrorKind::UndefinedError))),
            false => Ok(value),
        }
    }
}

/// The filter `json`: a value as JSON in one line, or with so many spaces for each level.
fn as_text(value: &Value, indent: Option<usize>, named: Kwargs) -> Result<String, Error> {
    /// Deeper than anybody reads.
    const WIDEST: usize = 16;
    let indent = indent.map_or_else(|| named.get::<Option<usize>>("indent"), |indent| Ok(Some(indent)))?;
    named.assert_all_used()?;
    let refused = |error: serde_json::Error| Error::new(ErrorKind::BadSerialization, error.to_string());
    let Some(indent) = indent else { return serde_json::to_string(value).map_err(refused) };
    let spaces = " ".repeat(indent.min(WIDEST));
    let mut text = Vec::new();
    let pretty = PrettyFormatter::with_indent(spaces.as_bytes());
    value.serialize(&mut Serializer::with_formatter(&mut text, pretty)).map_err(refused)?;
    Ok(String::from_utf8(text).expect("JSON is UTF-8"))
}

fn as_json(value: &Value, origin: &Origin) -> Result<Json, RenderError> {
    let value = serde_json::to_value(value).map_err(|error| RenderError::at(origin, error))?;
    match value.to_string().len() > LONGEST {
        true => Err(RenderError::at(origin, too_long())),
        false => Ok(value),
    }
}

/// What stands between `{{` and `}}`, where that is all of a piece of logic.
fn expression(source: &str) -> Option<&str> {
    let inner = source.strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
    Some(inner.strip_suffix(['-', '+']).unwrap_or(inner))
}

/// The template that segments make together, and where its pieces come from.
struct Source<'a> {
    text: String,
    /// The first line of each piece of logic, from 1, with its place in the spec.
    places: Vec<(usize, &'a Origin)>,
}

impl<'a> Source<'a> {
    fn of(segments: &'a [Segment]) -> Source<'a> {
        let mut source = Source { text: String::new(), places: Vec::new() };
        let mut line = 1;
        let mut directives = 0;
        for segment in segments {
            let start = source.text.len();
            match segment {
                Segment::Text(text) => source.text.push_str(text),
                Segment::Directive(directive) => {
                    source.places.push((line, &directive.origin));
                    // A brace of the text must not join those of the call.
                    if source.text.ends_with('{') {
                        source.text.pop();
                        source.text.push_str("{{ '{' }}");
                    }
                    source.text.push_str(&format!("{{{{ directive({directives}) }}}}"));
                    directives += 1;
                }
                Segment::Logic(logic) => {
                    source.places.push((line, &logic.origin));
                    source.text.push_str(&logic.source);
                }
            }
            line += memchr::memchr_iter(b'\n', &source.text.as_bytes()[start..]).count();
        }
        source
    }

    /// `error` with the place of the piece that it happened in: the last that begins on its line or before.
    fn problem(&self, error: &Error) -> RenderError {
        let line = error.line().unwrap_or(1);
        let place = self.places.iter().take_while(|(start, _)| *start <= line).last().or(self.places.first());
        match place {
            Some((_, origin)) => problem(origin, error),
            None => RenderError { message: words(error), missing: false },
        }
    }
}

fn problem(origin: &Origin, error: &Error) -> RenderError {
    RenderError { missing: error.kind() == ErrorKind::UndefinedError, ..RenderError::at(origin, words(error)) }
}

fn words(error: &Error) -> String {
    match (error.kind(), error.detail()) {
        (ErrorKind::UndefinedError, None) => "a value that is read here is not there".to_owned(),
        (ErrorKind::OutOfFuel, _) => "the template takes too many steps".to_owned(),
        (_, Some(detail)) => detail.to_owned(),
        (kind, None) => kind.to_string(),
    }
}

/// Which directives a template got to.
struct Asked {
    reached: Arc<[AtomicBool]>,
    /// What each of them misses.
    missed: Vec<Option<String>>,
}

impl Asked {
    /// What was missed where the template got.
    fn missed(&self) -> impl Iterator<Item = &str> {
        let reached = self.reached.iter().map(|reached| reached.load(Ordering::Relaxed));
        reached.zip(&self.missed).filter_map(|(reached, missed)| missed.as_deref().filter(|_| reached))
    }
}

/// `directive(N)`: the text of the Nth directive. A problem counts only where the template gets there.
fn directives(segments: &[Segment], values: &dyn Values) -> (Value, Asked) {
    let mut texts: Vec<Result<String, String>> = Vec::new();
    let mut missed = Vec::new();
    for segment in segments {
        let Segment::Directive(directive) = segment else { continue };
        match directive::told(directive, values) {
            Ok((text, what)) => {
                texts.push(Ok(text));
                missed.push(what);
            }
            Err(error) => {
                texts.push(Err(error.message));
                missed.push(None);
            }
        }
    }
    let reached: Arc<[AtomicBool]> = texts.iter().map(|_| AtomicBool::new(false)).collect();
    let asked = Asked { reached: Arc::clone(&reached), missed };
    let function = Value::from_function(move |number: usize| {
        if let Some(reached) = reached.get(number) {
            reached.store(true, Ordering::Relaxed);
        }
        match texts.get(number) {
            Some(Ok(text)) => Ok(text.clone()),
            Some(Err(message)) => Err(Error::new(ErrorKind::InvalidOperation, message.clone())),
            None => Err(Error::new(ErrorKind::InvalidOperation, "there is no such directive")),
        }
    });
    (function, asked)
}

/// What `read` names (`output.plan.steps`, `param`): read up front, since minijinja asks for values that live for ever.
fn context(read: &HashSet<String>, values: &dyn Values, kept: &Kept) -> Result<BTreeMap<String, Value>, String> {
    // Sorted, so that of several problems it is always the same that is told.
    let read: BTreeSet<&str> = read.iter().map(String::as_str).collect();
    let mut context: BTreeMap<String, Value> = BTreeMap::new();
    let steps = |wanted: &str| -> Vec<&str> {
        if reads(&read, wanted) { wanted_names(&read, wanted, values.steps()) } else { Vec::new() }
    };
    let outputs = |kind: &str, read: &dyn Fn(&str) -> Result<Option<String>, String>| {
        let mut object = BTreeMap::new();
        for step in steps(kind) {
            if let Some(text) = read(step)? {
                insert(&mut object, step, parsed(step, text, values, kept));
            }
        }
        Ok::<Value, String>(Value::from(object))
    };
    let facts = |kind: &str, read: &dyn Fn(&str) -> Option<Value>| {
        let mut object = BTreeMap::new();
        for step in steps(kind) {
            if let Some(value) = read(step) {
                insert(&mut object, step, value);
            }
        }
        Value::from(object)
    };
    context.insert("output".to_owned(), outputs("output", &|step| values.output(step))?);
    context.insert("previous".to_owned(), outputs("previous", &|step| values.previous(step))?);
    context.insert(
        "status".to_owned(),
        facts("status", &|step| values.status(step).map(|status| Value::from(status.word()))),
    );
    context.insert("exit".to_owned(), facts("exit", &|step| values.exit(step).map(Value::from)));
    let mut errors = BTreeMap::new();
    for step in steps("error") {
        if let Some(error) = values.error(step)? {
            insert(&mut errors, step, Value::from(Serde(error)));
        }
    }
    context.insert("error".to_owned(), Value::from(errors));

    let mut inputs = BTreeMap::new();
    let ports = if reads(&read, "input") { values.inputs() } else { Vec::new() };
    for port in wanted_names(&read, "input", ports.iter().map(|(port, _)| *port).collect()) {
        if let Some((_, step)) = ports.iter().find(|(name, _)| *name == port)
            && let Some(text) = values.output(step)?
        {
            insert(&mut inputs, port, parsed(step, text, values, kept));
        }
    }
    context.insert("input".to_owned(), Value::from(inputs));

    let mut params = BTreeMap::new();
    let given = if reads(&read, "param") { values.params() } else { Vec::new() };
    for name in wanted_names(&read, "param", given) {
        if let Some((text, kind)) = values.param(name) {
            insert(&mut params, name, Value::from(Serde(directive::param(text, kind))));
        }
    }
    context.insert("param".to_owned(), Value::from(params));
    context.insert("iteration".to_owned(), Value::from(values.iteration()));
    if (reads(&read, "item") || reads(&read, "index"))
        && let Some((item, index)) = values.item()?
    {
        context.insert("item".to_owned(), Value::from(Serde(item)));
        context.insert("index".to_owned(), Value::from(index));
    }
    let run = BTreeMap::from([
        ("id".to_owned(), Value::from(values.run())),
        ("dir".to_owned(), Value::from(values.run_folder().to_string_lossy())),
    ]);
    context.insert("run".to_owned(), Value::from(run));
    let task = BTreeMap::from([("name".to_owned(), Value::from(values.task()))]);
    context.insert("task".to_owned(), Value::from(task));
    if read.contains("stdin")
        && let Some(stdin) = values.stdin()?
    {
        context.insert("stdin".to_owned(), Value::from(stdin));
    }
    Ok(context)
}

/// The value of an output, taken from those that are kept where it is one of them.
fn parsed(step: &str, text: String, values: &dyn Values, kept: &Kept) -> Value {
    if text.len() < LONG {
        return Value::from(Serde(directive::output(step, text, values)));
    }
    let mut kept = kept.borrow_mut();
    let is_record = values.is_record(step);
    if let Some((.., value)) = kept.iter().find(|(kind, known, _)| *kind == is_record && *known == text) {
        return value.clone();
    }
    let value = Value::from(Serde(directive::output(step, text.clone(), values)));
    if kept.len() == KEPT {
        kept.remove(0);
    }
    kept.push((is_record, text, value.clone()));
    value
}

/// Whether `read` says the object, or something in it.
fn reads(read: &BTreeSet<&str>, object: &str) -> bool {
    read.iter().any(|path| path.split('.').next() == Some(object))
}

/// Of `names` those that `read` says as `object.name`, with `_` for `-`; all of them where it says the object alone.
fn wanted_names<'a>(read: &BTreeSet<&str>, object: &str, names: Vec<&'a str>) -> Vec<&'a str> {
    if read.contains(object) {
        return names;
    }
    let wanted: BTreeSet<&str> = read
        .iter()
        .filter_map(|path| path.strip_prefix(object)?.strip_prefix('.'))
        .map(|path| path.split_once('.').map_or(path, |(name, _)| name))
        .collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    names.into_iter().filter(|name| wanted.contains(name.replace('-', "_").as_str())).collect()
}

/// Names are reachable with `_` for `-`, and as they are in `output["topic-finder"]`.
fn insert(object: &mut BTreeMap<String, Value>, name: &str, value: Value) {
    if name.contains('-') {
        object.insert(name.replace('-', "_"), value.clone());
    }
    object.insert(name.to_owned(), value);
}

/// Takes so many bytes and no more.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    full: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > LONGEST {
            self.full = true;
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
