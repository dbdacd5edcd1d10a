//! Context packs (seed 002): small, structured bundles of context in the place of transcripts.
//!
//! In: the rules of a pack, evaluated. Out: its JSON, as large as its budget allows, with what was left out. Invariant:
//! the JSON has the structure of the seed, and the same parts give the same JSON.

mod facts;
mod files;
mod size;
mod summary;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use swarmc_plan::{Mode, Permissions};

pub(crate) use facts::facts;
pub(crate) use files::Walk;
pub(crate) use size::{Fitted, fit};
pub(crate) use summary::{excerpt, line_of};

/// A context pack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pack {
    /// Its id.
    pub pack_id: String,
    /// The run.
    pub run_id: String,
    /// The node that it was built for.
    pub node_id: String,
    /// When it was built (RFC 3339, UTC).
    pub created_at: String,
    /// What is worked towards.
    pub goal: String,
    /// When that is reached.
    pub definition_of_done: Vec<String>,
    /// Whether agents plan or implement.
    pub global_mode: GlobalMode,
    /// Whether the node's agent asks people before it acts.
    pub node_mode: NodeMode,
    /// The folder of the documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs_root: Option<String>,
    /// Excerpts of documents.
    pub doc_refs: Vec<DocRef>,
    /// What is known of the repository: `language`, `packageManager`, and what the spec says.
    pub repo_facts: BTreeMap<String, String>,
    /// Files that matter.
    pub relevant_files: Vec<FileRef>,
    /// What others handed over.
    pub inputs: Vec<InputRef>,
    /// Stored things, by reference.
    pub artifacts: Vec<ArtifactRef>,
    /// What to hold to.
    pub constraints: Map<String, Value>,
    /// What people appended while the run went on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub appended: Vec<String>,
    /// What is not part of the context itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<PackMeta>,
}

/// Whether agents plan or implement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum GlobalMode {
    /// They think, and change nothing.
    Planning,
    /// They do.
    #[default]
    Implementation,
}

/// Whether an agent asks people before it acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum NodeMode {
    /// It acts by itself.
    #[default]
    Auto,
    /// It asks.
    Interactive,
}

/// An excerpt of a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocRef {
    /// Relative to the workspace.
    pub path: String,
    /// Its text, or a part of it.
    pub excerpt: String,
}

/// A file that matters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileRef {
    /// Relative to the workspace.
    pub path: String,
    /// What it is, and what it declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// Something that was handed over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InputRef {
    /// The id of the envelope, or where the output of a step is stored.
    pub payload_id: String,
    /// Who handed it over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The short summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A stored thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArtifactRef {
    /// `artifact://KIND/ID`.
    pub id: String,
    /// `diff`, `log`, `prompt`, `transcript`, `contextpack` or `report`.
    pub kind: String,
    /// Whose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// What is not part of the context itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PackMeta {
    /// What the pack's rules ask for and is not in it, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<String>,
}

/// What a pack is for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    pub run: String,
    pub node: String,
    pub created_at: String,
    pub mode: Option<Mode>,
    pub permissions: Permissions,
    pub docs_root: Option<String>,
    pub facts: BTreeMap<String, String>,
}

/// One thing that a rule puts into a pack.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Goal(String),
    Done(String),
    Doc(DocRef),
    Fact(String, String),
    File(FileRef),
    Input(InputRef),
    Artifact(ArtifactRef),
    Constraint(String, Value),
    Appended(String),
}

/// What a rule puts into a pack.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The rule, as messages name it.
    pub label: String,
    /// How many packs took it in: what a pack says itself counts before what it takes in.
    pub depth: usize,
    pub items: Vec<Item>,
    /// What is there and was not taken, in words.
    pub omitted: Option<String>,
}

impl Pack {
    /// The pack of these items, without an id.
    pub(crate) fn assemble<'i>(head: &Head, items: impl IntoIterator<Item = &'i Item>, omitted: Vec<String>) -> Pack {
        let mut pack = Pack {
            pack_id: String::new(),
            run_id: head.run.clone(),
            node_id: head.node.clone(),
            created_at: head.created_at.clone(),
            goal: String::new(),
            definition_of_done: Vec::new(),
            global_mode: match head.mode {
                Some(Mode::Planning) => GlobalMode::Planning,
                Some(Mode::Implementation) | None => GlobalMode::Implementation,
            },
            node_mode: match head.permissions {
                Permissions::Gated => NodeMode::Interactive,
                Permissions::Skip => NodeMode::Auto,
            },
            docs_root: head.docs_root.clone(),
            doc_refs: Vec::new(),
            repo_facts: head.facts.clone(),
            relevant_files: Vec::new(),
            inputs: Vec::new(),
            artifacts: Vec::new(),
            constraints: Map::new(),
            appended: Vec::new(),
            meta: (!omitted.is_empty()).then_some(PackMeta { omitted }),
        };
        let mut files = BTreeMap::new();
        items.into_iter().for_each(|item| pack.append(item, &mut files));
        pack
    }

    /// Appends something to a pack; `files` maps each file that the pack names to its position, as there may be many.
    fn append<'i>(&mut self, item: &'i Item, files: &mut BTreeMap<&'i str, usize>) {
        match item {
            Item::Goal(goal) if self.goal.is_empty() => self.goal.clone_from(goal),
            Item::Goal(goal) => self.goal = format!("{}\n{goal}", self.goal),
            Item::Done(text) => self.definition_of_done.push(text.clone()),
            Item::Doc(doc) => self.doc_refs.push(doc.clone()),
            Item::Fact(name, value) => _ = self.repo_facts.insert(name.clone(), value.clone()),
            Item::File(file) => match files.entry(&file.path) {
                Entry::Occupied(known) => {
                    let known = &mut self.relevant_files[*known.get()];
                    // Several rules may name one file: the first that says something of it counts.
                    known.summary = known.summary.take().or_else(|| file.summary.clone());
                }
                Entry::Vacant(free) => {
                    free.insert(self.relevant_files.len());
                    self.relevant_files.push(file.clone());
                }
            },
            Item::Input(input) => self.inputs.push(input.clone()),
            Item::Artifact(artifact) => self.artifacts.push(artifact.clone()),
            Item::Constraint(name, value) => _ = self.constraints.insert(name.clone(), value.clone()),
            Item::Appended(text) => self.appended.push(text.clone()),
        }
    }

    /// Its JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("a pack has string keys only")
    }
}

