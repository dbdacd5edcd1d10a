//! Syntax tree to typed tree: the table decides what fits, and what does not fit is a report and a hole.

mod element;
mod pipeline;
mod provider;
pub(crate) mod value;

use std::collections::BTreeMap;

use swarmc_plan as plan;

use crate::ast::{self, Name, Scope, Source, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::schema::{self, Node};
use crate::source::Span;
use crate::syntax;
use crate::syntax::Text;
use element::{Datum, Element};

/// Lowers the nodes of a spec.
pub(crate) fn lower(nodes: Vec<syntax::Node>, diagnostics: &mut Diagnostics) -> ast::Spec {
    let mut spec = ast::Spec::default();
    for element in element::block(nodes, &schema::SPEC, diagnostics) {
        allows(&element, None, &mut spec.allows);
        match element.schema.name {
            "workflow" => spec.workflow = workflow(&element),
            "param" => spec.params.extend(param(&element, diagnostics)),
            "secret" => spec.secrets.extend(secret(&element)),
            "provider" => spec.providers.extend(provider::provider(&element, diagnostics)),
            "agent" => spec.agents.extend(agent(&element, diagnostics)),
            "prompt" => spec.prompts.extend(prompt(&element, diagnostics)),
            "pipeline" => spec.pipelines.extend(pipeline::pipeline(element, diagnostics)),
            _ => {}
        }
    }
    spec
}

fn workflow(element: &Element) -> Option<ast::Workflow> {
    let default = element.child("default").and_then(|default| name(default, 0));
    Some(ast::Workflow { name: name(element, 0)?, description: description(element), default })
}

fn param(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Param> {
    let written = text(element, "type");
    let (kind, optional) = value::param_type(&written)?;
    let default = element.property("default").map(|datum| Spanned { value: literal(&kind, datum), span: datum.span });
    if let Some(default) = &default
        && let Some(expected) = misfit(&kind, &default.value)
    {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("the default is not {expected}"))
            .label(default.span, format!("not {expected}"))
            .help("mend the default, or the type");
        diagnostics.push(diagnostic);
    }
    Some(ast::Param { name: name(element, 0)?, kind, optional, default, description: description(element) })
}

/// A default as the command line would take it: numbers in KDL may have `_` and other bases.
fn literal(kind: &plan::ParamType, datum: &Datum) -> String {
    let written = datum.text.as_str();
    match kind {
        plan::ParamType::Int if datum.number != 0 => datum.number.to_string(),
        plan::ParamType::Int | plan::ParamType::Float => written.replace('_', ""),
        _ => written.to_owned(),
    }
}

/// What a parameter's value should have been.
fn misfit(kind: &plan::ParamType, text: &str) -> Option<&'static str> {
    let (fits, expected) = match kind {
        plan::ParamType::Int => (text.parse::<i64>().is_ok(), "a whole number"),
        plan::ParamType::Float => (text.parse::<f64>().is_ok_and(f64::is_finite), "a number"),
        plan::ParamType::Bool => (matches!(text, "true" | "false"), "`#true` or `#false`"),
        plan::ParamType::String | plan::ParamType::File | plan::ParamType::Dir | plan::ParamType::Json(_) => (true, ""),
    };
    (!fits).then_some(expected)
}

fn secret(element: &Element) -> Option<ast::Secret> {
    Some(ast::Secret { name: name(element, 0)?, env: element.property("env")?.text.as_str().to_owned() })
}

