//! The files that a spec is made of: the spec itself and what it imports, each once.
//!
//! In goes a spec, out comes one with the items of every module in it, module by module, and the graph of imports. What
//! a name means is a matter of the module in which it stands (`symbols`); here every item gets the name that it
//! has in the plan: as it is, or behind the qualifier of its import. Nothing recurses: imports nest as they like.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ast::{self, Name, Scope, Spec};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::library;
use crate::load::Loader;
use crate::lower;
use crate::source::{FileId, Span};
use crate::syntax;

/// How deep imports nest (DESIGN "Limits").
const DEPTH: usize = 64;
/// The files of a spec at most.
const FILES: usize = 1000;
/// The imports of all of them at most.
const IMPORTS: usize = 10_000;

/// The files of a spec; the first is the spec itself.
#[derive(Debug)]
pub(crate) struct Modules {
    pub(crate) list: Vec<Module>,
    by_file: BTreeMap<FileId, usize>,
    /// The presets of the library, which every module sees behind its own names and its imports.
    pub(crate) presets: Option<usize>,
}

/// A file of a spec.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) file: FileId,
    /// What it is called in messages: its path, or `std:NAME`.
    pub(crate) name: String,
    /// What stands before its names in the plan: nothing, or `lib.`.
    pub(crate) prefix: String,
    pub(crate) imports: Vec<Import>,
}

/// An import that leads to a module.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) module: usize,
    pub(crate) alias: Option<Name>,
    /// The path as written.
    pub(crate) path: Span,
    /// The whole node.
    pub(crate) span: Span,
}

impl Modules {
    /// The module that a file is; texts that are no module belong to the first.
    pub(crate) fn module_of(&self, file: FileId) -> usize {
        // Most specs are one file, and need no search.
        if self.list.len() == 1 {
            return 0;
        }
        self.by_file.get(&file).copied().unwrap_or(0)
    }

    /// Whether two files are, or belong to, one module.
    pub(crate) fn is_same_module(&self, one: FileId, other: FileId) -> bool {
        one == other || self.module_of(one) == self.module_of(other)
    }

    /// Whether something stands in the spec itself rather than in a file that it imports.
    pub(crate) fn is_own(&self, span: Span) -> bool {
        self.module_of(span.file) == 0
    }
}

/// Reads what a spec imports, and what that imports; gives the specs of all modules, in the order of [`Modules`]. Presets
/// of the library that they name, or that are `chosen`, are a module of their own.
pub(crate) fn load_modules(
    spec: Spec,
    file: FileId,
    chosen: &[&str],
    loader: &mut Loader<'_>,
    diagnostics: &mut Diagnostics,
) -> (Modules, Vec<Spec>) {
    let root = Module { file, name: loader.sources.name(file).to_owned(), prefix: String::new(), imports: Vec::new() };
    let mut modules = Modules { list: vec![root], by_file: BTreeMap::from([(file, 0)]), presets: None };
    let mut specs = vec![spec];
    if !specs[0].imports.is_empty() {
        load_imports(&mut modules, &mut specs, loader, diagnostics);
    }
    add_presets(&mut modules, &mut specs, chosen, loader);
    (modules, specs)
}

/// The providers of the library, and the agents of their names.
pub(crate) fn read_presets(loader: &mut Loader<'_>) -> Spec {
    let file = loader.library(library::PROVIDERS).expect("the library has its providers");
    let text = loader.sources.text(file);
    lower::lower_spec(&syntax::parse(text, file).nodes, text, &mut Diagnostics::default())
}

/// Adds the presets that are named somewhere; where the library's providers are imported, all are there already.
fn add_presets(modules: &mut Modules, specs: &mut Vec<Spec>, chosen: &[&str], loader: &mut Loader<'_>) {
    let named = specs.iter().flat_map(|spec| &spec.presets).map(|name| name.value.as_str());
    let chosen = chosen.iter().copied().filter(|name| library::is_preset(name));
    let wanted: BTreeSet<String> = named.chain(chosen).map(str::to_owned).collect();
    if wanted.is_empty() {
        return;
    }
    let file = loader.library(library::PROVIDERS).expect("the library has its providers");
    let module = *modules.by_file.entry(file).or_insert_with(|| {
        let mut spec = read_presets(loader);
        spec.providers.retain(|provider| wanted.contains(&provider.name.value));
        spec.agents.retain(|agent| wanted.contains(&agent.name.value));
        specs.push(spec);
        let name = loader.sources.name(file).to_owned();
        modules.list.push(Module { file, name, prefix: String::new(), imports: Vec::new() });
        modules.list.len() - 1
    });
    modules.presets = Some(module);
}

