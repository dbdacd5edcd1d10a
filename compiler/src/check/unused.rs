//! SW103: definitions that nothing uses.

use crate::ast::Name;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::load::Loader;
use crate::model::Model;
use crate::modules::Import;
use crate::suppress::removal_span;
use crate::template::Root;

pub(super) fn check(model: &Model<'_>, loader: &Loader<'_>, diagnostics: &mut Diagnostics) {
    // What a broken pipeline would have used cannot be known.
    if diagnostics.has_errors() || (model.pipelines.is_empty() && model.swarms.is_empty()) {
        return;
    }
    // A library need not be used up.
    let own = |name: &Name| model.tables.modules.is_own(name.span);
    let (spec, uses) = (model.spec, &model.uses);
    let agents: Vec<bool> = uses.agents.iter().zip(&uses.templates).map(|(turn, start)| *turn || *start).collect();
    let mut reporter = Reporter { loader, diagnostics };
    let lists: [(&str, Vec<&Name>, &[bool], &str); 9] = [
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
        ("agent", spec.agents.iter().map(|agent| &agent.name).collect(), &agents, "say `agent=NAME` in a task"),
        (
            "prompt",
            spec.prompts.iter().map(|prompt| &prompt.name).collect(),
            &uses.prompts,
            "say `prompt ref=NAME` in a task",
        ),
        ("tier", spec.tiers.iter().map(|tier| &tier.name).collect(), &uses.tiers, "say `tier=NAME` in an agent"),
        ("task", spec.tasks.iter().map(|task| &task.name).collect(), &uses.tasks, "say `use NAME` in a pipeline"),
        (
            "context-pack",
            spec.packs.iter().map(|pack| &pack.name).collect(),
            &uses.packs,
            "say `context NAME` in a task",
        ),
        (
            "type",
            spec.types.iter().map(|declared| &declared.name).collect(),
            &uses.types,
            "say `output NAME` in a task",
        ),
    ];
    for (what, names, used, how) in lists {
        reporter.report_unused(what, names.into_iter().zip(used).filter(|(name, _)| own(name)), how);
    }
    // Where nothing is said to run, nothing can be used.
    if model.default.is_some() {
        model.tables.unused_imports().for_each(|import| reporter.diagnostics.push(unused_import(model, import)));
    }
    let pipelines = model.pipelines.iter().zip(&uses.pipeline_params);
    for (pipeline, used) in pipelines.filter(|(pipeline, _)| own(&pipeline.ast.name)) {
        let params = pipeline.ast.params.iter().map(|param| &param.name).zip(used);
        reporter.report_unused("parameter", params, "read it as `<<param:NAME>>`");
        for step in &pipeline.steps {
            for input in &step.ast.inputs {
                let Some((_, target)) = step.inputs.iter().find(|(name, _)| *name == input.name.value) else {
                    continue;
                };
                let read = step.reads.iter().any(|read| read.root == Root::Input && read.step() == Some(*target));
                reporter.report_unused("input", std::iter::once((&input.name, &read)), "read it as `<<input:NAME>>`");
            }
        }
    }
}

fn unused_import(model: &Model<'_>, import: &Import) -> Diagnostic {
    let name = &model.tables.modules.list[import.module].name;
    let help = match &import.alias {
        Some(alias) => format!("remove it, or use what it declares, as `{}.NAME`", alias.value),
        None => "remove it, or use what it declares".to_owned(),
    };
    Diagnostic::new(Code::UnusedDefinition, format!("nothing of `{name}` is used"))
        .label(import.path, "never used")
        .help(help)
}

struct Reporter<'l, 'd> {
    loader: &'l Loader<'l>,
    diagnostics: &'d mut Diagnostics,
}

impl Reporter<'_, '_> {
    fn report_unused<'a>(&mut self, what: &str, names: impl Iterator<Item = (&'a Name, &'a bool)>, how: &str) {
        for (name, _) in names.filter(|(_, used)| !**used) {
            let node = self.loader.syntax_tree(name.span.file).node_at(name.span).map(|node| node.span);
            let diagnostic = Diagnostic::new(Code::UnusedDefinition, format!("{what} `{}` is never used", name.value))
                .label(name.span, "never used")
                .help(format!("remove it, or {}", how.replace("NAME", &name.value)));
            self.diagnostics.push(match node {
                Some(node) => diagnostic.unsafe_fix(
                    format!("remove `{}`", name.value),
                    removal_span(&self.loader.sources, node),
                    "",
                ),
                None => diagnostic,
            });
        }
    }
}
