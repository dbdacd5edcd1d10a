//! The provider presets of the library, read when a spec asks for them.

use crate::ast::Spec;
use crate::load::Loader;
use crate::modules::read_presets;

/// The presets that a spec starts from; nothing where it names none.
pub(crate) fn load_presets(spec: &Spec, loader: &mut Loader<'_>) -> Spec {
    if spec.providers.iter().all(|provider| provider.preset.is_none()) {
        return Spec::default();
    }
    read_presets(loader)
}

#[cfg(test)]
mod tests {
    use crate::diagnostic::Diagnostics;
    use crate::library::{PROVIDERS, find_part, library_parts, preset_names};
    use crate::lower::lower_spec;
    use crate::source::FileId;
    use crate::syntax;

    #[test]
    fn the_library_is_in_the_language() {
        for (name, text) in library_parts() {
            let mut diagnostics = Diagnostics::default();
            let tree = syntax::parse(text, FileId::new(0));
            assert_eq!(tree.problems, [], "{name}");
            lower_spec(&tree.nodes, text, &mut diagnostics);
            assert_eq!(diagnostics.into_sorted(), [], "{name}");
        }
        let programs = ["claude-code", "codex", "opencode", "gemini", "qwen", "pi", "copilot", "amp", "aider"];
        let over_acp =
            ["opencode-acp", "claude-acp", "codex-acp", "gemini-acp", "copilot-acp", "cursor-agent", "goose"];
        let models = ["openai-api", "anthropic-api", "gemini-api", "llama-server"];
        assert_eq!(preset_names(), [&programs[..], &over_acp, &models].concat());
        let (_, text) = find_part(PROVIDERS).unwrap();
        let tree = syntax::parse(text, FileId::new(0));
        let spec = lower_spec(&tree.nodes, text, &mut Diagnostics::default());
        assert_eq!(
            spec.providers.iter().map(|provider| provider.name.value.as_str()).collect::<Vec<_>>(),
            preset_names()
        );
        // Each has an agent of its own, which a task can name.
        assert_eq!(spec.agents.iter().map(|agent| agent.name.value.as_str()).collect::<Vec<_>>(), preset_names());
        assert!(
            spec.agents.iter().all(|agent| agent.provider.as_ref().is_some_and(|name| name.value == agent.name.value))
        );
    }
}