fn load_imports(modules: &mut Modules, specs: &mut Vec<Spec>, loader: &mut Loader<'_>, diagnostics: &mut Diagnostics) {
    let (mut depths, mut imports, mut full) = (vec![0], 0, false);
    // Breadth first, so that each module is found, and counted for its depth, on the shortest way to it.
    let mut open = VecDeque::from([0]);
    while let Some(index) = open.pop_front() {
        let mut known: BTreeMap<FileId, Span> = BTreeMap::new();
        for import in std::mem::take(&mut specs[index].imports) {
            let path = import.path.span(0..import.path.as_str().len());
            imports += 1;
            if imports > IMPORTS {
                if !full {
                    diagnostics.push(report_limit(format!("the spec has more than {IMPORTS} imports"), path));
                }
                full = true;
                continue;
            }
            let Some(file) = loader.resolve_import(&import.path, diagnostics) else { continue };
            if let Some(first) = known.insert(file, path) {
                let message = format!("`{}` is imported twice", import.path.as_str());
                let twice =
                    Diagnostic::new(Code::Duplicate, message).label(path, "again here").label(first, "first here");
                diagnostics.push(twice.help("remove one of them"));
                continue;
            }
            let module = match modules.by_file.get(&file) {
                Some(&module) => module,
                None if depths[index] == DEPTH => {
                    diagnostics.push(report_limit(format!("imports nest deeper than {DEPTH}"), path));
                    continue;
                }
                None if modules.list.len() == FILES => {
                    if !full {
                        diagnostics.push(report_limit(format!("the spec has more than {FILES} files"), path));
                    }
                    full = true;
                    continue;
                }
                None => {
                    let tree = loader.syntax_tree(file);
                    diagnostics.extend(tree.problems.iter().cloned().map(Diagnostic::from));
                    // Together with `modules.list`: `merge_specs` takes them in pairs.
                    specs.push(lower::lower_spec(&tree.nodes, loader.sources.text(file), diagnostics));
                    depths.push(depths[index] + 1);
                    let module = modules.list.len();
                    let name = loader.sources.name(file).to_owned();
                    modules.list.push(Module { file, name, prefix: String::new(), imports: Vec::new() });
                    modules.by_file.insert(file, module);
                    open.push_back(module);
                    module
                }
            };
            modules.list[index].imports.push(Import { module, alias: import.alias, path, span: import.span });
        }
    }
    modules.list.iter().for_each(|module| check_aliases(module, diagnostics));
    check_cycles(modules, diagnostics);
}

fn report_limit(message: String, path: Span) -> Diagnostic {
    Diagnostic::new(Code::InputLimits, message)
        .label(path, "one too many")
        .help("put what belongs together into one file")
}

/// Two imports with one qualifier.
fn check_aliases(module: &Module, diagnostics: &mut Diagnostics) {
    let mut known: BTreeMap<String, Span> = BTreeMap::new();
    for alias in module.imports.iter().filter_map(|import| import.alias.as_ref()) {
        // Expressions write `_` for `-`, where the two would be one name.
        if let Some(first) = known.insert(alias.value.replace('-', "_"), alias.span) {
            diagnostics.push(
                Diagnostic::new(Code::DuplicateDefinition, format!("two imports are called `{}`", alias.value))
                    .label(alias.span, "again here")
                    .label(first, "first here")
                    .help("rename one of them"),
            );
        }
    }
}

