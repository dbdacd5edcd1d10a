//! The messages about what filters, tests, functions, slices and unpacking are given.

use std::ops::Range;

use super::super::Kind;
use super::super::signature::{Given, Signature};
use super::call::{Applied, Found, MOST_RANGE};
use super::expr::Walk;
use super::report::describe_kind;
use super::{Checker, Use};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::suggest;
use crate::template::{Argument, Expr, ExprKind, clip_word};

impl Found {
    pub(super) fn verb(&self) -> &'static str {
        if self.one_of { "may be" } else { "is" }
    }

    /// `is a text`.
    pub(super) fn describe(&self) -> String {
        format!("{} {}", self.verb(), describe_kind(&self.kind))
    }
}

impl Checker<'_> {
    /// How to ask whether a value is of the kind that does not fit.
    pub(super) fn ask_first(&self, of: &Expr, kind: &Kind) -> String {
        let test = match kind {
            kind if kind.is_text() => "string",
            Kind::Int | Kind::Float => "number",
            Kind::Bool => "boolean",
            Kind::None => "none",
            Kind::Map(_) | Kind::Record(_) => "mapping",
            _ => "iterable",
        };
        let shown = self.clip_source(of);
        match (self.usage, self.place_key(of).is_some()) {
            (Use::Condition, true) => format!("ask first: `{shown} is not {test} and …`"),
            (Use::Text, true) => format!("ask first: `{{% if {shown} is not {test} %}}`"),
            (Use::Condition, false) | (Use::List, _) => "filter out the values of this kind".to_owned(),
            (Use::Text, false) => {
                format!("give it a name, and ask first: `{{% set value = … %}}{{% if value is not {test} %}}`")
            }
        }
    }

    fn report_mismatch(&mut self, place: &Range<usize>, message: String, label: &str, help: String) {
        let diagnostic = Diagnostic::new(Code::TypeMismatch, message).label(self.span(place), label).help(help);
        self.push(diagnostic);
    }

    fn report_misuse(&mut self, place: &Range<usize>, message: String, label: &str, help: String) {
        let diagnostic = Diagnostic::new(Code::TemplateError, message).label(self.span(place), label).help(help);
        self.push(diagnostic);
    }

    /// SW205: a filter or a test on what it cannot take.
    pub(super) fn wrong_operand(&mut self, of: &Expr, applied: &Applied<'_>, signature: &Signature, found: &Found) {
        let kind = &found.kind;
        let (wants, help) = match applied.name {
            "abs" | "round" => ("a number", "use it on a number"),
            "int" | "float" => ("a text or a number", "for how many items there are, write `| length`"),
            "split" | "lines" | "format" => ("a text", "leave it out"),
            "items" | "dictsort" => ("a map", "go through the list itself"),
            _ if applied.reads_fields() && kind.is_text() => {
                ("a list of records", "give the output that it reads a type: `output \"list<TYPE>\"`")
            }
            "length" | "count" if matches!(kind, Kind::Iter { .. }) => {
                ("a list or a text", "make a list of it first: `| list`")
            }
            "last" if matches!(kind, Kind::Map(_) | Kind::Record(_)) => {
                ("a list or a text", "go through its names: `| list | last`")
            }
            _ if applied.what == "test" => ("a text", "use it on the name, as a text"),
            _ => ("a list or a text", "leave it out"),
        };
        let shown = self.clip_source(of);
        let (what, help) = match (applied.each, found.one_of) {
            (true, _) => (format!("an item of `{shown}`"), "leave it out, or use it on items that fit".to_owned()),
            (false, true) => (format!("`{shown}`"), self.ask_first(of, kind)),
            (false, false) => (format!("`{shown}`"), help.to_owned()),
        };
        let message = format!("`{}` takes {wants}, and {what} {}", signature.name, found.describe());
        self.report_mismatch(&of.range, message, describe_kind(kind), help);
    }

    /// SW204: an item that may be missing, and that a filter reads.
    pub(super) fn missing_item(&mut self, of: &Expr, applied: &Applied<'_>) {
        let message =
            format!("`{}` reads each item of `{}`, and one may be missing", applied.name, self.clip_source(of));
        let diagnostic = Diagnostic::new(Code::OptionalFieldUnguarded, message)
            .label(self.span(&of.range), "an item may be missing")
            .help("leave those out that are missing: `| select(\"defined\")`");
        self.push(diagnostic);
    }

    /// SW204: an item, or a field of one, that may be missing, and that a test reads.
    pub(super) fn missing_for_test(&mut self, of: &Expr, name: &str, test: &Expr, field: Option<&str>) {
        let (what, help) = match field.map(clip_word) {
            Some(field) => (format!("`{field}`"), format!("`| selectattr(\"{field}\", \"defined\")`")),
            None => ("one".to_owned(), "`| select(\"defined\")`".to_owned()),
        };
        let message = format!("`{name}` fails on what is missing, and {what} may be in `{}`", self.clip_source(of));
        let diagnostic = Diagnostic::new(Code::OptionalFieldUnguarded, message)
            .label(self.span(&test.range), "may be missing")
            .help(format!("leave those out without it first: {help}"));
        self.push(diagnostic);
    }

    /// SW204: a field of items that is read through one that may be missing, or of an item that may be.
    pub(super) fn missing_on_the_way(&mut self, of: &Expr, field: &Expr, name: &str, walk: Option<&Walk>) {
        let read = format!("`{}` is read of each item of `{}`", clip_word(name), self.clip_source(of));
        let Some(walk) = walk else {
            let diagnostic =
                Diagnostic::new(Code::OptionalFieldUnguarded, format!("{read}, and an item may be missing"))
                    .label(self.span(&of.range), "an item may be missing")
                    .help("leave those out that are missing: `| select(\"defined\")`");
            return self.push(diagnostic);
        };
        let before = self.passage.text()[field.range.start..walk.place.end].trim_start_matches(['"', '\'']);
        let before = clip_word(before);
        let message = format!("{read}, and `{before}` may be missing there");
        let diagnostic = Diagnostic::new(Code::OptionalFieldUnguarded, message)
            .label(self.span(&walk.place), "may be missing")
            .help(format!("leave those out without it: `| selectattr(\"{before}\", \"defined\")`"));
        self.push(match walk.declared {
            Some(declared) => diagnostic.label(declared, "declared optional here"),
            None => diagnostic,
        });
    }

    /// SW205: an argument of a kind that does not fit.
    pub(super) fn wrong_value(&mut self, applied: &Applied<'_>, value: &Expr, found: &Found, wants: &str) {
        let shown = self.clip_source(value);
        let help = match &found.kind {
            _ if matches!(value.kind, ExprKind::Const(_)) => format!("give {wants}"),
            Kind::Float if wants == "a whole number" => format!("write `{shown} | int`"),
            kind if kind.is_text() && wants.ends_with("number") => format!("write `{shown} | int`"),
            _ if wants == "a text" => format!("write `{shown} | string`"),
            _ => format!("give {wants}"),
        };
        let message = format!("`{}` takes {wants} here, and `{shown}` {}", applied.name, found.describe());
        self.report_mismatch(&value.range, message, describe_kind(&found.kind), help);
    }

    /// SW205: a number that is too small.
    pub(super) fn too_small(&mut self, applied: &Applied<'_>, value: &Expr, least: i64) {
        let message = format!("`{}` takes a number of at least {least} here", applied.name);
        self.report_mismatch(&value.range, message, "too small", format!("write `{least}`, or more"));
    }

    /// SW205: a word that the argument does not know.
    pub(super) fn unknown_word(&mut self, applied: &Applied<'_>, value: &Expr, words: &[&str]) {
        let message = format!("`{}` does not know {}", applied.name, self.clip_source(value));
        let help = format!("write {}", suggest::format_list(words.iter().copied(), "or"));
        self.report_mismatch(&value.range, message, "not one of its words", help);
    }

    /// SW209: an argument of a name that is not known.
    pub(super) fn unknown_argument(
        &mut self,
        applied: &Applied<'_>,
        signature: &Signature,
        argument: &Argument,
        name: &str,
    ) {
        let known = signature.arguments.iter().filter(|known| known.given != Given::ByPlace).map(|known| known.name);
        let known: Vec<&str> = known.collect();
        let message = format!("{} `{}` has no argument `{}`", applied.what, applied.name, clip_word(name));
        let near = suggest::find_nearest(name, known.iter().copied());
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => "give it without a name".to_owned(),
            None => format!("its arguments with a name are {}", suggest::format_list(known.iter().copied(), "and")),
        };
        let diagnostic = Diagnostic::new(Code::TemplateError, message)
            .label(self.span(&argument.value.range), "no argument has this name")
            .help(help);
        // The name stands before the value, with a `=` between.
        let before = self.passage.text()[..argument.value.range.start].trim_end();
        let end = before.strip_suffix('=').map_or(0, |before| before.trim_end().len());
        let written = end.checked_sub(name.len()).map(|start| start..end);
        let written = written.filter(|range| self.passage.text().get(range.clone()) == Some(name));
        self.push(match (near, written) {
            (Some(near), Some(range)) => diagnostic.write_near(self.span(&range), near),
            _ => diagnostic,
        });
    }

    /// SW209: an argument that is given twice.
    pub(super) fn repeated_argument(&mut self, applied: &Applied<'_>, argument: &Argument, name: &str) {
        let message = format!("{} `{}` is given `{name}` twice", applied.what, applied.name);
        self.report_misuse(
            &argument.value.range,
            message,
            "given before, without a name",
            "leave one of them out".to_owned(),
        );
    }

    /// SW209: an argument that must be given.
    pub(super) fn missing_argument(&mut self, applied: &Applied<'_>, name: &str) {
        let message = format!("{} `{}` needs an argument", applied.what, applied.name);
        let help = match name {
            "attribute" if applied.name == "map" => "write `map(attribute=\"…\")`, or `map(\"FILTER\")`".to_owned(),
            _ => format!("write `{}(…)`", applied.name),
        };
        self.report_misuse(&applied.place, message, &format!("`{name}` is missing"), help);
    }

    /// SW209: more arguments than there are.
    pub(super) fn surplus_argument(&mut self, applied: &Applied<'_>, signature: &Signature, argument: &Argument) {
        let placed = signature.arguments.iter().filter(|known| known.given != Given::ByName).count();
        let named = signature.arguments.iter().find(|known| known.given == Given::ByName);
        let takes = match placed {
            0 if named.is_none() => "no arguments".to_owned(),
            0 => "no arguments without a name".to_owned(),
            1 => "one argument".to_owned(),
            placed => format!("{placed} arguments"),
        };
        let help = match named {
            Some(named) => format!("leave it out, or give its name, as in `{}=…`", named.name),
            None => "leave it out".to_owned(),
        };
        let message = format!("{} `{}` takes {takes}", applied.what, applied.name);
        self.report_misuse(&argument.value.range, message, "surplus", help);
    }

    /// SW209: a filter or a test that a text names, and that there is not.
    pub(super) fn unknown_applied(&mut self, applied: &Applied<'_>, known: &'static [Signature]) {
        let what = applied.what;
        let near = suggest::find_nearest(applied.name, known.iter().map(|known| known.name));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if what == "filter" => "for a field of each item, write `map(attribute=\"…\")`".to_owned(),
            None => format!("name an existing {what}"),
        };
        let message = format!("unknown {what} `{}`", clip_word(applied.name));
        let diagnostic = Diagnostic::new(Code::TemplateError, message)
            .label(self.span(&applied.place), format!("no {what} has this name"))
            .help(help);
        self.push(match near {
            Some(near) => self.write_word(diagnostic, &applied.place, near),
            None => diagnostic,
        });
    }

    /// SW209: `map` with a filter and a field.
    pub(super) fn map_of_both(&mut self, applied: &Applied<'_>) {
        let message = "filter `map` takes a field or a filter, and not both".to_owned();
        self.report_misuse(&applied.place, message, "given both", "write one `map` after the other".to_owned());
    }

    /// SW209: an argument that `map` with a field does not have.
    pub(super) fn unknown_map_argument(&mut self, applied: &Applied<'_>, argument: &Argument) {
        let name = clip_word(argument.name.as_deref().unwrap_or_default());
        let message = format!("filter `{}` has no argument `{name}`", applied.name);
        let help = "its arguments with a name are attribute and default".to_owned();
        self.report_misuse(&argument.value.range, message, "no argument has this name", help);
    }

    /// SW209: a call of a value.
    pub(super) fn not_a_function(&mut self, call: &Expr, of: &Expr) {
        let message = format!("`{}` cannot be called", self.clip_source(of));
        self.report_misuse(&call.range, message, "not a function", "use a filter: `VALUE | FILTER`".to_owned());
    }

    /// SW205: a text of which no number can be read.
    pub(super) fn not_a_number(&mut self, of: &Expr, applied: &Applied<'_>, text: &str) {
        let message = format!("`{}` reads a number, but `{}` is not one", applied.name, clip_word(text));
        let help = format!("give a default for a text that is not a number: `{}(0)`", applied.name);
        self.report_mismatch(&of.range, message, "not a number", help);
    }

    /// SW205: `-` before what is no number.
    pub(super) fn not_a_number_to_negate(&mut self, of: &Expr, found: &Found) {
        let shown = self.clip_source(of);
        let help = match &found.kind {
            kind if found.one_of => self.ask_first(of, kind),
            kind if kind.is_text() => format!("write `({shown} | int)`"),
            _ => "negate a number".to_owned(),
        };
        let message = format!("`-` takes a number, and `{shown}` {}", found.describe());
        self.report_mismatch(&of.range, message, "not a number", help);
    }

    /// SW205: a key of a map that is written out.
    pub(super) fn wrong_key(&mut self, key: &Expr, found: &Found) {
        let message = format!("a key is a text, and `{}` {}", self.clip_source(key), found.describe());
        self.report_mismatch(&key.range, message, "not a text", "write it in quotes".to_owned());
    }

    /// SW205: a place in a list that is no number, or a key that is no text.
    pub(super) fn wrong_index(&mut self, walk: &Walk, index: &Expr, shown: &str) {
        let (called, label) = self.describe_walk(walk);
        let what = match &walk.kind.kind {
            Kind::Map(_) | Kind::Record(_) => "a text names a field",
            _ => "a whole number names an item",
        };
        let message = format!("{called} is {}, and {what}, not `{shown}`", describe_kind(&walk.kind.kind));
        let mut diagnostic =
            Diagnostic::new(Code::TypeMismatch, message).label(self.span(&index.range), "names nothing");
        if let Some((span, text)) = label {
            diagnostic = diagnostic.label(span, text);
        }
        self.push(diagnostic.help(match &walk.kind.kind {
            Kind::Map(_) | Kind::Record(_) => format!("write `{shown} | string`"),
            _ => "go through it: `{% for item in … %}`, or pick one, as in `[0]`".to_owned(),
        }));
    }

    /// SW205: what has no parts to slice.
    pub(super) fn not_sliceable(&mut self, of: &Expr, found: &Found) {
        let help = match found.one_of {
            true => self.ask_first(of, &found.kind),
            false => "slice a list or a text".to_owned(),
        };
        let message = format!("`{}` {}, and cannot be sliced", self.clip_source(of), found.describe());
        self.report_mismatch(&of.range, message, "neither a list nor a text", help);
    }

    /// SW205: a bound of a slice that is no whole number.
    pub(super) fn wrong_bound(&mut self, bound: &Expr, found: &Found) {
        let message = format!("a slice goes by whole numbers, and `{}` {}", self.clip_source(bound), found.describe());
        let help = match bound.kind {
            ExprKind::Const(_) => "give a whole number".to_owned(),
            _ => format!("write `{} | int`", self.clip_source(bound)),
        };
        self.report_mismatch(&bound.range, message, "not a whole number", help);
    }

    /// SW205: steps of no length.
    pub(super) fn zero_step(&mut self, step: &Expr) {
        let message = "the step of a slice cannot be 0".to_owned();
        self.report_mismatch(&step.range, message, "zero", "leave it out, or write another number".to_owned());
    }

    /// SW205: a power that cannot be computed.
    pub(super) fn no_power(&mut self, whole: &Expr) {
        let message = format!("`{}` cannot be computed", self.clip_source(whole));
        let help = "write a power of 0 or more whose result has at most 38 digits".to_owned();
        self.report_mismatch(&whole.range, message, "no such number", help);
    }

    /// SW205: a whole number that JSON of the run does not hold.
    pub(super) fn beyond_64_bits(&mut self, whole: &Expr) {
        let message = format!("`{}` does not fit into 64 bits", self.clip_source(whole));
        let help = "compute with fractions, as in `2.0 ** 64`, or show it as text: `~ \"\"`".to_owned();
        self.report_mismatch(&whole.range, message, "out of range", help);
    }

    /// SW205: more numbers than a `range` may have.
    pub(super) fn too_long_range(&mut self, applied: &Applied<'_>, items: u64) {
        let message = format!("this `range` has {items} items, and {MOST_RANGE} is the most");
        self.report_mismatch(&applied.place, message, "too many", "go through fewer".to_owned());
    }

    /// SW205: what is no way to escape text.
    pub(super) fn unknown_escape(&mut self, enabled: &Expr) {
        let message = format!("`autoescape` does not know `{}`", self.clip_source(enabled));
        let help = "write `true`, `false`, `\"html\"` or `\"none\"`".to_owned();
        self.report_mismatch(&enabled.range, message, "not a way to escape", help);
    }

    /// SW205: a slice from the end, which fails where there are too few items.
    pub(super) fn sliced_backwards(&mut self, whole: &Expr, of: &Expr) {
        let shown = self.clip_source(of);
        let message = format!("`{}` fails where `{shown}` has too few items", self.clip_source(whole));
        self.report_mismatch(
            &whole.range,
            message,
            "sliced backwards",
            format!("write `{shown} | reverse`, and slice that"),
        );
    }

    /// SW205: items that cannot be added up.
    pub(super) fn not_summable(&mut self, of: &Expr, field: Option<&Expr>, found: &Found) {
        let (what, help) = match field {
            Some(field) => (
                format!("`{}` of an item of `{}`", field.as_text().unwrap_or("…"), self.clip_source(of)),
                "sum another field",
            ),
            None => (
                format!("an item of `{}`", self.clip_source(of)),
                "name a field that is a number: `sum(attribute=\"…\")`, or read numbers: `map(\"int\") | sum`",
            ),
        };
        let message = format!("`sum` takes numbers, and {what} {}", found.describe());
        self.report_mismatch(&of.range, message, "no numbers", help.to_owned());
    }

    /// SW205: what has no parts to unpack.
    pub(super) fn not_unpackable(&mut self, value: &Expr, found: &Found, count: usize) {
        let message = format!("{count} names are set from `{}`, which {}", self.clip_source(value), found.describe());
        self.report_mismatch(&value.range, message, "cannot be unpacked", "set one name".to_owned());
    }

    /// SW205: other than so many parts to unpack.
    pub(super) fn unpacked_wrongly(&mut self, value: &Expr, has: usize, count: usize) {
        let items = if has == 1 { "1 item".to_owned() } else { format!("{has} items") };
        let message = format!("{count} names are set from `{}`, and there are {items}", self.clip_source(value));
        self.report_mismatch(
            &value.range,
            message,
            "cannot be unpacked",
            "set as many names as there are items".to_owned(),
        );
    }

    /// SW205: what may be missing, and cannot be unpacked then.
    pub(super) fn missing_to_unpack(&mut self, value: &Expr) {
        let message = format!("`{}` may be missing, and cannot be unpacked then", self.clip_source(value));
        self.report_mismatch(&value.range, message, "may be missing", "ask first whether it is there".to_owned());
    }

    /// SW205: a placeholder of `format` that is none.
    pub(super) fn unreadable_placeholder(&mut self, of: &Expr, written: &str) {
        let message = format!("`{}` is no placeholder that `format` knows", clip_word(written));
        self.report_mismatch(&of.range, message, "not a placeholder", "for the sign itself, write `%%`".to_owned());
    }

    /// SW205: a placeholder of `format` for which nothing is given.
    pub(super) fn missing_value(&mut self, of: &Expr, written: &str) {
        let message = format!("`format` is given nothing that fits `{}`", clip_word(written));
        self.report_mismatch(&of.range, message, "a value is missing", "give a value for each placeholder".to_owned());
    }

    /// SW205: a value that does not fit its placeholder.
    pub(super) fn wrong_placeholder(&mut self, of: &Expr, value: &Expr, written: &str, found: &Found) {
        let shown = self.clip_source(value);
        let message = format!("`{}` does not take `{shown}`, which {}", clip_word(written), found.describe());
        let help = match &found.kind {
            Kind::Float => format!("write `{shown} | int`"),
            kind if kind.is_text() => format!("write `%s`, or `{shown} | int`"),
            _ => "write `%s`".to_owned(),
        };
        let diagnostic = Diagnostic::new(Code::TypeMismatch, message)
            .label(self.span(&value.range), describe_kind(&found.kind))
            .label(self.span(&of.range), "put in here")
            .help(help);
        self.push(diagnostic);
    }
}
