//! The `kdl` crate in a process of its own: documents in, a judgement for each out.
//!
//! The process is this test binary with one test picked and a file named in its environment. When it dies or is silent for too
//! long, the document it was at is given up, and another process goes on behind it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::outline;

/// Names the file of documents for the child.
const DOCUMENTS: &str = "SWARMC_JUDGE_DOCUMENTS";
/// Names the document to start at.
const START: &str = "SWARMC_JUDGE_START";
/// How long the crate may take for one document; it needs a few milliseconds for each that it can read at all.
const PATIENCE: Duration = Duration::from_secs(4);

/// What the crate says of a document.
#[derive(Debug, Clone)]
pub(super) enum Judgement {
    /// Its values.
    Accepted(String),
    /// Why not.
    Rejected(String),
    /// It aborted or took too long.
    GaveUp,
}

impl Judgement {
    /// Whether the crate takes the document.
    pub(super) fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted(_))
    }
}

/// Has the crate judge every document.
pub(super) fn judge(documents: &[String]) -> Vec<Judgement> {
    let mut file = tempfile::NamedTempFile::new().expect("temporary files can be made");
    serde_json::to_writer(&mut file, documents).expect("documents can be written");
    file.flush().expect("documents can be written");
    let mut judgements = Vec::new();
    while judgements.len() < documents.len() {
        let (mut child, lines) = start(file.path(), judgements.len());
        while let Ok(line) = lines.recv_timeout(PATIENCE) {
            judgements.extend(judgement(&line));
        }
        child.kill().expect("a child can be ended");
        child.wait().expect("a child can be waited for");
        if judgements.len() < documents.len() {
            judgements.push(Judgement::GaveUp);
        }
    }
    judgements
}

fn start(documents: &std::path::Path, from: usize) -> (Child, Receiver<String>) {
    let mut child = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["judge::child::judges_documents_of_its_parent", "--exact", "--nocapture", "--test-threads=1"])
        .env(DOCUMENTS, documents)
        .env(START, from.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program runs");
    let output = BufReader::new(child.stdout.take().expect("the output is piped"));
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    (child, lines)
}

/// Reads a line of the child; none for what the test harness prints.
fn judgement(line: &str) -> Option<Judgement> {
    // The harness prints the name of the test without a line break.
    let (_, line) = line.split_once('\u{1}')?;
    let (accepted, text): (bool, String) = serde_json::from_str(line).expect("judgements are JSON");
    Some(if accepted { Judgement::Accepted(text) } else { Judgement::Rejected(text) })
}

/// In the child: judges. Otherwise: makes sure that the child's way of judging works.
#[test]
fn judges_documents_of_its_parent() {
    let Some(file) = std::env::var_os(DOCUMENTS) else {
        let judgements = judge(&["a b".to_owned(), "a {".to_owned()]);
        assert!(matches!(&judgements[..], [Judgement::Accepted(_), Judgement::Rejected(_)]), "{judgements:?}");
        return;
    };
    let from = std::env::var(START).expect("the parent says where to start").parse().expect("an index");
    let documents = std::fs::read(file).expect("the parent wrote the documents");
    let documents: Vec<String> = serde_json::from_slice(&documents).expect("documents are JSON");
    for text in documents.iter().skip(from) {
        let judgement = match kdl::KdlDocument::parse_v2(text) {
            Ok(document) => (true, outline::of_document(&document)),
            Err(error) => (false, error.diagnostics.first().map(ToString::to_string).unwrap_or_default()),
        };
        println!("\u{1}{}", serde_json::to_string(&judgement).expect("judgements can be written"));
    }
}
