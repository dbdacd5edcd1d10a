//! What one evaluation may make: minijinja counts instructions, and this counts the bytes of the values that they make.
//!
//! In: an environment, and the instructions of a template. Out: filters that ask before they make something large, and
//! instructions that ask before operators do. Invariant: whatever a template says and whatever values it is given, its
//! evaluation ends, needs no more than [`MOST`] for what it makes, and stops the runner in no case.

use std::fmt::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use minijinja::machinery::{Instruction, Instructions};
use minijinja::value::{Kwargs, Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};

/// What one evaluation may make, in bytes.
pub(super) const MOST: u64 = 256 * 1024 * 1024;

/// What an item of a list counts for, and a value without a length.
const ITEM: u64 = 32;

/// How many items are counted of what does not know how many it has.
const COUNTED: usize = 10_000_000;

/// The filters that run before operators. No template can name them.
const ADD: &str = "+";
const MULTIPLY: &str = "*";
const CONCATENATE: &str = "~";

/// What is left of what an evaluation may make.
#[derive(Clone)]
pub(super) struct Meter {
    left: Arc<AtomicU64>,
    most: u64,
}

impl Meter {
    pub(super) fn new(most: u64) -> Meter {
        Meter { left: Arc::new(AtomicU64::new(most)), most }
    }

    /// An evaluation begins.
    pub(super) fn refill(&self) {
        self.left.store(self.most, Ordering::Relaxed);
    }

    /// Takes so many bytes.
    pub(super) fn take(&self, bytes: u64) -> Result<(), Error> {
        let left = self.left().checked_sub(bytes).ok_or_else(|| self.too_large())?;
        self.left.store(left, Ordering::Relaxed);
        Ok(())
    }

    fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    fn too_large(&self) -> Error {
        let most = self.most / (1024 * 1024);
        Error::new(ErrorKind::InvalidOperation, format!("what is computed here needs more than {most} MiB"))
    }

    /// The text of a value, as far as there is room for it.
    fn text(&self, value: fmt::Arguments<'_>) -> Result<String, Error> {
        let mut text = Limited { text: Some(String::new()), length: 0, most: self.left() };
        text.write_fmt(value).map_err(|_| self.too_large())?;
        self.take(text.length)?;
        Ok(text.text.unwrap_or_default())
    }

    /// How long the text of a value is.
    fn length(&self, value: &Value) -> Result<u64, Error> {
        if let Some(text) = value.as_str() {
            return Ok(text.len() as u64);
        }
        let mut text = Limited { text: None, length: 0, most: self.left() };
        write!(text, "{value}").map_err(|_| self.too_large())?;
        Ok(text.length)
    }

    /// Puts filters in the place of those of minijinja.
    pub(super) fn guard(&self, environment: &mut Environment<'static>) {
        for (name, filter) in builtin() {
            let meter = self.clone();
            environment.add_filter(name, move |state: &mut State<'_, '_>, arguments: Rest<ValueOrKwargs>| {
                let arguments = arguments.into_values();
                meter.take(cost(&meter, name, &arguments)?)?;
                filter.call(state, &arguments)
            });
        }
        let meter = self.clone();
        environment.add_filter("pprint", move |value: &Value| meter.text(format_args!("{value:#?}")));
        let meter = self.clone();
        environment.add_function("debug", move |state: &State<'_, '_>, values: Rest<Value>| match &values[..] {
            [] => meter.text(format_args!("{state:#?}")),
            [value] => meter.text(format_args!("{value:#?}")),
            values => meter.text(format_args!("{values:#?}")),
        });
        environment.add_test("divisibleby", is_divisible);
        for name in [ADD, MULTIPLY, CONCATENATE] {
            let meter = self.clone();
            environment.add_filter(name, move |left: ValueOrKwargs, right: ValueOrKwargs| {
                let (left, right) = (left.into_value(), right.into_value());
                meter.take(operation(&meter, name, &left, &right)?)?;
                // They are put back where they were: the first is on top.
                Ok::<Value, Error>(Value::from(vec![right, left]))
            });
        }
    }
}

