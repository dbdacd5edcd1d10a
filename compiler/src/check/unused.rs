//! SW103: definitions that nothing uses.

use crate::ast::Name;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::Model;
use crate::template::Root;

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    // What a broken pipeline would have used cannot be known.
    if diagnostics.has_errors() || model.pipelines.is_empty() {
        return;
    }
    let (spec, uses) = (model.spec, &model.uses);
    let lists: [(&str, Vec<&Name>, &[bool], &str); 6] = [
        (
            "parameter",
            spec.params.iter().map(|param| &param.name).collect(),
            &uses.params,
            "read it as `<<param:NAME>>`",
        ),
        ("secret", spec.secrets.iter().map(|secret| &secret.name).collect(), &uses.secrets, "name it in an `env`"),
        (
            "provider",
            spec.providers.iter().map(|provider| &provider.name).collect(),
            &uses.providers,
            "say `provider=NAME` in an agent",
        ),
        ("agent", spec.agents.iter().map(|agent| &agent.name).collect(), &uses.agents, "say `agent=NAME` in a task"),
        (
            "prompt",
            spec.prompts.iter().map(|prompt| &prompt.name).collect(),
            &uses.prompts,
            "say `prompt ref=NAME` in a task",
        ),
        (
            "type",
            spec.types.iter().map(|declared| &declared.name).collect(),
            &uses.types,
            "say `output NAME` in a task",
        ),
    ];
    for (what, names, used, how) in lists {
        report(what, names.into_iter().zip(used), how, diagnostics);
    }
    for (pipeline, used) in model.pipelines.iter().zip(&uses.pipeline_params) {
        let params = pipeline.ast.params.iter().map(|param| &param.name).zip(used);
        report("parameter", params, "read it as `<<param:NAME>>`", diagnostics);
        for step in &pipeline.steps {
            for input in &step.ast.inputs {
                let Some((_, target)) = step.inputs.iter().find(|(name, _)| *name == input.name.value) else {
                    continue;
                };
                let read = step.reads.iter().any(|read| read.root == Root::Input && read.step == Some(*target));
                report("input", std::iter::once((&input.name, &read)), "read it as `<<input:NAME>>`", diagnostics);
            }
        }
    }
}

fn report<'a>(what: &str, names: impl Iterator<Item = (&'a Name, &'a bool)>, how: &str, diagnostics: &mut Diagnostics) {
    for (name, _) in names.filter(|(_, used)| !**used) {
        diagnostics.push(
            Diagnostic::new(Code::UnusedDefinition, format!("{what} `{}` is never used", name.value))
                .label(name.span, "never used")
                .help(format!("remove it, or {}", how.replace("NAME", &name.value))),
        );
    }
}
