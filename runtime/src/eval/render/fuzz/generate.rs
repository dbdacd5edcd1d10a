//! Generates expressions and texts, mostly of a type that fits their place.

use super::Random;

/// A text that is checked and evaluated.
pub(super) struct Sample {
    pub(super) source: String,
}

/// What an expression is meant to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Number,
    Text,
    Flag,
    Texts,
    Numbers,
    Records,
    Record,
    Map,
    Rows,
}

const SORTS: [Sort; 9] = [
    Sort::Number,
    Sort::Text,
    Sort::Flag,
    Sort::Texts,
    Sort::Numbers,
    Sort::Records,
    Sort::Record,
    Sort::Map,
    Sort::Rows,
];

pub(super) const FILTERS: &[&str] = &[
    "abs",
    "attr",
    "batch",
    "bool",
    "capitalize",
    "chain",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "format",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "json",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "pprint",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "split",
    "string",
    "sum",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
    "zip",
];

pub(super) const TESTS: &[&str] = &[
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "in",
    "int",
    "integer",
    "iterable",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sameas",
    "sequence",
    "startingwith",
    "string",
    "test",
    "true",
    "undefined",
    "upper",
];

const NAMES: &[&str] =
    &["attribute", "default", "reverse", "case_sensitive", "start", "precision", "method", "width", "d", "by", "count"];

const FIELDS: &[&str] =
    &["id", "title", "severity", "score", "tags", "owner", "name", "count", "note", "inner", "x", "y", "b", "where"];

pub(super) struct Generator<'r> {
    random: &'r mut Random,
    /// The names that are bound, each with what it is meant to be.
    bound: Vec<(String, Sort)>,
}

