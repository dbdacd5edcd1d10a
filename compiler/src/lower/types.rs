//! Declared types and fields.

use std::collections::BTreeMap;

use super::datum::{Datum, Form};
use super::element::Element;
use super::type_text::type_expr;
use super::{argument_name, datum_name, value};
use crate::ast::{Field, Name, Spanned, TypeDef, TypeExpr, TypeKind};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Span;
use crate::syntax;

/// `type NAME { FIELD TYPE }` or `type NAME enum A B`; `text` is that of the file.
pub(super) fn type_def(element: &Element, text: &str, diagnostics: &mut Diagnostics) -> Option<TypeDef> {
    let name = argument_name(element, 0)?;
    let fields = lower_record(element, text, diagnostics);
    let words: Vec<&Datum> = element.arguments.iter().filter(|(at, _)| *at > 1).map(|(_, datum)| datum).collect();
    let unknown = TypeExpr { kind: TypeKind::Unknown, optional: false, span: element.span };
    let kind = match (element.argument(1), fields) {
        (Some(written), Some(fields)) => {
            let diagnostic =
                Diagnostic::new(Code::WrongValue, format!("type `{}` has fields and an `enum`", name.value))
                    .label(written.span, "one too many")
                    .label(fields.span, "the fields")
                    .help("declare two types");
            diagnostics.push(diagnostic);
            unknown
        }
        (Some(written), None) => {
            let kind = type_expr(written, &words, false, diagnostics);
            if !matches!(kind.kind, TypeKind::Enum(_) | TypeKind::Unknown) || kind.optional {
                let diagnostic = Diagnostic::new(
                    Code::WrongValue,
                    format!("type `{}` is neither fields nor an `enum`", name.value),
                )
                .label(kind.span, "another type")
                .help(format!(
                    "write `type {0} {{ FIELD TYPE }}` or `type {0} enum A B`; a `?` stands where the type is used",
                    name.value
                ));
                diagnostics.push(diagnostic);
                unknown
            } else {
                kind
            }
        }
        (None, Some(fields)) => fields,
        (None, None) => {
            if !diagnostics.has_report_at(element.span) {
                let diagnostic = Diagnostic::new(Code::WrongValue, format!("type `{}` has no fields", name.value))
                    .label(name.span, "nothing in it")
                    .help(format!("write `type {0} {{ FIELD TYPE }}` or `type {0} enum A B`", name.value));
                diagnostics.push(diagnostic);
            }
            unknown
        }
    };
    Some(TypeDef { name, kind, description: comment_text(&element.comments, text), span: element.span })
}

/// The fields in a block as a type; none where there are none.
pub(super) fn lower_record(element: &Element, text: &str, diagnostics: &mut Diagnostics) -> Option<TypeExpr> {
    let mut fields: Vec<Field> = Vec::new();
    let mut known: BTreeMap<String, &syntax::Name> = BTreeMap::new();
    let mut any = false;
    for child in element.children.iter().filter(|child| child.schema.name == "FIELD") {
        any = true;
        let written = &*child.name.text;
        if !value::is_field(written) {
            diagnostics.push(bad_field(&child.name, child.argument(0)));
        }
        if let Some(first) = known.insert(written.replace('-', "_"), &child.name) {
            let first = (&*first.text, first.span);
            diagnostics.push(report_second_field("declared", (written, child.name.span), first));
            continue;
        }
        let name = Spanned { value: written.to_owned(), span: child.name.span };
        fields.push(lower_field(child, name, 0, text, diagnostics));
    }
    any.then_some(TypeExpr { kind: TypeKind::Record(fields), optional: false, span: element.span })
}

/// A second field of one name, each with its place; expressions read `-` as `_`.
pub(super) fn report_second_field(what: &str, second: (&str, Span), first: (&str, Span)) -> Diagnostic {
    let ((written, again), (other, first)) = (second, first);
    let diagnostic = match written == other {
        true => Diagnostic::new(Code::Duplicate, format!("field `{written}` is {what} twice")),
        false => {
            let message = format!("the fields `{other}` and `{written}` have the same name in an expression");
            Diagnostic::new(Code::DuplicateDefinition, message)
        }
    };
    let help = if written == other { "remove one of them" } else { "`-` is `_` there: rename one of them" };
    diagnostic.label(again, "again here").label(first, "first here").help(help)
}

