//! `swarmc.kdl`: what a workspace asks of `swarmc check`.
//!
//! In: its text. Out: settings, and what is wrong with it as diagnostics in it. Pure, so that an editor reads it as the
//! command line does; flags are applied after it, and win.

use crate::code::{Code, Profile, Severity};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lower;
use crate::schema::CONFIG;
use crate::settings::Levels;
use crate::source::{Sources, Span};
use crate::suggest;

/// The name of the file, in the root of a workspace.
pub const CONFIG_NAME: &str = "swarmc.kdl";

/// What a workspace asks for.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The profile, where it says one.
    pub profile: Option<Profile>,
    /// The level of single codes.
    pub levels: Levels,
    /// The file of known problems, relative to the workspace.
    pub baseline: Option<String>,
    /// Where that stands.
    pub baseline_span: Option<Span>,
}

/// Reads the text of a `swarmc.kdl`, the first and only file of `sources`.
pub fn parse_config(sources: &Sources) -> (Config, Vec<Diagnostic>) {
    let mut diagnostics = Diagnostics::default();
    let mut config = Config::default();
    for element in lower::lower_document(sources, &CONFIG, &mut diagnostics) {
        let severity = match element.schema.name {
            "profile" => {
                let word = element.argument(0).map(|word| word.text.as_str());
                config.profile = Profile::ALL.iter().copied().find(|profile| Some(profile.as_str()) == word);
                continue;
            }
            "baseline" => {
                if let Some(path) = element.argument(0) {
                    config.baseline = check_path(path.text.as_str(), path.span, &mut diagnostics);
                    config.baseline_span = Some(path.span);
                }
                continue;
            }
            "deny" => Some(Severity::Error),
            "warn" => Some(Severity::Warning),
            _ => None,
        };
        for (_, name) in &element.arguments {
            match (name.text.as_str(), find_code(name.text.as_str(), name.span)) {
                ("warnings", _) => config.levels.set(None, severity),
                (_, Ok(code)) => config.levels.set(Some(code), severity),
                (_, Err(diagnostic)) => diagnostics.push(*diagnostic),
            }
        }
    }
    (config, diagnostics.into_sorted())
}

/// The code of that id or name, or a report.
pub(crate) fn find_code(name: &str, span: Span) -> Result<Code, Box<Diagnostic>> {
    Code::find(name).ok_or_else(|| {
        let names: Vec<&str> = Code::ALL.iter().flat_map(|code| [code.id(), code.name()]).collect();
        let diagnostic = Diagnostic::new(Code::UnknownReference, format!("there is no problem called `{name}`"))
            .label(span, "neither a code nor a name");
        Box::new(match suggest::find_nearest(name, names) {
            Some(close) => diagnostic.help(format!("did you mean `{close}`?")).write_near(span, close),
            None => diagnostic.help("`swarmc explain` lists all codes"),
        })
    })
}

/// A path that stays in the workspace, or a report.
fn check_path(path: &str, span: Span, diagnostics: &mut Diagnostics) -> Option<String> {
    let found = crate::load::join_path("", path).filter(|path| !path.is_empty());
    if found.is_none() {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{path}` is not a file of this workspace"))
            .label(span, "leads out of it")
            .help("a path here is relative to the folder of this file");
        diagnostics.push(diagnostic);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Config, Vec<String>) {
        let mut sources = Sources::new();
        sources.add(CONFIG_NAME, text);
        let (config, found) = parse_config(&sources);
        let found = found.into_iter().map(|found| {
            let help = found.help.unwrap_or_default();
            format!("{} {}: {} ({help})", found.labels[0].span.start, found.code.id(), found.message)
        });
        (config, found.collect())
    }

    #[test]
    fn a_workspace_says_what_it_asks_for() {
        let (config, found) = read(
            "// Ours.\nprofile strict\ndeny warnings SW103\nwarn output-may-be-skipped\nallow SW213 \"SW508\"\n\
             baseline \"ci/known.kdl\"\n",
        );
        assert_eq!(found, [""; 0]);
        assert_eq!((config.profile, config.baseline.as_deref()), (Some(Profile::Strict), Some("ci/known.kdl")));
        let level = |code: Code| Diagnostic::new(code, "").severity_in(&config.levels);
        assert_eq!(level(Code::UnusedDefinition), Some(Severity::Error));
        assert_eq!(level(Code::NeverRuns), Some(Severity::Error));
        assert_eq!(level(Code::OutputMayBeSkipped), Some(Severity::Warning));
        assert_eq!((level(Code::LegacyDirective), level(Code::UngatedIrreversible)), (None, None));
    }

    #[test]
    fn what_is_wrong_in_it_is_told_at_its_place() {
        let (_, found) = read(
            "profil strict\nprofile strickt\ndeny SW1O3 \nallow\nbaseline \"../x\"\npipeline p\nprofile audit\nwarn x=1\n}",
        );
        assert_eq!(
            found,
            [
                "0 SW003: there is no `profil` at the top level (did you mean `profile`?)",
                "22 SW005: `profile` cannot be `strickt` (did you mean `strict`?)",
                "35 SW101: there is no problem called `SW1O3` (did you mean `SW103`?)",
                "42 SW005: `allow` needs a text (write `allow CODE…`)",
                "57 SW005: `../x` is not a file of this workspace (a path here is relative to the folder of this file)",
                "64 SW003: there is no `pipeline` at the top level (did you mean `baseline`?)",
                "75 SW006: `profile` is given twice (remove one of them)",
                "89 SW005: `warn` needs a text (write `warn CODE…`)",
                "94 SW003: `warn` has no property `x` (it takes no properties: `warn CODE…`)",
                "98 SW001: this `}` closes nothing (remove it, or add the `{` it belongs to)",
            ]
        );
    }
}
