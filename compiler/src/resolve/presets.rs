//! The provider presets of the library, read when a spec asks for them.

use crate::ast::{Provider, Spec};
use crate::diagnostic::Diagnostics;
use crate::library::{PROVIDERS, find_part};
use crate::load::Loader;
use crate::lower::lower_spec;
use crate::source::FileId;
use crate::syntax;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::library_parts;

    #[test]
    fn the_library_is_in_the_language() {
        for (name, text) in library_parts() {
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
