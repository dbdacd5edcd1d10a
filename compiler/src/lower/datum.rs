//! Values: in goes what stands in the text, out comes a [`Datum`] of the kind that the table asks for, or a report
//! (SW005).

use super::unknown::report_deprecated;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lower::value;
use crate::schema::{self, Kind};
use crate::source::Span;
use crate::suggest::{self, Near};
use crate::syntax::{self, Text, ValueKind};

const TYPE_NAME: &str = "the name of a type is a capital letter, then letters and digits, and that of no built-in type";

/// A value that fits.
#[derive(Clone, Debug)]
pub(crate) struct Datum {
    /// Where it stands.
    pub span: Span,
    /// Its text: decoded for strings, as written for everything else.
    pub text: Text,
    /// A count, a number of milliseconds, of bytes or of micro-dollars, a whole number as a literal; else 0.
    pub number: i64,
    /// What it is in JSON, for what may be more than a text.
    pub form: Form,
}

/// What a value is in JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    Bool,
    Number(serde_json::Number),
    Text,
}

/// Whose value it is, as messages say it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    /// An argument of the node called so.
    Node(&'a str),
    /// The property called so.
    Property(&'a str),
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Node(name) => write!(f, "`{name}`"),
            Place::Property(name) => write!(f, "`{name}=`"),
        }
    }
}

