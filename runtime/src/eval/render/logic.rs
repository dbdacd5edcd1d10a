//! minijinja: templates with `{{ … }}` or `{% … %}` in them, and the expressions of `when` and `until`.
//!
//! The source comes from the spec, never from an agent: what agents wrote enters as values of the context. Fuel and a
//! bound on the result keep a template from running or growing for ever.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use minijinja::machinery::{CodeGenerator, Instructions, eval, get_compiled_template, make_string_output, parse_expr};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Enumerator, Kwargs, Object, Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value, escape_formatter};
use serde::Serialize;
use serde_json::Value as Json;
use serde_json::ser::{PrettyFormatter, Serializer};
use swarmc_plan::{DirectiveKind, Expression, Origin, Reads, Segment};

use super::meter::{Meter, fenced, metered, weight};
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
    /// The templates that are compiled, by their texts.
    compiled: RefCell<HashSet<String>>,
    meter: Meter,
    kept: ParsedOutputs,
}

/// Long outputs, parsed: each item of a for-each may read the same one. Whether it is a record, and its text,
/// come first.
type ParsedOutputs = RefCell<Vec<(bool, String, Value)>>;

impl Logic {
    /// `most` is what one evaluation may make, in bytes.
    pub(super) fn new(most: u64) -> Logic {
        let mut environment = Environment::new();
        let meter = Meter::new(most);
        // A name with a typo would render as nothing.
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // Prompts are no HTML, whatever a template is called.
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_syntax(
            SyntaxConfig::builder().keep_trailing_newline(true).build().expect("the usual delimiters differ"),
        );
        let written = meter.clone();
        environment.set_formatter(move |out, state, value| match value.kind() {
            // As directives show them: `true`, `null`, JSON.
            ValueKind::Bool | ValueKind::None | ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => {
                let text = in_one_line(value)?;
                written.take(text.len() as u64)?;
                out.write_str(&text).map_err(Error::from)
            }
            _ => {
                written.take(weight(value))?;
                escape_formatter(out, state, value)
            }
        });
        meter.guard(&mut environment);
        for name in ["json", "tojson"] {
            let meter = meter.clone();
            environment.add_filter(name, move |value: &Value, indent: Option<usize>, named: Kwargs| {
                let text = as_text(value, indent, &named)?;
                meter.take(text.len() as u64)?;
                Ok::<String, Error>(text)
            });
        }
        environment.set_fuel(Some(FUEL));
        Logic { environment: RefCell::new(environment), compiled: RefCell::default(), meter, kept: RefCell::default() }
    }

    pub(super) fn text(&self, segments: &[Segment], values: &dyn Values) -> Result<String, RenderError> {
        let source = Source::of(segments);
        let failed = |error: Error| source.problem(&error);
        self.compile(&source.text).map_err(failed)?;
        let logic = segments.iter().filter_map(|segment| match segment {
            Segment::Logic(logic) => Some(logic.reads.as_ref()),
            _ => None,
        });
        let mut context = context(&Wanted::of(logic), values, &self.kept)
            .map_err(|message| RenderError { message, missing: false })?;
        let (function, asked) = directives(segments, values);
        context.insert("directive".to_owned(), function);
        let environment = self.environment.borrow();
        let text = fenced(|| {
            let template = environment.get_template(&source.text)?;
            let mut text = String::new();
            let instructions = metered(&get_compiled_template(&template).instructions);
            self.run(&environment, &instructions, context, &mut text)?;
            Ok(text)
        })
        .map_err(failed)?;
        if text.len() > LONGEST {
            return Err(RenderError { message: too_long(), missing: false });
        }
        // Only now: a directive in a branch that was not taken misses nothing.
        asked.missed().for_each(|what| values.missed(what));
        Ok(text)
    }

    /// What is wrong with the grammar of a template, where something is.
    pub(super) fn check_template(&self, segments: &[Segment]) -> Result<(), RenderError> {
        let source = Source::of(segments);
        let parsed = fenced(|| self.environment.borrow().template_from_str(&source.text).map(drop));
        parsed.map_err(|error| source.problem(&error))
    }

    /// What is wrong with the grammar of an expression, where something is.
    pub(super) fn check_expression(&self, expression: &Expression) -> Result<(), RenderError> {
        let parsed = fenced(|| self.environment.borrow().compile_expression(&expression.source).map(drop));
        parsed.map_err(|error| problem(&expression.origin, &error))
    }

