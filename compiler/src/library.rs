//! The library that every spec can draw on, in the language itself, embedded.

use crate::ast::Spec;
use crate::diagnostic::Diagnostics;
use crate::load::Loader;
use crate::lower::lower;
use crate::source::FileId;
use crate::syntax;

/// `std:providers`: how well-known agents are started.
const PROVIDERS: &str = include_str!("std/providers.kdl");

/// The presets that a spec starts from; nothing where it names none.
pub(crate) fn providers(spec: &Spec, loader: &mut Loader<'_>) -> Spec {
    match spec.providers.iter().any(|provider| provider.preset.is_some()) {
        true => {
            let file = loader.sources.add("std:providers", PROVIDERS);
            lower(syntax::parse(PROVIDERS, file).nodes, PROVIDERS, &mut Diagnostics::default())
        }
        false => Spec::default(),
    }
}

/// The names of the provider presets, in the order of the library.
pub fn presets() -> Vec<String> {
    let spec = lower(syntax::parse(PROVIDERS, FileId::new(0)).nodes, PROVIDERS, &mut Diagnostics::default());
    spec.providers.into_iter().map(|provider| provider.name.value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_in_the_language() {
        let mut diagnostics = Diagnostics::default();
        let tree = syntax::parse(PROVIDERS, FileId::new(0));
        assert_eq!(tree.problems, []);
        let spec = lower(tree.nodes, PROVIDERS, &mut diagnostics);
        assert_eq!(diagnostics.into_sorted(), []);
        let names: Vec<&str> = spec.providers.iter().map(|provider| provider.name.value.as_str()).collect();
        assert_eq!(names, ["claude-code", "codex", "opencode", "gemini", "qwen", "pi"]);
    }
}
