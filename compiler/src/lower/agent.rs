//! Tiers, agents and servers of tools.

use super::element::Element;
use super::provider::amount;
use super::{choice, command, description, files, name, names, policy, source, spanned, value, variables};
use crate::ast::{self, Spanned};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::suggest;

/// `tiers { small P; medium P model=M }`.
pub(super) fn tiers(element: &Element, diagnostics: &mut Diagnostics) -> Vec<ast::Tier> {
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
        let Some(provider) = child.argument(0).map(spanned) else { continue };
        tiers.push(ast::Tier { name, provider, model: child.property("model").map(|model| model.text.clone()) });
    }
    if tiers.is_empty() && !diagnostics.covers(element.span) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "`tiers` names no tier")
            .label(element.name.span, "nothing in it")
            .help("write `tiers { small PROVIDER; large PROVIDER model=\"…\" }`");
        diagnostics.push(diagnostic);
    }
    tiers
}

pub(super) fn agent(element: &Element, diagnostics: &mut Diagnostics) -> Option<ast::Agent> {
    let reference = |property: &str| element.property(property).map(spanned);
    let (provider, tier) = (reference("provider"), reference("tier"));
    if let (Some(provider), Some(tier)) = (&provider, &tier) {
        let diagnostic = Diagnostic::new(Code::WrongValue, "an agent has a provider or a tier, and only one of them")
            .label(tier.span, "one too many")
            .label(provider.span, "first here")
            .help("remove one of them");
        diagnostics.push(diagnostic);
    }
    let temperature = element.child("temperature").and_then(|node| node.argument(0));
    Some(ast::Agent {
        name: name(element, 0)?,
        template: reference("template"),
        provider,
        tier,
        model: element.property("model").map(|model| model.text.as_str().to_owned()),
        description: description(element),
        system: element.child("system").and_then(|system| source(system, 0, diagnostics)),
        mode: element.child("mode").and_then(|node| Some(choice(node.argument(0)?, mode))),
        temperature: temperature.and_then(|datum| match &datum.form {
            super::Form::Number(number) => Some(Spanned { value: number.as_f64()?, span: datum.span }),
            super::Form::Bool | super::Form::Text => None,
        }),
        max_output: element.child("max-output").and_then(|node| Some(amount(node.argument(0)?))),
        tools: element.child("tools").map(|node| ast::Tools { names: names(node), span: node.span }),
        can: element.child("can").map(|node| capabilities(node, diagnostics)).unwrap_or_default(),
        permissions: element.child("permissions").and_then(|node| {
            Some(choice(node.argument(0)?, |word| match word {
                "skip" => ast::Permissions::Skip,
                _ => ast::Permissions::Gated,
            }))
        }),
        fallback: element.child("fallback").map(names).unwrap_or_default(),
        budget: element.child("budget").map(|node| policy::budget(node, diagnostics)),
        files: element.child("files").map(|node| files::files(node, diagnostics)),
    })
}

pub(super) fn mode(word: &str) -> ast::Mode {
    match word {
        "planning" => ast::Mode::Planning,
        "implementation" => ast::Mode::Implementation,
        _ => ast::Mode::Auto,
    }
}

fn capabilities(element: &Element, diagnostics: &mut Diagnostics) -> Vec<Spanned<ast::Capability>> {
    let mut found: Vec<Spanned<ast::Capability>> = Vec::new();
    for (_, datum) in &element.arguments {
        let capability = choice(datum, |word| match word {
            "write-files" => ast::Capability::WriteFiles,
            "run-commands" => ast::Capability::RunCommands,
            "network" => ast::Capability::Network,
            "private-data" => ast::Capability::PrivateData,
            "untrusted-input" => ast::Capability::UntrustedInput,
            _ => ast::Capability::Spawn,
        });
        match found.iter().find(|known| known.value == capability.value) {
            Some(first) => {
                let what = format!("`{}`", datum.text.as_str());
                diagnostics.push(super::unknown::twice(&what, capability.span, first.span));
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
        (None, None) if !diagnostics.covers(element.span) => {
            let diagnostic =
                Diagnostic::new(Code::WrongValue, format!("tool server `{server}` says no way to reach it"))
                    .label(element.name.span, "`exec` or `url=` is missing")
                    .help("write `exec PROGRAM ARG…` in its block, or `url=\"https://…\"`");
            diagnostics.push(diagnostic);
        }
        _ => {}
    }
    if let Some(url) = url {
        address(url, diagnostics);
    }
    Some(ast::ToolServer {
        name: name(element, 0)?,
        description: description(element),
        exec: exec.and_then(|exec| command(exec, diagnostics)),
        url: url.map(|url| url.text.clone()),
        env: variables(element, diagnostics),
        headers: headers(element, diagnostics),
    })
}

/// Reports an address that is none of HTTP.
pub(super) fn address(url: &super::Datum, diagnostics: &mut Diagnostics) {
    let written = url.text.as_str();
    let host = written.strip_prefix("https://").or_else(|| written.strip_prefix("http://"));
    if host.is_none_or(|host| host.is_empty() || host.starts_with('/') || host.contains(char::is_whitespace)) {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{written}` is not an address"))
            .label(url.span, "not an address of HTTP")
            .help("write `\"https://HOST/PATH\"`");
        diagnostics.push(diagnostic);
    }
}

/// The headers of HTTP requests, each name once.
pub(super) fn headers(element: &Element, diagnostics: &mut Diagnostics) -> Vec<ast::Header> {
    let mut headers: Vec<ast::Header> = Vec::new();
    for node in element.children("header") {
        let Some(name) = name(node, 0) else { continue };
        let header = ast::Header {
            name,
            text: node.argument(1).map(|text| text.text.clone()),
            secret: node.property("secret").map(spanned),
        };
        let written = &header.name.value;
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if written.is_empty() || !written.bytes().all(token) {
            let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{written}` is not the name of a header"))
                .label(header.name.span, "not a header")
                .help("letters, digits and `-`, as in `X-Api-Version`");
            diagnostics.push(diagnostic);
        }
        if header.text.is_none() && header.secret.is_none() && !diagnostics.covers(node.span) {
            let diagnostic = Diagnostic::new(Code::WrongValue, format!("header `{written}` has no value"))
                .label(node.name.span, "a text or `secret=` is missing")
                .help(format!("write `header {written} \"TEXT\"` or `header {written} secret=NAME`"));
            diagnostics.push(diagnostic);
        }
        let broken = header.text.as_ref().filter(|text| text.as_str().contains(['\r', '\n', '\0']));
        if broken.is_some() {
            let diagnostic = Diagnostic::new(Code::WrongValue, format!("header `{written}` holds a line break"))
                .label(header.name.span, "its text has more than one line")
                .help("write it on one line");
            diagnostics.push(diagnostic);
        }
        match headers.iter().find(|known| known.name.value.eq_ignore_ascii_case(written)) {
            Some(first) => {
                let what = format!("header {}", suggest::list([written.as_str()].into_iter(), "and"));
                diagnostics.push(super::unknown::twice(&what, header.name.span, first.name.span));
            }
            None => headers.push(header),
        }
    }
    headers
}
