//! What a task is told: its prompt file, or its text with the directives rewritten.
//!
//! In: texts as they were written, names that are known. Out: paths as the spec names them, and texts whose references
//! lead somewhere; what leads nowhere is reported, and the placeholder of seed 000 stands in its place.

use std::collections::{BTreeMap, BTreeSet};

use super::compose::{Said, Source, Task as Old};
use super::convert::{Body, Converter, Group, output_placeholder};
use super::text::{self, Directive};
use crate::files::Entry;
use crate::load::join_path;
use crate::suggest;

/// Includes of prompt files that are looked through for references.
const MAX_INCLUDES: usize = 200;

/// Who reads a text.
pub(super) struct Reader<'r, 'g> {
    pub(super) task: usize,
    pub(super) old: &'r Old,
    pub(super) ports: &'r BTreeMap<String, String>,
    pub(super) groups: &'g [Group],
    pub(super) reads: &'r mut BTreeSet<usize>,
}

impl Converter<'_, '_, '_> {
    pub(super) fn convert_body(&mut self, reader: &mut Reader<'_, '_>) -> Body {
        let name = &reader.old.name;
        let Some((source, said)) = &reader.old.prompt else {
            let help = Some("`prompt-file`, `prompt-string` or `prompt`".to_owned());
            let message = format!("task `{}` has no prompt", name.text);
            self.notes.report_loss(name.span, message, "does nothing in the spec", help, Some(name));
            return Body::Nothing;
        };
        let missing = match source {
            Source::Text => return Body::Prompt(self.convert_text(said, reader)),
            // The name of a prompt has no white space; a text without white space is the name of a prompt.
            Source::Either if said.text.trim().contains(char::is_whitespace) => {
                return Body::Prompt(self.convert_text(said, reader));
            }
            Source::Either => match self.find_prompt(&said.text) {
                Some(path) => return self.convert_file(path, reader),
                None => format!("there is no prompt `{}`", said.text),
            },
            Source::File => match self.find_file(&said.text) {
                Some(path) => return self.convert_file(path, reader),
                None => format!("there is no prompt file `{}`", said.text),
            },
        };
        let help = match source {
            Source::Either => "looked for as `prompts/NAME.md` and `swarm/prompts/NAME.md`, here and in the workspace",
            _ => "looked for here and in the workspace; files outside of it are not read",
        };
        self.notes.report_loss(said.span, missing, "not found", Some(help.to_owned()), Some(name));
        match source {
            // It may have been meant as the text itself.
            Source::Either => Body::Prompt(self.convert_text(said, reader)),
            _ => Body::Nothing,
        }
    }

    /// A prompt file, with the tasks that it reads.
    fn convert_file(&mut self, path: String, reader: &mut Reader<'_, '_>) -> Body {
        let mut open = vec![path.clone()];
        let mut seen = BTreeSet::new();
        while let Some(path) = open.pop() {
            if seen.len() == MAX_INCLUDES || !seen.insert(path.clone()) {
                continue;
            }
            let Ok(text) = self.files.read(&path) else { continue };
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            for directive in text::list_directives(&text) {
                match directive {
                    Directive::Output(name) => reader.reads.extend(self.index.get(name)),
                    Directive::Include(include) => open.extend(self.find_include(folder, include)),
                    Directive::Input(_) => {}
                }
            }
        }
        Body::File(self.relative_path(&path))
    }

    /// A text with its directives rewritten.
    pub(super) fn convert_text(&mut self, said: &Said, reader: &mut Reader<'_, '_>) -> String {
        let owner = Some(&reader.old.name);
        text::rewrite_directives(&said.text, |directive| match directive {
            Directive::Output(name) => self.convert_output(name, said, reader),
            Directive::Input(name) => match reader.ports.get(name) {
                Some(port) => format!("<<input:{port}>>"),
                None => {
                    let named = reader.old.inputs.iter().find(|(port, _)| port.text == name);
                    if named.is_none() {
                        let names: Vec<&str> = reader.ports.keys().map(String::as_str).collect();
                        let (_, help) = suggest::did_you_mean(name, &names, "there are ");
                        let message = format!("there is no input `{name}`");
                        self.notes.report_loss(said.span, message, "read in this text", help, owner);
                    }
                    text::escape_template(&output_placeholder(named.map_or(name, |(_, task)| &task.text)))
                }
            },
            Directive::Include(path) => match self.resolve_include(path) {
                Some(path) => format!("<<include:{path}>>"),
                None => {
                    let message = format!("there is no file `{path}` to include");
                    self.notes.report_loss(said.span, message, "included by this text", None, owner);
                    String::new()
                }
            },
        })
    }

    fn convert_output(&mut self, name: &str, said: &Said, reader: &mut Reader<'_, '_>) -> String {
        let Some(&index) = self.index.get(name) else {
            let help = self.suggest_task(name);
            let message = format!("there is no task `{name}` whose output could be read");
            self.notes.report_loss(said.span, message, "read in this text", help, Some(&reader.old.name));
            return text::escape_template(&output_placeholder(name));
        };
        reader.reads.insert(index);
        let new = self.new[index].clone();
        let task = reader.task;
        if self.deps[task].contains_key(&index) {
            return format!("<<output:{new}>>");
        }
        if self.find_path(index, task).is_none() {
            self.deps[task].insert(index, said.span);
            return format!("<<output:{new}>>");
        }
        // It runs after this one: what it wrote is from the round before.
        let together = |group: &&Group| group.members.contains(&task) && group.members.contains(&index);
        let again = reader.groups.iter().filter(together).any(|group| group.pipeline.iterations.is_some_and(|n| n > 1));
        if again {
            return format!("<<previous:{new}>>");
        }
        let message = format!("the output of `{name}` is read before it runs, and nothing repeats");
        self.notes.report_loss(said.span, message, "read in this text", None, Some(&reader.old.name));
        text::escape_template(&output_placeholder(name))
    }

    /// The prompt that a name stands for.
    fn find_prompt(&self, name: &str) -> Option<String> {
        let name = name.trim();
        let folders = ["prompts", "swarm/prompts", ""];
        let names = [format!("{name}.md"), name.to_owned()];
        let bases = [self.from.as_str(), ""];
        let paths = bases.iter().flat_map(|base| folders.iter().map(move |folder| (base, folder)));
        paths.into_iter().find_map(|(base, folder)| {
            names
                .iter()
                .find_map(|name| self.is_file(&join_path(base, format!("{folder}/{name}").trim_start_matches('/'))?))
        })
    }

    /// A file that is named from the compose file, or from the workspace.
    fn find_file(&self, written: &str) -> Option<String> {
        let written = written.trim();
        [self.from.as_str(), ""].iter().find_map(|base| self.is_file(&join_path(base, written)?))
    }

    /// An included file, as a directive in the spec names it.
    fn resolve_include(&self, written: &str) -> Option<String> {
        let folders = ["", "prompts", "swarm/prompts"];
        let found = folders.iter().find_map(|folder| self.find_include(&join_path(&self.from, folder)?, written));
        let path = found.or_else(|| self.find_include("", written))?;
        // A directive ends at these.
        (!path.contains(['>', '|', '\n'])).then(|| self.relative_path(&path))
    }

    fn find_include(&self, folder: &str, written: &str) -> Option<String> {
        let path = join_path(folder, written)?;
        self.is_file(&path).or_else(|| self.is_file(&format!("{path}.md")))
    }

    fn is_file(&self, path: &str) -> Option<String> {
        match self.files.find(path) {
            Ok(Entry::File) => Some(path.to_owned()),
            Ok(Entry::Folder) | Err(_) => None,
        }
    }

    /// A path of the workspace as the spec names it.
    fn relative_path(&self, path: &str) -> String {
        let base: Vec<&str> = self.to.split('/').filter(|part| !part.is_empty()).collect();
        let parts: Vec<&str> = path.split('/').collect();
        // The last part is the file itself, which is no folder to share.
        let shared = base.iter().zip(&parts[..parts.len() - 1]).take_while(|(a, b)| a == b).count();
        let ups = std::iter::repeat_n("..", base.len() - shared);
        ups.chain(parts[shared..].iter().copied()).collect::<Vec<_>>().join("/")
    }
}
