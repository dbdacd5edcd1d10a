//! Which diagnostics the compiler shows, and with which severity: the profile, and the flags that change single codes.
//!
//! In: the choices of a person. Out: a severity for each diagnostic, or none. The settings never change what the checks
//! find, only what the compiler shows; the diagnostics' own severities decide whether there is a plan.

use crate::code::{Code, Profile, Severity};

/// How a compilation reports.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The rules that speak.
    pub profile: Profile,
    /// What is changed for single codes. One that is named here speaks in every profile.
    pub levels: Levels,
    /// Whether the bounds of the plan are made of tokens, which needs time to load the vocabulary; of bytes, which are
    /// never fewer, when not. Whether a limit holds is always decided by tokens.
    pub count_tokens: bool,
    /// Providers, and those that are put in their places, by the names that the spec itself may use; a preset of the library
    /// can be put there, too.
    pub providers: Vec<(String, String)>,
}

impl Settings {
    /// A profile as it is.
    pub fn new(profile: Profile) -> Settings {
        Settings { profile, ..Settings::default() }
    }

    /// Whether findings with this code are of interest: a check may save itself the work otherwise.
    pub fn is_enabled(&self, code: Code) -> bool {
        code.profile() <= self.profile || self.levels.has_code(code)
    }
}

/// The severity of each code after the flags had their say.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    changes: Vec<(Option<Code>, Option<Severity>)>,
}

impl Levels {
    /// Sets the level of one code, or with none that of all warnings; without a severity it is left out. Later changes
    /// win.
    pub fn set(&mut self, code: Option<Code>, severity: Option<Severity>) {
        self.changes.push((code, severity));
    }

    /// How bad a diagnostic with this code and this severity of its own counts; none leaves it out.
    pub(crate) fn severity_of(&self, code: Code, own: Severity) -> Option<Severity> {
        let fits = |change: &&(Option<Code>, Option<Severity>)| match change.0 {
            Some(changed) => changed == code,
            None => own == Severity::Warning,
        };
        // A code that is named outdoes `warnings`, wherever both stand.
        let named = self.changes.iter().rev().find(|change| change.0.is_some() && fits(change));
        match named.or_else(|| self.changes.iter().rev().find(fits)) {
            Some((_, severity)) => *severity,
            None => Some(own),
        }
    }

    fn has_code(&self, code: Code) -> bool {
        self.changes.iter().any(|change| change.0 == Some(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_that_names_a_code_wins() {
        let mut levels = Levels::default();
        levels.set(None, Some(Severity::Error));
        levels.set(Some(Code::UnusedDefinition), None);
        levels.set(Some(Code::Cycle), Some(Severity::Warning));
        let level = |code: Code| levels.severity_of(code, code.severity());
        assert_eq!(level(Code::NeverRuns), Some(Severity::Error));
        assert_eq!(level(Code::UnusedDefinition), None);
        assert_eq!(level(Code::Cycle), Some(Severity::Warning));
        assert_eq!(level(Code::Syntax), Some(Severity::Error));
    }

    #[test]
    fn profiles_show_what_those_before_them_show() {
        for &code in Code::ALL {
            for profile in Profile::ALL {
                assert_eq!(Settings::new(*profile).is_enabled(code), code.profile() <= *profile, "{}", code.id());
            }
        }
        assert!(Profile::Default < Profile::Strict && Profile::Strict < Profile::Audit);
    }
}
