//! Defaults that name another value, such as `<<previous:x | default:output.y>>`.
//!
//! In: the text of a directive. Out: the problem that says so, with the expression that reads both values. A directive
//! would print the name.

use std::ops::Range;

use super::directive::word_at;
use super::{Kind, Problem};
use crate::code::Code;

/// The problem of a directive with this body whose default, `argument` of the filter at `filter`, names a value.
pub(super) fn named_default(text: &str, body: Range<usize>, argument: &str, filter: Range<usize>) -> Option<Problem> {
    let other = translate_path(argument)?;
    let (path, filters) = text[body.clone()].split_once('|')?;
    let expression = format!("{{{{ {} | default({other}) }}}}", translate_path(path)?);
    let message = format!("the default is the text `{argument}`");
    let problem = Problem::new(Code::BadDirective, filter, message, "not the value that has this name")
        .help(format!("write `{expression}`, or `default:\"{argument}\"` for the text itself"));
    Some(match filters.contains('|') {
        true => problem,
        false => {
            // The older notation has spaces between its braces and the body.
            let start = text[..body.start].trim_end().len() - 2;
            let end = text.len() - text[body.end..].trim_start().len() + 2;
            problem.fix(format!("write `{expression}`"), start..end, expression, false)
        }
    })
}

/// The problem of `<<output:x | default:<<output:y>>>>`, where the first directive stops at the second.
pub(super) fn nested_default(text: &str, first: Range<usize>) -> Option<Problem> {
    let shown = &text[first.clone()];
    let (path, filter) = shown.strip_prefix("<<")?.split_once('|')?;
    let (other, behind) = text[first.end..].strip_prefix("<<")?.split_once(">>")?;
    if filter.trim() != "default:" {
        return None;
    }
    let expression = format!("{{{{ {} | default({}) }}}}", translate_path(path)?, translate_path(other)?);
    let closed = if behind.starts_with(">>") { 2 } else { 0 };
    let whole = first.start..text.len() - behind.len() + closed;
    let problem = Problem::new(Code::BadDirective, first, format!("`{shown}` is not closed"), "a directive follows")
        .help(format!("write `{expression}`: a default that is another value is an expression"));
    Some(problem.fix(format!("write `{expression}`"), whole, expression, false))
}

/// A path of a directive as an expression has it: `output.x_y.z` for `output:x-y.z`.
fn translate_path(path: &str) -> Option<String> {
    let path = path.trim();
    let word = word_at(path, 0);
    let names = path.get(word.len()..)?.strip_prefix([':', '.'])?;
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let reads = matches!(Kind::from_word(word), Some(Kind::Read(_))) && names.split('.').all(is_name);
    reads.then(|| format!("{word}.{}", names.replace('-', "_")))
}
