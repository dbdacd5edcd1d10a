//! What every filter, test and function of expressions takes: one table, held against the runtime by the fuzz test of
//! `runtime/src/render`.
//!
//! In: a name. Out: what it is used on, and its arguments. What a filter gives depends on more, and is in `infer`.

use super::Classes;

/// What a filter, a test or a function takes.
#[derive(Debug)]
pub(super) struct Signature {
    pub(super) name: &'static str,
    /// What it is used on; nothing for a function.
    pub(super) operand: Classes,
    pub(super) arguments: &'static [Argument],
    /// What further arguments are.
    pub(super) rest: Rest,
}

/// What stands behind the arguments that have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Nothing,
    /// Values of these classes, without names.
    Values(Classes),
    /// Any arguments with names.
    Named,
    /// Any arguments, with names and without.
    Anything,
}

/// An argument.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    pub(super) given: Given,
    pub(super) required: bool,
}

/// How an argument is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    ByPlace,
    ByName,
    Either,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Any,
    Text,
    /// The name of a field, or the place of an item.
    Field,
    Whole,
    /// A whole number of at least so much.
    AtLeast(i64),
    Flag,
    Object,
    /// One of some words.
    Word(&'static [&'static str]),
    /// A number, a list or a text, to which others are added.
    Start,
}

impl Takes {
    pub(super) fn classes(self) -> Classes {
        match self {
            Takes::Any => Classes::ALL,
            Takes::Text | Takes::Word(_) => Classes::TEXT,
            Takes::Field => Classes::TEXT.and(Classes::INT),
            Takes::Whole | Takes::AtLeast(_) => Classes::INT.and(Classes::BOOL),
            Takes::Flag => Classes::BOOL,
            Takes::Object => Classes::OBJECT,
            Takes::Start => Classes::NUMBER.and(Classes::BOOL).and(Classes::TEXT).and(Classes::SEQUENCE),
        }
    }
}

const ANY: Classes = Classes::ALL;
const TEXT: Classes = Classes::TEXT;
const NUMBER: Classes = Classes::NUMBER;
const ITERABLE: Classes = Classes::ITERABLE;
const OBJECT: Classes = Classes::OBJECT;
/// What a number is read from.
const NUMERIC: Classes = TEXT.and(NUMBER).and(Classes::BOOL).and(Classes::NONE);
const SIZED: Classes = TEXT.and(Classes::LIST).and(Classes::ITER).and(OBJECT);
const FIRST: Classes = ITERABLE.both(Classes::NONE.not());

const fn must(name: &'static str, takes: Takes) -> Argument {
    Argument { name, takes, given: Given::ByPlace, required: true }
}

const fn may(name: &'static str, takes: Takes) -> Argument {
    Argument { name, takes, given: Given::ByPlace, required: false }
}

const fn either(name: &'static str, takes: Takes) -> Argument {
    Argument { name, takes, given: Given::Either, required: false }
}

const fn named(name: &'static str, takes: Takes) -> Argument {
    Argument { name, takes, given: Given::ByName, required: false }
}

const fn takes(name: &'static str, operand: Classes, arguments: &'static [Argument]) -> Signature {
    Signature { name, operand, arguments, rest: Rest::Nothing }
}

const fn with(name: &'static str, operand: Classes, arguments: &'static [Argument], rest: Rest) -> Signature {
    Signature { name, operand, arguments, rest }
}

const CASE: Argument = named("case_sensitive", Takes::Flag);
const ATTRIBUTE: Argument = named("attribute", Takes::Text);