impl<'r> Generator<'r> {
    pub(super) fn new(random: &'r mut Random) -> Generator<'r> {
        Generator { random, bound: Vec::new() }
    }

    pub(super) fn sample(mut self) -> Sample {
        Sample { source: self.text() }
    }

    fn text(&mut self) -> String {
        match self.random.below(12) {
            0 => self.looped(),
            1 => self.unpacked(),
            2 => self.set(),
            3 => {
                let (condition, then, otherwise) = (self.condition(2), self.any(2), self.any(2));
                format!("{{% if {condition} %}}{{{{ {then} }}}}{{% else %}}{{{{ {otherwise} }}}}{{% endif %}}")
            }
            4 => self.guarded(),
            _ => format!("{{{{ {} }}}}", self.any(3)),
        }
    }

    fn looped(&mut self) -> String {
        let (list, item) = match self.random.below(6) {
            0 => (Sort::Texts, Sort::Text),
            1 => (Sort::Numbers, Sort::Number),
            2 => (Sort::Rows, Sort::Numbers),
            3 => (Sort::Map, Sort::Text),
            _ => (Sort::Records, Sort::Record),
        };
        let mut items = self.expression(list, 2);
        if self.random.chance(3) {
            let (one, other) = (self.anything(), self.anything());
            items = format!("[{}, {}]", self.expression(one, 1), self.expression(other, 1));
        }
        self.bound.push(("x".to_owned(), item));
        let filter = if self.random.chance(2) { format!(" if {}", self.condition(1)) } else { String::new() };
        let body = match self.random.below(6) {
            0 => "loop.index + loop.length".to_owned(),
            1 => self.any(2),
            _ => self.expression(item, 2),
        };
        self.bound.pop();
        format!("{{% for x in {items}{filter} %}}{{{{ {body} }}}}{{% endfor %}}")
    }

    fn unpacked(&mut self) -> String {
        let pairs = match self.random.below(6) {
            0 => format!("{} | items", self.expression(Sort::Map, 1)),
            1 => format!("{} | dictsort", self.expression(Sort::Map, 1)),
            2 => format!("{} | zip({})", self.expression(Sort::Texts, 1), self.expression(Sort::Numbers, 1)),
            3 => format!("{} | groupby('severity')", self.expression(Sort::Records, 1)),
            4 => format!("[[{}, {}]]", self.expression(Sort::Text, 1), self.expression(Sort::Number, 1)),
            _ => {
                let sort = self.anything();
                self.expression(sort, 2)
            }
        };
        self.bound.push(("a".to_owned(), Sort::Text));
        self.bound.push(("b".to_owned(), Sort::Number));
        let body = self.any(2);
        self.bound.truncate(self.bound.len() - 2);
        match self.random.below(5) {
            0 => format!("{{% set a, b = {pairs} %}}{{{{ {body} }}}}"),
            _ => format!("{{% for a, b in {pairs} %}}{{{{ {body} }}}}{{% endfor %}}"),
        }
    }

    fn set(&mut self) -> String {
        let sort = self.anything();
        let value = self.expression(sort, 2);
        self.bound.push(("v".to_owned(), sort));
        let body = self.any(2);
        self.bound.pop();
        format!("{{% set v = {value} %}}{{{{ {body} }}}}")
    }

    /// A value of several kinds, and a question which it is.
    fn guarded(&mut self) -> String {
        let (one, other) = (self.anything(), self.anything());
        let value = format!("{} if {} else {}", self.expression(one, 1), self.condition(1), self.expression(other, 1));
        let test =
            *self.random.one(&["string", "number", "integer", "mapping", "sequence", "iterable", "boolean", "none"]);
        let not = if self.random.chance(4) { "not " } else { "" };
        self.bound.push(("v".to_owned(), one));
        let (then, otherwise) = (self.expression(one, 2), self.expression(other, 2));
        self.bound.pop();
        format!(
            "{{% set v = {value} %}}{{% if v is {not}{test} %}}{{{{ {then} }}}}{{% else %}}{{{{ {otherwise} }}}}{{% endif %}}"
        )
    }

    fn anything(&mut self) -> Sort {
        *self.random.one(&SORTS)
    }

    fn any(&mut self, depth: u32) -> String {
        let sort = self.anything();
        self.expression(sort, depth)
    }

    fn condition(&mut self, depth: u32) -> String {
        let of = self.any(depth.saturating_sub(1));
        match self.random.below(8) {
            0 => format!("{of} is defined"),
            1 => format!("{of} is {}", self.random.one(TESTS)),
            2 => format!("{of} is {}({})", self.random.one(TESTS), self.argument()),
            3 => format!("not {of}"),
            4 => {
                let operator = *self.random.one(&["==", "!=", "<", ">=", "in", "not in"]);
                format!("{of} {operator} {}", self.any(depth.saturating_sub(1)))
            }
            5 => format!("({} and {})", self.expression(Sort::Flag, 0), self.expression(Sort::Flag, 0)),
            _ => self.expression(Sort::Flag, depth.saturating_sub(1)),
        }
    }

    /// An expression of this sort, or now and then of another.
    fn expression(&mut self, sort: Sort, depth: u32) -> String {
        let sort = if self.random.chance_of(12) { self.anything() } else { sort };
        if depth == 0 || self.random.chance(2) {
            return self.leaf(sort);
        }
        let inner = depth - 1;
        match self.random.below(14) {
            0 => {
                let (then, condition) = (self.expression(sort, inner), self.condition(inner));
                format!("({then} if {condition} else {})", self.expression(sort, inner))
            }
            1 if self.random.chance(3) => format!("({} if {})", self.expression(sort, inner), self.condition(inner)),
            2 => format!("({} or {})", self.expression(sort, inner), self.expression(sort, inner)),
            3 if self.random.chance(3) => {
                format!("({} and {})", self.expression(sort, inner), self.expression(sort, inner))
            }
            4 => format!("({} | default({}))", self.expression(sort, inner), self.expression(sort, inner)),
            5 => self.wild(inner),
            6 => self.subscript(inner),
            _ => self.compound(sort, inner),
        }
    }

    fn leaf(&mut self, sort: Sort) -> String {
        let bound: Vec<String> =
            self.bound.iter().filter(|(_, known)| *known == sort).map(|(name, _)| name.clone()).collect();
        if !bound.is_empty() && self.random.chance(6) {
            return self.random.one(&bound).clone();
        }
        let leaves: &[&str] = match sort {
            Sort::Number => &[
                "output.num",
                "output.frac",
                "output.rec.count",
                "output.rec.ratio",
                "output.rec.inner.x",
                "0",
                "1",
                "2",
                "-1",
                "1.5",
                "output.nums[0]",
                "output.map.a",
                "output.rec.filled[0]",
                "loop0",
                "none",
            ],
            Sort::Text => &[
                "output.text",
                "output.str",
                "output.level.word",
                "output.rec.name",
                "output.rec.note",
                "'a'",
                "'low'",
                "''",
                "'7'",
                "'%d of %s'",
                "output.rec.inner.y",
                "output.rec.level",
                "output.rec['name']",
            ],
            Sort::Flag => &["output.flag", "output.rec.done", "true", "false", "output.rec.note is defined"],
            Sort::Texts => {
                &["output.texts", "output.rec.tags", "['a', 'b']", "[]", "output.text | lines", "output.maps.a"]
            }
            Sort::Numbers => &[
                "output.nums",
                "output.nulls",
                "[1, 2]",
                "range(3)",
                "output.rec.maybe",
                "output.rec.filled",
                "[1, 'a']",
                "[1, none]",
                "output.nums[1:]",
            ],
            Sort::Records => &[
                "output.recs",
                "output.rec.issues",
                "[{'id': 1, 'title': 'x'}]",
                "[output.rec.inner]",
                "[output.rec, output.level]",
                "output.recs[:2]",
            ],
            Sort::Record => &[
                "output.rec",
                "output.rec.inner",
                "{'id': 1, 'title': 'x'}",
                "output.recs[0]",
                "output.level",
                "dict(id=1, title='x')",
                "{}",
            ],
            Sort::Map => &["output.map", "output.rec.counts", "{'a': 1}", "output.maps", "{output.str: 1}"],
            Sort::Rows => &["output.rows", "[[1], [2, 3]]", "output.nums | batch(2)", "[output.nums, output.texts]"],
        };
        match *self.random.one(leaves) {
            "loop0" => "3".to_owned(),
            leaf if leaf.contains('|') => format!("({leaf})"),
            leaf => leaf.to_owned(),
        }
    }

    fn compound(&mut self, sort: Sort, depth: u32) -> String {
        let pick = self.random.below(8);
        match sort {
            Sort::Number => self.number(pick, depth),
            Sort::Text => self.words(pick, depth),
            Sort::Flag => format!("({})", self.condition(depth)),
            Sort::Texts | Sort::Numbers | Sort::Records => self.list(sort, pick, depth),
            Sort::Record => match pick {
                0 | 1 => format!("({} | first)", self.expression(Sort::Records, depth)),
                2 => format!("({} | default({{'id': 2}}))", self.expression(Sort::Record, depth)),
                3 => format!("{{'id': {}, 'title': {}}}", self.any(depth), self.any(depth)),
                4 => format!("({} | last)", self.expression(Sort::Records, depth)),
                _ => self.leaf(Sort::Record),
            },
            Sort::Map => match pick {
                0 => format!("({} | chain({}))", self.expression(Sort::Map, depth), self.expression(Sort::Map, depth)),
                1 => format!("{{'a': {}, 'b': {}}}", self.any(depth), self.any(depth)),
                _ => self.leaf(Sort::Map),
            },
            Sort::Rows => match pick {
                0 => format!("({} | batch({}))", self.expression(Sort::Numbers, depth), self.argument()),
                1 => format!("({} | slice(2))", self.expression(Sort::Numbers, depth)),
                2 => format!(
                    "({} | zip({}))",
                    self.expression(Sort::Texts, depth),
                    self.expression(Sort::Numbers, depth)
                ),
                3 => format!("({} | items)", self.expression(Sort::Map, depth)),
                _ => self.leaf(Sort::Rows),
            },
        }
    }

    fn number(&mut self, pick: u64, depth: u32) -> String {
        match pick {
            0..=2 => {
                let operator = *self.random.one(&["+", "-", "*", "/", "//", "%", "**"]);
                format!(
                    "({} {operator} {})",
                    self.expression(Sort::Number, depth),
                    self.expression(Sort::Number, depth)
                )
            }
            3 => {
                let sort = self.anything();
                format!("({} | length)", self.expression(sort, depth))
            }
            4 => format!("({} | {})", self.expression(Sort::Text, depth), self.random.one(&["int", "float", "int(0)"])),
            5 => format!(
                "({} | {})",
                self.expression(Sort::Numbers, depth),
                self.random.one(&["sum", "max", "min", "first"])
            ),
            6 => format!(
                "({} | {})",
                self.expression(Sort::Number, depth),
                self.random.one(&["abs", "round", "round(1)", "int"])
            ),
            _ => format!("(-{})", self.expression(Sort::Number, depth)),
        }
    }

    fn words(&mut self, pick: u64, depth: u32) -> String {
        match pick {
            0 => format!("({} ~ {})", self.any(depth), self.any(depth)),
            1 => format!("({} + {})", self.expression(Sort::Text, depth), self.expression(Sort::Text, depth)),
            2 => {
                let filter = *self.random.one(&[
                    "upper",
                    "trim",
                    "title",
                    "replace('a', 'b')",
                    "indent(2)",
                    "reverse",
                    "string",
                ]);
                format!("({} | {filter})", self.expression(Sort::Text, depth))
            }
            3 => format!("({} | join(', '))", self.expression(Sort::Texts, depth)),
            4 => {
                let text = *self.random.one(&[
                    "'%s'",
                    "'%d'",
                    "'%5.2f and %s'",
                    "'%c'",
                    "'%(id)s'",
                    "'%x'",
                    "'%q'",
                    "'100%%'",
                ]);
                format!("({text} | format({}, {}))", self.any(depth), self.any(depth))
            }
            5 => format!("{}[{}:{}]", self.expression(Sort::Text, depth), self.bound_of_slice(), self.bound_of_slice()),
            6 => format!(
                "({} | {})",
                self.any(depth),
                self.random.one(&["json", "string", "pprint", "tojson(indent=2)"])
            ),
            _ => format!("({} * {})", self.expression(Sort::Text, depth), self.expression(Sort::Number, depth)),
        }
    }

    fn list(&mut self, sort: Sort, pick: u64, depth: u32) -> String {
        let of = self.expression(sort, depth);
        let field = match self.random.chance(2) {
            true => *self.random.one(&["where.line", "where.file", "inner.y", "where.by.x"]),
            false => *self.random.one(FIELDS),
        };
        match pick {
            0 => format!("({of} + {})", self.expression(sort, depth)),
            1 => {
                let filter =
                    *self.random.one(&["sort", "unique", "reverse", "list", "select", "reject", "sort(reverse=true)"]);
                format!("({of} | {filter})")
            }
            2 => format!("{of}[{}:{}]", self.bound_of_slice(), self.bound_of_slice()),
            3 if self.random.chance(3) => format!("{of}[::{}]", self.bound_of_slice()),
            4 => {
                let test = *self.random.one(&["string", "number", "defined", "none", "mapping", "odd", "foo", "eq"]);
                format!("({of} | {}('{test}'))", self.random.one(&["select", "reject"]))
            }
            5 => {
                let filter =
                    *self.random.one(&["upper", "int", "length", "abs", "first", "foo", "round", "items", "trim"]);
                format!("({of} | map('{filter}'))")
            }
            6 => {
                let of = match self.random.chance(3) {
                    true => {
                        format!("{of} | selectattr('{}')", self.random.one(&["where", "where', 'defined", "owner"]))
                    }
                    false => of,
                };
                let filter = *self.random.one(&[
                    "map(attribute=",
                    "sort(attribute=",
                    "groupby(",
                    "selectattr(",
                    "sum(attribute=",
                    "unique(attribute=",
                ]);
                format!("({of} | {filter}'{field}'))")
            }
            _ => format!("[{}, {}]", self.any(depth), self.any(depth)),
        }
    }

    fn bound_of_slice(&mut self) -> String {
        match self.random.below(10) {
            0 => "output.num".to_owned(),
            1 => self.expression(Sort::Number, 0),
            2 => "-1".to_owned(),
            3 => "0".to_owned(),
            4 => "2".to_owned(),
            _ => String::new(),
        }
    }

    fn subscript(&mut self, depth: u32) -> String {
        let sort = self.anything();
        let of = self.expression(sort, depth);
        match self.random.below(5) {
            0 => format!("{of}[{}]", self.random.one(&["0", "1", "-1", "'a'", "'id'"])),
            1 => format!("{of}[{}]", self.any(0)),
            _ => format!("{of}.{}", self.random.one(FIELDS)),
        }
    }

    /// A filter or a function with arguments that need not fit.
    fn wild(&mut self, depth: u32) -> String {
        let count = self.random.below(3);
        let arguments: Vec<String> = (0..count).map(|_| self.named_argument()).collect();
        let arguments = arguments.join(", ");
        if self.random.chance(2) {
            return format!("{}({arguments})", self.random.one(&["range", "dict", "debug", "namespace"]));
        }
        let of = self.any(depth);
        match (self.random.one(FILTERS), arguments.as_str()) {
            (filter, "") => format!("({of} | {filter})"),
            (filter, arguments) => format!("({of} | {filter}({arguments}))"),
        }
    }

    fn named_argument(&mut self) -> String {
        match self.random.chance(3) {
            true => format!("{}={}", self.random.one(NAMES), self.argument()),
            false => self.argument(),
        }
    }

    fn argument(&mut self) -> String {
        match self.random.below(8) {
            0 => {
                self.random.one(&["'id'", "'title'", "'tags'", "'upper'", "'string'", "'ceil'", "'value'"]).to_string()
            }
            1 => self.random.one(&["0", "1", "2", "3", "-1"]).to_string(),
            2 => self.random.one(&["true", "false", "none"]).to_string(),
            3 => self.random.one(&["'a'", "', '", "''"]).to_string(),
            _ => self.any(0),
        }
    }
}
