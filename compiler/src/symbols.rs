//! What a name of the top level means, in the module in which it is written.
//!
//! A module sees its own names, those of what it imports without `as=`, and `lib.name` for what it imports `as=lib`; it
//! does not see what these import in turn. Indices are those of the lists of the whole spec, which hold the items module
//! by module.

pub(crate) mod names;

use std::cell::Cell;

use crate::ast::{Name, Spec};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::library;
use crate::modules::{self, Import, Modules};
use crate::source::{FileId, Span};
use crate::suggest::{self, Near};
use names::{Names, normalize_name};

/// What a name of the top level can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NameKind {
    Param,
    Secret,
    Type,
    Provider,
    Tier,
    Agent,
    ToolServer,
    Prompt,
    Pack,
    /// A task at the top level.
    Task,
    Pipeline,
    Swarm,
}

impl NameKind {
    /// In the order in which they are numbered.
    pub(crate) const ALL: &[NameKind] = &[
        NameKind::Param,
        NameKind::Secret,
        NameKind::Type,
        NameKind::Provider,
        NameKind::Tier,
        NameKind::Agent,
        NameKind::ToolServer,
        NameKind::Prompt,
        NameKind::Pack,
        NameKind::Task,
        NameKind::Pipeline,
        NameKind::Swarm,
    ];

    /// What it is called: "agent".
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            NameKind::Param => "parameter",
            NameKind::Secret => "secret",
            NameKind::Type => "type",
            NameKind::Provider => "provider",
            NameKind::Tier => "tier",
            NameKind::Agent => "agent",
            NameKind::ToolServer => "tool server",
            NameKind::Prompt => "prompt",
            NameKind::Pack => "context-pack",
            NameKind::Task => "task",
            NameKind::Pipeline => "pipeline",
            NameKind::Swarm => "swarm",
        }
    }

    /// How one is declared.
    fn declaration_example(self, name: &str) -> String {
        match self {
            NameKind::Param => format!("param {name} type=string"),
            NameKind::Secret => format!("secret {name} env=…"),
            NameKind::Type => format!("type {name} {{ … }}"),
            NameKind::Tier => format!("tiers {{ {name} PROVIDER model=… }}"),
            NameKind::ToolServer => format!("tool-server {name} {{ exec … }}"),
            NameKind::Pack => format!("context-pack {name} {{ … }}"),
            NameKind::Task => format!("task {name} {{ … }}"),
            NameKind::Swarm => format!("swarm {name} {{ … }}"),
            NameKind::Provider => format!("provider {name} {{ … }}"),
            NameKind::Agent => format!("agent {name} provider=…"),
            NameKind::Prompt => format!("prompt {name} file=…"),
            NameKind::Pipeline => format!("pipeline {name} {{ … }}"),
        }
    }

    /// The names that a spec declares.
    pub(crate) fn declared_names(self, spec: &Spec) -> Vec<&Name> {
        match self {
            NameKind::Param => spec.params.iter().map(|param| &param.name).collect(),
            NameKind::Secret => spec.secrets.iter().map(|secret| &secret.name).collect(),
            NameKind::Type => spec.types.iter().map(|declared| &declared.name).collect(),
            NameKind::Tier => spec.tiers.iter().map(|tier| &tier.name).collect(),
            NameKind::ToolServer => spec.tool_servers.iter().map(|server| &server.name).collect(),
            NameKind::Pack => spec.packs.iter().map(|pack| &pack.name).collect(),
            NameKind::Task => spec.tasks.iter().map(|task| &task.name).collect(),
            NameKind::Swarm => spec.swarms.iter().map(|swarm| &swarm.name).collect(),
            NameKind::Provider => spec.providers.iter().map(|provider| &provider.name).collect(),
            NameKind::Agent => spec.agents.iter().map(|agent| &agent.name).collect(),
            NameKind::Prompt => spec.prompts.iter().map(|prompt| &prompt.name).collect(),
            NameKind::Pipeline => spec.pipelines.iter().map(|pipeline| &pipeline.name).collect(),
        }
    }
}

/// The names of every module.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) modules: Modules,
    /// By module and [`NameKind`].
    own: Vec<Vec<Own>>,
    /// Whether something of an import is used, by module and import.
    used: Vec<Vec<Cell<bool>>>,
}

