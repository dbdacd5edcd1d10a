//! The library that every spec can draw on, in the language itself, embedded.
//!
//! Its parts are imported as `std:NAME`, and provider presets come from `std:providers`. Nothing of it is read before a
//! spec asks for it.

use std::sync::LazyLock;

/// What the names of its parts begin with.
pub(crate) const PREFIX: &str = "std:";

/// How well-known agents are started.
pub(crate) const PROVIDERS: &str = "std:providers";

/// Its parts, by name.
const PARTS: &[(&str, &str)] = &[
    ("std:agents", include_str!("std/agents.kdl")),
    (PROVIDERS, include_str!("std/providers.kdl")),
    ("std:types", include_str!("std/types.kdl")),
];

/// Whether a provider of the library has this name.
pub(crate) fn is_preset(name: &str) -> bool {
    preset_names().contains(&name)
}

/// The names of the provider presets, in the order of the library.
pub fn preset_names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let lines = find_part(PROVIDERS).map_or("", |(_, text)| text).lines();
        // Each declaration is a line of its own, which a test sees to: so this needs no parser.
        lines.filter_map(|line| line.strip_prefix("provider ")?.strip_suffix(" {")).collect()
    });
    &NAMES
}

/// How the library declares a provider preset.
pub fn find_preset(name: &str) -> Option<&'static str> {
    let (_, text) = find_part(PROVIDERS)?;
    let start = text.find(&format!("\nprovider {name} {{\n"))? + 1;
    let end = start + text[start..].find("\n}")? + 2;
    Some(&text[start..end])
}

/// The name and text of a part.
pub(crate) fn find_part(name: &str) -> Option<(&'static str, &'static str)> {
    PARTS.iter().copied().find(|(part, _)| *part == name)
}

/// The names of its parts.
pub(crate) fn part_names() -> Vec<&'static str> {
    PARTS.iter().map(|(name, _)| *name).collect()
}

/// The parts of the library: name and text, in the language itself.
pub fn library_parts() -> impl Iterator<Item = (&'static str, &'static str)> {
    PARTS.iter().copied()
}
