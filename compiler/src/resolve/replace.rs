//! Providers that a person puts in the place of others, as where recorded answers stand in for a model.
//!
//! In goes a spec, out comes the same with every agent and tier at the provider that was chosen for it: one of the spec, or
//! a preset as it stands.

use crate::ast::{Name, Spec};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::load::Loader;
use crate::modules::Modules;
use crate::resolve::presets;
use crate::suggest;
use crate::symbols::names::normalize_name;
use crate::symbols::{NameKind, Tables};

/// Declares in the spec itself, as they stand in the library, the presets that pairs put in the place of other providers;
/// not those whose name means something there already.
pub(crate) fn declare_presets(
    specs: &mut [Spec],
    modules: &Modules,
    pairs: &[(String, String)],
    loader: &mut Loader<'_>,
) {
    for (_, to) in pairs {
        let imports = modules.list[0].imports.iter().filter(|import| import.alias.is_none());
        let mut seen = imports.map(|import| import.module).chain([0]).flat_map(|module| &specs[module].providers);
        if seen.any(|provider| normalize_name(&provider.name.value) == normalize_name(to)) {
            continue;
        }
        let preset = presets::find_preset(to, loader);
        specs[0].providers.extend(preset);
    }
}

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
        let mut find = |name: &str, presets: &[String]| {
            let found = tables.find_name(NameKind::Provider, name, true, home);
            if found.is_none() {
                diagnostics.push(unknown_provider(spec, name, presets));
            }
            found
        };
        let (Some(from), Some(to)) = (find(from, &[]), find(to, &presets::preset_names())) else { continue };
        (used[from], used[to]) = (true, true);
        // With the place of its declaration, the name means that provider in every file.
        others[from] = Some(spec.providers[to].name.clone());
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

fn unknown_provider(spec: &Spec, name: &str, presets: &[String]) -> Diagnostic {
    let own = spec.providers.iter().map(|provider| provider.name.value.as_str());
    let known: Vec<&str> = own.chain(presets.iter().map(String::as_str)).collect();
    let (_, help) = suggest::did_you_mean(name, &known, "the providers are ");
    let diagnostic = Diagnostic::new(Code::UnknownReference, format!("there is no provider `{name}`"));
    let diagnostic = match spec.providers.first() {
        Some(first) => diagnostic
            .label(first.name.span, "`--provider` takes the name of a provider that is declared like this one"),
        None => diagnostic,
    };
    diagnostic.help_maybe(help)
}