    /// Sees to it that a template is there by its own text.
    fn compile(&self, source: &str) -> Result<(), Error> {
        let mut known = self.compiled.borrow_mut();
        if known.contains(source) {
            return Ok(());
        }
        let mut environment = self.environment.borrow_mut();
        if known.len() >= COMPILED {
            environment.clear_templates();
            known.clear();
        }
        fenced(|| environment.add_template_owned(source.to_owned(), source.to_owned()))?;
        known.insert(source.to_owned());
        Ok(())
    }

    /// Executes instructions, and gives the value that they leave.
    fn run<'e>(
        &self,
        environment: &'e Environment<'e>,
        instructions: &Instructions<'e>,
        context: BTreeMap<String, Value>,
        text: &mut String,
    ) -> Result<Option<Value>, Error> {
        // Each evaluation has all of it: what one made is gone when the next begins.
        self.meter.refill();
        let (root, blocks, mut out) = (Value::from(context), BTreeMap::new(), make_string_output(text));
        eval(environment, instructions, root, &blocks, &mut out, AutoEscape::None).map(|(value, _)| value)
    }

    pub(super) fn holds(&self, expression: &Expression, values: &dyn Values) -> Result<bool, RenderError> {
        let (source, reads) = (&expression.source, expression.reads.as_ref());
        self.evaluate(source, reads, &expression.origin, values, |value| Ok(value.is_true()))
    }

    /// What an expression comes to.
    pub(super) fn json(&self, expression: &Expression, values: &dyn Values) -> Result<Json, RenderError> {
        let (source, reads) = (&expression.source, expression.reads.as_ref());
        self.evaluate(source, reads, &expression.origin, values, as_json)
    }

    /// The value of a piece of logic that is one `{{…}}`; none for a statement, or where nothing is there.
    pub(super) fn value(&self, logic: &Expression, values: &dyn Values) -> Option<Result<Json, RenderError>> {
        let source = expression(&logic.source)?;
        match self.evaluate(source, logic.reads.as_ref(), &logic.origin, values, as_json) {
            // `{{ a if b }}` renders as nothing; rendering knows it from a mistake.
            Err(error) if error.missing => None,
            value => Some(value),
        }
    }

    /// What `taken` makes of the value of an expression.
    fn evaluate<T>(
        &self,
        source: &str,
        reads: Option<&Reads>,
        origin: &Origin,
        values: &dyn Values,
        taken: impl FnOnce(&Value) -> Result<T, Error>,
    ) -> Result<T, RenderError> {
        let context =
            context(&Wanted::of([reads]), values, &self.kept).map_err(|problem| RenderError::at(origin, problem))?;
        let environment = self.environment.borrow();
        let evaluated = fenced(|| {
            let mut code = CodeGenerator::new("<expression>", source);
            code.compile_expr(&parse_expr(source)?);
            let (instructions, _) = code.finish();
            let value = self.run(&environment, &metered(&instructions), context, &mut String::new())?;
            match value {
                Some(value) if !value.is_undefined() => taken(&value),
                _ => Err(Error::from(ErrorKind::UndefinedError)),
            }
        });
        evaluated.map_err(|error| problem(origin, &error))
    }
}

/// The filter `json`: a value as JSON in one line, or with so many spaces for each level.
fn as_text(value: &Value, indent: Option<usize>, named: &Kwargs) -> Result<String, Error> {
    /// The widest indentation.
    const WIDEST: usize = 16;
    let indent = indent.map_or_else(|| named.get::<Option<usize>>("indent"), |indent| Ok(Some(indent)))?;
    named.assert_all_used()?;
    let Some(indent) = indent else { return in_one_line(value) };
    let spaces = " ".repeat(indent.min(WIDEST));
    let pretty = PrettyFormatter::with_indent(spaces.as_bytes());
    written(|text| value.serialize(&mut Serializer::with_formatter(text, pretty)))
}

fn in_one_line(value: &Value) -> Result<String, Error> {
    written(|text| value.serialize(&mut Serializer::new(text)))
}

