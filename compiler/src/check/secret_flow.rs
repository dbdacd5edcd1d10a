//! SW602: a command prints a secret, or a prompt tells an agent to print one.
//!
//! A secret may be in the environment of a process. What a step prints becomes its output, its log and the prompts that
//! read it; from there it reaches the journal and the models of other agents.

use std::collections::BTreeSet;

use crate::ast::{self, Secret};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{self, Model, Pipeline, Step, TemplateText};
use crate::source::{Sources, Span};
use crate::trust::command::{self, Started};
use crate::trust::powers::Secrets;

pub(super) fn check(model: &Model<'_>, sources: &Sources, diagnostics: &mut Diagnostics) {
    if model.spec.secrets.is_empty() {
        return;
    }
    let secrets = Secrets::new(model);
    for pipeline in &model.pipelines {
        for step in &pipeline.steps {
            diagnostics.set_home(Some(step.ast.name.span));
            let given = list_step_secrets(model, &secrets, pipeline, step);
            if given.is_empty() {
                continue;
            }
            let commands =
                command::list_body_commands(step, sources).into_iter().chain(command::list_check_commands(step.ast));
            check_printed_secrets(&commands.collect::<Vec<_>>(), &given, diagnostics);
            let system = step.agent.and_then(|agent| model.agents[agent].system.as_ref());
            let prompt = match &step.body {
                model::Body::Prompt(prose) => Some(prose),
                _ => None,
            };
            for prose in prompt.into_iter().chain(system) {
                asked_for(prose, &given, diagnostics);
            }
        }
    }
    diagnostics.set_home(None);
}

/// A secret that a process has, and where it is handed over.
struct Given<'s> {
    secret: &'s Secret,
    place: Span,
}

fn given_by<'s>(secrets: &'s Secrets<'_>, env: &'s [ast::Variable]) -> impl Iterator<Item = Given<'s>> {
    secrets.secrets_of(env).map(|(secret, place)| Given { secret, place: place.span })
}

/// What the process of a step has, each secret once.
fn list_step_secrets<'s>(
    model: &'s Model<'_>,
    secrets: &'s Secrets<'_>,
    pipeline: &'s Pipeline<'_>,
    step: &'s Step<'_>,
) -> Vec<Given<'s>> {
    if !step.has_exit() && !step.kind().is_some_and(swarmc_plan::StepKind::takes_turn) {
        return Vec::new();
    }
    let provider = step.agent.and_then(|agent| model.agents[agent].provider).map(|index| &model.providers[index]);
    let provider = provider.map_or(&[][..], |provider| &provider.ast.env);
    let all =
        given_by(secrets, &step.ast.env).chain(given_by(secrets, &pipeline.ast.env)).chain(given_by(secrets, provider));
    let mut seen = BTreeSet::new();
    all.filter(|given| seen.insert(given.secret.env.as_str())).collect()
}

/// Reports commands that print a secret to their visible output.
fn check_printed_secrets(commands: &[Started<'_>], given: &[Given<'_>], diagnostics: &mut Diagnostics) {
    let mut traced = false;
    for started in commands {
        let simple = &started.simple;
        // From here on a shell prints every command that it runs, with what its variables hold.
        if simple.program() == "set" {
            let mut sign = "";
            for word in simple.arguments() {
                match word.get(..1) {
                    Some(first @ ("-" | "+")) if !word.starts_with("--") => {
                        sign = first;
                        traced = if word.contains('x') { first == "-" } else { traced };
                    }
                    _ if word == "xtrace" => traced = sign == "-",
                    _ => {}
                }
            }
        }
        for Given { secret, place } in given {
            let shown = command::prints_variable(simple, &secret.env).filter(|_| !simple.hidden).map(|word| {
                (
                    started.span_at(&word.range),
                    format!("`{}` prints the secret `{}`", started.name(), secret.name.value),
                )
            });
            let shown = shown.or_else(|| {
                let variables = simple.words.iter().flat_map(|word| &word.variables);
                let variable = variables.filter(|_| traced).find(|variable| variable.name == secret.env)?;
                let message = format!("`set -x` prints the secret `{}` with this command", secret.name.value);
                Some((started.span_at(&variable.range), message))
            });
            let Some((span, message)) = shown else { continue };
            diagnostics.push(
                Diagnostic::new(Code::SecretInPrompt, message)
                    .label(span, "printed text is in the log, and in every text that reads it")
                    .label(*place, format!("`{}` is passed in here", secret.env))
                    .help(format!(
                        "print whether it is set, `test -n \"${}\" && echo set`, or take it out of the `env`",
                        secret.env
                    )),
            );
        }
    }
}

/// Words before a variable that ask for its value.
const ASKING: &[&str] = &["echo", "printf", "printenv", "print", "show", "output", "return", "report", "reveal"];

/// Prompts that tell an agent to print what its environment holds.
fn asked_for(prose: &TemplateText, given: &[Given<'_>], diagnostics: &mut Diagnostics) {
    let text = prose.passage.text();
    for Given { secret, place } in given {
        let name = secret.env.as_str();
        for at in memchr::memmem::find_iter(text.as_bytes(), name) {
            let end = at + name.len();
            let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            let (before, after) = (&text[..at], &text[end..]);
            if before.bytes().next_back().is_some_and(letter) || after.bytes().next().is_some_and(letter) {
                continue;
            }
            let line = &before[before.rfind('\n').map_or(0, |newline| newline + 1)..];
            let expanded = line.ends_with('$') || line.ends_with("${");
            let words = line.trim_end_matches(['$', '{', '"', '\'', '`', ' ', '(']);
            let word =
                words.rsplit(|sign: char| !sign.is_alphanumeric()).next().unwrap_or_default().to_ascii_lowercase();
            // `echo "$X" | program` goes to the program.
            let piped =
                after.split('\n').next().unwrap_or_default().split('`').next().unwrap_or_default().contains('|');
            let refused =
                ["never", "not ", "n't", "without", "avoid"].iter().any(|no| line.to_lowercase().contains(no));
            if ASKING.contains(&word.as_str()) && (expanded || word == "printenv") && !piped && !refused {
                let start = if expanded { line.rfind('$').map_or(at, |dollar| at - (line.len() - dollar)) } else { at };
                diagnostics.push(
                    Diagnostic::new(
                        Code::SecretInPrompt,
                        format!("the prompt asks for the secret `{}`", secret.name.value),
                    )
                    .label(prose.passage.span(start..end), "the agent would print it")
                    .label(*place, format!("`{name}` is passed in here"))
                    .help(format!("name the variable without asking for its value, or take `{name}` out of the `env`")),
                );
            }
        }
    }
}
