//! Prompts of another tool as texts of ours: its directives rewritten, and what would be one of ours escaped.
//!
//! In: a text with `{{output:x}}`, `{{input:x}}` and `{{include: x}}`. Out: the text with what the caller puts in their
//! place; every other `{{`, `{%`, `{#` and `<<` comes out of the template as it went in.

/// A directive of the other tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Directive<'t> {
    Output(&'t str),
    Input(&'t str),
    Include(&'t str),
}

/// Rewrites a text; `each` says what stands for a directive, as template text.
pub(super) fn rewrite_directives<'t>(text: &'t str, mut each: impl FnMut(Directive<'t>) -> String) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(['{', '<']) {
        let (before, here) = rest.split_at(at);
        out.push_str(before);
        if let Some((directive, length)) = parse_directive(here) {
            out.push_str(&each(directive));
            rest = &here[length..];
            continue;
        }
        // Nothing where the text ends behind the sign, or where a longer character follows it.
        let mark = here.get(..2).unwrap_or_default();
        let length = match mark {
            "{{" | "{%" | "{#" => {
                out.push_str("{{ \"");
                out.push_str(mark);
                out.push_str("\" }}");
                2
            }
            "<<" => {
                let is_word = here[2..].starts_with(|c: char| c.is_ascii_alphabetic());
                if is_word || out.ends_with('\\') {
                    out.push('\\');
                }
                out.push_str("<<");
                2
            }
            _ => {
                out.push_str(&here[..1]);
                1
            }
        };
        rest = &here[length..];
    }
    out + rest
}

/// A text in which nothing is a directive.
pub(super) fn escape_template(text: &str) -> String {
    rewrite_directives(text, |_| String::new())
}

/// The directives of a text.
pub(super) fn list_directives(text: &str) -> impl Iterator<Item = Directive<'_>> {
    text.match_indices("{{").filter_map(|(at, _)| Some(parse_directive(&text[at..])?.0))
}

/// The directive that a text begins with, and its length.
fn parse_directive(text: &str) -> Option<(Directive<'_>, usize)> {
    let inner = text.strip_prefix("{{")?;
    let word = ["output:", "input:", "include:"].into_iter().find(|word| inner.starts_with(word))?;
    let rest = &inner[word.len()..];
    // Names and paths are short: a text full of open braces is not read again and again.
    let near = &rest[..rest.floor_char_boundary(1024)];
    let end = near.find(['}', '\n'])?;
    if !near[end..].starts_with("}}") {
        return None;
    }
    let name = near[..end].trim();
    let length = 2 + word.len() + end + 2;
    let directive = match word {
        "output:" => Directive::Output(name),
        "input:" => Directive::Input(name),
        _ => Directive::Include(name),
    };
    (!name.is_empty()).then_some((directive, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = rewrite_directives(text, |directive| match directive {
            Directive::Output(name) => format!("<<output:{name}>>"),
            Directive::Input(name) => format!("<<input:{name}>>"),
            Directive::Include(path) => format!("<<include:{path}>>"),
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn directives_are_rewritten_and_the_rest_is_text() {
        check(
            "Do: {{output: plan }}, {{input:x}}{{include: a/b}}.",
            "Do: <<output:plan>>, <<input:x>><<include:a/b>>.",
        );
        check("{{ x }} {% if %}{# #}", "{{ \"{{\" }} x }} {{ \"{%\" }} if %}{{ \"{#\" }} #}");
        check("cat <<EOF \\<<x 1 << 2", "cat \\<<EOF \\\\<<x 1 << 2");
        check("{{output:}} {{output:x}", "{{ \"{{\" }}output:}} {{ \"{{\" }}output:x}");
        check("a { b < c {", "a { b < c {");
        check("{é<", "{é<");
    }

    #[test]
    fn directives_are_found_without_spaces_before_their_word() {
        let found: Vec<_> = list_directives("{{output:a}} {{output: b-c }} {{input:d}} {{ output:e }}").collect();
        assert_eq!(found, [Directive::Output("a"), Directive::Output("b-c"), Directive::Input("d")]);
    }
}