/// The JSON that `write` writes, where it is not too long.
fn written(write: impl FnOnce(&mut Bounded) -> serde_json::Result<()>) -> Result<String, Error> {
    let mut text = Bounded::default();
    match write(&mut text) {
        Err(_) if text.full => Err(Error::new(ErrorKind::BadSerialization, too_long())),
        Err(error) => Err(Error::new(ErrorKind::BadSerialization, error.to_string())),
        Ok(()) => Ok(String::from_utf8(text.bytes).expect("JSON is UTF-8")),
    }
}

fn as_json(value: &Value) -> Result<Json, Error> {
    // Measured before it is a tree, which takes more room.
    in_one_line(value)?;
    serde_json::to_value(value).map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// The source between `{{` and `}}`, where that is all of a piece of logic.
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
        (ErrorKind::UndefinedError, None) => "a value that is read here is missing".to_owned(),
        (ErrorKind::OutOfFuel, _) => "the template takes too many steps".to_owned(),
        (_, Some(detail)) => detail.to_owned(),
        (kind, None) => kind.to_string(),
    }
}

/// Which directives a template got to.
struct ReachedDirectives {
    reached: Arc<[AtomicBool]>,
    /// What each of them misses.
    missed: Vec<Option<String>>,
}

impl ReachedDirectives {
    /// What was missed where the template got.
    fn missed(&self) -> impl Iterator<Item = &str> {
        let reached = self.reached.iter().map(|reached| reached.load(Ordering::Relaxed));
        reached.zip(&self.missed).filter_map(|(reached, missed)| missed.as_deref().filter(|_| reached))
    }
}

/// `directive(N)`: the text of the Nth directive. A problem counts only where the template gets there.
fn directives(segments: &[Segment], values: &dyn Values) -> (Value, ReachedDirectives) {
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
    let asked = ReachedDirectives { reached: Arc::clone(&reached), missed };
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

/// What expressions read; everything, where one of them does not say.
struct Wanted<'r>(Option<Vec<&'r Reads>>);

impl<'r> Wanted<'r> {
    fn of(reads: impl IntoIterator<Item = Option<&'r Reads>>) -> Wanted<'r> {
        Wanted(reads.into_iter().collect())
    }

    fn has(&self, kind: DirectiveKind) -> bool {
        self.0.as_ref().is_none_or(|reads| reads.iter().any(|reads| reads.contains_key(&kind)))
    }

    /// Those of `names` that are read; an expression may write `_` for `-`.
    fn names<'a>(&self, kind: DirectiveKind, names: Vec<&'a str>) -> Vec<&'a str> {
        let Some(reads) = &self.0 else { return names };
        let written: Vec<_> = reads.iter().filter_map(|reads| reads.get(&kind)).collect();
        let read = |name: &str| written.iter().any(|names| names.contains(name));
        names.into_iter().filter(|name| read(name) || read(&name.replace('-', "_"))).collect()
    }
}

