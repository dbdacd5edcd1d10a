//! What may be applied to a value of an expression: the filters after `|` and the tests after `is`, each with how it is
//! written and what it gives.
//!
//! Arguments in `[…]` may be left out. A test holds the names, and how many arguments each needs, against minijinja.

use super::Term;

/// A filter or a test: its word, how it is written, and what it gives.
pub(crate) type Applied = (&'static str, &'static str, &'static str);

/// The filters of expressions that are not minijinja's: the runtime adds them. Both write a value as JSON.
#[cfg(test)]
pub(super) const OWN_FILTERS: [&str; 2] = ["json", "tojson"];

/// The filters of expressions.
pub(crate) const FILTERS: &[Applied] = &[
    ("abs", "abs", "A number without its sign."),
    ("attr", "attr(NAME)", "The field of this name; nothing when there is none."),
    ("batch", "batch(COUNT[, FILL])", "A list as lists of so many items; `FILL` makes the last one full."),
    ("bool", "bool", "Whether a value counts as true: not empty, not zero, not missing."),
    ("capitalize", "capitalize", "A text with its first letter large and all others small."),
    ("chain", "chain[(LIST, …)]", "A list followed by the items of others, or a map with the fields of others added."),
    ("count", "count", "How many items, fields or characters a value has; `length` by another name."),
    ("d", "d([VALUE])", "`default` by another name."),
    (
        "default",
        "default([VALUE[, true]])",
        "What stands for a value that is missing; with `true` for an empty one, too.",
    ),
    ("dictsort", "dictsort[(by=\"value\", reverse=true)]", "The fields of a map as pairs of name and value, by name."),
    ("e", "e", "`escape` by another name."),
    ("escape", "escape", "A text with the characters escaped that HTML has a meaning for."),
    ("first", "first", "The first item of a list, or character of a text."),
    ("float", "float[(DEFAULT)]", "A value as a number with a fraction; the default when it is no number."),
    ("format", "format[(VALUE, …)]", "A text with its `%s`, `%d` and the like replaced by values, as `printf` does."),
    (
        "groupby",
        "groupby(NAME[, default=VALUE])",
        "The items of a list in groups that have one value in a field: pairs of the value, `grouper`, and the items, `list`.",
    ),
    (
        "indent",
        "indent[(WIDTH, FIRST, BLANK)]",
        "A text with its lines indented, by 4 spaces without `WIDTH`; the first one and blank ones when `true` says so.",
    ),
    ("int", "int[(DEFAULT)]", "A value as a whole number; the default when it is no number."),
    ("items", "items", "The fields of a map as pairs of name and value."),
    ("join", "join[(TEXT[, attribute=NAME])]", "The items of a list as one text, with another between them."),
    ("json", "json", "The value as JSON."),
    ("last", "last", "The last item of a list, or character of a text."),
    ("length", "length", "How many items, fields or characters a value has."),
    ("lines", "lines", "The lines of a text as a list."),
    ("list", "list", "A value as a list: the characters of a text, the names of the fields of a map."),
    ("lower", "lower", "A text in small letters."),
    (
        "map",
        "map([attribute=NAME])",
        "A field of each item of a list; or what a filter makes of each: `map(\"upper\")`.",
    ),
    ("max", "max", "The largest item of a list."),
    ("min", "min", "The smallest item of a list."),
    ("pprint", "pprint", "A value as it is inside, over several lines: for finding out what it is."),
    (
        "reject",
        "reject[(TEST, …)]",
        "The items of a list for which a test does not hold; without a test, those that count as false.",
    ),
    ("rejectattr", "rejectattr(NAME[, TEST, …])", "The items of a list for whose field a test does not hold."),
    ("replace", "replace(FROM, TO)", "A text with another for each part that is `FROM`."),
    ("reverse", "reverse", "A list or a text from its end to its beginning."),
    ("round", "round[(DIGITS)]", "A number rounded to so many digits behind the point; to a whole one without."),
    ("safe", "safe", "A text that is not escaped any more where texts are."),
    (
        "select",
        "select[(TEST, …)]",
        "The items of a list for which a test holds; without a test, those that count as true.",
    ),
    (
        "selectattr",
        "selectattr(NAME[, TEST, …])",
        "The items of a list for whose field a test holds: `selectattr(\"severity\", \"eq\", \"high\")`.",
    ),
    ("slice", "slice(COUNT[, FILL])", "A list as so many lists; `FILL` makes all of them equally long."),
    ("sort", "sort[(reverse=true, attribute=NAME)]", "A list in order, or in that of a field of its items."),
    ("split", "split[(TEXT[, COUNT])]", "The parts of a text between separators, at blanks without `TEXT`."),
    ("string", "string", "A value as a text."),
    ("sum", "sum[(NAME)]", "The sum of a list of numbers, or of a field of its items."),
    ("title", "title", "A text with the first letter of each word large."),
    ("tojson", "tojson", "The value as JSON; `json` by another name."),
    ("trim", "trim[(CHARACTERS)]", "A text without blanks at its ends, or without these characters."),
    ("unique", "unique[(attribute=NAME)]", "A list without the items that stand in it before, or whose field does."),
    ("upper", "upper", "A text in capital letters."),
    ("zip", "zip[(LIST, …)]", "The items of lists side by side, as long as the shortest."),
];

/// The tests of expressions.
pub(crate) const TESTS: &[Applied] = &[
    ("boolean", "boolean", "Whether it is true or false."),
    ("defined", "defined", "Whether there is such a value."),
    ("divisibleby", "divisibleby(NUMBER)", "Whether a number divides it."),
    ("endingwith", "endingwith(TEXT)", "Whether a text ends with another."),
    ("eq", "eq(VALUE)", "Whether it is equal, as with `==`."),
    ("equalto", "equalto(VALUE)", "Whether it is equal, as with `==`."),
    ("escaped", "escaped", "Whether it is a text that is not escaped any more."),
    ("even", "even", "Whether 2 divides it."),
    ("false", "false", "Whether it is false itself, not empty or zero."),
    ("filter", "filter", "Whether a filter has this name."),
    ("float", "float", "Whether it is a number with a fraction."),
    ("ge", "ge(VALUE)", "Whether it is as large or larger, as with `>=`."),
    ("greaterthan", "greaterthan(VALUE)", "Whether it is larger, as with `>`."),
    ("gt", "gt(VALUE)", "Whether it is larger, as with `>`."),
    ("in", "in(LIST)", "Whether a list has such an item, a map such a field, or a text such a part."),
    ("int", "int", "Whether it is a whole number."),
    ("integer", "integer", "Whether it is a whole number."),
    ("iterable", "iterable", "Whether `for` can go through it."),
    ("le", "le(VALUE)", "Whether it is as small or smaller, as with `<=`."),
    ("lessthan", "lessthan(VALUE)", "Whether it is smaller, as with `<`."),
    ("lower", "lower", "Whether a text has no capital letters."),
    ("lt", "lt(VALUE)", "Whether it is smaller, as with `<`."),
    ("mapping", "mapping", "Whether it is a map."),
    ("ne", "ne(VALUE)", "Whether it is not equal, as with `!=`."),
    ("none", "none", "Whether it is null."),
    ("number", "number", "Whether it is a number."),
    ("odd", "odd", "Whether 2 does not divide it."),
    ("safe", "safe", "Whether it is a text that is not escaped any more."),
    ("sameas", "sameas(VALUE)", "Whether it is the same value, of the same type."),
    ("sequence", "sequence", "Whether it is a list."),
    ("startingwith", "startingwith(TEXT)", "Whether a text begins with another."),
    ("string", "string", "Whether it is a text."),
    ("test", "test", "Whether a test has this name."),
    ("true", "true", "Whether it is true itself, not only filled."),
    ("undefined", "undefined", "Whether there is no such value."),
    ("upper", "upper", "Whether a text has no small letters."),
];

/// What is known of the filter or test of this name.
pub(super) fn find_applied(table: &'static [Applied], name: &str) -> Option<&'static Applied> {
    table.iter().find(|(word, ..)| *word == name)
}

/// How many arguments it needs at least: those that do not stand in `[…]`.
pub(super) fn count_required((_, usage, _): &Applied) -> usize {
    let certain = usage.split('[').next().unwrap_or_default();
    let arguments = certain.split_once('(').map_or("", |(_, arguments)| arguments).trim_end_matches(')');
    arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty() && *argument != "…").count()
}

/// A table as an editor shows it.
pub(crate) fn list_terms(table: &'static [Applied]) -> impl Iterator<Item = Term> {
    table.iter().map(|&(word, usage, doc)| Term { word, usage: usage.to_owned(), doc })
}