fn agent(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Agent> {
    Some(ast::Agent {
        name: name(element, 0)?,
        provider: element.property("provider").map(spanned),
        model: element.property("model").map(|model| model.text.as_str().to_owned()),
        description: description(element),
        system: element.child("system").and_then(|system| source(system, 0, diagnostics)),
    })
}

fn prompt(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Prompt> {
    Some(ast::Prompt { name: name(element, 0)?, text: source(element, 1, diagnostics) })
}

/// The text of a node that takes it as an argument, from a file or by name: exactly one of them.
fn source(element: &Element, position: usize, diagnostics: &mut Diagnostics) -> Option<Source> {
    let given = [element.argument(position), element.property("file"), element.property("ref")];
    let mut found = given.iter().flatten();
    let (first, second) = (found.next(), found.next());
    let ways = match element.schema.property("ref") {
        Some(_) => "a text, `file=` or `ref=`",
        None => "a text or `file=`",
    };
    let node = element.schema.name;
    match (first, second) {
        (None, _) => {
            let written = element.name.span;
            // A value that does not fit has been reported.
            if !diagnostics.covers(element.span) {
                let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{node}` needs {ways}"))
                    .label(written, "nothing to say")
                    .help(format!("write `{node} \"…\"` or `{node} file=\"…\"`"));
                diagnostics.push(diagnostic);
            }
            None
        }
        (Some(first), Some(second)) => {
            let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{node}` takes {ways}, and only one of them"))
                .label(second.span, "one too many")
                .label(first.span, "the text is here already")
                .help("remove one of them");
            diagnostics.push(diagnostic);
            None
        }
        (Some(datum), None) => Some(match given {
            [Some(_), _, _] => Source::Inline(datum.text.clone()),
            [_, Some(_), _] => Source::File(datum.text.clone()),
            _ => Source::Ref(spanned(datum)),
        }),
    }
}

/// The suppressions of a block and of every block in it.
fn allows(element: &Element, parent: Option<&Element>, allows: &mut Vec<ast::Allow>) {
    if element.schema.name == schema::ALLOW.name {
        if let Some(code) = element.argument(0) {
            allows.push(ast::Allow {
                code: spanned(code),
                reason: element.property("reason").map(|reason| reason.text.as_str().to_owned()),
                span: element.span,
                scope: parent.map_or(Scope::Everywhere, |parent| Scope::Within(parent.span)),
            });
        }
        return;
    }
    // Blocks nest as deep as the table does.
    element.children.iter().for_each(|child| self::allows(child, Some(element), allows));
}

fn description(element: &Element) -> Option<String> {
    Some(element.child("description")?.argument(0)?.text.as_str().to_owned())
}

fn spanned(datum: &Datum) -> Name {
    Spanned { value: datum.text.as_str().to_owned(), span: datum.span }
}

fn name(element: &Element, position: usize) -> Option<Name> {
    element.argument(position).map(spanned)
}

/// The text of a property, or its default.
fn text(element: &Element, property: &str) -> String {
    match element.property(property) {
        Some(datum) => datum.text.as_str().to_owned(),
        None => default(element.schema, property).to_owned(),
    }
}

/// The default of a property as it would be written.
fn default(schema: &Node, property: &str) -> &'static str {
    schema.property(property).and_then(|property| property.default).expect("the table has a default for it")
}

/// What a node says when it is left out, as it would be written.
fn absent(parent: &Node, child: &str) -> &'static str {
    let child = parent.child(child).expect("the table has this node");
    child.arguments.first().and_then(|argument| argument.default).expect("the table has a default for it")
}

/// The word of a child with one argument, or its default.
fn word(element: &Element, child: &str) -> String {
    let given = element.child(child).and_then(|child| child.argument(0));
    given.map_or_else(|| absent(element.schema, child).to_owned(), |datum| datum.text.as_str().to_owned())
}

fn count(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn texts(element: &Element) -> Vec<Text> {
    element.arguments.iter().map(|(_, datum)| datum.text.clone()).collect()
}

/// The words of a command; one without a program is reported.
fn command(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Line> {
    let blank = element.arguments.first().is_none_or(|(_, first)| first.text.as_str().trim().is_empty());
    if !blank {
        if let Some(spaced) = spaced(element) {
            diagnostics.push(spaced);
        }
        return Some(ast::Line { words: texts(element) });
    }
    // A word that could not be read has been reported.
    if !diagnostics.covers(element.span) {
        let node = element.schema.name;
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{node}` needs a program"))
            .label(element.name.span, "nothing to start")
            .help(format!("write `{node} PROGRAM ARG…`"));
        diagnostics.push(diagnostic);
    }
    None
}

/// A command line in one word, where each argument is a word: no program is called so. A path may hold spaces, and
/// `run` and `check` take a single word as a shell line.
fn spaced(element: &Element) -> Option<Diagnostic> {
    let node = element.schema.name;
    let program = element.argument(0)?;
    let written = program.text.as_str().trim();
    if !written.contains(char::is_whitespace)
        || written.contains(['/', '\\'])
        || (node != "exec" && element.arguments.len() == 1)
    {
        return None;
    }
    let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{written}` is not the name of a program"))
        .label(program.span, "has a space in it")
        .help(format!("write each argument on its own: `{node} {written}`"));
    Some(diagnostic)
}

fn variables(element: &Element, diagnostics: &mut Diagnostics) -> Vec<ast::Variable> {
    let mut variables = Vec::new();
    let mut known: BTreeMap<String, Span> = BTreeMap::new();
    let mut once = |name: &str, span: Span| match known.get(name) {
        Some(first) => {
            diagnostics.push(element::twice(&format!("the variable {name}"), span, *first));
            false
        }
        None => known.insert(name.to_owned(), span).is_none(),
    };
    for env in element.children("env") {
        let named = env.arguments.iter().map(|(_, datum)| spanned(datum));
        variables.extend(named.filter(|name| once(&name.value, name.span)).map(ast::Variable::Named));
        let set = env.properties.iter().filter(|(key, _)| once(&key.text, key.span));
        variables.extend(set.map(|(key, datum)| ast::Variable::Set(key.text.to_string(), datum.text.clone())));
    }
    variables
}
