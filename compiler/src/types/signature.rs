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
            Takes::Field => Classes::TEXT.union(Classes::INT),
            // minijinja reads `true` as 1 where it wants a whole number.
            Takes::Whole | Takes::AtLeast(_) => Classes::INT.union(Classes::BOOL),
            Takes::Flag => Classes::BOOL,
            Takes::Object => Classes::OBJECT,
            Takes::Start => Classes::NUMBER.union(Classes::BOOL).union(Classes::TEXT).union(Classes::SEQUENCE),
        }
    }
}

const ANY: Classes = Classes::ALL;
const TEXT: Classes = Classes::TEXT;
const NUMBER: Classes = Classes::NUMBER;
const ITERABLE: Classes = Classes::ITERABLE;
const OBJECT: Classes = Classes::OBJECT;
/// What a number is read from.
const NUMERIC: Classes = TEXT.union(NUMBER).union(Classes::BOOL).union(Classes::NONE);
const SIZED: Classes = TEXT.union(Classes::LIST).union(Classes::ITER).union(OBJECT);
const FIRST: Classes = ITERABLE.intersection(Classes::NONE.complement());

const fn required_argument(name: &'static str, takes: Takes) -> Argument {
    Argument { name, takes, given: Given::ByPlace, required: true }
}

const fn optional_argument(name: &'static str, takes: Takes) -> Argument {
    Argument { name, takes, given: Given::ByPlace, required: false }
}

const fn either_argument(name: &'static str, takes: Takes) -> Argument {
    Argument { name, takes, given: Given::Either, required: false }
}

const fn named_argument(name: &'static str, takes: Takes) -> Argument {
    Argument { name, takes, given: Given::ByName, required: false }
}

const fn make_signature(name: &'static str, operand: Classes, arguments: &'static [Argument]) -> Signature {
    Signature { name, operand, arguments, rest: Rest::Nothing }
}

const fn variadic_signature(
    name: &'static str,
    operand: Classes,
    arguments: &'static [Argument],
    rest: Rest,
) -> Signature {
    Signature { name, operand, arguments, rest }
}

const CASE: Argument = named_argument("case_sensitive", Takes::Flag);
const ATTRIBUTE: Argument = named_argument("attribute", Takes::Text);

pub(super) const FILTERS: &[Signature] = &[
    make_signature("abs", NUMBER, &[]),
    make_signature("attr", ANY, &[required_argument("name", Takes::Field)]),
    make_signature(
        "batch",
        ITERABLE,
        &[required_argument("count", Takes::AtLeast(1)), optional_argument("fill", Takes::Any)],
    ),
    make_signature("bool", ANY, &[]),
    make_signature("capitalize", ANY, &[]),
    variadic_signature("chain", ITERABLE, &[], Rest::Values(ITERABLE)),
    make_signature("count", SIZED, &[]),
    make_signature("d", ANY, &[optional_argument("value", Takes::Any), optional_argument("empty", Takes::Any)]),
    make_signature("default", ANY, &[optional_argument("value", Takes::Any), optional_argument("empty", Takes::Any)]),
    make_signature(
        "dictsort",
        OBJECT,
        &[named_argument("by", Takes::Text), CASE, named_argument("reverse", Takes::Flag)],
    ),
    make_signature("e", ANY, &[]),
    make_signature("escape", ANY, &[]),
    make_signature("first", FIRST, &[]),
    make_signature("float", NUMERIC, &[either_argument("default", Takes::Any)]),
    variadic_signature("format", TEXT, &[], Rest::Anything),
    make_signature(
        "groupby",
        ITERABLE,
        &[Argument { required: true, ..either_argument("attribute", Takes::Text) }, DEFAULT, CASE],
    ),
    make_signature(
        "indent",
        ANY,
        &[
            either_argument("width", Takes::AtLeast(0)),
            either_argument("first", Takes::Flag),
            either_argument("blank", Takes::Flag),
        ],
    ),
    make_signature(
        "int",
        NUMERIC,
        &[either_argument("default", Takes::Any), either_argument("base", Takes::AtLeast(0))],
    ),
    make_signature("items", OBJECT, &[]),
    make_signature("join", ITERABLE, &[either_argument("d", Takes::Any), either_argument("attribute", Takes::Text)]),
    make_signature("json", ANY, &[either_argument("indent", Takes::AtLeast(0))]),
    // minijinja takes the first of a map, but not the last.
    make_signature("last", FIRST.intersection(OBJECT.complement()), &[]),
    make_signature("length", SIZED, &[]),
    make_signature("lines", TEXT, &[]),
    make_signature("list", ITERABLE, &[]),
    make_signature("lower", ANY, &[]),
    variadic_signature("map", ITERABLE, &[], Rest::Anything),
    make_signature("max", ITERABLE, &[CASE, ATTRIBUTE]),
    make_signature("min", ITERABLE, &[CASE, ATTRIBUTE]),
    make_signature("pprint", ANY, &[]),
    variadic_signature("reject", ITERABLE, &[optional_argument("test", Takes::Text)], Rest::Anything),
    variadic_signature(
        "rejectattr",
        ITERABLE,
        &[required_argument("name", Takes::Field), optional_argument("test", Takes::Text)],
        Rest::Anything,
    ),
    make_signature("replace", ANY, &[required_argument("from", Takes::Any), required_argument("to", Takes::Any)]),
    make_signature("reverse", ITERABLE, &[]),
    make_signature(
        "round",
        NUMBER,
        &[either_argument("precision", Takes::Whole), either_argument("method", Takes::Word(METHODS))],
    ),
    make_signature("safe", ANY, &[]),
    variadic_signature("select", ITERABLE, &[optional_argument("test", Takes::Text)], Rest::Anything),
    variadic_signature(
        "selectattr",
        ITERABLE,
        &[required_argument("name", Takes::Field), optional_argument("test", Takes::Text)],
        Rest::Anything,
    ),
    make_signature(
        "slice",
        ITERABLE,
        &[required_argument("count", Takes::AtLeast(1)), optional_argument("fill", Takes::Any)],
    ),
    make_signature("sort", ITERABLE, &[CASE, named_argument("reverse", Takes::Flag), ATTRIBUTE]),
    make_signature(
        "split",
        TEXT,
        &[optional_argument("separator", Takes::Text), optional_argument("count", Takes::Whole)],
    ),
    make_signature("string", ANY, &[]),
    make_signature(
        "sum",
        ITERABLE,
        &[either_argument("attribute", Takes::Text), either_argument("start", Takes::Start)],
    ),
    make_signature("title", ANY, &[]),
    make_signature("tojson", ANY, &[either_argument("indent", Takes::AtLeast(0))]),
    make_signature("trim", ANY, &[optional_argument("characters", Takes::Any)]),
    make_signature("unique", ITERABLE, &[ATTRIBUTE, CASE]),
    make_signature("upper", ANY, &[]),
    variadic_signature("zip", ITERABLE, &[], Rest::Values(ITERABLE)),
];