/// What a module declares of a kind.
#[derive(Debug)]
struct Own {
    names: Names,
    /// The index of its first item in the whole spec.
    first: usize,
    /// How many different names a person declares. The others, which stand last, are of agents that tasks make.
    declared: usize,
    made: usize,
}

impl Own {
    /// The names that a person declares.
    fn declared_names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().take(self.names.len() - self.made)
    }
}

impl Tables {
    /// The tables of the modules of a spec; names that stand twice where both are seen are reported.
    pub(crate) fn new(modules: Modules, specs: &[Spec], diagnostics: &mut Diagnostics) -> Tables {
        let mut firsts = vec![0; NameKind::ALL.len()];
        let mut own = Vec::with_capacity(specs.len());
        for spec in specs {
            let table = |(&what, first): (&NameKind, &mut usize)| {
                let names = Names::new(what.as_str(), what.declared_names(spec).into_iter(), diagnostics);
                let made = match what {
                    NameKind::Agent => spec.agents.iter().filter(|agent| agent.variant).count(),
                    _ => 0,
                };
                let own = Own { first: *first, declared: names.count_distinct() - made, made, names };
                *first += own.names.len();
                own
            };
            own.push(NameKind::ALL.iter().zip(&mut firsts).map(table).collect::<Vec<Own>>());
        }
        let used = modules.list.iter().map(|module| vec![Cell::new(false); module.imports.len()]).collect();
        let mut tables = Tables { modules, own, used };
        let declared = |module: usize| {
            let kinds = tables.own[module].iter().enumerate();
            // What can be run shares one list of names.
            let place = |what: usize| if what == NameKind::Swarm as usize { NameKind::Pipeline as usize } else { what };
            kinds.flat_map(|(what, own)| own.names.iter().map(move |name| (place(what), name))).collect()
        };
        let prefixes = modules::assign_prefixes(&tables.modules, declared);
        tables.modules.list.iter_mut().zip(prefixes).for_each(|(module, prefix)| module.prefix = prefix);
        (0..tables.own.len()).for_each(|module| tables.report_clashes(module, diagnostics));
        (0..tables.own.len()).for_each(|module| diagnostics.extend(tables.runnable_twice(module)));
        tables
    }

    /// How many there are in the whole spec, those with one name counted each.
    pub(crate) fn len(&self, what: NameKind) -> usize {
        self.own.iter().map(|own| own[what as usize].names.len()).sum()
    }

    /// How many the spec itself declares.
    pub(crate) fn own_len(&self, what: NameKind) -> usize {
        self.module_names(0, what).names.len()
    }

    /// What a name means in the text of a file: its index. Where it need not be `exact`, `-` and `_` are one.
    pub(crate) fn find_name(&self, what: NameKind, name: &str, exact: bool, from: FileId) -> Option<usize> {
        let module = self.modules.module_of(from);
        if let Some(found) = self.module_names(module, what).find(name, exact) {
            return Some(found);
        }
        if let Some((alias, rest)) = name.split_once('.') {
            return self.find_qualified(what, alias, rest, exact, from);
        }
        let imports = self.modules.list[module].imports.iter().enumerate();
        for (position, import) in imports.filter(|(_, import)| import.alias.is_none()) {
            if let Some(found) = self.module_names(import.module, what).find(name, exact) {
                self.used[module][position].set(true);
                return Some(found);
            }
        }
        // Last: what a spec declares or imports hides a preset of its name.
        self.module_names(self.modules.presets?, what).find(name, exact)
    }

    /// What `alias.name` means in the text of a file.
    pub(crate) fn find_qualified(
        &self,
        what: NameKind,
        alias: &str,
        name: &str,
        exact: bool,
        from: FileId,
    ) -> Option<usize> {
        let module = self.modules.module_of(from);
        let (position, import) = self.find_import(alias, exact, from)?;
        let found = self.module_names(import.module, what).find(name, exact)?;
        self.used[module][position].set(true);
        Some(found)
    }

    /// Whether something is imported under this qualifier.
    pub(crate) fn is_alias(&self, alias: &str, exact: bool, from: FileId) -> bool {
        self.find_import(alias, exact, from).is_some()
    }

    /// A qualifier as its import spells it.
    pub(crate) fn declared_alias<'n>(&'n self, alias: &'n str, exact: bool, from: FileId) -> &'n str {
        let import = self.find_import(alias, exact, from).and_then(|(_, import)| import.alias.as_ref());
        import.map_or(alias, |alias| &alias.value)
    }

