//! Providers that a person puts in the place of others, as where recorded answers stand in for a model.
//!
//! In goes a spec, out comes the same with every agent and tier at the provider that was chosen for it: one of the spec, or
//! a preset as it stands.

use crate::ast::{Name, Spec};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::library;
use crate::suggest;
use crate::symbols::{NameKind, Tables};

/// Puts the second provider of each pair in the place of the first; says by index which are used for that reason. Names are
/// those that the spec itself may use, presets among them; each is looked up once, so pairs do not chain.
pub(crate) fn replace_providers(
    spec: &mut Spec,
    tables: &Tables,
    pairs: &[(String, String)],
    diagnostics: &mut Diagnostics,
) -> Vec<bool> {
    let mut used = vec![false; spec.providers.len()];
    if pairs.is_empty() {
        return used;
    }
    let home = tables.modules.list[0].file;
    let mut others: Vec<Option<Name>> = vec![None; spec.providers.len()];
    for (from, to) in pairs {
        let mut find = |name: &str, presets: &[&str]| {
            let found = tables.find_name(NameKind::Provider, name, true, home);
            if found.is_none() {
                diagnostics.push(unknown_provider(spec, name, presets));
            }
            found
        };
        let (Some(from), Some(to)) = (find(from, &[]), find(to, library::preset_names())) else { continue };
        (used[from], used[to]) = (true, true);
        // With the place of its declaration, the name means that provider in every file. The plan's name of what an
        // import declares begins with what it is imported as, which its own file does not say.
        let Name { value, span } = &spec.providers[to].name;
        let prefix = &tables.modules.list[tables.modules.module_of(span.file)].prefix;
        others[from] =
            Some(Name { value: value.strip_prefix(prefix.as_str()).unwrap_or(value).to_owned(), span: *span });
    }
    let names = spec.agents.iter_mut().filter_map(|agent| agent.provider.as_mut());
    for name in names.chain(spec.tiers.iter_mut().map(|tier| &mut tier.provider)) {
        let found = tables.find_name(NameKind::Provider, &name.value, true, name.span.file);
        if let Some(other) = found.and_then(|found| others[found].clone()) {
            *name = other;
        }
    }
    used
}

fn unknown_provider(spec: &Spec, name: &str, presets: &[&str]) -> Diagnostic {
    let own = spec.providers.iter().map(|provider| provider.name.value.as_str());
    let known: Vec<&str> = own.chain(presets.iter().copied()).collect();
    let (_, help) = suggest::did_you_mean(name, &known, "the providers are ");
    let diagnostic = Diagnostic::new(Code::UnknownReference, format!("there is no provider `{name}`"));
    let diagnostic = match spec.providers.first() {
        Some(first) => diagnostic
            .label(first.name.span, "`--provider` takes the name of a provider that is declared like this one"),
        None => diagnostic,
    };
    diagnostic.help_maybe(help)
}