/// Takes out what a pack says itself otherwise than a pack that it takes in: its own goal, facts and constraints hold.
pub(crate) fn prevail(parts: &mut [Part]) {
    let key = |item: &Item| match item {
        Item::Goal(_) => Some(("goal", String::new())),
        Item::Fact(name, _) => Some(("fact", name.clone())),
        Item::Constraint(name, _) => Some(("constraint", name.clone())),
        Item::Done(_) | Item::Doc(_) | Item::File(_) | Item::Input(_) | Item::Artifact(_) | Item::Appended(_) => None,
    };
    let mut least: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for part in parts.iter() {
        for key in part.items.iter().filter_map(key) {
            // The shallowest one counts, in whatever order the rules stand.
            let depth = least.entry(key).or_insert(part.depth);
            *depth = part.depth.min(*depth);
        }
    }
    for part in parts {
        let depth = part.depth;
        part.items.retain(|item| key(item).is_none_or(|key| least.get(&key) == Some(&depth)));
    }
}

/// A name of the spec as JSON has it: `no-new-dependencies` is `noNewDependencies`.
pub(crate) fn camel(name: &str) -> String {
    let mut words = name.split(['-', '_']).filter(|word| !word.is_empty());
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The example of seed 002, "Context pack structure".
    fn seed() -> Value {
        json!({
            "packId": "uuid",
            "runId": "run-123",
            "nodeId": "node-abc",
            "createdAt": "2026-01-01T00:00:00Z",
            "goal": "Implement feature X",
            "definitionOfDone": ["criteria1", "criteria2"],
            "globalMode": "IMPLEMENTATION",
            "nodeMode": "AUTO",
            "docsRoot": "/docs",
            "docRefs": [{ "path": "docs/PLAN.md", "excerpt": "..." }],
            "repoFacts": { "language": "typescript", "packageManager": "pnpm" },
            "relevantFiles": [{ "path": "src/foo.ts", "summary": "entry point" }],
            "inputs": [{ "payloadId": "payload-uuid" }],
            "artifacts": [{ "id": "artifact-123", "kind": "diff" }],
            "constraints": { "noNewDependencies": true }
        })
    }

    #[test]
    fn context_pack_structure_of_the_seed_passes_through_unchanged() {
        let pack: Pack = serde_json::from_value(seed()).expect("it is a pack");
        assert_eq!(serde_json::to_value(&pack).expect("it is JSON"), seed());
        let again: Pack = serde_json::from_str(&pack.json()).expect("it is a pack");
        assert_eq!(again, pack);
    }

    #[test]
    fn context_pack_rules_put_together_the_structure_of_the_seed() {
        let head = Head {
            run: "run-123".to_owned(),
            node: "node-abc".to_owned(),
            created_at: "2026-01-01T00:00:00Z".to_owned(),
            permissions: Permissions::Skip,
            docs_root: Some("/docs".to_owned()),
            ..Head::default()
        };
        let text = str::to_owned;
        let items = [
            Item::Goal(text("Implement feature X")),
            Item::Done(text("criteria1")),
            Item::Done(text("criteria2")),
            Item::Doc(DocRef { path: text("docs/PLAN.md"), excerpt: text("...") }),
            Item::Fact(camel("language"), text("typescript")),
            Item::Fact(camel("package-manager"), text("pnpm")),
            Item::File(FileRef { path: text("src/foo.ts"), summary: Some(text("entry point")) }),
            Item::Input(InputRef { payload_id: text("payload-uuid"), from: None, message: None }),
            Item::Artifact(ArtifactRef { id: text("artifact-123"), kind: text("diff"), from: None }),
            Item::Constraint(camel("no-new-dependencies"), json!(true)),
        ];
        let mut pack = Pack::assemble(&head, &items, Vec::new());
        pack.pack_id = text("uuid");
        assert_eq!(serde_json::to_value(&pack).expect("it is JSON"), seed());
    }

    #[test]
    fn what_a_pack_says_itself_holds_over_what_it_takes_in() {
        let part = |depth, items| Part { label: String::new(), depth, items, omitted: None };
        let mut parts = vec![
            part(1, vec![Item::Goal("theirs".to_owned()), Item::Done("tested".to_owned())]),
            part(1, vec![Item::Constraint("offline".to_owned(), json!(true))]),
            part(0, vec![Item::Goal("ours".to_owned())]),
            part(0, vec![Item::Constraint("small".to_owned(), json!(1))]),
        ];
        prevail(&mut parts);
        let pack = Pack::assemble(&Head::default(), parts.iter().flat_map(|part| &part.items), Vec::new());
        assert_eq!(pack.goal, "ours");
        assert_eq!(pack.definition_of_done, ["tested"]);
        assert_eq!(Value::Object(pack.constraints), json!({ "offline": true, "small": 1 }));
    }
}