pub(super) const FILTERS: &[Signature] = &[
    takes("abs", NUMBER, &[]),
    takes("attr", ANY, &[must("name", Takes::Field)]),
    takes("batch", ITERABLE, &[must("count", Takes::AtLeast(1)), may("fill", Takes::Any)]),
    takes("bool", ANY, &[]),
    takes("capitalize", ANY, &[]),
    with("chain", ITERABLE, &[], Rest::Values(ITERABLE)),
    takes("count", SIZED, &[]),
    takes("d", ANY, &[may("value", Takes::Any), may("empty", Takes::Any)]),
    takes("default", ANY, &[may("value", Takes::Any), may("empty", Takes::Any)]),
    takes("dictsort", OBJECT, &[named("by", Takes::Text), CASE, named("reverse", Takes::Flag)]),
    takes("e", ANY, &[]),
    takes("escape", ANY, &[]),
    takes("first", FIRST, &[]),
    takes("float", NUMERIC, &[either("default", Takes::Any)]),
    with("format", TEXT, &[], Rest::Anything),
    takes("groupby", ITERABLE, &[Argument { required: true, ..either("attribute", Takes::Text) }, DEFAULT, CASE]),
    takes(
        "indent",
        ANY,
        &[either("width", Takes::AtLeast(0)), either("first", Takes::Flag), either("blank", Takes::Flag)],
    ),
    takes("int", NUMERIC, &[either("default", Takes::Any), either("base", Takes::AtLeast(0))]),
    takes("items", OBJECT, &[]),
    takes("join", ITERABLE, &[either("d", Takes::Any), either("attribute", Takes::Text)]),
    takes("json", ANY, &[either("indent", Takes::AtLeast(0))]),
    takes("last", FIRST.both(OBJECT.not()), &[]),
    takes("length", SIZED, &[]),
    takes("lines", TEXT, &[]),
    takes("list", ITERABLE, &[]),
    takes("lower", ANY, &[]),
    with("map", ITERABLE, &[], Rest::Anything),
    takes("max", ITERABLE, &[CASE, ATTRIBUTE]),
    takes("min", ITERABLE, &[CASE, ATTRIBUTE]),
    takes("pprint", ANY, &[]),
    with("reject", ITERABLE, &[may("test", Takes::Text)], Rest::Anything),
    with("rejectattr", ITERABLE, &[must("name", Takes::Field), may("test", Takes::Text)], Rest::Anything),
    takes("replace", ANY, &[must("from", Takes::Any), must("to", Takes::Any)]),
    takes("reverse", ITERABLE, &[]),
    takes("round", NUMBER, &[either("precision", Takes::Whole), either("method", Takes::Word(METHODS))]),
    takes("safe", ANY, &[]),
    with("select", ITERABLE, &[may("test", Takes::Text)], Rest::Anything),
    with("selectattr", ITERABLE, &[must("name", Takes::Field), may("test", Takes::Text)], Rest::Anything),
    takes("slice", ITERABLE, &[must("count", Takes::AtLeast(1)), may("fill", Takes::Any)]),
    takes("sort", ITERABLE, &[CASE, named("reverse", Takes::Flag), ATTRIBUTE]),
    takes("split", TEXT, &[may("separator", Takes::Text), may("count", Takes::Whole)]),
    takes("string", ANY, &[]),
    takes("sum", ITERABLE, &[either("attribute", Takes::Text), either("start", Takes::Start)]),
    takes("title", ANY, &[]),
    takes("tojson", ANY, &[either("indent", Takes::AtLeast(0))]),
    takes("trim", ANY, &[may("characters", Takes::Any)]),
    takes("unique", ITERABLE, &[ATTRIBUTE, CASE]),
    takes("upper", ANY, &[]),
    with("zip", ITERABLE, &[], Rest::Values(ITERABLE)),
];

const DEFAULT: Argument = named("default", Takes::Any);

const METHODS: &[&str] = &["common", "ceil", "floor"];

pub(super) const TESTS: &[Signature] = &[
    takes("boolean", ANY, &[]),
    takes("defined", ANY, &[]),
    takes("divisibleby", ANY, &[must("number", Takes::Any)]),
    takes("endingwith", ANY, &[must("text", Takes::Any)]),
    takes("eq", ANY, &[must("value", Takes::Any)]),
    takes("equalto", ANY, &[must("value", Takes::Any)]),
    takes("escaped", ANY, &[]),
    takes("even", ANY, &[]),
    takes("false", ANY, &[]),
    takes("filter", TEXT, &[]),
    takes("float", ANY, &[]),
    takes("ge", ANY, &[must("value", Takes::Any)]),
    takes("greaterthan", ANY, &[must("value", Takes::Any)]),
    takes("gt", ANY, &[must("value", Takes::Any)]),
    takes("in", ANY, &[must("list", Takes::Any)]),
    takes("int", ANY, &[]),
    takes("integer", ANY, &[]),
    takes("iterable", ANY, &[]),
    takes("le", ANY, &[must("value", Takes::Any)]),
    takes("lessthan", ANY, &[must("value", Takes::Any)]),
    takes("lower", ANY, &[]),
    takes("lt", ANY, &[must("value", Takes::Any)]),
    takes("mapping", ANY, &[]),
    takes("ne", ANY, &[must("value", Takes::Any)]),
    takes("none", ANY, &[]),
    takes("number", ANY, &[]),
    takes("odd", ANY, &[]),
    takes("safe", ANY, &[]),
    takes("sameas", ANY, &[must("value", Takes::Any)]),
    takes("sequence", ANY, &[]),
    takes("startingwith", ANY, &[must("text", Takes::Any)]),
    takes("string", ANY, &[]),
    takes("test", TEXT, &[]),
    takes("true", ANY, &[]),
    takes("undefined", ANY, &[]),
    takes("upper", ANY, &[]),
];

pub(super) const FUNCTIONS: &[Signature] = &[
    with("debug", Classes::NONE, &[], Rest::Values(ANY)),
    with("dict", Classes::NONE, &[may("map", Takes::Object)], Rest::Named),
    with("namespace", Classes::NONE, &[may("map", Takes::Object)], Rest::Named),
    takes("range", Classes::NONE, &[must("start", Takes::Whole), may("stop", Takes::Whole), may("step", Takes::Whole)]),
];

/// What the filter, test or function of this name takes.
pub(super) fn find(table: &'static [Signature], name: &str) -> Option<&'static Signature> {
    table.iter().find(|signature| signature.name == name)
}

#[cfg(test)]
mod tests {
    use super::{FILTERS, TESTS};
    use crate::template;

    #[test]
    fn every_filter_and_test_has_a_signature() {
        let names = |table: &[super::Signature]| table.iter().map(|signature| signature.name).collect::<Vec<_>>();
        let known = |table: &[(&'static str, &str, &str)]| table.iter().map(|(name, ..)| *name).collect::<Vec<_>>();
        assert_eq!(names(FILTERS), known(template::FILTERS));
        assert_eq!(names(TESTS), known(template::TESTS));
    }
}
