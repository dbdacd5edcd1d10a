//! Finds out the language and the package manager of a repository, by the files at its top.
//!
//! In: a folder. Out: `language` and `packageManager`, each only where a file says so. The first entry of a table that
//! fits decides, so that a lock file counts before a manifest.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The largest manifest that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// What the presence of a file says of the language. `package.json` is looked into.
const LANGUAGES: &[(&str, &str)] = &[
    ("Cargo.toml", "rust"),
    ("tsconfig.json", "typescript"),
    ("go.mod", "go"),
    ("pyproject.toml", "python"),
    ("setup.py", "python"),
    ("requirements.txt", "python"),
    ("build.gradle.kts", "kotlin"),
    ("pom.xml", "java"),
    ("build.gradle", "java"),
    ("Gemfile", "ruby"),
    ("composer.json", "php"),
    ("mix.exs", "elixir"),
    ("Package.swift", "swift"),
    ("pubspec.yaml", "dart"),
    ("CMakeLists.txt", "c++"),
];

/// What the presence of a file says of the package manager.
const MANAGERS: &[(&str, &str)] = &[
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
    ("Cargo.toml", "cargo"),
    ("go.mod", "go"),
    ("uv.lock", "uv"),
    ("poetry.lock", "poetry"),
    ("pdm.lock", "pdm"),
    ("Pipfile", "pipenv"),
    ("requirements.txt", "pip"),
    ("pyproject.toml", "pip"),
    ("package.json", "npm"),
    ("build.gradle.kts", "gradle"),
    ("build.gradle", "gradle"),
    ("pom.xml", "maven"),
    ("Gemfile", "bundler"),
    ("composer.json", "composer"),
    ("mix.exs", "mix"),
    ("Package.swift", "swiftpm"),
    ("pubspec.yaml", "pub"),
];

/// What is known of the repository at `folder`.
pub(crate) fn facts(folder: &Path) -> BTreeMap<String, String> {
    let there = |name: &str| folder.join(name).is_file();
    let by = |table: &[(&str, &str)]| table.iter().find(|(name, _)| there(name)).map(|(_, value)| (*value).to_owned());
    let manifest = manifest(folder);
    let node = manifest.as_ref().map(|manifest| {
        let uses = |part: &str| manifest.get(part).and_then(|part| part.get("typescript")).is_some();
        if uses("devDependencies") || uses("dependencies") { "typescript" } else { "javascript" }.to_owned()
    });
    // `"packageManager": "pnpm@9.1.0"`.
    let said = manifest.as_ref().and_then(|manifest| manifest.get("packageManager")?.as_str());
    let said = said.and_then(|said| ["pnpm", "yarn", "npm", "bun"].into_iter().find(|name| said.starts_with(name)));
    let found =
        [("language", by(LANGUAGES).or(node)), ("packageManager", said.map(str::to_owned).or_else(|| by(MANAGERS)))];
    found.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn manifest(folder: &Path) -> Option<serde_json::Value> {
    let path = folder.join("package.json");
    let fits = fs::metadata(&path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LARGEST);
    serde_json::from_slice(&fits.then(|| fs::read(path).ok())??).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repo_facts_come_from_files_at_the_top() {
        let check = |files: &[(&str, &str)], language: Option<&str>, manager: Option<&str>| {
            let folder = tempfile::tempdir().expect("a folder");
            files.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).expect("a file"));
            let facts = facts(folder.path());
            assert_eq!(facts.get("language").map(String::as_str), language, "{files:?}");
            assert_eq!(facts.get("packageManager").map(String::as_str), manager, "{files:?}");
        };
        check(&[], None, None);
        check(&[("Cargo.toml", "")], Some("rust"), Some("cargo"));
        check(&[("package.json", "{}"), ("pnpm-lock.yaml", "")], Some("javascript"), Some("pnpm"));
        check(&[("package.json", "{\"devDependencies\": {\"typescript\": \"5\"}}")], Some("typescript"), Some("npm"));
        check(&[("package.json", "{\"packageManager\": \"yarn@4\"}")], Some("javascript"), Some("yarn"));
        check(&[("package.json", "{"), ("tsconfig.json", "")], Some("typescript"), Some("npm"));
        check(&[("pyproject.toml", ""), ("uv.lock", "")], Some("python"), Some("uv"));
    }
}
