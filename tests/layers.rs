//! The layers of the crates: which module may import from which. The compiler of Rust accepts any order.
//!
//! In: the `crate::` paths of the production code of a crate. Out: for each module the modules that it imports from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::tidy::{files, root};

/// The layers of the runtime, from below. A module imports from its own layer and from those before it.
const RUNTIME: &[&str] = &["types", "core", "io", "eval", "driver"];

/// The layers of the compiler, from below: the modules of each.
const COMPILER: &[&[&str]] = &[
    // Data, and work on texts alone.
    &["cancel", "code", "library", "pattern", "settings", "source", "stats", "suggest", "text_cache", "tokens"],
    // Texts: trees, templates, diagnostics.
    &[
        "diagnostic",
        "files",
        "format",
        "ignored",
        "interpolation",
        "mapped_text",
        "schema",
        "syntax",
        "template",
        "test",
    ],
    // The spec as it is written, with all that it imports.
    &["ast", "baseline", "config", "import", "load", "lower", "modules", "suppress"],
    // What names mean.
    &["model", "resolve", "symbols", "types"],
    // What follows from the model: problems, the plan, answers for editors.
    &["bounds", "check", "emit", "flow", "index", "trust"],
    // The stages in their order, and what compiles a spec.
    &["analysis", "apply_fixes", "lib", "stale"],
];

type Imports = BTreeMap<String, BTreeSet<String>>;

/// The modules of a crate with those that each imports from. A module is a file or folder `depth` names below `src`.
fn imports(crate_name: &str, depth: usize) -> Imports {
    let source = Path::new(crate_name).join("src");
    let paths = files().into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let mut sources = Vec::new();
    for path in paths {
        let Ok(inside) = path.strip_prefix(&source) else { continue };
        let names: Vec<String> =
            inside.with_extension("").iter().map(|name| name.to_string_lossy().into_owned()).collect();
        if names.len() >= depth && !names.iter().any(|name| is_test(name)) && names[depth - 1] != "mod" {
            let text = fs::read_to_string(root().join(&path)).expect("a source file can be read");
            sources.push((names[..depth].join("::"), production(&text)));
        }
    }
    let modules: BTreeSet<String> = sources.iter().map(|(module, _)| module.clone()).collect();
    let mut imports = Imports::new();
    for (module, text) in &sources {
        let found = imports.entry(module.clone()).or_default();
        for path in text.split("crate::").skip(1) {
            let end = path.find(|found: char| !found.is_alphanumeric() && found != '_' && found != ':');
            let names: Vec<&str> = path[..end.unwrap_or(path.len())].split("::").take(depth).collect();
            let imported = names.join("::");
            if modules.contains(&imported) && imported != *module {
                found.insert(imported);
            }
        }
    }
    imports
}

/// Whether a file or folder of this name holds tests alone.
fn is_test(name: &str) -> bool {
    matches!(name, "tests" | "fuzz" | "simulate" | "samples" | "pages")
}

/// A source text without comments and without the module of its tests.
fn production(text: &str) -> String {
    let end = text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    text[..end].lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The modules that `from` imports from, directly or not.
fn reached<'i>(imports: &'i Imports, from: &'i str) -> BTreeSet<&'i str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        let found = imports.get(module).into_iter().flatten();
        open.extend(found.map(String::as_str).filter(|&found| reached.insert(found)));
    }
    reached
}

/// The modules that import from each other, directly or not: each group that has more than one.
fn cycles(imports: &Imports) -> Vec<BTreeSet<&str>> {
    let all: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|module| (module.as_str(), reached(imports, module))).collect();
    let circular = all.iter().filter(|(module, reached)| reached.contains(*module));
    let groups: BTreeSet<BTreeSet<&str>> = circular
        .map(|(module, reached)| {
            reached.iter().copied().filter(|other| all.get(other).is_some_and(|back| back.contains(module))).collect()
        })
        .collect();
    groups.into_iter().collect()
}

/// Fails where a module imports from one that lies above it. `layer` gives the place of a module's layer.
fn assert_downward(imports: &Imports, layer: &dyn Fn(&str) -> Option<usize>) {
    let layer = |module: &str| layer(module).unwrap_or_else(|| panic!("`{module}` lies in no layer"));
    for (module, found) in imports {
        for imported in found {
            assert!(layer(imported) <= layer(module), "`{module}` imports from `{imported}`, which lies above it");
        }
    }
}

/// Fails where production code of a crate imports from something else than one of these modules: an import through the
/// root of the crate would hide its layer.
fn assert_named_modules(crate_name: &str, modules: &[&str]) {
    let roots = modules.iter().map(|module| format!("{module}::")).collect::<Vec<_>>();
    let names_module = |line: &str| {
        let line = line.trim_end_matches(';');
        roots.iter().any(|root| line.starts_with(root)) || modules.contains(&line)
    };
    for path in files().into_iter().filter(|path| path.starts_with(Path::new(crate_name).join("src"))) {
        let is_production = path.extension().is_some_and(|extension| extension == "rs")
            && !path.with_extension("").iter().any(|name| is_test(&name.to_string_lossy()));
        if is_production {
            let text = fs::read_to_string(root().join(&path)).expect("a source file can be read");
            for import in production(&text).split("use crate::").skip(1) {
                let line = import.lines().next().unwrap_or_default();
                assert!(names_module(line), "{}: use crate::{line}", path.display());
            }
        }
    }
}

#[test]
fn the_runtime_imports_from_its_own_layer_and_from_lower_ones() {
    let imports = imports("runtime", 2);
    assert!(imports.len() > 40, "{} modules", imports.len());
    assert_downward(&imports, &|module| {
        let name = module.split("::").next().unwrap_or_default();
        RUNTIME.iter().position(|layer| *layer == name)
    });
}

#[test]
fn the_compiler_imports_from_its_own_layer_and_from_lower_ones() {
    let imports = imports("compiler", 1);
    assert!(imports.len() > 30, "{} modules", imports.len());
    assert_downward(&imports, &|module| COMPILER.iter().position(|layer| layer.contains(&module)));
}

#[test]
fn no_modules_of_the_runtime_import_from_each_other() {
    assert_eq!(cycles(&imports("runtime", 2)), Vec::<BTreeSet<&str>>::new());
}

#[test]
fn no_modules_of_the_compiler_import_from_each_other() {
    assert_eq!(cycles(&imports("compiler", 1)), Vec::<BTreeSet<&str>>::new());
}

#[test]
fn production_code_names_the_module_that_it_imports_from() {
    assert_named_modules("runtime", RUNTIME);
    assert_named_modules("compiler", &COMPILER.concat());
}

#[test]
fn a_cycle_is_found() {
    let imports = |edges: &[(&str, &str)]| {
        let mut imports = Imports::new();
        for (from, to) in edges {
            imports.entry((*from).to_owned()).or_default().insert((*to).to_owned());
            imports.entry((*to).to_owned()).or_default();
        }
        imports
    };
    assert!(cycles(&imports(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    let circular = imports(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]);
    assert_eq!(cycles(&circular), [BTreeSet::from(["a", "b", "c"])]);
}
