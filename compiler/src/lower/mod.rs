//! Lowers the syntax tree to the typed tree: reports and leaves out each part that does not fit the language table.

mod agent;
mod body;
mod control;
mod datum;
mod edges;
mod element;
mod files;
mod foreign;
mod pack;
mod pipeline;
mod policy;
mod provider;
mod section;
mod sequence;
mod step;
mod swarm;
mod test;
#[cfg(test)]
mod tests;
mod type_text;
mod types;
mod unknown;
pub(crate) mod value;

use std::collections::BTreeMap;

use crate::ast::{self, Name, Scope, Source, Spanned, TypeExpr, TypeKind};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::library;
use crate::schema::{self, Kind, Target};
use crate::source::{FileId, Sources, Span};
use crate::suggest;
use crate::syntax::{self, Text};
use crate::template;
use datum::{Datum, Form};
use element::Element;
use section::Section;

/// The nodes of a document that is no spec, the first and only file of `sources`, held against its own table.
pub(crate) fn lower_document(
    sources: &Sources,
    schema: &'static schema::Node,
    diagnostics: &mut Diagnostics,
) -> Vec<Element> {
    let file = FileId::new(0);
    let tree = syntax::parse(sources.text(file), file);
    tree.problems.into_iter().for_each(|problem| diagnostics.push(problem.into()));
    element::lower_block(&tree.nodes, schema, "", diagnostics)
}

/// Lowers the nodes of a spec; `text` is what they were read from.
pub(crate) fn lower_spec(nodes: &[syntax::Node], text: &str, diagnostics: &mut Diagnostics) -> ast::Spec {
    let mut spec = ast::Spec::default();
    for element in element::lower_block(nodes, &schema::SPEC, "", diagnostics) {
        collect_allows(&element, None, &mut spec.allows);
        collect_presets(&element, &mut spec.presets);
        match element.schema.name {
            "workflow" => spec.workflow = lower_workflow(&element),
            "import" => spec.imports.extend(lower_import(&element)),
            "param" => spec.params.extend(lower_param(&element, diagnostics)),
            "secret" => spec.secrets.extend(lower_secret(&element)),
            "type" => spec.types.extend(types::type_def(&element, text, diagnostics)),
            "provider" => spec.providers.extend(provider::lower_provider(&element, diagnostics)),
            "tiers" => spec.tiers = agent::lower_tiers(&element, diagnostics),
            "agent" => spec.agents.extend(agent::lower_agent(&element, diagnostics)),
            "tool-server" => spec.tool_servers.extend(agent::tool_server(&element, diagnostics)),
            "prompt" => spec.prompts.extend(lower_prompt(&element, diagnostics)),
            "context-pack" => spec.packs.extend(pack::lower_pack(&element, diagnostics)),
            "task" => spec.tasks.extend(step::lower_step(&element, text, diagnostics)),
            "pipeline" => spec.pipelines.extend(pipeline::lower_pipeline(&element, text, diagnostics)),
            "swarm" => spec.swarms.extend(swarm::lower_swarm(&element, diagnostics)),
            "budget" => spec.budget = Some(policy::lower_budget(&element, diagnostics)),
            "policy" => spec.policy = Some(policy::lower_policy(&element, diagnostics)),
            "test" => spec.tests.extend(test::lower_test(&element, diagnostics)),
            "hook" => spec.hooks.extend(policy::lower_hook(&element, diagnostics)),
            _ => {}
        }
    }
    spec
}

fn lower_workflow(element: &Element) -> Option<ast::Workflow> {
    Some(ast::Workflow {
        name: argument_name(element, 0)?,
        description: description_text(element),
        default: element.child("default").and_then(|default| argument_name(default, 0)),
        edition: element.child("edition").and_then(|edition| argument_name(edition, 0)),
        docs_root: child_argument(element, "docs-root"),
        mode: element.child("mode").and_then(|node| Some(parse_choice(node.argument(0)?, agent::parse_mode))),
        survive: element.child("survive").map(lower_survive).unwrap_or_default(),
        locked: element
            .child("locked")
            .filter(|node| node.argument(0).is_none_or(|on| on.number == 1))
            .map(|node| node.span),
    })
}

fn lower_survive(element: &Element) -> swarmc_plan::Survive {
    let survive = Section::of(element);
    swarmc_plan::Survive {
        what: element.argument(0).map_or(swarmc_plan::Survivors::Agents, |what| {
            parse_choice(what, |word| match word {
                "none" => swarmc_plan::Survivors::None,
                "all" => swarmc_plan::Survivors::All,
                _ => swarmc_plan::Survivors::Agents,
            })
            .value
        }),
        for_ms: survive.number_of("for"),
    }
}

