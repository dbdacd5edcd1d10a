//! What a run writes into its folder for people, and the texts that its records refer to.

use std::path::PathBuf;

use super::eval::render_failure;
use super::text_store::{TextStore, store_content};
use crate::core::state::State;
use crate::io::executor::{FileWriter, WritingThread};
use crate::io::home::{Layout, RunFolder};
use crate::types::error::RunError;
use crate::types::event::{Content, Failure, StepId, escaped_length};

/// The files of a run.
pub(super) struct Outputs {
    pub folder: RunFolder,
    pub layout: Layout,
    pub texts: Box<dyn TextStore>,
    /// The thread that writes files for people; none where no files are written.
    file_writer: Option<(FileWriter, WritingThread)>,
}

impl Outputs {
    /// The files in `folder`, which a thread writes, if there is one.
    pub(super) fn new(
        folder: RunFolder,
        layout: Layout,
        texts: Box<dyn TextStore>,
        file_writer: Option<(FileWriter, WritingThread)>,
    ) -> Outputs {
        Outputs { folder, layout, texts, file_writer }
    }

    /// A text as an event holds it.
    ///
    /// # Errors
    /// It cannot be stored.
    pub(super) fn store_content(&self, text: Content) -> Result<Content, RunError> {
        match text {
            Content::Text(text) => store_content(&*self.texts, text),
            stored => Ok(stored),
        }
    }

    /// A text as an event holds it, of what fails if it cannot be stored.
    ///
    /// # Errors
    /// It cannot be stored.
    pub(super) fn keep_text(&self, text: String) -> Result<Content, Failure> {
        store_content(&*self.texts, text).map_err(|error| render_failure(error.to_string()))
    }

    /// The same with so much room for it as JSON in its event.
    ///
    /// # Errors
    /// It cannot be stored.
    pub(super) fn keep_within(&self, text: String, room: usize) -> Result<Content, Failure> {
        match escaped_length(&text) <= room {
            true => self.keep_text(text),
            false => self.texts.store_text(&text).map_err(|error| render_failure(error.to_string())),
        }
    }

    /// Stores the texts of artifacts.
    ///
    /// # Errors
    /// One of them cannot be stored.
    pub(super) fn store_texts(&self, texts: Vec<(Content, String)>) -> Result<(), RunError> {
        texts.into_iter().try_for_each(|(_, text)| self.texts.store_text(&text).map(drop))
    }

    /// Whether files are written for people.
    pub(super) fn writes_files(&self) -> bool {
        self.file_writer.is_some()
    }

    /// Writes an output for people.
    pub(super) fn write_output(&self, step: &StepId, text: &str) {
        if self.writes_files() {
            self.write(self.layout.output_path(step), text.as_bytes().to_vec());
        }
    }

    /// Writes a file for people.
    pub(super) fn write(&self, path: PathBuf, bytes: Vec<u8>) {
        if let Some((file_writer, _)) = &self.file_writer {
            file_writer.write(path, bytes);
        }
    }

    /// Adds to a file for people.
    pub(super) fn append(&self, path: PathBuf, bytes: Vec<u8>) {
        if let Some((file_writer, _)) = &self.file_writer {
            file_writer.append(path, bytes);
        }
    }

    /// Has the thread that writes files do something, behind all that it was given before.
    pub(super) fn run_behind_files(&self, work: impl FnOnce() + Send + 'static) {
        if let Some((file_writer, _)) = &self.file_writer {
            file_writer.report_when_written(work);
        }
    }

    /// Removes a folder with files for people.
    pub(super) fn remove_folder(&self, path: PathBuf) {
        if let Some((file_writer, _)) = &self.file_writer {
            file_writer.remove_folder(path);
        }
    }

    /// Adds the reason for a refusal to the file of a turn.
    pub(super) fn append_refusal(&self, step: &StepId, attempt: u32, reason: &str) {
        let line = format!("{}\n", reason.replace('\n', " "));
        self.append(self.layout.refusals_path(step, attempt), line.into_bytes());
    }

    /// Writes the outputs that a killed runner had recorded, but not yet written for people.
    pub(super) fn mend(&self, state: &State) {
        for (step, output) in state.outputs() {
            // An artifact that cannot be read is reported where it is needed.
            let Ok(text) = self.texts.load_text(output) else { continue };
            let written = std::fs::read(self.layout.output_path(&step)).unwrap_or_default();
            let written = String::from_utf8_lossy(&written);
            if written.strip_suffix('\n').unwrap_or(&written) != text {
                self.write_output(&step, &text);
            }
        }
    }

    /// Waits until every file is written.
    ///
    /// # Errors
    /// The thread that writes panicked.
    pub(super) fn close(&mut self) -> Result<(), String> {
        let Some((file_writer, thread)) = self.file_writer.take() else { return Ok(()) };
        thread.join(&file_writer).map_err(|_| "the thread that writes outputs panicked".to_owned())
    }
}