const DEFAULT: Argument = named_argument("default", Takes::Any);

const METHODS: &[&str] = &["common", "ceil", "floor"];

pub(super) const TESTS: &[Signature] = &[
    make_signature("boolean", ANY, &[]),
    make_signature("defined", ANY, &[]),
    make_signature("divisibleby", ANY, &[required_argument("number", Takes::Any)]),
    make_signature("endingwith", ANY, &[required_argument("text", Takes::Any)]),
    make_signature("eq", ANY, &[required_argument("value", Takes::Any)]),
    make_signature("equalto", ANY, &[required_argument("value", Takes::Any)]),
    make_signature("escaped", ANY, &[]),
    make_signature("even", ANY, &[]),
    make_signature("false", ANY, &[]),
    make_signature("filter", TEXT, &[]),
    make_signature("float", ANY, &[]),
    make_signature("ge", ANY, &[required_argument("value", Takes::Any)]),
    make_signature("greaterthan", ANY, &[required_argument("value", Takes::Any)]),
    make_signature("gt", ANY, &[required_argument("value", Takes::Any)]),
    make_signature("in", ANY, &[required_argument("list", Takes::Any)]),
    make_signature("int", ANY, &[]),
    make_signature("integer", ANY, &[]),
    make_signature("iterable", ANY, &[]),
    make_signature("le", ANY, &[required_argument("value", Takes::Any)]),
    make_signature("lessthan", ANY, &[required_argument("value", Takes::Any)]),
    make_signature("lower", ANY, &[]),
    make_signature("lt", ANY, &[required_argument("value", Takes::Any)]),
    make_signature("mapping", ANY, &[]),
    make_signature("ne", ANY, &[required_argument("value", Takes::Any)]),
    make_signature("none", ANY, &[]),
    make_signature("number", ANY, &[]),
    make_signature("odd", ANY, &[]),
    make_signature("safe", ANY, &[]),
    make_signature("sameas", ANY, &[required_argument("value", Takes::Any)]),
    make_signature("sequence", ANY, &[]),
    make_signature("startingwith", ANY, &[required_argument("text", Takes::Any)]),
    make_signature("string", ANY, &[]),
    make_signature("test", TEXT, &[]),
    make_signature("true", ANY, &[]),
    make_signature("undefined", ANY, &[]),
    make_signature("upper", ANY, &[]),
];

pub(super) const FUNCTIONS: &[Signature] = &[
    variadic_signature("debug", Classes::NONE, &[], Rest::Values(ANY)),
    variadic_signature("dict", Classes::NONE, &[optional_argument("map", Takes::Object)], Rest::Named),
    variadic_signature("namespace", Classes::NONE, &[optional_argument("map", Takes::Object)], Rest::Named),
    make_signature(
        "range",
        Classes::NONE,
        &[
            required_argument("start", Takes::Whole),
            optional_argument("stop", Takes::Whole),
            optional_argument("step", Takes::Whole),
        ],
    ),
];

/// What the filter, test or function of this name takes.
pub(super) fn find_signature(table: &'static [Signature], name: &str) -> Option<&'static Signature> {
    table.iter().find(|signature| signature.name == name)
}

#[cfg(test)]
mod tests {
    use super::{FILTERS, TESTS};
    use crate::template;

    #[test]
    fn every_filter_and_test_has_a_signature() {
        let names = |table: &[super::Signature]| table.iter().map(|signature| signature.name).collect::<Vec<_>>();
        let known = |table: &[template::Applied]| table.iter().map(|(name, ..)| *name).collect::<Vec<_>>();
        assert_eq!(names(FILTERS), known(template::FILTERS));
        assert_eq!(names(TESTS), known(template::TESTS));
    }
}
