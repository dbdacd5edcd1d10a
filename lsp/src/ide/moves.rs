//! What changes in specs and prompts when files move: the paths that name them, and those that they name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::names::{self, Rename};
use super::{Edit, Snapshot};

/// The edits that keep every path leading to its file when these files or folders move, from one path of the workspace to
/// another. They are about the texts before.
pub fn move_files(snapshot: &Snapshot, moves: &[(String, String)]) -> Rename {
    let mut edits: BTreeMap<String, BTreeSet<Edit>> = BTreeMap::new();
    for analysis in snapshot.specs().filter_map(|spec| snapshot.analysis(spec)) {
        let sources = &analysis.compilation.sources;
        for named in &analysis.index.paths {
            let (home, target) = (sources.name(named.span.file), sources.name(named.file));
            if home.starts_with("std:") || target.starts_with("std:") {
                continue;
            }
            let (new_home, new_target) = (find_moved(moves, home), find_moved(moves, target));
            let range = names::name_range(sources.slice(named.span), named.span);
            let text = sources.text(named.span.file);
            let (range, directive) = match find_included(text, &range) {
                Some(inside) => (inside, true),
                None => (range, false),
            };
            let written = &text[range.clone()];
            // An include may leave the ending of a Markdown file out.
            let short = !written.rsplit('/').next().unwrap_or(written).contains('.') && target.ends_with(".md");
            let full = if short { format!("{written}.md") } else { written.to_owned() };
            let leads = |home: &str, target: &str| swarmc_compiler::path_from(home, &full).as_deref() == Some(target);
            // Only a text that leads to the file by itself can be written anew.
            if !leads(home, target) || leads(&new_home, &new_target) {
                continue;
            }
            let path = make_relative(&new_home, &new_target);
            let path = path.strip_suffix(".md").filter(|_| short).unwrap_or(&path).to_owned();
            // A bare word of a spec cannot hold a `/`.
            let bare = home.ends_with(".kdl") && !directive && !text[..range.start].ends_with('"');
            let path = if bare { format!("\"{path}\"") } else { path };
            edits.entry(home.to_owned()).or_default().insert(Edit { range, text: path });
        }
    }
    edits.into_iter().map(|(path, edits)| (path, edits.into_iter().collect())).collect()
}

/// The path in a directive; none where the range is no directive.
fn find_included(text: &str, range: &Range<usize>) -> Option<Range<usize>> {
    let written = text[range.clone()].strip_prefix("<<")?;
    let (word, path) = written.split_once(':')?;
    let start = range.start + 2 + word.len() + 1 + (path.len() - path.trim_start().len());
    let path = path.trim_start();
    let end = path.find(['>', '|', ' ']).unwrap_or(path.len());
    Some(start..start + end)
}

/// Where a path lies after the moves: it, or a folder around it, may be moved.
fn find_moved(moves: &[(String, String)], path: &str) -> String {
    let moved = |(from, to): &(String, String)| match path.strip_prefix(from.as_str())? {
        "" => Some(to.clone()),
        // `a/bc` does not lie beneath `a/b`.
        rest => rest.starts_with('/').then(|| format!("{to}{rest}")),
    };
    moves.iter().find_map(moved).unwrap_or_else(|| path.to_owned())
}

/// A path of the workspace as the file `home` writes it.
fn make_relative(home: &str, target: &str) -> String {
    let folder: Vec<&str> = home.split('/').collect();
    let parts: Vec<&str> = target.split('/').collect();
    // The last parts are the names of the files, which are no folders to share.
    let most = (folder.len() - 1).min(parts.len() - 1);
    let common = (0..most).take_while(|&at| folder[at] == parts[at]).count();
    let mut written = vec![".."; folder.len() - 1 - common];
    written.extend(&parts[common..]);
    written.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{apply_edits, parse_fixture};
    use super::*;

    const FILES: &str = "//- flows/a.kdl
import \"../lib.kdl\" as=lib
workflow a
provider p { exec cat }
agent a provider=p
pipeline m {
    task x agent=a { prompt file=\"prompts/x.md\" }
    task y agent=a { prompt \"<<include:prompts/part>>\" }
    task z agent=a { prompt file=z.md }
}
//- flows/prompts/x.md
Do it. <<include:part.md>>
//- flows/prompts/part.md
Be kind.
//- flows/z.md
End.
//- lib.kdl
type Verdict { ok bool }
";

    fn moved(moves: &[(&str, &str)]) -> String {
        let snapshot = parse_fixture(FILES).0;
        let moves: Vec<(String, String)> = moves.iter().map(|(from, to)| ((*from).into(), (*to).into())).collect();
        let text = apply_edits(&snapshot, &move_files(&snapshot, &moves));
        let old = |line: &&str| !FILES.lines().any(|known| known == *line) || line.starts_with("//- ");
        text.lines().filter(old).map(str::trim).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn paths_follow_the_files_that_they_name() {
        let check = |from: &str, to: &str, wanted: &str| assert_eq!(moved(&[(from, to)]), wanted, "{from} to {to}");
        let x = "//- flows/a.kdl\ntask x agent=a { prompt file=\"prompts/y.md\" }";
        check("flows/prompts/x.md", "flows/prompts/y.md", x);
        let z = "//- flows/a.kdl\ntask z agent=a { prompt file=\"../prompts/z.md\" }";
        check("flows/z.md", "prompts/z.md", z);
        let lib = "//- flows/a.kdl\nimport \"lib/types.kdl\" as=lib";
        check("lib.kdl", "flows/lib/types.kdl", lib);
        // An include that leaves the ending out goes on to do so, and a prompt that moves takes its includes along.
        let part = "//- flows/a.kdl\ntask y agent=a { prompt \"<<include:prompts/tone>>\" }\n//- flows/prompts/x.md\nDo it. <<include:tone.md>>";
        check("flows/prompts/part.md", "flows/prompts/tone.md", part);
        let x = "//- flows/a.kdl\ntask x agent=a { prompt file=\"x.md\" }\n//- flows/prompts/x.md\nDo it. <<include:prompts/part.md>>";
        check("flows/prompts/x.md", "flows/x.md", x);
    }

    #[test]
    fn what_moves_together_changes_only_what_leads_out() {
        assert_eq!(moved(&[("flows", "deep/er/flows")]), "//- flows/a.kdl\nimport \"../../../lib.kdl\" as=lib");
        assert_eq!(moved(&[("flows", "other")]), "");
        assert_eq!(moved(&[("README.md", "x.md")]), "");
    }
}
