//! The library that every spec can draw on, in the language itself, embedded.
//!
//! Its parts are imported as `std:NAME`, and provider presets come from `std:providers`. Nothing of it is read before a
//! spec asks for it.

use crate::ast::{Provider, Spec};
use crate::diagnostic::Diagnostics;
use crate::load::Loader;
use crate::lower::lower_spec;
use crate::source::FileId;
use crate::syntax;

/// What the names of its parts begin with.
pub(crate) const PREFIX: &str = "std:";

/// How well-known agents are started.
const PROVIDERS: &str = "std:providers";

/// Its parts, by name.
const PARTS: &[(&str, &str)] = &[
    ("std:agents", include_str!("std/agents.kdl")),
    (PROVIDERS, include_str!("std/providers.kdl")),
    ("std:types", include_str!("std/types.kdl")),
];

/// The name and text of a part.
pub(crate) fn find_part(name: &str) -> Option<(&'static str, &'static str)> {
    PARTS.iter().copied().find(|(part, _)| *part == name)
}

/// The names of its parts.
pub(crate) fn part_names() -> Vec<&'static str> {
    PARTS.iter().map(|(name, _)| *name).collect()
}

/// The presets that a spec starts from; nothing where it names none.
pub(crate) fn load_presets(spec: &Spec, loader: &mut Loader<'_>) -> Spec {
    if spec.providers.iter().all(|provider| provider.preset.is_none()) {
        return Spec::default();
    }
    all_providers(loader)
}

/// The preset of this name, as the library declares it.
pub(crate) fn find_preset(name: &str, loader: &mut Loader<'_>) -> Option<Provider> {
    all_providers(loader).providers.into_iter().find(|preset| preset.name.value == name)
}

fn all_providers(loader: &mut Loader<'_>) -> Spec {
    let file = loader.library(PROVIDERS).expect("the library has its providers");
    let text = loader.sources.text(file);
    lower_spec(&syntax::parse(text, file).nodes, text, &mut Diagnostics::default())
}

/// The names of the provider presets, in the order of the library.
pub fn preset_names() -> Vec<String> {
    let text = find_part(PROVIDERS).map_or("", |(_, text)| text);
    let spec = lower_spec(&syntax::parse(text, FileId::new(0)).nodes, text, &mut Diagnostics::default());
    spec.providers.into_iter().map(|provider| provider.name.value).collect()
}

/// The parts of the library: name and text, in the language itself.
pub fn library_parts() -> impl Iterator<Item = (&'static str, &'static str)> {
    PARTS.iter().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_in_the_language() {
        for (name, text) in PARTS {
            let mut diagnostics = Diagnostics::default();
            let tree = syntax::parse(text, FileId::new(0));
            assert_eq!(tree.problems, [], "{name}");
            lower_spec(&tree.nodes, text, &mut diagnostics);
            assert_eq!(diagnostics.into_sorted(), [], "{name}");
        }
        let programs = ["claude-code", "codex", "opencode", "gemini", "qwen", "pi"];
        let over_acp = ["opencode-acp", "claude-acp", "codex-acp", "gemini-acp"];
        let models = ["openai-api", "anthropic-api", "gemini-api", "llama-server"];
        assert_eq!(preset_names(), [&programs[..], &over_acp, &models].concat());
    }
}