/// Does `work`; where it panics, the failure is that of the evaluation.
pub(super) fn fenced<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
        let message = format!("this has no value: {}", said.unwrap_or_else(|| "it cannot be computed".to_owned()));
        Err(Error::new(ErrorKind::InvalidOperation, message))
    })
}

/// The instructions of a template, in which operators and pieces of text ask before they make something.
pub(super) fn metered<'s>(plain: &Instructions<'s>) -> Instructions<'s> {
    let all = || (0..).map_while(|index| plain.get(index).map(|instruction| (index, instruction)));
    let mut places = vec![0];
    for (_, instruction) in all() {
        let takes = match instruction {
            Instruction::EmitRaw(_) => 2,
            Instruction::Add | Instruction::Mul | Instruction::StringConcat => 3,
            _ => 1,
        };
        places.push(places.last().copied().unwrap_or_default() + takes);
    }
    // A jump leads to what was put in front of its target, so that no operator is reached without its guard.
    let place = |old: u32| places.get(old as usize).copied().unwrap_or(old);
    let mut metered = Instructions::new(plain.name(), plain.source());
    for (index, instruction) in all() {
        let mut add = |instruction| match (plain.get_span(index), plain.get_line(index)) {
            (Some(span), _) => metered.add_with_span(instruction, span),
            (None, Some(line)) => metered.add_with_line(instruction, u16::try_from(line).unwrap_or(u16::MAX)),
            (None, None) => metered.add(instruction),
        };
        let guard = match instruction {
            Instruction::Add => Some(ADD),
            Instruction::Mul => Some(MULTIPLY),
            Instruction::StringConcat => Some(CONCATENATE),
            _ => None,
        };
        if let Some(name) = guard {
            add(Instruction::ApplyFilter(name, Some(2), u8::MAX));
            add(Instruction::UnpackList(2));
        }
        // As a value, since the formatter counts values alone: a text in a loop can be written without end.
        if let Instruction::EmitRaw(text) = instruction {
            add(Instruction::LoadConst(Value::from(*text)));
        }
        add(match instruction {
            Instruction::EmitRaw(_) => Instruction::Emit,
            Instruction::Iterate(target) => Instruction::Iterate(place(*target)),
            Instruction::Jump(target) => Instruction::Jump(place(*target)),
            Instruction::JumpIfFalse(target) => Instruction::JumpIfFalse(place(*target)),
            Instruction::JumpIfFalseOrPop(target) => Instruction::JumpIfFalseOrPop(place(*target)),
            Instruction::JumpIfTrueOrPop(target) => Instruction::JumpIfTrueOrPop(place(*target)),
            other => other.clone(),
        });
    }
    metered
}

/// What an operator makes of two values.
fn operation(meter: &Meter, name: &str, left: &Value, right: &Value) -> Result<u64, Error> {
    let times = |value: &Value, of: u64| usize::try_from(value.clone()).map_or(0, |n| of.saturating_mul(n as u64));
    Ok(match (name, left.kind(), right.kind()) {
        (CONCATENATE, ..) => meter.length(left)?.saturating_add(meter.length(right)?),
        (_, ValueKind::Number, ValueKind::Number) => 0,
        (MULTIPLY, ValueKind::Number | ValueKind::Bool, _) => times(left, weight(right)),
        (MULTIPLY, ..) => times(right, weight(left)),
        (_, ValueKind::String, _) => weight(left).saturating_add(weight(right)),
        // Lists are joined when they are read.
        _ => ITEM + weight(left).saturating_add(weight(right)) / ITEM,
    })
}