/// Reports each circle of imports, at the import that closes it.
fn check_cycles(modules: &Modules, diagnostics: &mut Diagnostics) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; modules.list.len()];
    // Modules that are open, outermost first, each with the next import to follow.
    let mut path: Vec<(usize, usize)> = vec![(0, 0)];
    states[0] = State::Open;
    while let Some((module, next)) = path.last_mut() {
        let Some(import) = modules.list[*module].imports.get(*next) else {
            states[*module] = State::Done;
            path.pop();
            continue;
        };
        *next += 1;
        match states[import.module] {
            State::Done => {}
            State::New => {
                states[import.module] = State::Open;
                path.push((import.module, 0));
            }
            State::Open => {
                let start = path.iter().position(|(open, _)| *open == import.module).unwrap_or(0);
                diagnostics.push(report_cycle(modules, &path[start..]));
            }
        }
    }
}

/// A circle: each of `path` with the number of the import after the one that leads on.
fn report_cycle(modules: &Modules, path: &[(usize, usize)]) -> Diagnostic {
    let name = |module: usize| modules.list[module].name.as_str();
    let leads = |(module, next): &(usize, usize)| &modules.list[*module].imports[next - 1];
    let (last, rest) = path.split_last().expect("a circle has a module in it");
    let closing = leads(last);
    if rest.is_empty() {
        return Diagnostic::new(Code::ImportCycle, format!("`{}` imports itself", name(last.0)))
            .label(closing.path, "this very file")
            .help("remove the import");
    }
    let way: Vec<String> =
        path.iter().map(|(module, _)| *module).chain([path[0].0]).map(|module| format!("`{}`", name(module))).collect();
    let diagnostic = Diagnostic::new(Code::ImportCycle, format!("imports form a circle: {}", way.join(" → ")))
        .label(closing.path, format!("`{}` imports `{}` and closes it", name(last.0), name(closing.module)))
        .help("cut one of them: move what both need into a file of its own, and import that");
    rest.iter().fold(diagnostic, |diagnostic, step| {
        let import = leads(step);
        diagnostic.label(import.path, format!("`{}` imports `{}`", name(step.0), name(import.module)))
    })
}

/// What stands before the names of each module in the plan, so that no two items of a kind have one name there;
/// `declared` gives the names of a module, each with its kind.
pub(crate) fn assign_prefixes<'n>(modules: &Modules, declared: impl Fn(usize) -> Vec<(usize, &'n str)>) -> Vec<String> {
    let mut prefixes = vec![String::new(); modules.list.len()];
    if modules.list.len() == 1 {
        return prefixes;
    }
    let own = |module: usize| declared(module).into_iter().collect::<BTreeSet<(usize, &str)>>();
    let mut taken = BTreeMap::from([(String::new(), own(0))]);
    let mut done = vec![false; modules.list.len()];
    done[0] = true;
    // In the order in which they were found, so the shortest way to a module names it.
    let imports = modules.list.iter().enumerate().flat_map(|(index, module)| {
        module.imports.iter().map(move |import| (index, import.module, import.alias.as_ref()))
    });
    for (index, module, alias) in imports.chain(modules.presets.map(|presets| (0, presets, None))) {
        if std::mem::replace(&mut done[module], true) {
            continue;
        }
        let names = own(module);
        let outer = prefixes[index].clone();
        let stem = match alias {
            Some(alias) => alias.value.clone(),
            None => path_qualifier(&modules.list[module].name),
        };
        let plain = alias.is_none().then(|| outer.clone());
        let numbered = (1..=FILES).map(|number| match number {
            1 => format!("{outer}{stem}."),
            number => format!("{outer}{stem}-{number}."),
        });
        let free = |prefix: &String| taken.get(prefix).is_none_or(|taken| taken.is_disjoint(&names));
        let prefix = plain.into_iter().chain(numbered).find(free).expect("each file takes one of so many");
        taken.entry(prefix.clone()).or_default().extend(names);
        prefixes[module] = prefix;
    }
    prefixes
}

