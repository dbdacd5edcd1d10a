//! Checks whether a value of a spec, or another type, fits a declared type.
//!
//! In: the declared type, and the value or type. Out: a message, or nothing where it fits or the compiler cannot know.

use std::collections::HashSet;

use serde_json::{Number, Value};

use super::{Field, Kind, Lack, Limits, Type, Types};
use crate::pattern;
use crate::suggest;
use crate::template::clip_word;

/// How deep two types are compared; what differs deeper is left to the run.
const DEEPEST: usize = 16;

/// The values and the bytes of an example in a help at most.
const EXAMPLE_VALUES: u32 = 20;
const EXAMPLE_BYTES: usize = 120;

impl Types {
    /// What is wrong with a text that is written for a value of this type, which messages call `place`: `it is not a whole
    /// number`.
    pub(crate) fn describe_misfit(&self, kind: &Type, limits: &Limits, written: &str, place: &str) -> Option<String> {
        let resolved = self.underlying_kind(&kind.kind);
        let value = match resolved {
            Kind::Any | Kind::None => return None,
            Kind::Text | Kind::String | Kind::File | Kind::Dir => return describe_text_misfit(limits, written, place),
            Kind::Enum(words) if words.words.iter().any(|word| word == written.trim()) => return None,
            _ => serde_json::from_str(written.trim()),
        };
        match (value, kind.lack) {
            (Ok(Value::Null), lack) if lack != Lack::NEVER => None,
            (Ok(value), _) => self.describe_value_misfit(kind, limits, &value, place),
            (Err(_), _) => Some(format!("{place} is not {}", describe_kind(resolved))),
        }
    }

    /// What is wrong with the default of an output, which is taken as it is written: a whole number in it has no fraction.
    pub(crate) fn describe_default_misfit(&self, kind: &Type, written: &str) -> Option<String> {
        self.describe_misfit(kind, &Limits::default(), written, "it").or_else(|| {
            let value = serde_json::from_str(written.trim()).ok()?;
            let (place, number) = self.find_fraction(kind, &value, "it")?;
            Some(format!("{place} is `{number}`, which is not written as a whole number"))
        })
    }