/// What a filter makes at most, and how much it looks at.
fn cost(meter: &Meter, name: &str, arguments: &[Value]) -> Result<u64, Error> {
    let Some(value) = arguments.first() else { return Ok(0) };
    let number = |index: usize, name: &str| -> u64 {
        let named = arguments.last().and_then(|last| Kwargs::try_from(last.clone()).ok());
        let named = named.and_then(|named| named.get::<Option<Value>>(name).ok().flatten());
        let found = arguments.get(index).filter(|value| value.is_number()).cloned().or(named);
        found.and_then(|value| usize::try_from(value).ok()).map_or(0, |number| number as u64)
    };
    let text = value.as_str().unwrap_or_default();
    let part = |index: usize| arguments.get(index).and_then(Value::as_str);
    let pieces = |count: usize| (text.len() as u64).saturating_add((count as u64 + 1).saturating_mul(ITEM));
    Ok(match name {
        "abs" | "attr" | "bool" | "count" | "d" | "default" | "float" | "int" | "length" | "round" => ITEM,
        // Some letters become three, as `ΐ` does.
        "upper" | "lower" | "title" | "capitalize" => meter.length(value)?.saturating_mul(3),
        "trim" | "safe" | "string" => meter.length(value)?,
        // The longest escape of one byte is `&#x27;`.
        "escape" | "e" => meter.length(value)?.saturating_mul(6),
        "indent" => {
            let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64 + 1;
            meter.length(value)?.saturating_add(lines.saturating_mul(number(1, "width").max(4)))
        }
        "replace" => {
            let from = part(1).unwrap_or_default();
            let found = text.matches(from).count() as u64;
            let to = arguments.get(2).map_or(Ok(0), |to| meter.length(to))?;
            meter.length(value)?.saturating_add(found.saturating_mul(to))
        }
        "format" => {
            let texts = arguments.iter().map(|argument| meter.length(argument));
            let texts = texts.sum::<Result<u64, Error>>()?;
            texts.saturating_add(widths(text, &arguments[1..]).saturating_mul(2))
        }
        "join" => {
            let between = part(1).map_or(ITEM, |between| between.len() as u64);
            let mut length: u64 = 0;
            for item in value.try_iter()? {
                length = length.saturating_add(meter.length(&item)?).saturating_add(between);
                // Asked for each item, as there may be items without end.
                if length > meter.left() {
                    return Err(meter.too_large());
                }
            }
            length
        }
        "batch" => weight(value).saturating_mul(2).saturating_add(match arguments.len() {
            0..=2 => 0,
            _ => number(1, "count").saturating_mul(ITEM),
        }),
        "slice" => weight(value).saturating_add(number(1, "count").saturating_mul(4 * ITEM)),
        "split" => match part(1) {
            Some(between) => pieces(text.matches(between).count()),
            None => pieces(text.split_whitespace().count()),
        },
        "lines" => pieces(text.lines().count()),
        "list" | "first" | "last" | "min" | "max" | "sort" | "unique" => match value.kind() {
            ValueKind::String => pieces(text.chars().count()),
            _ => weight(value),
        },
        "sum" => {
            let items = value.try_iter().into_iter().flatten();
            items.fold(0, |sum: u64, item| sum.saturating_add(weight(&item)))
        }
        _ => arguments.iter().fold(0, |sum: u64, argument| sum.saturating_add(weight(argument))),
    })
}

/// What a value holds itself, what is in its items left out.
pub(super) fn weight(value: &Value) -> u64 {
    if let Some(text) = value.as_str() {
        return text.len() as u64;
    }
    let Some(object) = value.as_object() else { return ITEM };
    let items = object.enumerator_len();
    // Counting them is work, too, which the fuel of the instructions does not limit.
    let items = items.or_else(|| object.try_iter().map(|items| items.take(COUNTED).count()));
    (items.unwrap_or_default() as u64 + 1).saturating_mul(ITEM)
}

/// How wide the format `text` makes what is put in it, at most: each number in it, and where it says `*`, those given.
fn widths(text: &str, given: &[Value]) -> u64 {
    let mut sum: u64 = 0;
    let mut number: u64 = 0;
    for byte in text.bytes() {
        number = match byte {
            b'0'..=b'9' => number.saturating_mul(10).saturating_add(u64::from(byte - b'0')),
            _ => 0,
        };
        sum = sum.saturating_add(number);
    }
    if text.contains('*') {
        let given = given.iter().filter_map(|value| i64::try_from(value.clone()).ok());
        sum = given.fold(sum, |sum, number| sum.saturating_add(number.unsigned_abs()));
    }
    sum
}

