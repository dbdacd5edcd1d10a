//! A run of many steps, in rounds: each passes on what the one of the round before said, and notes that it starts and ends.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// How many rounds there are, and how many steps in each.
#[derive(Clone, Copy)]
pub(super) struct Rounds {
    pub count: usize,
    pub width: usize,
}

impl Rounds {
    /// The spec of such a run. Its steps note what they do in a file of this folder; `does` is what one of a round does
    /// between its start and its end, in the shell.
    pub(super) fn spec(self, pool: &str, folder: &Path, does: impl Fn(usize) -> String) -> String {
        let effects = effects_of(folder);
        let effects = effects.display();
        let mut spec = format!("workflow {pool} {{ survive all }}\npipeline main {{\n    pool {pool}\n");
        for round in 0..self.count {
            let does = does(round);
            for at in 0..self.width {
                let name = format!("r{round}-{at}");
                let reads = match round {
                    0 => String::new(),
                    _ => format!("stdin \"<<output:r{}-{at}>>\\n\"; ", round - 1),
                };
                let script =
                    format!("echo start {name} >> {effects}; {does}; cat; echo {name}; echo done {name} >> {effects}");
                spec.push_str(&format!("    task {name} {{ {reads}run \"{script}\" }}\n"));
            }
        }
        let last: Vec<String> = (0..self.width).map(|at| format!("<<output:r{}-{at}>>", self.count - 1)).collect();
        let last = last.join("\\n");
        spec + &format!("    task all {{ value \"{last}\" }}\n    result all\n}}\n")
    }

    /// The result.
    pub(super) fn result(self) -> String {
        let line = |at: usize| (0..self.count).map(move |round| format!("r{round}-{at}\n"));
        (0..self.width).flat_map(line).collect()
    }

    pub(super) fn steps(self) -> usize {
        self.count * self.width
    }
}

/// What the steps have noted, as in `done r0-1`, and how often.
pub(super) fn effects(folder: &Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let text = fs::read_to_string(effects_of(folder)).unwrap_or_default();
    text.lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
    counts
}

/// The steps that have ended.
pub(super) fn ended(effects: &BTreeMap<String, usize>) -> usize {
    effects.keys().filter(|line| line.starts_with("done ")).count()
}

fn effects_of(folder: &Path) -> std::path::PathBuf {
    folder.join("effects")
}
