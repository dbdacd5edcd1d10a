//! Tiers, agents and servers of tools.

use swarmc_plan as plan;

use super::element::Element;
use super::provider::lower_amount;
use super::{
    argument_name, argument_names, datum_name, description_text, files, lower_command, lower_source, lower_variables,
    parse_choice, policy, value,
};
use crate::ast::{self, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};

/// `tiers { small P; medium P model=M }`.
pub(super) fn lower_tiers(element: &Element, diagnostics: &mut Diagnostics) -> Vec<ast::Tier> {
    let mut tiers: Vec<ast::Tier> = Vec::new();
    for child in element.children.iter().filter(|child| child.schema.name == "TIER") {
        let name = Spanned { value: child.name.text.to_string(), span: child.name.span };
        if !value::is_name(&name.value) {
            let diagnostic =
                Diagnostic::new(Code::WrongValue, format!("`{}` cannot be the name of a tier", name.value))
                    .label(name.span, "not a name")
                    .help("a name is a lowercase letter, then lowercase letters, digits, `-` and `_`");
            diagnostics.push(diagnostic);
        }
        let Some(provider) = child.argument(0).map(datum_name) else { continue };
        tiers.push(ast::Tier { name, provider, model: child.property("model").map(|model| model.text.clone()) });
    }
    if tiers.is_empty() && !diagnostics.has_report_at(element.span) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "`tiers` names no tier")
            .label(element.name.span, "nothing in it")
            .help("write `tiers { small PROVIDER; large PROVIDER model=\"…\" }`");
        diagnostics.push(diagnostic);
    }
    tiers
}

pub(super) fn lower_agent(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Agent> {
    let reference = |property: &str| element.property(property).map(datum_name);
    let (provider, tier) = (reference("provider"), reference("tier"));
    if let (Some(provider), Some(tier)) = (&provider, &tier) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "an agent takes a provider or a tier, not both")
            .label(tier.span, "one too many")
            .label(provider.span, "first here")
            .help("remove one of them");
        diagnostics.push(diagnostic);
    }
    let temperature = element.child("temperature").and_then(|node| node.argument(0));
    Some(ast::Agent {
        name: argument_name(element, 0)?,
        template: reference("template"),
        provider,
        tier,
        model: reference("model"),
        description: description_text(element),
        system: element.child("system").and_then(|system| lower_source(system, 0, diagnostics)),
        mode: element.child("mode").and_then(|node| Some(parse_choice(node.argument(0)?, parse_mode))),
        temperature: temperature.and_then(|datum| match &datum.form {
            super::Form::Number(number) => Some(Spanned { value: number.as_f64()?, span: datum.span }),
            super::Form::Bool | super::Form::Text => None,
        }),
        max_output: element.child("max-output").and_then(|node| Some(lower_amount(node.argument(0)?))),
        tools: element.child("tools").map(|node| ast::Tools { names: argument_names(node), span: node.span }),
        can: element.child("can").map(|node| lower_capabilities(node, diagnostics)).unwrap_or_default(),
        permissions: element.child("permissions").and_then(|node| {
            Some(parse_choice(node.argument(0)?, |word| match word {
                "skip" => plan::Permissions::Skip,
                _ => plan::Permissions::Gated,
            }))
        }),
        fallback: element.child("fallback").and_then(|node| argument_name(node, 0)),
        budget: element.child("budget").map(|node| policy::lower_budget(node, diagnostics)),
        files: element.child("files").map(|node| files::lower_files(node, diagnostics)),
        pool: reference("pool").map(|pool| pool.value),
        variant: false,
    })
}

pub(super) fn parse_mode(word: &str) -> plan::Mode {
    match word {
        "planning" => plan::Mode::Planning,
        _ => plan::Mode::Implementation,
    }
}

fn lower_capabilities(element: &Element, diagnostics: &mut Diagnostics) -> Vec<Spanned<plan::Capability>> {
    let mut found: Vec<Spanned<plan::Capability>> = Vec::new();
    for (_, datum) in &element.arguments {
        let capability = parse_choice(datum, |word| match word {
            "write-files" => plan::Capability::WriteFiles,
            "run-commands" => plan::Capability::RunCommands,
            "network" => plan::Capability::Network,
            "private-data" => plan::Capability::PrivateData,
            "untrusted-input" => plan::Capability::UntrustedInput,
            // The table lets no other word through.
            _ => plan::Capability::Spawn,
        });
        match found.iter().find(|known| known.value == capability.value) {
            Some(first) => {
                let what = format!("`{}`", datum.text.as_str());
                diagnostics.push(super::unknown::report_duplicate(&what, capability.span, first.span));
            }
            None => found.push(capability),
        }
    }
    found
}

pub(super) fn tool_server(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::ToolServer> {
    let (exec, url) = (element.child("exec"), element.property("url"));
    let server = element.argument(0).map_or("", |name| name.text.as_str());
    match (exec, url) {
        (Some(exec), Some(url)) => {
            let diagnostic =
                Diagnostic::new(Code::WrongValue, format!("tool server `{server}` has a command and an address"))
                    .label(exec.name.span, "one too many")
                    .label(url.span, "first here")
                    .help("remove one of them");
            diagnostics.push(diagnostic);
        }
        (None, None) if !diagnostics.has_report_at(element.span) => {
            let diagnostic = Diagnostic::new(
                Code::WrongValue,
                format!("tool server `{server}` has neither a command nor an address"),
            )
            .label(element.name.span, "`exec` or `url=` is missing")
            .help("write `exec PROGRAM ARG…` in its block, or `url=\"https://…\"`");
            diagnostics.push(diagnostic);
        }
        _ => {}
    }
    if let Some(url) = url {
        check_address(url, diagnostics);
    }
    let auth = element.child("auth").and_then(|node| node.argument(0)).map(datum_name);
    if let (Some(auth), Some(_), None) = (&auth, exec, url) {
        let diagnostic = Diagnostic::new(
            Code::WrongValue,
            format!("`auth` is for addresses, but tool server `{server}` is a command"),
        )
        .label(auth.span, "a command does not read it")
        .help("give a command its token with `env NAME`");
        diagnostics.push(diagnostic);
    }
    Some(ast::ToolServer {
        name: argument_name(element, 0)?,
        description: description_text(element),
        exec: exec.and_then(|exec| lower_command(exec, diagnostics)),
        url: url.map(|url| url.text.clone()),
        auth,
        env: lower_variables(element, diagnostics),
    })
}

/// Reports an address that is none of HTTP.
pub(super) fn check_address(url: &super::Datum, diagnostics: &mut Diagnostics) {
    let written = url.text.as_str();
    let host = written.strip_prefix("https://").or_else(|| written.strip_prefix("http://"));
    if host.is_none_or(|host| host.is_empty() || host.starts_with('/') || host.contains(char::is_whitespace)) {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{written}` is not an address"))
            .label(url.span, "not an address of HTTP")
            .help("write `\"https://HOST/PATH\"`");
        diagnostics.push(diagnostic);
    }
}