    /// What a name means, or a report.
    pub(crate) fn resolve_name(&self, what: NameKind, name: &Name, diagnostics: &mut Diagnostics) -> Option<usize> {
        let found = self.find_name(what, &name.value, true, name.span.file);
        if found.is_none() {
            // All presets would hide the names that the spec has, so they count where one of them is close.
            let presets = match what {
                NameKind::Agent | NameKind::Provider => library::preset_names(),
                _ => &[],
            };
            let presets = if suggest::did_you_mean(&name.value, presets, "").0.is_some() { presets } else { &[] };
            diagnostics.push(self.unknown_name(what, &name.value, name.span, name.span.file, &str::to_owned, presets));
        }
        found
    }

    /// The one that is meant where none is named: the only one that a module declares, or that it sees unqualified
    /// where it declares none.
    pub(crate) fn find_sole(&self, what: NameKind, from: FileId) -> Option<usize> {
        let module = self.modules.module_of(from);
        let own = self.module_names(module, what);
        match own.declared {
            0 => {}
            1 => return Some(own.first),
            _ => return None,
        }
        let imports = self.modules.list[module].imports.iter().enumerate();
        let mut seen = imports
            .filter(|(_, import)| import.alias.is_none())
            .map(|(position, import)| (position, self.module_names(import.module, what)))
            .filter(|(_, own)| own.declared > 0);
        match (seen.next(), seen.next()) {
            (Some((position, own)), None) if own.declared == 1 => {
                self.used[module][position].set(true);
                Some(own.first)
            }
            _ => None,
        }
    }

    /// The names that the text of a file can use, as they are written there.
    pub(crate) fn visible_names(&self, what: NameKind, from: FileId) -> Vec<String> {
        let module = self.modules.module_of(from);
        let mut seen: Vec<String> = self.module_names(module, what).declared_names().map(str::to_owned).collect();
        let mut imports: Vec<&Import> = self.modules.list[module].imports.iter().collect();
        imports.sort_by_key(|import| import.alias.is_some());
        for import in imports {
            let names = self.module_names(import.module, what).declared_names();
            seen.extend(names.map(|name| match &import.alias {
                Some(alias) => format!("{}.{name}", alias.value),
                None => name.to_owned(),
            }));
        }
        seen
    }

    /// Whether the text of a file can name this one.
    pub(crate) fn is_visible(&self, what: NameKind, index: usize, from: FileId) -> bool {
        let module = self.modules.module_of(from);
        let holds = |module: usize| {
            let own = self.module_names(module, what);
            (own.first..own.first + own.names.len()).contains(&index)
        };
        holds(module)
            || self.modules.presets.is_some_and(holds)
            || self.modules.list[module].imports.iter().zip(&self.used[module]).any(|(import, used)| {
                let found = holds(import.module);
                used.set(used.get() || found);
                found
            })
    }

    /// The imports of the spec itself of which nothing is used.
    pub(crate) fn unused_imports(&self) -> impl Iterator<Item = &Import> {
        let used = self.modules.list[0].imports.iter().zip(&self.used[0]);
        used.filter(|(_, used)| !used.get()).map(|(import, _)| import)
    }