/// The values that are wanted: read up front, since minijinja asks for values that live for ever.
fn context(wanted: &Wanted<'_>, values: &dyn Values, kept: &ParsedOutputs) -> Result<BTreeMap<String, Value>, String> {
    use DirectiveKind::{Error, Exit, Index, Input, Item, Log, Output, Param, Previous, Status, Stdin};
    let mut context: BTreeMap<String, Value> = BTreeMap::new();
    let steps = |kind| if wanted.has(kind) { wanted.names(kind, values.steps()) } else { Vec::new() };
    let outputs = |kind, read: &dyn Fn(&str) -> Result<Option<String>, String>| {
        let mut object = BTreeMap::new();
        for step in steps(kind) {
            if let Some(text) = read(step)? {
                insert(&mut object, step, parsed(step, text, values, kept));
            }
        }
        Ok::<Value, String>(Value::from(object))
    };
    let facts = |kind, read: &dyn Fn(&str) -> Option<Value>| {
        let mut object = BTreeMap::new();
        for step in steps(kind) {
            if let Some(value) = read(step) {
                insert(&mut object, step, value);
            }
        }
        Value::from(object)
    };
    context.insert("output".to_owned(), outputs(Output, &|step| values.output(step))?);
    context.insert("previous".to_owned(), outputs(Previous, &|step| values.previous(step))?);
    context.insert(
        "status".to_owned(),
        facts(Status, &|step| values.status(step).map(|status| Value::from(status.as_str()))),
    );
    context.insert("exit".to_owned(), facts(Exit, &|step| values.exit(step).map(Value::from)));
    let mut errors = BTreeMap::new();
    for step in steps(Error) {
        if let Some(error) = values.error(step)? {
            insert(&mut errors, step, readable(error));
        }
    }
    context.insert("error".to_owned(), Value::from(errors));
    if wanted.has(Log) {
        let mut logs = BTreeMap::new();
        for step in steps(Log) {
            if let Some(log) = values.log(step)? {
                insert(&mut logs, step, Value::from(log));
            }
        }
        context.insert("log".to_owned(), Value::from(logs));
    }

    let mut inputs = BTreeMap::new();
    let ports = if wanted.has(Input) { values.inputs() } else { Vec::new() };
    for port in wanted.names(Input, ports.iter().map(|(port, _)| *port).collect()) {
        if let Some((_, step)) = ports.iter().find(|(name, _)| *name == port)
            && let Some(text) = values.output(step)?
        {
            insert(&mut inputs, port, parsed(step, text, values, kept));
        }
    }
    context.insert("input".to_owned(), Value::from(inputs));

    let mut params = BTreeMap::new();
    let given = if wanted.has(Param) { values.params() } else { Vec::new() };
    for name in wanted.names(Param, given) {
        if let Some((text, kind)) = values.param(name) {
            insert(&mut params, name, readable(directive::param(text, kind)));
        }
    }
    context.insert("param".to_owned(), Value::from(params));
    context.insert("iteration".to_owned(), Value::from(values.iteration()));
    if (wanted.has(Item) || wanted.has(Index))
        && let Some((item, index)) = values.item()?
    {
        context.insert("item".to_owned(), readable(item));
        context.insert("index".to_owned(), Value::from(index));
    }
    let run = BTreeMap::from([
        ("id".to_owned(), Value::from(values.run())),
        ("dir".to_owned(), Value::from(values.run_folder().to_string_lossy())),
    ]);
    context.insert("run".to_owned(), Value::from(run));
    let task = BTreeMap::from([("name".to_owned(), Value::from(values.task()))]);
    context.insert("task".to_owned(), Value::from(task));
    if wanted.has(Stdin)
        && let Some(stdin) = values.stdin()?
    {
        context.insert("stdin".to_owned(), Value::from(stdin));
    }
    Ok(context)
}

/// The value of an output, taken from those that are kept where it is one of them.
fn parsed(step: &str, text: String, values: &dyn Values, kept: &ParsedOutputs) -> Value {
    if text.len() < LONG {
        return readable(directive::output(step, text, values));
    }
    let mut kept = kept.borrow_mut();
    let is_record = values.is_record(step);
    if let Some((.., value)) = kept.iter().find(|(kind, known, _)| *kind == is_record && *known == text) {
        return value.clone();
    }
    let value = readable(directive::output(step, text.clone(), values));
    if kept.len() == KEPT {
        kept.remove(0);
    }
    kept.push((is_record, text, value.clone()));
    value
}

/// A value whose fields are reachable with `_` for `-`, too.
fn readable(value: Json) -> Value {
    fn has_dashes(value: &Json) -> bool {
        match value {
            Json::Array(items) => items.iter().any(has_dashes),
            Json::Object(fields) => fields.iter().any(|(name, value)| name.contains('-') || has_dashes(value)),
            _ => false,
        }
    }
    match value {
        // Most values have none, and need not be taken apart.
        value if !has_dashes(&value) => Value::from(Serde(value)),
        Json::Array(items) => items.into_iter().map(readable).collect(),
        Json::Object(fields) => {
            Value::from_object(Fields(fields.into_iter().map(|(name, value)| (name, readable(value))).collect()))
        }
        value => Value::from(Serde(value)),
    }
}

/// A record, some of whose fields have a `-` in their names.
#[derive(Debug)]
struct Fields(BTreeMap<String, Value>);

impl Object for Fields {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name = key.as_str()?;
        let plain = |known: &&String| known.contains('-') && known.replace('-', "_") == name;
        self.0.get(name).or_else(|| self.0.get(self.0.keys().find(plain)?)).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.keys().map(|name| Value::from(name.as_str())).collect())
    }
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