/// The test `divisibleby`: that of minijinja panics at zero.
fn is_divisible(value: &Value, by: &Value) -> Result<bool, Error> {
    let zero = || Error::new(ErrorKind::InvalidOperation, "nothing is divisible by 0");
    if let (Ok(value), Ok(by)) = (i128::try_from(value.clone()), i128::try_from(by.clone())) {
        return if by == 0 { Err(zero()) } else { Ok(value.checked_rem(by).is_none_or(|rest| rest == 0)) };
    }
    match (f64::try_from(value.clone()), f64::try_from(by.clone())) {
        (Ok(_), Ok(0.0)) => Err(zero()),
        (Ok(value), Ok(by)) => Ok(value % by == 0.0),
        _ => Ok(false),
    }
}

/// A text that is no longer than `most`; where it is only measured, there is none.
struct Limited {
    text: Option<String>,
    length: u64,
    most: u64,
}

impl Write for Limited {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.length += piece.len() as u64;
        if self.length > self.most {
            return Err(fmt::Error);
        }
        if let Some(text) = &mut self.text {
            text.push_str(piece);
        }
        Ok(())
    }
}

/// The filters of minijinja that are asked for as they are. `json`, `tojson`, `pprint` are ours.
fn builtin() -> Vec<(&'static str, Value)> {
    vec![
        ("abs", Value::from_function(filters::abs)),
        ("attr", Value::from_function(filters::attr)),
        ("batch", Value::from_function(filters::batch)),
        ("bool", Value::from_function(filters::bool)),
        ("capitalize", Value::from_function(filters::capitalize)),
        ("chain", Value::from_function(filters::chain)),
        ("count", Value::from_function(filters::length)),
        ("d", Value::from_function(filters::default)),
        ("default", Value::from_function(filters::default)),
        ("dictsort", Value::from_function(filters::dictsort)),
        ("e", Value::from_function(filters::escape)),
        ("escape", Value::from_function(filters::escape)),
        ("first", Value::from_function(filters::first)),
        ("float", Value::from_function(filters::float)),
        ("format", Value::from_function(filters::format)),
        ("groupby", Value::from_function(filters::groupby)),
        ("indent", Value::from_function(filters::indent)),
        ("int", Value::from_function(filters::int)),
        ("items", Value::from_function(filters::items)),
        ("join", Value::from_function(filters::join)),
        ("last", Value::from_function(filters::last)),
        ("length", Value::from_function(filters::length)),
        ("lines", Value::from_function(filters::lines)),
        ("list", Value::from_function(filters::list)),
        ("lower", Value::from_function(filters::lower)),
        ("map", Value::from_function(filters::map)),
        ("max", Value::from_function(filters::max)),
        ("min", Value::from_function(filters::min)),
        ("reject", Value::from_function(filters::reject)),
        ("rejectattr", Value::from_function(filters::rejectattr)),
        ("replace", Value::from_function(filters::replace)),
        ("reverse", Value::from_function(filters::reverse)),
        ("round", Value::from_function(filters::round)),
        ("safe", Value::from_function(filters::safe)),
        ("select", Value::from_function(filters::select)),
        ("selectattr", Value::from_function(filters::selectattr)),
        ("slice", Value::from_function(filters::slice)),
        ("sort", Value::from_function(filters::sort)),
        ("split", Value::from_function(filters::split)),
        ("string", Value::from_function(filters::string)),
        ("sum", Value::from_function(filters::sum)),
        ("title", Value::from_function(filters::title)),
        ("trim", Value::from_function(filters::trim)),
        ("unique", Value::from_function(filters::unique)),
        ("upper", Value::from_function(filters::upper)),
        ("zip", Value::from_function(filters::zip)),
    ]
}