    /// A name that means nothing here; `spelt` is how names are written in this place, `also` what can be named besides.
    pub(crate) fn unknown_name(
        &self,
        what: NameKind,
        name: &str,
        span: Span,
        from: FileId,
        spelt: &dyn Fn(&str) -> String,
        also: &[&str],
    ) -> Diagnostic {
        let noun = what.as_str();
        let diagnostic = |label: &str| {
            Diagnostic::new(Code::UnknownReference, format!("there is no {noun} `{name}`")).label(span, label)
        };
        let fix = |diagnostic: Diagnostic, near: Near<'_>| {
            let name = spelt(near.name);
            diagnostic.edit(format!("write `{name}`"), span, name, near.certain)
        };
        let seen = self.visible_names(what, from);
        let seen: Vec<&str> = also.iter().copied().chain(seen.iter().map(String::as_str)).collect();
        if let Some((alias, rest)) = name.split_once('.') {
            let Some((_, import)) = self.find_import(alias, true, from) else {
                let (close, help) = self.missing_alias(alias, rest, &seen, from);
                let diagnostic = diagnostic("nothing is imported under this name").help(help);
                return match close {
                    Some(close) => {
                        fix(diagnostic, Near { name: &close, certain: suggest::is_slip(name, &close, &seen) })
                    }
                    None => diagnostic,
                };
            };
            let module = &self.modules.list[import.module].name;
            let theirs: Vec<&str> = seen
                .iter()
                .copied()
                .filter(|name| name.split_once('.').is_some_and(|(first, _)| first == alias))
                .collect();
            let (close, help) = suggest::did_you_mean(name, &theirs, &format!("its {noun}s are "));
            let help = help.unwrap_or_else(|| format!("`{module}` declares no {noun}"));
            let diagnostic = diagnostic(&format!("not in `{module}`")).help(help);
            return match close {
                Some(close) => fix(diagnostic, close),
                None => diagnostic,
            };
        }
        let qualified: Vec<&str> = seen
            .iter()
            .copied()
            .filter(|seen| seen.split_once('.').is_some_and(|(_, rest)| normalize_name(rest) == normalize_name(name)))
            .collect();
        if let [only] = qualified.as_slice() {
            let written = spelt(only);
            return diagnostic("not defined here").help(format!("write `{written}`")).fix(
                format!("write `{written}`"),
                span,
                written,
            );
        }
        let qualified_names = qualified.len();
        let (close, help) = match qualified.is_empty() {
            true => suggest::did_you_mean(name, &seen, &format!("the {noun}s are ")),
            false => (None, Some(format!("write {}", suggest::format_list(qualified.into_iter(), "or")))),
        };
        let elsewhere = (close.is_none() && qualified_names == 0).then(|| self.suggest_import(what, name)).flatten();
        let help = elsewhere.or(help).unwrap_or_else(|| format!("declare it: `{}`", what.declaration_example(name)));
        let label = if what == NameKind::Param { "not a parameter" } else { "not defined" };
        let diagnostic = diagnostic(label).help(help);
        match close {
            Some(close) => fix(diagnostic, close),
            None => diagnostic,
        }
    }

    /// A module that declares the name and is not imported where it is used.
    fn suggest_import(&self, what: NameKind, name: &str) -> Option<String> {
        let module =
            // Not the spec itself, at 0: an import of it closes a circle.
            (1..self.own.len()).find(|&module| self.module_names(module, what).names.find_exact(name).is_some())?;
        Some(format!("`{}` declares one: import it in this file", self.modules.list[module].name))
    }

    /// What to type where `alias.rest` is qualified by nothing that is imported, and the name that is nearly that.
    fn missing_alias(&self, alias: &str, rest: &str, seen: &[&str], from: FileId) -> (Option<String>, String) {
        let near = |close: String| {
            let help = format!("did you mean `{close}`?");
            (Some(close), help)
        };
        if let Some(close) = suggest::find_closest(&format!("{alias}.{rest}"), seen.iter().copied()) {
            return near(close.to_owned());
        }
        let imports = &self.modules.list[self.modules.module_of(from)].imports;
        let aliases: Vec<&str> =
            imports.iter().filter_map(|import| Some(import.alias.as_ref()?.value.as_str())).collect();
        let import = match alias {
            "std" => "std:agents".to_owned(),
            alias => format!("{alias}.kdl"),
        };
        match suggest::find_closest(alias, aliases.iter().copied()) {
            Some(close) => near(format!("{close}.{rest}")),
            None if aliases.is_empty() || alias == "std" => {
                (None, format!("import it: `import \"{import}\" as={alias}`"))
            }
            None => (None, format!("the imports are {}", suggest::format_list(aliases.into_iter(), "and"))),
        }
    }

    fn module_names(&self, module: usize, what: NameKind) -> &Own {
        &self.own[module][what as usize]
    }

    /// The import that has this qualifier, and its position.
    fn find_import(&self, alias: &str, exact: bool, from: FileId) -> Option<(usize, &Import)> {
        let same = |known: &str| if exact { known == alias } else { normalize_name(known) == normalize_name(alias) };
        let imports = self.modules.list[self.modules.module_of(from)].imports.iter().enumerate();
        imports.into_iter().find(|(_, import)| import.alias.as_ref().is_some_and(|known| same(&known.value)))
    }

    /// Names that a module sees twice.
    fn report_clashes(&self, module: usize, diagnostics: &mut Diagnostics) {
        let imports = &self.modules.list[module].imports;
        let params = &self.module_names(module, NameKind::Param).names;
        for alias in imports.iter().filter_map(|import| import.alias.as_ref()) {
            if let Some(param) = params.find_same(&alias.value) {
                diagnostics.push(
                    Diagnostic::new(
                        Code::DuplicateDefinition,
                        format!("a parameter and an import are called `{}`", alias.value),
                    )
                    .label(alias.span, "again here")
                    .label(params.span(param), "first here")
                    .help(format!("rename one of them: `param.{}` could mean either", normalize_name(&alias.value))),
                );
            }
        }
        let seen: Vec<&Import> = imports.iter().filter(|import| import.alias.is_none()).collect();
        for (position, import) in seen.iter().enumerate() {
            for &what in NameKind::ALL {
                let theirs = &self.module_names(import.module, what).names;
                if let Some((own, other)) = self.module_names(module, what).names.find_shared(theirs) {
                    diagnostics.push(self.shadowed_import(what, (module, own), (import, other)));
                }
                for earlier in &seen[..position] {
                    let pair = self.module_names(earlier.module, what).names.find_shared(theirs);
                    if let Some((first, again)) = pair.filter(|_| earlier.module != import.module) {
                        diagnostics.push(self.ambiguous_import(what, (earlier, first), (import, again)));
                    }
                }
            }
        }
    }

    /// A pipeline and a swarm with one name: `swarmc run NAME` could mean either.
    fn runnable_twice(&self, module: usize) -> Option<Diagnostic> {
        let (pipelines, swarms) =
            (&self.module_names(module, NameKind::Pipeline).names, &self.module_names(module, NameKind::Swarm).names);
        let (pipeline, swarm) = pipelines.find_shared(swarms)?;
        let name = swarms.iter().nth(swarm).unwrap_or_default();
        Some(
            Diagnostic::new(Code::DuplicateDefinition, format!("a pipeline and a swarm are called `{name}`"))
                .label(swarms.span(swarm), "the swarm")
                .label(pipelines.span(pipeline), "the pipeline")
                .help(format!("rename one of them: `swarmc run` could mean either by `{name}`")),
        )
    }

    fn shadowed_import(&self, what: NameKind, own: (usize, usize), import: (&Import, usize)) -> Diagnostic {
        let (here, there) = (&self.module_names(own.0, what).names, &self.module_names(import.0.module, what).names);
        let (noun, name) = (what.as_str(), there.iter().nth(import.1).unwrap_or_default());
        let other = &self.modules.list[import.0.module].name;
        let qualify = alias_argument(other);
        Diagnostic::new(Code::ImportCycle, format!("{noun} `{name}` hides the one that `{other}` declares"))
            .label(here.span(own.1), format!("{} already has this name", quote_name(other)))
            .label(there.span(import.1), "the imported one")
            .help(format!("rename it, or qualify the import: `import … {qualify}`"))
            .unsafe_fix(format!("write `{qualify}`"), span_after(import.0.span), format!(" {qualify}"))
    }

    fn ambiguous_import(&self, what: NameKind, first: (&Import, usize), again: (&Import, usize)) -> Diagnostic {
        let table = |import: &Import| &self.module_names(import.module, what).names;
        let name = table(again.0).iter().nth(again.1).unwrap_or_default();
        let (one, other) = (&self.modules.list[first.0.module].name, &self.modules.list[again.0.module].name);
        let (noun, qualify) = (what.as_str(), alias_argument(other));
        Diagnostic::new(Code::DuplicateDefinition, format!("`{one}` and `{other}` both declare {noun} `{name}`"))
            .label(again.0.path, "imported here")
            .label(table(first.0).span(first.1), "first here")
            .label(table(again.0).span(again.1), "again here")
            .help(format!("qualify one of the imports: `import … {qualify}`"))
            .unsafe_fix(format!("write `{qualify}`"), span_after(again.0.span), format!(" {qualify}"))
    }
}

impl Own {
    fn find(&self, name: &str, exact: bool) -> Option<usize> {
        Some(self.first + self.names.find(name, exact)?)
    }
}

fn alias_argument(module: &str) -> String {
    format!("as={}", modules::path_qualifier(module))
}

fn quote_name(name: &str) -> String {
    format!("`{name}`")
}

/// The place behind a node.
fn span_after(span: Span) -> Span {
    Span { start: span.end, ..span }
}
