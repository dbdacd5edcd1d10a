//! What a workspace asks of a check: its `swarmc.kdl`, and the baseline that it names, read as the command line does.
//!
//! In: the files of a snapshot. Out: the settings, the level of a problem, whether it is known; and what is wrong in both
//! files. What is wrong is left out of the settings, and the rest of the file counts.

use std::collections::{BTreeMap, BTreeSet};

use swarmc_compiler::{
    Baseline, CONFIG_NAME, Code, Diagnostic, FileError, Files, Settings, Severity, Sources, parse_config,
};

use super::diagnostics::{Problem, make_problem};

/// What a workspace asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    /// How its specs are checked.
    pub(super) settings: Settings,
    /// Problems that are not shown.
    known: Baseline,
    /// The folder that files in the baseline count from.
    folder: String,
    /// What is wrong in the files that say so, by path.
    pub(super) problems: BTreeMap<String, Vec<Problem>>,
    /// The files that it was read from, there or not.
    asked: BTreeSet<String>,
}

impl Rules {
    /// Reads them; without a `swarmc.kdl` nothing is asked for.
    pub(super) fn read(files: &dyn Files) -> Rules {
        let mut rules = Rules { asked: BTreeSet::from([CONFIG_NAME.to_owned()]), ..Rules::default() };
        let Some(sources) = load_source(files, CONFIG_NAME) else { return rules };
        let (config, diagnostics) = parse_config(&sources);
        rules.record_problems(CONFIG_NAME, &sources, &diagnostics);
        rules.settings =
            Settings { profile: config.profile.unwrap_or_default(), levels: config.levels, ..Settings::default() };
        let (Some(path), Some(span)) = (config.baseline, config.baseline_span) else { return rules };
        rules.asked.insert(path.clone());
        match load_source(files, &path) {
            Some(sources) => {
                let (known, diagnostics) = Baseline::read(&sources);
                rules.record_problems(&path, &sources, &diagnostics);
                rules.known = known;
                rules.folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
            }
            None => {
                let missing = files.read(&path) == Err(FileError::Missing);
                let problem = Problem {
                    range: span.range(),
                    severity: Severity::Error,
                    code: Code::MissingFile,
                    message: match missing {
                        true => format!(
                            "there is no baseline `{path}`\n`swarmc check --update-baseline` writes it, with the current \
                             problems"
                        ),
                        false => format!("the baseline `{path}` cannot be read"),
                    },
                    related: Vec::new(),
                    fix: None,
                };
                rules.problems.entry(CONFIG_NAME.to_owned()).or_default().push(problem);
            }
        }
        rules
    }

    /// Whether they could be others when the file at `path` is.
    pub(super) fn depends_on(&self, path: &str) -> bool {
        self.asked.contains(path)
    }

    /// The files that they were read from, and those that were looked for.
    pub(super) fn asked_paths(&self) -> impl Iterator<Item = &String> {
        self.asked.iter()
    }

    /// How bad a problem counts; none leaves it out.
    pub(super) fn resolve_severity(&self, diagnostic: &Diagnostic) -> Option<Severity> {
        diagnostic.severity_in(&self.settings.levels)
    }

    /// What is known, to be taken out one by one.
    pub(super) fn known_problems(&self) -> Known {
        Known { left: self.known.clone(), folder: self.folder.clone() }
    }

    fn record_problems(&mut self, path: &str, sources: &Sources, diagnostics: &[Diagnostic]) {
        let found = diagnostics.iter().filter_map(|diagnostic| {
            let severity = diagnostic.severity();
            Some(make_problem(diagnostic, diagnostic.span()?, severity, sources))
        });
        let found: Vec<Problem> = found.collect();
        if !found.is_empty() {
            self.problems.insert(path.to_owned(), found);
        }
    }
}

/// Known problems that were not found yet.
pub(super) struct Known {
    left: Baseline,
    folder: String,
}

impl Known {
    /// Whether a problem of a file is known; once for each that is.
    pub(super) fn take(&mut self, path: &str, code: Code, message: &str) -> bool {
        !self.left.is_empty() && self.left.take(&relative_path(&self.folder, path), code, message)
    }
}

/// A path of the workspace as a file in a folder of it would name it.
fn relative_path(folder: &str, path: &str) -> String {
    let folder: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    let parts: Vec<&str> = path.split('/').collect();
    let shared = folder.iter().zip(&parts).take_while(|(one, other)| one == other).count();
    let ups = std::iter::repeat_n("..", folder.len() - shared);
    ups.chain(parts.iter().skip(shared).copied()).collect::<Vec<_>>().join("/")
}