fn lower_import(element: &Element) -> Option<ast::Import> {
    let alias = element.property("as").map(datum_name);
    Some(ast::Import { path: element.argument(0)?.text.clone(), alias, span: element.span })
}

fn lower_param(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Param> {
    let kind = match element.property("type") {
        Some(written) => type_text::type_expr(written, &[], true, diagnostics),
        // The default of the table: any text.
        None => TypeExpr { kind: TypeKind::String, optional: false, span: element.name.span },
    };
    element.property("default").into_iter().for_each(|default| report_literal_directive(default, diagnostics));
    let default =
        element.property("default").map(|datum| Spanned { value: literal_text(&kind, datum), span: datum.span });
    if let Some(default) = &default
        && let Some(expected) = describe_misfit(&kind, &default.value)
    {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("the default is not {expected}"))
            .label(default.span, format!("not {expected}"))
            .help("mend the default, or the type");
        diagnostics.push(diagnostic);
    }
    let env = element.property("env").map(datum_name);
    Some(ast::Param { name: argument_name(element, 0)?, kind, default, env, description: description_text(element) })
}

/// Reports a directive in a default, which is no template.
fn report_literal_directive(default: &Datum, diagnostics: &mut Diagnostics) {
    if let Some((range, _)) = template::list_placeholders(default.text.as_str()).into_iter().next() {
        let written = &default.text.as_str()[range.clone()];
        let diagnostic = Diagnostic::new(
            Code::LegacyDirective,
            format!("a default is not a template, so `{written}` stays as it is"),
        )
        .label(default.text.span(range.clone()), "nothing replaces it")
        .help("take it out, or give the default in the text that reads the value");
        diagnostics.push(diagnostic);
    }
}

/// A default as the command line would take it: numbers in KDL may have `_` and other bases.
fn literal_text(kind: &TypeExpr, datum: &Datum) -> String {
    match (&kind.kind, &datum.form) {
        (TypeKind::String | TypeKind::File | TypeKind::Dir | TypeKind::Enum(_), _) => datum.text.as_str().to_owned(),
        (_, Form::Number(number)) => number.to_string(),
        _ => datum.text.as_str().to_owned(),
    }
}

/// What a value of this type, in its textual form, should have been.
fn describe_misfit(kind: &TypeExpr, text: &str) -> Option<String> {
    let json = || serde_json::from_str::<serde_json::Value>(text);
    let (fits, expected) = match &kind.kind {
        TypeKind::Int => (text.parse::<i64>().is_ok(), "a whole number"),
        TypeKind::Float => (text.parse::<f64>().is_ok_and(f64::is_finite), "a number"),
        TypeKind::Bool => (matches!(text, "true" | "false"), "`#true` or `#false`"),
        TypeKind::List(_) => (json().is_ok_and(|value| value.is_array()), "a JSON array"),
        TypeKind::Map(_) | TypeKind::Record(_) => (json().is_ok_and(|value| value.is_object()), "a JSON object"),
        TypeKind::Enum(words) => {
            let fits = words.iter().any(|word| word.value == text);
            return (!fits).then(|| suggest::format_list(words.iter().map(|word| word.value.as_str()), "or"));
        }
        // What a declared type is, is known later.
        TypeKind::String | TypeKind::File | TypeKind::Dir | TypeKind::Named(_) | TypeKind::Unknown => (true, ""),
    };
    (!fits).then(|| expected.to_owned())
}

fn lower_secret(element: &Element) -> Option<ast::Secret> {
    Some(ast::Secret { name: argument_name(element, 0)?, env: element.property("env")?.text.as_str().to_owned() })
}

