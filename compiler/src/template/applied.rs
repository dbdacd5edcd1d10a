//! What may be applied to a value of an expression: the filters after `|` and the tests after `is`, each with how it is
//! written and what it gives.
//!
//! Arguments in `[…]` may be left out. A test holds the names, and how many arguments each needs, against minijinja.

use super::Term;

/// A filter or a test: its word, how it is written, what it gives, an example, and what that gives.
pub(crate) type Applied = (&'static str, &'static str, &'static str, &'static str, &'static str);

/// The filters of expressions that are not minijinja's: the runtime adds them. Both write a value as JSON.
#[cfg(test)]
pub(super) const OWN_FILTERS: [&str; 2] = ["json", "tojson"];

/// The filters of expressions.
pub(crate) const FILTERS: &[Applied] = &[
    ("abs", "abs", "A number without its sign.", "-3 | abs", "3"),
    ("attr", "attr(NAME)", "The field of this name; nothing when there is none.", "{'a': 1} | attr('a')", "1"),
    (
        "batch",
        "batch(COUNT[, FILL])",
        "A list as lists of so many items; `FILL` makes the last one full.",
        "[1, 2, 3] | batch(2)",
        "[[1,2],[3]]",
    ),
    ("bool", "bool", "Whether a value counts as true: not empty, not zero, not missing.", "'' | bool", "false"),
    (
        "capitalize",
        "capitalize",
        "A text with its first letter large and all others small.",
        "'fIX it' | capitalize",
        "Fix it",
    ),
    (
        "chain",
        "chain[(LIST, …)]",
        "A list followed by the items of others, or a map with the fields of others added.",
        "[1] | chain([2])",
        "[1,2]",
    ),
    (
        "count",
        "count",
        "How many items, fields or characters a value has; `length` by another name.",
        "['a', 'b'] | count",
        "2",
    ),
    ("d", "d([VALUE])", "`default` by another name.", "'' | d('none', true)", "none"),
    (
        "default",
        "default([VALUE[, true]])",
        "What stands for a value that is missing; with `true` for an empty one, too.",
        "'' | default('none', true)",
        "none",
    ),
    (
        "dictsort",
        "dictsort[(by=\"value\", reverse=true)]",
        "The fields of a map as pairs of name and value, by name.",
        "{'b': 1, 'a': 2} | dictsort",
        "[[\"a\",2],[\"b\",1]]",
    ),
    ("e", "e", "`escape` by another name.", "'a < b' | e", "a &lt; b"),
    (
        "escape",
        "escape",
        "A text with the characters escaped that HTML has a meaning for.",
        "'a < b' | escape",
        "a &lt; b",
    ),
    ("first", "first", "The first item of a list, or character of a text.", "['a', 'b'] | first", "a"),
    (
        "float",
        "float[(DEFAULT)]",
        "A value as a number with a fraction; the default when it is no number.",
        "'1.5' | float",
        "1.5",
    ),
    (
        "format",
        "format[(VALUE, …)]",
        "A text with its `%s`, `%d` and the like replaced by values, as `printf` does.",
        "'%s: %d' | format('red', 2)",
        "red: 2",
    ),
    (
        "groupby",
        "groupby(NAME[, default=VALUE])",
        "The items of a list in groups that have one value in a field: pairs of the value, `grouper`, and the items, `list`.",
        "[{'k': 'x', 'n': 1}, {'k': 'y', 'n': 2}] | groupby('k') | map(attribute='grouper')",
        "[\"x\",\"y\"]",
    ),
    (
        "indent",
        "indent[(WIDTH, FIRST, BLANK)]",
        "A text with its lines indented, by 4 spaces without `WIDTH`; the first one and blank ones when `true` says so.",
        "'a' | indent(2, true)",
        "  a",
    ),
    ("int", "int[(DEFAULT)]", "A value as a whole number; the default when it is no number.", "'7' | int", "7"),
    ("items", "items", "The fields of a map as pairs of name and value.", "{'a': 1} | items", "[[\"a\",1]]"),
    (
        "join",
        "join[(TEXT[, attribute=NAME])]",
        "The items of a list as one text, with another between them.",
        "['a', 'b'] | join(', ')",
        "a, b",
    ),
    ("json", "json", "The value as JSON.", "{'a': [1]} | json", "{\"a\":[1]}"),
    ("last", "last", "The last item of a list, or character of a text.", "['a', 'b'] | last", "b"),
    ("length", "length", "How many items, fields or characters a value has.", "'abc' | length", "3"),
    ("lines", "lines", "The lines of a text as a list.", "'a\\nb' | lines", "[\"a\",\"b\"]"),
    (
        "list",
        "list",
        "A value as a list: the characters of a text, the names of the fields of a map.",
        "'ab' | list",
        "[\"a\",\"b\"]",
    ),
    ("lower", "lower", "A text in small letters.", "'ABC' | lower", "abc"),
    (
        "map",
        "map([attribute=NAME])",
        "A field of each item of a list; or what a filter makes of each: `map(\"upper\")`.",
        "[{'n': 1}, {'n': 2}] | map(attribute='n')",
        "[1,2]",
    ),
    ("max", "max", "The largest item of a list.", "[1, 3, 2] | max", "3"),
    ("min", "min", "The smallest item of a list.", "[1, 3, 2] | min", "1"),
    (
        "pprint",
        "pprint",
        "A value as it is inside, over several lines: for finding out what it is.",
        "'1' | pprint",
        "'1'",
    ),
    (
        "reject",
        "reject[(TEST, …)]",
        "The items of a list for which a test does not hold; without a test, those that count as false.",
        "[1, 2, 3] | reject('odd')",
        "[2]",
    ),
    (
        "rejectattr",
        "rejectattr(NAME[, TEST, …])",
        "The items of a list for whose field a test does not hold.",
        "[{'ok': true, 'n': 1}, {'ok': false, 'n': 2}] | rejectattr('ok')",
        "[{\"n\":2,\"ok\":false}]",
    ),
    (
        "replace",
        "replace(FROM, TO)",
        "A text with another for each part that is `FROM`.",
        "'a-b' | replace('-', '+')",
        "a+b",
    ),
    ("reverse", "reverse", "A list or a text from its end to its beginning.", "[1, 2] | reverse", "[2,1]"),
    (
        "round",
        "round[(DIGITS)]",
        "A number rounded to so many digits behind the point; to a whole one without.",
        "2.56 | round(1)",
        "2.6",
    ),
    ("safe", "safe", "A text that is not escaped any more where texts are.", "'a < b' | safe", "a < b"),
    (
        "select",
        "select[(TEST, …)]",
        "The items of a list for which a test holds; without a test, those that count as true.",
        "[1, 2, 3] | select('odd')",
        "[1,3]",
    ),
    (
        "selectattr",
        "selectattr(NAME[, TEST, …])",
        "The items of a list for whose field a test holds: `selectattr(\"severity\", \"eq\", \"high\")`.",
        "[{'n': 1}, {'n': 2}] | selectattr('n', 'gt', 1)",
        "[{\"n\":2}]",
    ),
    (
        "slice",
        "slice(COUNT[, FILL])",
        "A list as so many lists; `FILL` makes all of them equally long.",
        "[1, 2, 3] | slice(2)",
        "[[1,2],[3]]",
    ),
    (
        "sort",
        "sort[(reverse=true, attribute=NAME)]",
        "A list in order, or in that of a field of its items.",
        "[2, 1] | sort",
        "[1,2]",
    ),
    (
        "split",
        "split[(TEXT[, COUNT])]",
        "The parts of a text between separators, at blanks without `TEXT`.",
        "'a,b' | split(',')",
        "[\"a\",\"b\"]",
    ),
    ("string", "string", "A value as a text.", "1 | string", "1"),
    ("sum", "sum[(NAME)]", "The sum of a list of numbers, or of a field of its items.", "[1, 2] | sum", "3"),
    ("title", "title", "A text with the first letter of each word large.", "'fix it' | title", "Fix It"),
    ("tojson", "tojson", "The value as JSON; `json` by another name.", "['a'] | tojson", "[\"a\"]"),
    (
        "trim",
        "trim[(CHARACTERS)]",
        "A text without blanks at its ends, or without these characters.",
        "' a ' | trim",
        "a",
    ),
    (
        "unique",
        "unique[(attribute=NAME)]",
        "A list without the items that stand in it before, or whose field does.",
        "[1, 1, 2] | unique",
        "[1,2]",
    ),
    ("upper", "upper", "A text in capital letters.", "'a' | upper", "A"),
    (
        "zip",
        "zip[(LIST, …)]",
        "The items of lists side by side, as long as the shortest.",
        "[1, 2] | zip(['a', 'b'])",
        "[[1,\"a\"],[2,\"b\"]]",
    ),
];

/// The tests of expressions.
pub(crate) const TESTS: &[Applied] = &[
    ("boolean", "boolean", "Whether it is true or false.", "true is boolean", "true"),
    ("defined", "defined", "Whether there is such a value.", "output.plan.title is defined", "true"),
    ("divisibleby", "divisibleby(NUMBER)", "Whether a number divides it.", "6 is divisibleby(3)", "true"),
    ("endingwith", "endingwith(TEXT)", "Whether a text ends with another.", "'a.rs' is endingwith('.rs')", "true"),
    ("eq", "eq(VALUE)", "Whether it is equal, as with `==`.", "1 is eq(1)", "true"),
    ("equalto", "equalto(VALUE)", "Whether it is equal, as with `==`.", "1 is equalto(1)", "true"),
    ("escaped", "escaped", "Whether it is a text that is not escaped any more.", "'a' | escape is escaped", "true"),
    ("even", "even", "Whether 2 divides it.", "2 is even", "true"),
    ("false", "false", "Whether it is false itself, not empty or zero.", "0 is false", "false"),
    ("filter", "filter", "Whether a filter has this name.", "'upper' is filter", "true"),
    ("float", "float", "Whether it is a number with a fraction.", "1.0 is float", "true"),
    ("ge", "ge(VALUE)", "Whether it is as large or larger, as with `>=`.", "2 is ge(2)", "true"),
    ("greaterthan", "greaterthan(VALUE)", "Whether it is larger, as with `>`.", "2 is greaterthan(1)", "true"),
    ("gt", "gt(VALUE)", "Whether it is larger, as with `>`.", "2 is gt(1)", "true"),
    (
        "in",
        "in(LIST)",
        "Whether a list has such an item, a map such a field, or a text such a part.",
        "1 is in([1, 2])",
        "true",
    ),
    ("int", "int", "Whether it is a whole number.", "1 is int", "true"),
    ("integer", "integer", "Whether it is a whole number.", "1.0 is integer", "false"),
    ("iterable", "iterable", "Whether `for` can go through it.", "[1] is iterable", "true"),
    ("le", "le(VALUE)", "Whether it is as small or smaller, as with `<=`.", "2 is le(2)", "true"),
    ("lessthan", "lessthan(VALUE)", "Whether it is smaller, as with `<`.", "1 is lessthan(2)", "true"),
    ("lower", "lower", "Whether a text has no capital letters.", "'abc' is lower", "true"),
    ("lt", "lt(VALUE)", "Whether it is smaller, as with `<`.", "1 is lt(2)", "true"),
    ("mapping", "mapping", "Whether it is a map.", "{'a': 1} is mapping", "true"),
    ("ne", "ne(VALUE)", "Whether it is not equal, as with `!=`.", "1 is ne(2)", "true"),
    ("none", "none", "Whether it is null.", "none is none", "true"),
    ("number", "number", "Whether it is a number.", "1.5 is number", "true"),
    ("odd", "odd", "Whether 2 does not divide it.", "3 is odd", "true"),
    ("safe", "safe", "Whether it is a text that is not escaped any more.", "'a' | safe is safe", "true"),
    ("sameas", "sameas(VALUE)", "Whether it is the same value, of the same type.", "1 is sameas(1.0)", "false"),
    ("sequence", "sequence", "Whether it is a list.", "[1] is sequence", "true"),
    (
        "startingwith",
        "startingwith(TEXT)",
        "Whether a text begins with another.",
        "'APPROVED' is startingwith('APP')",
        "true",
    ),
    ("string", "string", "Whether it is a text.", "'1' is string", "true"),
    ("test", "test", "Whether a test has this name.", "'odd' is test", "true"),
    ("true", "true", "Whether it is true itself, not only filled.", "1 is true", "false"),
    ("undefined", "undefined", "Whether there is no such value.", "output.plan.title is undefined", "false"),
    ("upper", "upper", "Whether a text has no small letters.", "'ABC' is upper", "true"),
];

/// What is known of the filter or test of this name.
pub(super) fn find_applied(table: &'static [Applied], name: &str) -> Option<&'static Applied> {
    table.iter().find(|(word, ..)| *word == name)
}

/// How many arguments it needs at least: those that do not stand in `[…]`.
pub(super) fn count_required((_, usage, ..): &Applied) -> usize {
    // No argument that must be given stands behind one that may be left out.
    let certain = usage.split('[').next().unwrap_or_default();
    let arguments = certain.split_once('(').map_or("", |(_, arguments)| arguments).trim_end_matches(')');
    arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty() && *argument != "…").count()
}

/// A table as an editor shows it.
pub(crate) fn list_terms(table: &'static [Applied]) -> impl Iterator<Item = Term> {
    table.iter().map(|&(word, usage, doc, example, result)| Term {
        word,
        usage: usage.to_owned(),
        doc,
        example,
        result,
    })
}