/// The items of all modules in one spec, under the names that they have in the plan. What concerns a workflow as a whole
/// is that of the first.
pub(crate) fn merge_specs(
    modules: &Modules,
    specs: Vec<Spec>,
    loader: &Loader<'_>,
    diagnostics: &mut Diagnostics,
) -> Spec {
    let mut specs = specs.into_iter();
    let mut whole = specs.next().unwrap_or_default();
    for (module, spec) in modules.list.iter().skip(1).zip(specs) {
        let mut spec = spec;
        let longest = prefix_names(&mut spec, &module.prefix);
        if longest > swarmc_plan::LONGEST_NAME {
            diagnostics.extend(too_long(modules, module, longest));
        }
        whole.params.append(&mut spec.params);
        whole.secrets.append(&mut spec.secrets);
        whole.types.append(&mut spec.types);
        whole.providers.append(&mut spec.providers);
        whole.tiers.append(&mut spec.tiers);
        whole.agents.append(&mut spec.agents);
        whole.tool_servers.append(&mut spec.tool_servers);
        whole.prompts.append(&mut spec.prompts);
        whole.packs.append(&mut spec.packs);
        whole.tasks.append(&mut spec.tasks);
        whole.pipelines.append(&mut spec.pipelines);
        whole.swarms.append(&mut spec.swarms);
        let end = u32::try_from(loader.sources.text(module.file).len()).unwrap_or(u32::MAX);
        // A suppression at the top level of an import is about that file.
        let everywhere = Scope::Within(Span::new(module.file, 0, end));
        whole.allows.extend(spec.allows.into_iter().map(|allow| ast::Allow {
            scope: if allow.scope == Scope::Everywhere { everywhere } else { allow.scope },
            ..allow
        }));
    }
    whole
}

/// Puts the prefix before every name that the plan holds; gives the bytes of the longest. A shared task is called what it
/// is called in its pipeline.
fn prefix_names(spec: &mut Spec, prefix: &str) -> usize {
    let names = (spec.params.iter_mut().map(|param| &mut param.name))
        .chain(spec.secrets.iter_mut().map(|secret| &mut secret.name))
        .chain(spec.types.iter_mut().map(|declared| &mut declared.name))
        .chain(spec.providers.iter_mut().map(|provider| &mut provider.name))
        .chain(spec.tiers.iter_mut().map(|tier| &mut tier.name))
        .chain(spec.agents.iter_mut().map(|agent| &mut agent.name))
        .chain(spec.tool_servers.iter_mut().map(|server| &mut server.name))
        .chain(spec.prompts.iter_mut().map(|prompt| &mut prompt.name))
        .chain(spec.packs.iter_mut().map(|pack| &mut pack.name))
        .chain(spec.pipelines.iter_mut().map(|pipeline| &mut pipeline.name))
        .chain(spec.swarms.iter_mut().map(|swarm| &mut swarm.name));
    let mut longest = 0;
    for name in names {
        name.value.insert_str(0, prefix);
        longest = longest.max(name.value.len());
    }
    longest
}

/// Names that are too long with what stands before them.
fn too_long(modules: &Modules, module: &Module, bytes: usize) -> Option<Diagnostic> {
    let imports = modules.list.iter().flat_map(|importer| &importer.imports);
    let import = imports.into_iter().find(|import| modules.list[import.module].file == module.file)?;
    let place = import.alias.as_ref().map_or(import.path, |alias| alias.span);
    let message = format!("with `{}` before it, a name of `{}` has {bytes} bytes", module.prefix, module.name);
    Some(
        Diagnostic::new(Code::WrongValue, message)
            .label(place, "makes it too long")
            .help(format!("{} characters at most: take a shorter `as=`", swarmc_plan::LONGEST_NAME)),
    )
}

/// A file as a qualifier: `shared/Review roles.kdl` is `review-roles`.
pub(crate) fn path_qualifier(path: &str) -> String {
    let last = path.rsplit(['/', ':']).next().unwrap_or(path);
    let last = last.strip_suffix(".kdl").unwrap_or(last).to_lowercase();
    let sign = |sign: char| if sign.is_ascii_alphanumeric() || sign == '_' { sign } else { '-' };
    let name: String = last.chars().map(sign).take(40).collect();
    let name = name.trim_matches('-');
    match name.starts_with(|first: char| first.is_ascii_lowercase()) {
        true => name.to_owned(),
        false => format!("import-{name}").trim_end_matches('-').to_owned(),
    }
}