fn lower_prompt(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Prompt> {
    Some(ast::Prompt { name: argument_name(element, 0)?, text: lower_source(element, 1, diagnostics) })
}

/// The text of a node that takes it as an argument, from a file or by name: exactly one of them.
fn lower_source(element: &Element, position: usize, diagnostics: &mut Diagnostics) -> Option<Source> {
    let given = [element.argument(position), element.property("file"), element.property("ref")];
    let mut found = given.iter().flatten();
    let (first, second) = (found.next(), found.next());
    let ways = match element.schema.find_property("ref") {
        Some(_) => "a text, `file=` or `ref=`",
        None => "a text or `file=`",
    };
    let node = element.schema.name;
    match (first, second) {
        (None, _) => {
            let written = element.name.span;
            // A value that does not fit has been reported.
            if !diagnostics.has_report_at(element.span) {
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
            _ => Source::Ref(datum_name(datum)),
        }),
    }
}

/// The suppressions of a block and of every block in it.
fn collect_allows(element: &Element, parent: Option<&Element>, allows: &mut Vec<ast::Allow>) {
    if element.schema.name == schema::ALLOW.name {
        if let Some(code) = element.argument(0) {
            allows.push(ast::Allow {
                code: datum_name(code),
                reason: element.property("reason").map(|reason| reason.text.as_str().to_owned()),
                span: element.span,
                scope: parent.map_or(Scope::Everywhere, |parent| Scope::Within(parent.span)),
            });
        }
        return;
    }
    // Blocks nest as deep as the parser lets them.
    element.children.iter().for_each(|child| self::collect_allows(child, Some(element), allows));
}

/// The names of agents and providers in an element, and in all in it, that are those of presets.
fn collect_presets(element: &Element, names: &mut Vec<Name>) {
    let is_named = |kind: Kind| matches!(kind, Kind::Reference(Target::Agent | Target::Provider));
    let kind_of = |position: usize| element.schema.arguments.get(position).or(element.schema.rest.as_ref());
    let arguments =
        element.arguments.iter().map(|(position, datum)| (kind_of(*position).map(|known| known.kind), datum));
    let properties = element
        .properties
        .iter()
        .map(|(key, datum)| (element.schema.find_property(&key.text).map(|known| known.kind), datum));
    let named = arguments.chain(properties).filter(|(kind, _)| kind.is_some_and(is_named)).map(|(_, datum)| datum);
    names.extend(named.filter(|datum| library::is_preset(datum.text.as_str())).map(datum_name));
    element.children.iter().for_each(|child| self::collect_presets(child, names));
}

fn description_text(element: &Element) -> Option<String> {
    Some(element.child("description")?.argument(0)?.text.as_str().to_owned())
}

fn datum_name(datum: &Datum) -> Name {
    Spanned { value: datum.text.as_str().to_owned(), span: datum.span }
}

fn argument_name(element: &Element, position: usize) -> Option<Name> {
    element.argument(position).map(datum_name)
}

fn clamp_count(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn parse_choice<T>(datum: &Datum, read: fn(&str) -> T) -> Spanned<T> {
    Spanned { value: read(datum.text.as_str()), span: datum.span }
}

/// The names that are the arguments of a node.
fn argument_names(element: &Element) -> Vec<Name> {
    element.arguments.iter().map(|(_, datum)| datum_name(datum)).collect()
}

/// The text that is the argument of a child.
fn child_argument(element: &Element, child: &str) -> Option<Text> {
    Some(element.child(child)?.argument(0)?.text.clone())
}

fn argument_texts(element: &Element) -> Vec<Text> {
    element.arguments.iter().map(|(_, datum)| datum.text.clone()).collect()
}

/// The words of a command; one without a program is reported.
fn lower_command(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Line> {
    let blank = element.arguments.first().is_none_or(|(_, first)| first.text.as_str().trim().is_empty());
    if !blank {
        if let Some(spaced) = report_spaced_command(element) {
            diagnostics.push(spaced);
        }
        return Some(ast::Line { words: argument_texts(element) });
    }
    // A word that could not be read has been reported.
    if !diagnostics.has_report_at(element.span) {
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
fn report_spaced_command(element: &Element) -> Option<Diagnostic> {
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

fn lower_variables(element: &Element, diagnostics: &mut Diagnostics) -> Vec<ast::Variable> {
    let mut variables = Vec::new();
    let mut known: BTreeMap<String, Span> = BTreeMap::new();
    let mut once = |name: &str, span: Span| match known.get(name) {
        Some(first) => {
            diagnostics.push(unknown::report_duplicate(&format!("the variable {name}"), span, *first));
            false
        }
        None => known.insert(name.to_owned(), span).is_none(),
    };
    for env in element.children("env") {
        let named = env.arguments.iter().map(|(_, datum)| datum_name(datum));
        variables.extend(named.filter(|name| once(&name.value, name.span)).map(ast::Variable::Named));
        let set = env.properties.iter().filter(|(key, _)| once(&key.text, key.span));
        variables.extend(set.map(|(key, datum)| ast::Variable::Set(key.text.to_string(), datum.text.clone())));
    }
    variables
}