fn load_source(files: &dyn Files, path: &str) -> Option<Sources> {
    let mut sources = Sources::new();
    sources.add(path, files.read(path).ok()?);
    Some(sources)
}

#[cfg(test)]
mod tests {
    use super::super::diagnostics::collect_diagnostics;
    use super::super::fixture::parse_fixture;
    use super::super::{Action, Snapshot, list_actions};
    use super::*;

    const SPEC: &str = "\
//- flow.kdl
workflow w
provider p { exec cat }
agent a provider=p
agent spare provider=p
pipeline m { task x agent=a { prompt \"Hi\" } }
";

    /// The problems of all files, as `FILE CODE SEVERITY: MESSAGE` with the first line of the message.
    fn told(snapshot: &Snapshot) -> Vec<String> {
        let all = collect_diagnostics(snapshot);
        let each = all.iter().flat_map(|(path, list)| list.iter().map(move |problem| (path, problem)));
        each.map(|(path, problem)| {
            let message = problem.message.lines().next().unwrap_or_default();
            format!("{path} {} {}: {message}", problem.code.id(), problem.severity.as_str())
        })
        .collect()
    }

    fn check(config: &str, expected: &[&str]) {
        let (snapshot, _, _) = parse_fixture(&format!("{SPEC}//- swarmc.kdl\n{config}"));
        assert_eq!(told(&snapshot), expected, "{config}");
    }

    const UNUSED: &str = "agent `spare` is never used";

    #[test]
    fn levels_are_those_of_the_workspace() {
        let shown = |severity: &str| format!("flow.kdl SW103 {severity}: {UNUSED}");
        check("", &[&shown("warning")]);
        check("deny SW103\n", &[&shown("error")]);
        check("deny warnings\n", &[&shown("error")]);
        check("deny warnings\nallow unused-definition\n", &[]);
    }

    #[test]
    fn a_profile_shows_more() {
        let spec = "//- flow.kdl\nworkflow w\nprovider p { exec cat }\nagent a provider=p\npipeline m {\n\
            task judge { prompt \"Is it good?\"; output { good bool } }\n\
            task next { depends-on judge; run ls }\n}\n";
        let (default, _, _) = parse_fixture(spec);
        assert_eq!(told(&default), [""; 0]);
        let (strict, _, _) = parse_fixture(&format!("{spec}//- swarmc.kdl\nprofile strict\n"));
        let found = told(&strict);
        assert!(found.iter().any(|found| found.starts_with("flow.kdl SW212")), "{found:?}");
    }

    #[test]
    fn what_is_wrong_in_it_stands_in_it_and_the_rest_counts() {
        check("allow SW103\nprofil strict\n", &["swarmc.kdl SW003 error: there is no `profil` at the top level"]);
        let text = format!("{SPEC}//- swarmc.kdl\n$0profil strict\n");
        let (snapshot, path, offset) = parse_fixture(&text);
        let found: Vec<Action> = list_actions(&snapshot, &path, offset..offset);
        assert_eq!(found.iter().map(|found| found.title.as_str()).collect::<Vec<_>>(), ["write `profile`"]);
    }

    #[test]
    fn known_problems_are_not_shown() {
        let known = format!("file \"../flow.kdl\" {{ known SW103 \"{UNUSED}\" }}\n");
        check(&format!("baseline \"ci/known.kdl\"\n//- ci/known.kdl\n{known}"), &[]);
        // As often as it is known, no more.
        let (twice, _, _) = parse_fixture(&format!(
            "{}agent spare2 provider=p\n//- swarmc.kdl\nbaseline \"ci/known.kdl\"\n//- ci/known.kdl\n{known}",
            SPEC
        ));
        assert_eq!(told(&twice), ["flow.kdl SW103 warning: agent `spare2` is never used"]);
        check(
            "baseline \"none.kdl\"\n",
            &[&format!("flow.kdl SW103 warning: {UNUSED}"), "swarmc.kdl SW104 error: there is no baseline `none.kdl`"],
        );
        check(
            &format!("baseline \"ci/known.kdl\"\n//- ci/known.kdl\n{known}files\n"),
            &["ci/known.kdl SW003 error: there is no `files` at the top level"],
        );
    }

    #[test]
    fn paths_are_named_from_the_folder_of_the_baseline() {
        assert_eq!(relative_path("", "a/b.kdl"), "a/b.kdl");
        assert_eq!(relative_path("a", "a/b.kdl"), "b.kdl");
        assert_eq!(relative_path("ci/x", "a/b.kdl"), "../../a/b.kdl");
    }
}
