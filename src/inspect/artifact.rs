//! `swarmc inspect RUN artifact://KIND/ID`: an artifact of a run, by its reference.
//!
//! In: the journal, and the text that was stored. Out: that text as it is, or on a terminal what of it no terminal obeys.

use swarmc_runtime::RunFolder;
use swarmc_runtime::artifact::ArtifactMeta;

use miette::{IntoDiagnostic, miette};
use swarmc_view::documents::{ArtifactText, ArtifactTurn, Version, content_digest, encode};
use swarmc_view::{Past, RunReport, make_printable};

use crate::terminal::Stream;

/// The references that are listed where one is not known.
const LISTED: usize = 20;

/// Whether a word is a reference, and no step.
pub(super) fn is_reference(word: &str) -> bool {
    word.contains("://")
}

/// What is printed of the artifact that a reference names.
pub(super) fn render_artifact(
    (folder, past, ledger): (&RunFolder, &Past, &RunReport),
    reference: &str,
    is_json: bool,
) -> miette::Result<String> {
    let mut known: Vec<String> = Vec::new();
    let mut found: Vec<(String, u32, &ArtifactMeta)> = Vec::new();
    for (step, attempt, kept) in past.artifacts() {
        let name = kept.reference();
        if name == reference {
            found.push((ledger.label(step), attempt, kept));
        } else if !known.contains(&name) {
            known.push(name);
        }
    }
    let Some((_, _, kept)) = found.first() else {
        let first = known.iter().take(LISTED).cloned().collect::<Vec<_>>().join("\n");
        let help = match known.len() {
            0 => "it has none".to_owned(),
            1..=LISTED => format!("it has\n{first}"),
            all => format!(
                "it has\n{first}\nand {} more: `swarmc inspect {} STEP` lists those of a step",
                all - LISTED,
                folder.id
            ),
        };
        return Err(miette!(help = help, "run `{}` has no artifact `{}`", folder.id, make_printable(reference)));
    };
    let text = folder.read_text(&kept.content).into_diagnostic()?;
    if is_json {
        let of = found.iter().map(|(step, turn, _)| ArtifactTurn { step: step.clone(), turn: *turn });
        let document = ArtifactText {
            version: Version,
            run: folder.id.clone(),
            reference: reference.to_owned(),
            kind: kept.kind,
            id: kept.id.to_string(),
            bytes: text.len(),
            digest: content_digest(&kept.content).map(str::to_owned),
            of: of.collect(),
            text,
        };
        return Ok(encode(&document) + "\n");
    }
    // A program gets it as it is: it may be a patch that is applied.
    if !Stream::Out.is_terminal() {
        return Ok(text);
    }
    Ok(text.lines().map(|line| format!("{}\n", make_printable(line))).collect())
}