/// A field whose type is the argument at `position`.
pub(super) fn lower_field(
    element: &Element,
    name: Name,
    position: usize,
    text: &str,
    diagnostics: &mut Diagnostics,
) -> Field {
    let words: Vec<&Datum> =
        element.arguments.iter().filter(|(at, _)| *at > position).map(|(_, datum)| datum).collect();
    let kind = match element.argument(position) {
        Some(written) => type_expr(written, &words, false, diagnostics),
        None => TypeExpr { kind: TypeKind::Unknown, optional: false, span: element.name.span },
    };
    let number = |property: &str| {
        let datum = element.property(property)?;
        match &datum.form {
            Form::Number(number) => Some(Spanned { value: number.clone(), span: datum.span }),
            Form::Bool | Form::Text => None,
        }
    };
    let (min, max) = (number("min"), number("max"));
    let pattern = element.property("pattern").map(datum_name);
    let limits = [("min", min.as_ref()), ("max", max.as_ref())];
    limits
        .into_iter()
        .filter_map(|(property, limit)| report_misplaced_limit(property, limit?, &kind))
        .for_each(|wrong| diagnostics.push(wrong));
    if let (Some(min), Some(max)) = (&min, &max)
        && min.value.as_f64() > max.value.as_f64()
    {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("no value of `{}` fits", name.value))
            .label(max.span, "less than the least")
            .label(min.span, "the least")
            .help("swap them");
        diagnostics.push(diagnostic);
    }
    if let Some(pattern) = &pattern
        && let Some(fault) = crate::pattern::find_fault(&pattern.value)
    {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("`pattern=` of `{}` is not a pattern: {fault}", name.value))
            .label(pattern.span, fault)
            .help("write a regular expression without look-around and back references; write `\\` before a sign to match it literally");
        diagnostics.push(diagnostic);
    } else if let Some(pattern) = &pattern
        && !matches!(kind.kind, TypeKind::String | TypeKind::Unknown)
    {
        let diagnostic = Diagnostic::new(Code::WrongValue, "only a `string` has a `pattern=`")
            .label(pattern.span, "of no meaning here")
            .label(kind.span, "the type")
            .help("remove it");
        diagnostics.push(diagnostic);
    }
    Field { name, kind, min, max, pattern, description: comment_text(&element.comments, text) }
}

/// A limit that the type does not have, or that is none.
fn report_misplaced_limit(property: &str, limit: &Spanned<serde_json::Number>, kind: &TypeExpr) -> Option<Diagnostic> {
    let wrong = |message: String, label: &str, help: &str| {
        let diagnostic =
            Diagnostic::new(Code::WrongValue, message).label(limit.span, label).label(kind.span, "the type");
        Some(diagnostic.help(help))
    };
    match &kind.kind {
        TypeKind::Unknown | TypeKind::Float => None,
        TypeKind::Int if limit.value.is_f64() => wrong(
            format!("`{property}=` of an `int` is a whole number"),
            "not a whole number",
            "write a whole number, or make it a `float`",
        ),
        TypeKind::Int => None,
        TypeKind::String | TypeKind::List(_) | TypeKind::Map(_) if limit.value.as_u64().is_none() => {
            let what = if kind.kind == TypeKind::String { "characters" } else { "entries" };
            wrong(
                format!("`{property}=` counts the {what} here"),
                "not a number of them",
                "write a whole number from 0",
            )
        }
        TypeKind::String | TypeKind::List(_) | TypeKind::Map(_) => None,
        _ => wrong(
            format!("this type has no `{property}=`"),
            "of no meaning here",
            "numbers, texts, lists and maps have one: put it where such a type stands",
        ),
    }
}

fn bad_field(name: &syntax::Name, kind: Option<&Datum>) -> Diagnostic {
    let written = &*name.text;
    let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{written}` cannot be the name of a field"))
        .label(name.span, "not a field's name");
    if let Some(plain) = written.strip_suffix('?')
        && value::is_field(plain)
        && let Some(kind) = kind
    {
        let written = kind.text.as_str();
        let diagnostic = diagnostic.help(format!("the `?` follows the type: write `{plain} {written}?`"));
        // The fix writes the type anew, without the quotes that it may have.
        return match kind.text.is_bare() && !written.ends_with('?') {
            true => diagnostic.fix("move the `?`", name.span.to(kind.span), format!("{plain} {written}?")),
            false => diagnostic,
        };
    }
    let plain = written.trim_end_matches([':', ',']);
    let diagnostic = diagnostic
        .help("a field is a letter or `_`, then letters, digits, `_` and `-`; its type follows after a space");
    match value::is_field(plain) {
        true => diagnostic.fix(format!("write `{plain}`"), name.span, plain),
        false => diagnostic,
    }
}

/// What the comments above say; suppressions are left out.
fn comment_text(comments: &[Span], text: &str) -> Option<String> {
    let mut lines: Vec<&str> = Vec::new();
    for comment in comments {
        let written = text.get(comment.range()).unwrap_or_default();
        let inner =
            written.strip_prefix("//").or_else(|| written.strip_prefix("/*")?.strip_suffix("*/")).unwrap_or_default();
        if !inner.trim_start().starts_with("swarmc:") {
            lines.extend(inner.lines().map(|line| line.trim_start_matches(['/', '*', ' ', '\t']).trim_end()));
        }
    }
    let words: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}
