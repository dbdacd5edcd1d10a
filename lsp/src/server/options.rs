//! What a person sets: given by the editor at the start, and whenever it changes.

use serde::Deserialize;

use crate::ide::Hints;

/// The settings of `swarmc` in an editor; what is left out or cannot be read is as it is by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// `inlayHints`: `true` or `false`, or an object of `order`, `steps`, `types` and `tokens`.
    pub(super) hints: Hints,
    /// `codeLens`.
    pub(super) lenses: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { hints: Hints::default(), lenses: true }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    inlay_hints: Option<WrittenHints>,
    code_lens: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenHints {
    All(bool),
    Each { order: Option<bool>, steps: Option<bool>, types: Option<bool>, tokens: Option<bool> },
}

impl Options {
    /// The options in some settings, on their own or under `swarmc`.
    pub(super) fn read(settings: &serde_json::Value) -> Options {
        let own = settings.get("swarmc").unwrap_or(settings);
        let mut options = Options::default();
        let Ok(written) = serde_json::from_value::<Written>(own.clone()) else { return options };
        options.lenses = written.code_lens.unwrap_or(options.lenses);
        options.hints = match written.inlay_hints {
            Some(WrittenHints::All(on)) => Hints { order: on, steps: on, types: on, tokens: on },
            Some(WrittenHints::Each { order, steps, types, tokens }) => Hints {
                order: order.unwrap_or(true),
                steps: steps.unwrap_or(true),
                types: types.unwrap_or(true),
                tokens: tokens.unwrap_or(true),
            },
            None => options.hints,
        };
        options
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_read_one_by_one() {
        assert_eq!(Options::read(&json!(null)), Options::default());
        assert_eq!(Options::read(&json!({ "swarmc": { "inlayHints": 7 } })), Options::default());
        let none = Hints { order: false, steps: false, types: false, tokens: false };
        assert_eq!(Options::read(&json!({ "inlayHints": false })).hints, none);
        let read = Options::read(&json!({ "swarmc": { "inlayHints": { "steps": false }, "codeLens": false } }));
        assert_eq!(read, Options { hints: Hints { steps: false, ..Hints::default() }, lenses: false });
    }
}