    /// The whole number in a value that is written with a fraction, and its place. Goes as deep as the value.
    fn find_fraction<'v>(&self, kind: &Type, value: &'v Value, place: &str) -> Option<(String, &'v Number)> {
        let part =
            |kind: &Type, value: &'v Value, name: &str| self.find_fraction(kind, value, &describe_part(place, name));
        match (self.underlying_kind(&kind.kind), value) {
            (Kind::Int, Value::Number(number)) if number.is_f64() => Some((place.to_owned(), number)),
            (Kind::List(item), Value::Array(items)) => {
                items.iter().enumerate().find_map(|(index, value)| part(item, value, &format!("[{index}]")))
            }
            (Kind::Map(item), Value::Object(entries)) => {
                entries.iter().find_map(|(name, value)| part(item, value, name))
            }
            (Kind::Record(record), Value::Object(entries)) => {
                record.fields.iter().find_map(|field| part(&field.kind, entries.get(&field.name)?, &field.name))
            }
            _ => None,
        }
    }

    /// JSON of a type, for a help; none for a type that says too little, and where limits would refuse it.
    pub(crate) fn write_example(&self, kind: &Type) -> Option<String> {
        let mut room = EXAMPLE_VALUES;
        let example = self.build_example(kind, &mut room)?.to_string();
        (example.len() <= EXAMPLE_BYTES && self.describe_misfit(kind, &Limits::default(), &example, "it").is_none())
            .then_some(example)
    }

    /// `room` is how many more values there may be: types can contain each other, and themselves.
    fn build_example(&self, kind: &Type, room: &mut u32) -> Option<Value> {
        *room = room.checked_sub(1)?;
        Some(match self.underlying_kind(&kind.kind) {
            Kind::Text | Kind::String | Kind::File | Kind::Dir => "…".into(),
            Kind::Int => 1.into(),
            Kind::Float => 0.5.into(),
            Kind::Bool => true.into(),
            Kind::Enum(words) => words.words.first()?.as_str().into(),
            Kind::List(item) => vec![self.build_example(item, room)?].into(),
            Kind::Map(item) => Value::Object([("…".to_owned(), self.build_example(item, room)?)].into_iter().collect()),
            Kind::Record(record) => {
                let needed = record.fields.iter().filter(|field| !field.kind.lack.has(Lack::ABSENT));
                let fields = needed.map(|field| Some((field.name.clone(), self.build_example(&field.kind, room)?)));
                Value::Object(fields.collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }

    /// What is wrong with `value`, which messages call `place`. Goes as deep as the value, which JSON bounds.
    pub(super) fn describe_value_misfit(
        &self,
        kind: &Type,
        limits: &Limits,
        value: &Value,
        place: &str,
    ) -> Option<String> {
        if kind.lack != Lack::NEVER && value.is_null() {
            return None;
        }
        let resolved = self.underlying_kind(&kind.kind);
        let inside = |name: &str| describe_part(place, name);
        match (resolved, value) {
            (Kind::Any, _) | (Kind::None, Value::Null) | (Kind::Bool, Value::Bool(_)) => None,
            (Kind::Text | Kind::String | Kind::File | Kind::Dir, Value::String(text)) => {
                describe_text_misfit(limits, text, place)
            }
            (Kind::Enum(words), Value::String(word)) if words.words.contains(word) => None,
            (Kind::Int, Value::Number(number))
                if number.is_i64() || number.is_u64() || place != "it" && is_whole(number) =>
            {
                describe_limit_misfit(limits, number, &format!("{place} is {number}"))
            }
            (Kind::Float, Value::Number(number)) => {
                describe_limit_misfit(limits, number, &format!("{place} is {number}"))
            }
            (Kind::List(item), Value::Array(items)) => {
                describe_limit_misfit(limits, &Number::from(items.len()), &format!("{place} has {} items", items.len()))
                    .or_else(|| {
                        let none = Limits::default();
                        let wrong = |(index, value)| {
                            self.describe_value_misfit(item, &none, value, &inside(&format!("[{index}]")))
                        };
                        items.iter().enumerate().find_map(wrong)
                    })
            }
            (Kind::Map(item), Value::Object(entries)) => {
                let count = entries.len();
                describe_limit_misfit(limits, &Number::from(count), &format!("{place} has {count} entries")).or_else(
                    || {
                        let none = Limits::default();
                        entries
                            .iter()
                            .find_map(|(key, value)| self.describe_value_misfit(item, &none, value, &inside(key)))
                    },
                )
            }
            (Kind::Record(record), Value::Object(entries)) => {
                let unknown = entries.keys().find(|key| record.fields.iter().all(|field| field.name != **key));
                if let Some(unknown) = unknown {
                    return Some(format!("it has a field {}, which the type does not have", inside(unknown)));
                }
                record.fields.iter().find_map(|field| match entries.get(&field.name) {
                    Some(value) => self.describe_value_misfit(&field.kind, &field.limits, value, &inside(&field.name)),
                    None if field.kind.lack == Lack::NEVER => Some(format!("{} is missing", inside(&field.name))),
                    None => None,
                })
            }
            _ => Some(format!("{place} is not {}", describe_kind(resolved))),
        }
    }

    /// Whether a value of the type `given` can stand where `wanted` is declared, as far as is known. Text without a type
    /// can hold anything, and is looked at when it is there.
    pub(crate) fn is_assignable(&self, wanted: &Type, given: &Type) -> bool {
        self.is_part_assignable(wanted, given, DEEPEST, &mut Compared::new())
    }

    fn is_part_assignable(&self, wanted: &Type, given: &Type, depth: usize, compared: &mut Compared) -> bool {
        if depth == 0 || is_known_pair(wanted, given, compared) {
            return true;
        }
        let (wanted, given) = (self.underlying_kind(&wanted.kind), self.underlying_kind(&given.kind));
        match (wanted, given) {
            (Kind::Any | Kind::None, _) | (_, Kind::Any | Kind::None | Kind::Text) => true,
            (_, Kind::Union(given)) => {
                let wanted = Type::new(wanted.clone());
                let mut is = |kind: &Kind| self.is_part_assignable(&wanted, &Type::new(kind.clone()), depth, compared);
                given.kinds.iter().all(&mut is)
            }
            (Kind::Union(wanted), _) => {
                let given = Type::new(given.clone());
                let mut is = |kind: &Kind| self.is_part_assignable(&Type::new(kind.clone()), &given, depth, compared);
                wanted.kinds.iter().any(&mut is)
            }
            (Kind::List(wanted), Kind::Iter { item, .. }) => self.is_part_assignable(wanted, item, depth - 1, compared),
            (Kind::List(wanted), Kind::Tuple(given)) => {
                given.items.iter().all(|item| self.is_part_assignable(wanted, item, depth - 1, compared))
            }
            (Kind::Enum(wanted), Kind::Enum(given)) => given.words.iter().all(|word| wanted.words.contains(word)),
            (wanted, given) if wanted.is_text() && given.is_text() => true,
            // A text in a list or a record counts as what it says.
            (_, given) if depth < DEEPEST && given.is_text() => true,
            // A number in a record is a whole one where it has no fraction.
            (Kind::Float, Kind::Int) => true,
            (Kind::Int, Kind::Float) => depth < DEEPEST,
            (Kind::List(wanted), Kind::List(given)) | (Kind::Map(wanted), Kind::Map(given)) => {
                self.is_part_assignable(wanted, given, depth - 1, compared)
            }
            (Kind::Record(wanted), Kind::Record(given)) => {
                let find = |name: &str| given.fields.iter().find(|field| field.name == name);
                // A record has no other fields than its own.
                let known = |field: &Field| wanted.fields.iter().any(|wanted| wanted.name == field.name);
                given.fields.iter().all(known)
                    && wanted.fields.iter().all(|field: &Field| match find(&field.name) {
                        Some(given) => self.is_part_assignable(&field.kind, &given.kind, depth - 1, compared),
                        None => field.kind.lack != Lack::NEVER,
                    })
            }
            // The keys of a map are known at run time.
            (Kind::Record(_), Kind::Map(_)) | (Kind::Map(_), Kind::Record(_)) => true,
            (wanted, given) => std::mem::discriminant(wanted) == std::mem::discriminant(given),
        }
    }

    /// What part of a value of the type `given` does not fit where `wanted` needs it: it may be missing, or, where a spec
    /// `declares` the type, it is declared as any text or number. None where all fit.
    pub(crate) fn describe_part_misfit(&self, wanted: &Type, given: &Type, declares: bool) -> Option<String> {
        self.find_part_misfit(wanted, given, "it", declares, DEEPEST, &mut Compared::new())
    }

    fn find_part_misfit(
        &self,
        wanted: &Type,
        given: &Type,
        place: &str,
        declares: bool,
        depth: usize,
        compared: &mut Compared,
    ) -> Option<String> {
        if depth == 0 || is_known_pair(wanted, given, compared) {
            return None;
        }
        let mut part =
            |wanted: &Type, given: &Type, place: &str| match wanted.lack == Lack::NEVER && given.lack != Lack::NEVER {
                true if given.lack.has(Lack::ABSENT) => Some(format!("{place} may be missing")),
                true => Some(format!("{place} may be `null`")),
                false if declares && self.says_too_little(wanted, given) => Some(format!("{place} is `{given}`")),
                false => self.find_part_misfit(wanted, given, place, declares, depth - 1, compared),
            };
        match (self.underlying_kind(&wanted.kind), self.underlying_kind(&given.kind)) {
            (Kind::List(wanted), given) => part(wanted, &given.item_type()?, &describe_part(place, "[…]")),
            (Kind::Map(wanted), Kind::Map(given)) => part(wanted, given, &describe_part(place, "…")),
            (Kind::Record(wanted), Kind::Record(given)) => wanted.fields.iter().find_map(|field| {
                let given = given.fields.iter().find(|given| given.name == field.name)?;
                part(&field.kind, &given.kind, &describe_part(place, &field.name))
            }),
            _ => None,
        }
    }

    /// How many characters the JSON of a value of this type has at least.
    pub(super) fn least_json(&self, kind: &Type) -> u64 {
        self.least_part(kind, LOOKED_INTO)
    }

    fn least_part(&self, kind: &Type, depth: usize) -> u64 {
        match self.underlying_kind(&kind.kind) {
            // A part may be `null`, a digit, or left out.
            _ if depth == 0 || kind.lack != Lack::NEVER => 1,
            Kind::Record(record) => {
                let needed = record.fields.iter().filter(|field| field.kind.lack == Lack::NEVER);
                let each = |field: &Field| field.name.len() as u64 + 4 + self.least_part(&field.kind, depth - 1);
                // Each has quotes, a colon and, but for the last one, a comma.
                (2 + needed.map(each).sum::<u64>()).saturating_sub(1).max(2)
            }
            Kind::List(_) | Kind::Map(_) => 2,
            _ => 1,
        }
    }

    /// Whether the JSON of a value of this type may hold JSON of the kind `wanted` besides itself: in a list, a map or a
    /// record within it, or in a text, where quotes have a `\` before them.
    pub(super) fn may_hold(&self, kind: &Type, wanted: &Kind) -> bool {
        let without_quotes =
            !matches!(wanted, Kind::Record(record) if record.fields.iter().any(|field| field.kind.lack == Lack::NEVER));
        let may_be = |part: &Type| match self.underlying_kind(&part.kind) {
            Kind::Int | Kind::Float | Kind::Bool | Kind::Enum(_) => false,
            kind => !kind.is_text() || without_quotes,
        };
        match self.underlying_kind(&kind.kind) {
            Kind::List(item) => may_be(item),
            // A name is a text.
            Kind::Map(item) => without_quotes || may_be(item),
            Kind::Record(record) => record.fields.iter().any(|field| may_be(&field.kind)),
            _ => true,
        }
    }

    /// Whether `given` is declared as any text or number, and `wanted` takes some alone.
    fn says_too_little(&self, wanted: &Type, given: &Type) -> bool {
        match (self.underlying_kind(&wanted.kind), self.underlying_kind(&given.kind)) {
            (Kind::Int, Kind::Float) => true,
            (Kind::Int | Kind::Float | Kind::Bool | Kind::List(_) | Kind::Map(_) | Kind::Record(_), given) => {
                given.is_text() && *given != Kind::Text
            }
            (Kind::Enum(_), Kind::String | Kind::File | Kind::Dir) => true,
            _ => false,
        }
    }
}

/// How deep the length of a value is counted.
const LOOKED_INTO: usize = 4;

/// Declared types, by their numbers, that were compared, or are being compared: types may contain themselves.
type Compared = HashSet<(usize, usize)>;

/// Whether these are two declared types that were compared before; from now on they were.
fn is_known_pair(wanted: &Type, given: &Type, compared: &mut Compared) -> bool {
    match (&wanted.kind, &given.kind) {
        (Kind::Named(wanted, _), Kind::Named(given, _)) => wanted == given || !compared.insert((*wanted, *given)),
        _ => false,
    }
}

/// Whether a number has no fraction.
pub(super) fn is_whole(number: &Number) -> bool {
    number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// What a part of `place` is called in messages.
pub(super) fn describe_part(place: &str, name: &str) -> String {
    match place {
        "it" => format!("`{name}`"),
        place if name.starts_with('[') => format!("`{}{name}`", place.trim_matches('`')),
        place => format!("`{}.{name}`", place.trim_matches('`')),
    }
}

/// What is wrong with a text where these limits hold.
fn describe_text_misfit(limits: &Limits, text: &str, place: &str) -> Option<String> {
    let characters = text.chars().count();
    describe_limit_misfit(limits, &Number::from(characters), &format!("{place} has {characters} characters")).or_else(
        || {
            let pattern = limits.pattern.as_deref().filter(|pattern| !pattern::is_match(pattern, text))?;
            Some(format!("{place} does not match `{}`", clip_word(pattern)))
        },
    )
}

/// What is wrong with a number, or how many there are, where these limits hold; `said` is what it is.
pub(super) fn describe_limit_misfit(limits: &Limits, number: &Number, said: &str) -> Option<String> {
    let value = number.as_f64()?;
    let above = limits.max.as_ref().filter(|max| max.as_f64().is_some_and(|max| value > max));
    let below = limits.min.as_ref().filter(|min| min.as_f64().is_some_and(|min| value < min));
    match (above, below) {
        (Some(max), _) => Some(format!("{said}, more than {max}")),
        (None, Some(min)) => Some(format!("{said}, less than {min}")),
        (None, None) => None,
    }
}

/// What a value of a kind is called.
pub(super) fn describe_kind(kind: &Kind) -> String {
    match kind {
        Kind::Any | Kind::None => "a value".to_owned(),
        Kind::Text | Kind::String | Kind::File | Kind::Dir => "a text".to_owned(),
        Kind::Int => "a whole number".to_owned(),
        Kind::Float => "a number".to_owned(),
        Kind::Bool => "`true` or `false`".to_owned(),
        Kind::Enum(words) => suggest::format_list(words.words.iter().map(String::as_str), "or"),
        Kind::List(_) | Kind::Tuple(_) | Kind::Iter { .. } => "a JSON array".to_owned(),
        Kind::Union(union) => {
            let kinds: Vec<String> = union.kinds.iter().map(describe_kind).collect();
            suggest::format_list(kinds.iter().map(String::as_str), "or")
        }
        Kind::Map(_) | Kind::Record(_) => "a JSON object".to_owned(),
        Kind::Named(_, name) => format!("a `{name}`"),
    }
}
