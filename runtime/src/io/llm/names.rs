//! The names of tools as providers take them: letters, digits, `_` and `-`, at most 64.
//!
//! In: the tools of a question, under any names. Out: for each a name that every provider takes, and back. Invariant: two
//! tools never share one.

use std::collections::BTreeMap;

use super::Question;

const LONGEST: usize = 64;

/// The names of one question's tools.
#[derive(Debug, Default)]
pub(super) struct Names {
    wire: BTreeMap<String, String>,
    own: BTreeMap<String, String>,
}

impl Names {
    pub(super) fn of(question: &Question) -> Names {
        let mut names = Names::default();
        for tool in &question.tools {
            let plain = plain(&tool.name);
            let numbered = (2..).map(|number: u32| {
                let ending = format!("_{number}");
                format!("{}{ending}", &plain[..plain.len().min(LONGEST - ending.len())])
            });
            let mut candidates = std::iter::once(plain.clone()).chain(numbered);
            let free = candidates.find(|name| !names.own.contains_key(name));
            let free = free.expect("numbers do not end");
            names.own.insert(free.clone(), tool.name.clone());
            names.wire.insert(tool.name.clone(), free);
        }
        names
    }

    /// The name that a provider is told.
    pub(super) fn wire(&self, name: &str) -> String {
        self.wire.get(name).cloned().unwrap_or_else(|| plain(name))
    }

    /// The tool that a model means; a name that is none stays as it is.
    pub(super) fn own(&self, name: &str) -> String {
        self.own.get(name).map_or(name, String::as_str).to_owned()
    }
}

fn plain(name: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    let plain = name.chars().map(|character| if is_plain(character) { character } else { '_' });
    let plain: String = plain.take(LONGEST).collect();
    if plain.is_empty() { "_".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::types::chat::Tool;

    #[test]
    fn every_tool_has_a_name_of_its_own_that_leads_back() {
        let long = "x".repeat(80);
        let other = format!("{long}y");
        let tools = ["files.read", "files_read", "files/read", "né", long.as_str(), other.as_str(), ""];
        let tool = |name: &&str| Tool { name: (*name).to_owned(), description: String::new(), parameters: json!({}) };
        let question = Question { tools: tools.iter().map(tool).collect(), ..Question::default() };
        let names = Names::of(&question);
        let wires: Vec<String> = tools.iter().map(|name| names.wire(name)).collect();
        assert_eq!(wires[..4], ["files_read", "files_read_2", "files_read_3", "n_"]);
        for (tool, wire) in tools.iter().zip(&wires) {
            assert!(wire.len() <= LONGEST && !wire.is_empty(), "{wire}");
            assert_eq!(names.own(wire), *tool);
        }
        assert_eq!(names.own("unknown"), "unknown");
    }
}