/// A value as its kind, or a report.
pub(super) fn lower_datum(
    value: &syntax::Value,
    kind: Kind,
    place: Place<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Datum> {
    let span = value.span;
    let wrong = |found: &str, help: Option<String>| {
        Diagnostic::new(Code::WrongValue, format!("{place} takes {}, not {found}", kind.describe()))
            .label(span, format!("not {}", kind.describe()))
            .help_maybe(help)
    };
    let diagnostic = match (&value.kind, kind) {
        (ValueKind::Missing, _) => return None,
        (ValueKind::Null, Kind::Scalar | Kind::Text | Kind::Template) => {
            let help = "leave it out, or write `\"null\"` for the word";
            wrong("`#null`", Some(help.into())).unsafe_fix("put it in quotes", span, "\"null\"")
        }
        (ValueKind::Null, _) => wrong("`#null`", Some("leave it out instead".into())),
        (ValueKind::Bool(on), Kind::Bool | Kind::Literal) => {
            let text = Text::from_bare(if *on { "true" } else { "false" }, span);
            return Some(Datum { span, text, number: i64::from(*on), form: Form::Bool });
        }
        (ValueKind::Bool(on), Kind::Choice(words)) if words.iter().any(|word| word.word == format_boolean(*on)) => {
            return Some(Datum {
                span,
                text: Text::from_bare(format_boolean(*on), span),
                number: i64::from(*on),
                form: Form::Bool,
            });
        }
        (ValueKind::Bool(on), Kind::Template) => {
            let (written, text) = (format!("#{on}"), if *on { "true" } else { "false" });
            let diagnostic = wrong(&format!("`{written}`"), Some(format!("write `\"{text}\"`")));
            return Some(take_as_text(diagnostic, text, span, diagnostics));
        }
        (ValueKind::Number(number), Kind::Template) => {
            let diagnostic = wrong("a number", Some(format!("write `\"{}\"`", number.as_str())));
            return Some(take_as_text(diagnostic, number.as_str(), span, diagnostics));
        }
        (ValueKind::Bool(on), Kind::Scalar | Kind::Text | Kind::Expression) => {
            let quoted = format!("\"{on}\"");
            wrong(&format!("`#{on}`"), Some(format!("write `{quoted}`"))).unsafe_fix("put it in quotes", span, quoted)
        }
        (ValueKind::Bool(on), _) => wrong(&format!("`#{on}`"), None),
        (ValueKind::Number(number), Kind::Count(min, max)) => {
            match number
                .as_i128()
                .and_then(|count| u64::try_from(count).ok())
                .filter(|count| (min..=max).contains(count))
            {
                Some(count) => {
                    let number_text = Text::from_bare(number.as_str(), span);
                    let number = i64::try_from(count).unwrap_or(i64::MAX);
                    return Some(Datum { span, text: number_text, number, form: Form::Number(count.into()) });
                }
                None => wrong(&format!("`{}`", number.as_str()), None),
            }
        }
        (ValueKind::Number(number), Kind::Literal | Kind::Number | Kind::Ratio(..)) => {
            match number_form(number, kind) {
                Some(form) => {
                    let whole = number.as_i128().and_then(|whole| i64::try_from(whole).ok());
                    let text = Text::from_bare(number.as_str(), span);
                    return Some(Datum { span, text, number: whole.unwrap_or_default(), form });
                }
                None => wrong(&format!("`{}`", number.as_str()), None),
            }
        }
        // A word of a command is the text as written: `007` keeps its zeros.
        (ValueKind::Number(number), Kind::Scalar) => {
            return Some(Datum { span, text: Text::from_bare(number.as_str(), span), number: 0, form: Form::Text });
        }
        (ValueKind::Number(number), Kind::Money) => {
            let quoted = format!("\"${}\"", number.as_str());
            wrong("a bare number", Some(format!("say the unit: `{quoted}`"))).unsafe_fix("say the unit", span, quoted)
        }
        (ValueKind::Number(number), Kind::Duration) => {
            let written = number.as_str();
            wrong("a bare number", Some(format!("say the unit: `\"{written}s\"` or `\"{written}m\"`")))
        }
        (ValueKind::Number(number), Kind::Size) => {
            let written = number.as_str();
            wrong("a bare number", Some(format!("say the unit: `\"{written}KB\"` or `\"{written}B\"`")))
        }
        (ValueKind::Number(number), _) => {
            let quoted = format!("\"{}\"", number.as_str());
            match kind {
                Kind::Text | Kind::Expression => {
                    wrong("a number", Some(format!("write `{quoted}`"))).unsafe_fix("put it in quotes", span, quoted)
                }
                _ => wrong("a number", None),
            }
        }
        (ValueKind::String(text), kind) => return lower_string(text.clone(), kind, span, place, diagnostics),
    };
    push_wrong(diagnostic, span, diagnostics);
    None
}

/// A literal of KDL 1 has been reported: it is the word that was meant, or nothing.
fn push_wrong(diagnostic: Diagnostic, span: Span, diagnostics: &mut Diagnostics) {
    match diagnostics.has_report_at(span) {
        true => diagnostics.amend(Code::V1Literal, span, diagnostic),
        false => diagnostics.push(diagnostic),
    }
}

/// A value where a text stands, whose quotes alone are missing: it is reported, and given all the same.
fn take_as_text(wrong: Diagnostic, text: &str, span: Span, diagnostics: &mut Diagnostics) -> Datum {
    push_wrong(wrong.fix("put it in quotes", span, format!("\"{text}\"")), span, diagnostics);
    Datum { span, text: Text::from_bare(text, span), number: 0, form: Form::Text }
}

/// A number in JSON, where it is finite and in the range of the kind.
fn number_form(number: &syntax::Number, kind: Kind) -> Option<Form> {
    let float = number.as_f64();
    if let Kind::Ratio(min, max) = kind
        && !(min..=max).contains(&float)
    {
        return None;
    }
    // A float would lose the last digits of a large whole number.
    let whole = number.as_i128().and_then(|whole| i64::try_from(whole).ok()).map(serde_json::Number::from);
    whole.or_else(|| serde_json::Number::from_f64(float)).map(Form::Number)
}

fn lower_string(
    mut text: Text,
    kind: Kind,
    span: Span,
    place: Place<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Datum> {
    if let Kind::Choice(words) = kind
        && !words.iter().any(|word| word.word == text.as_str())
        && let Some((word, older)) =
            words.iter().find_map(|it| Some((it, schema::find_older(it.older, text.as_str())?)))
    {
        diagnostics.push(report_deprecated(older, word.word, span));
        text = Text::from_bare(word.word, span);
    }
    let wrong = |message: String, help: Option<String>| {
        Diagnostic::new(Code::WrongValue, message).label(span, format!("not {}", kind.describe())).help_maybe(help)
    };
    let value = text.as_str();
    let mut number = 0;
    let diagnostic = match kind {
        Kind::Scalar if value.contains('\0') => Some(wrong(
            format!("{place} holds a NUL"),
            Some("no argument of a process can hold one: leave it out".into()),
        )),
        Kind::Text | Kind::Template | Kind::Expression | Kind::Scalar | Kind::Literal | Kind::Reference(_) => None,
        // What a type says is read where it is known what it is for.
        Kind::Type => None,
        Kind::Path | Kind::Glob if value.is_empty() => Some(wrong(format!("{place} names no file"), None)),
        Kind::Path | Kind::Glob => None,
        Kind::Name if value.len() > swarmc_plan::LONGEST_NAME => {
            let beginning: String = value.chars().take(20).collect();
            let longest = swarmc_plan::LONGEST_NAME;
            Some(wrong(format!("the name `{beginning}…` is too long"), Some(format!("{longest} characters at most"))))
        }
        Kind::Name if value::is_name(value) => None,
        Kind::Name => {
            let lower = value.to_lowercase().replace([' ', '.'], "-");
            let rule = "a name is a lowercase letter, then lowercase letters, digits, `-` and `_`";
            let message = format!("`{value}` cannot be a name");
            Some(match value::is_name(&lower) {
                true => wrong(message, Some(format!("write `{lower}`: {rule}"))).unsafe_fix(
                    format!("write `{lower}`"),
                    span,
                    lower,
                ),
                false => wrong(message, Some(rule.into())),
            })
        }
        Kind::Variable if value::is_variable(value) => None,
        Kind::Variable => Some(wrong(
            format!("`{value}` is not the name of an environment variable"),
            Some("letters, digits and `_`, and no digit first".into()),
        )),
        Kind::Pool if swarmc_plan::is_pool_name(value) => None,
        Kind::Pool => {
            let beginning: String = value.chars().take(20).collect();
            let rest = if beginning.len() < value.len() { "…" } else { "" };
            let message = match value {
                "" => format!("{place} names no pool"),
                _ => format!("`{beginning}{rest}` cannot be the name of a pool"),
            };
            let rule = format!("it has 1 to {} letters, digits, `-` and `_`", swarmc_plan::LONGEST_POOL);
            Some(wrong(message, Some(rule)))
        }
        Kind::Duration => match value::parse_duration(value) {
            Ok(millis) => {
                number = i64::try_from(millis).unwrap_or(i64::MAX);
                None
            }
            Err(help) => {
                let diagnostic = wrong(format!("`{value}` is not a duration"), Some(help));
                Some(match value::translate_duration(value) {
                    Some(duration) => diagnostic.fix(format!("write `{duration}`"), span, format!("\"{duration}\"")),
                    None => diagnostic,
                })
            }
        },
        Kind::Size => match value::parse_size(value) {
            Ok(bytes) => {
                number = i64::try_from(bytes).unwrap_or(i64::MAX);
                None
            }
            Err(help) => Some(wrong(format!("`{value}` is not a size"), Some(help))),
        },
        // A keyword in quotes is a text.
        Kind::Choice(words) => match words.iter().any(|word| word.word == value && !value.starts_with('#')) {
            true => None,
            false => {
                let names: Vec<&str> = words.iter().map(|word| word.word).collect();
                let meant = parse_keyword(value).filter(|keyword| names.contains(keyword));
                if meant == Some(value) {
                    let diagnostic = wrong(format!("{place} takes `{value}` without quotes"), None);
                    diagnostics.push(diagnostic.fix("remove the quotes", span, value));
                    return None;
                }
                let close =
                    meant.map(|name| Near { name, certain: false }).or_else(|| suggest::find_nearest(value, names));
                let help = format!("write {}", kind.describe());
                let diagnostic = wrong(
                    format!("{place} cannot be `{value}`"),
                    Some(close.map_or(help, |close| format!("did you mean `{close}`?"))),
                );
                Some(match close {
                    Some(close) => diagnostic.write_near(span, close),
                    None => diagnostic,
                })
            }
        },
        Kind::TypeName => value::type_name(value).err().map(|other| {
            let diagnostic = wrong(format!("`{value}` cannot be the name of a type"), Some(TYPE_NAME.into()));
            match other {
                Some(other) => diagnostic.unsafe_fix(format!("write `{other}`"), span, other),
                None => diagnostic,
            }
        }),
        Kind::Money => match value::parse_money(value) {
            Ok(money) => {
                number = i64::try_from(money).unwrap_or(i64::MAX);
                None
            }
            Err(help) => Some(wrong(format!("`{value}` is not an amount of money"), Some(help))),
        },
        Kind::Lines => match value::parse_line_range(value) {
            Some(_) => None,
            None => Some(wrong(
                format!("`{value}` are no lines of a file"),
                Some("write the first and the last of them, from 1: `\"1-40\"`".into()),
            )),
        },
        Kind::Number | Kind::Ratio(..) => {
            let diagnostic = wrong(format!("{place} takes {}, not a text", kind.describe()), None);
            Some(match value.parse::<f64>() {
                // Rust also reads `.5`, which is no number in KDL.
                Ok(plain) if plain.is_finite() && value.starts_with(|first: char| first.is_ascii_digit()) => {
                    diagnostic.help(format!("write `{value}` without quotes")).fix("remove the quotes", span, value)
                }
                _ => diagnostic,
            })
        }
        Kind::Count(..) => {
            let diagnostic = wrong(format!("{place} takes {}, not a text", kind.describe()), None);
            Some(match (value.parse::<u64>(), value::expand_thousands(value)) {
                (Ok(plain), _) => {
                    diagnostic.help(format!("write `{plain}` without quotes")).fix("remove the quotes", span, value)
                }
                (Err(_), Some(number)) => {
                    diagnostic.help(format!("write `{number}`")).unsafe_fix(format!("write `{number}`"), span, number)
                }
                (Err(_), None) => diagnostic.help("write it in digits, as in `3`"),
            })
        }
        Kind::Bool => {
            let keyword = parse_keyword(value);
            let help = keyword.map(|keyword| format!("write `{keyword}`"));
            let diagnostic = wrong(format!("{place} takes {}, not a text", kind.describe()), help);
            Some(match keyword {
                Some(keyword) => diagnostic.fix("write the keyword", span, keyword),
                None => diagnostic,
            })
        }
    };
    match diagnostic {
        // A name that cannot be one is still what it declares: its references hold.
        Some(diagnostic) if matches!(kind, Kind::Name | Kind::TypeName) => {
            diagnostics.push(diagnostic);
            Some(Datum { span, text, number, form: Form::Text })
        }
        Some(diagnostic) => {
            diagnostics.push(diagnostic);
            None
        }
        None => Some(Datum { span, text, number, form: Form::Text }),
    }
}

/// A keyword of KDL.
fn format_boolean(on: bool) -> &'static str {
    if on { "#true" } else { "#false" }
}

/// The keyword that a word stands for.
fn parse_keyword(value: &str) -> Option<&'static str> {
    match value.trim_start_matches('#').to_lowercase().as_str() {
        "true" | "yes" | "on" => Some(format_boolean(true)),
        "false" | "no" | "off" => Some(format_boolean(false)),
        _ => None,
    }
}
