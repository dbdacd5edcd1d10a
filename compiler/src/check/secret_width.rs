//! SW603: a whole pipeline has a secret in its environment, but only some of its steps use it.
//!
//! A step uses the secret when its command, script or prompt names the variable, or starts a program that is known to
//! read it. The check reports nothing if no step uses the secret, or if it cannot tell for one of the steps.

use crate::ast;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, Pipeline, Step};
use crate::source::Sources;
use crate::suggest;
use crate::trust::command::{self, Started};
use crate::trust::powers::Secrets;

pub(super) fn check(model: &Model<'_>, sources: &Sources, diagnostics: &mut Diagnostics) {
    let secrets = Secrets::new(model);
    for pipeline in &model.pipelines {
        for (secret, place) in secrets.secrets_of(&pipeline.ast.env) {
            let uses = |step: &&Step<'_>| uses_variable(step, &secret.env, sources);
            let users: Vec<&Step<'_>> = pipeline.steps.iter().filter(|step| uses(step) == Some(true)).collect();
            let first = pipeline.steps.iter().find(|step| uses(step) == Some(false));
            if let (Some(user), Some(idle)) = (users.first(), first) {
                let names = users.iter().map(|step| step.name());
                diagnostics.push(report_wide_secret(
                    pipeline,
                    secret,
                    place,
                    user,
                    idle,
                    &suggest::format_list(names, "and"),
                ));
            }
        }
    }
}

fn report_wide_secret(
    pipeline: &Pipeline<'_>,
    secret: &ast::Secret,
    place: &ast::Name,
    user: &Step<'_>,
    idle: &Step<'_>,
    users: &str,
) -> Diagnostic {
    let (name, pipeline) = (&secret.name.value, pipeline.ast.name.value.as_str());
    let message = format!("every step of `{pipeline}` receives the secret `{name}`, but only {users} make use of it");
    Diagnostic::new(
        Code::SecretTooWide,
        // A name has no space, so a space shows that there are several.
        message.replace(" make use", if users.contains(' ') { " make use" } else { " makes use" }),
    )
    .label(place.span, "given to all of them")
    .label(user.ast.name.span, "makes use of it")
    .label(idle.ast.name.span, "does not use it")
    .help(format!("move `env {}` into {users}", place.value))
}

/// Whether the process of a step uses a variable; none where there is no process, or the check cannot tell.
fn uses_variable(step: &Step<'_>, variable: &str, sources: &Sources) -> Option<bool> {
    if let Body::Prompt(prose) = &step.body {
        return Some(prose.passage.text().contains(variable));
    }
    if step.kind() != Some(swarmc_plan::StepKind::Run) {
        return None;
    }
    let commands = command::list_body_commands(step, sources);
    let checks = command::list_check_commands(step.ast);
    let all = || commands.iter().chain(&checks);
    if all().any(|started| mentions_variable(started, variable)) {
        return Some(true);
    }
    // The commands of a script that is not for a shell are not read: nothing is known of it.
    let clear = !commands.is_empty() && all().all(|started| PLAIN.contains(&started.simple.program()));
    clear.then_some(false)
}

fn mentions_variable(started: &Started<'_>, variable: &str) -> bool {
    let simple = &started.simple;
    simple
        .words
        .iter()
        .any(|word| word.variables.iter().any(|found| found.name == variable) || word.text.contains(variable))
        || READERS.iter().any(|(known, programs)| *known == variable && programs.contains(&simple.program()))
}

/// Variables that programs read by themselves.
const READERS: &[(&str, &[&str])] = &[
    ("GH_TOKEN", &["gh", "git"]),
    ("GITHUB_TOKEN", &["gh", "git"]),
    ("GITLAB_TOKEN", &["glab", "git"]),
    ("NPM_TOKEN", &["npm", "pnpm", "yarn"]),
    ("NODE_AUTH_TOKEN", &["npm", "pnpm", "yarn"]),
    ("CARGO_REGISTRY_TOKEN", &["cargo"]),
    ("TWINE_PASSWORD", &["twine"]),
    ("AWS_ACCESS_KEY_ID", &["aws", "terraform"]),
    ("AWS_SECRET_ACCESS_KEY", &["aws", "terraform"]),
    ("KUBECONFIG", &["kubectl", "helm"]),
];

/// Programs that make no use of a variable of ours unless the command names it.
const PLAIN: &[&str] = &[
    "echo", "printf", "cat", "head", "tail", "grep", "sed", "awk", "sort", "uniq", "wc", "cut", "tr", "ls", "find",
    "test", "[", "true", "false", "mkdir", "cp", "mv", "rm", "touch", "date", "sleep", "jq", "diff", "tee", "cd",
    "git", "cargo", "rustfmt", "ruff", "eslint", "prettier", "exit", "set", "export",
];
