//! What `swarmc doctor --json` prints.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use super::Version;

/// What `swarmc doctor --json` prints: whether this machine has what workflows need.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Doctor {
    /// The version of this form.
    pub version: Version,
    /// The version of swarmc.
    pub swarmc: String,
    /// Where runs are kept.
    pub home: HomeState,
    /// The shell, and the programs of the presets.
    pub programs: Vec<ProgramState>,
    /// The presets of models behind HTTP.
    pub models: Vec<ModelState>,
}

/// What `swarmc doctor SPEC --json` prints: whether this machine has what a spec needs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorSpec {
    /// The version of this form.
    pub version: Version,
    /// The version of swarmc.
    pub swarmc: String,
    /// Where runs are kept.
    pub home: HomeState,
    /// The programs that it starts.
    pub programs: Vec<SpecProgram>,
    /// The problem of each secret that is missing.
    pub variables: Vec<String>,
}

/// Where runs are kept.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HomeState {
    /// The folder.
    pub path: PathBuf,
    /// Why no run can be kept there.
    pub problem: Option<String>,
}

/// A program that workflows may need.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProgramState {
    /// Its name.
    pub name: String,
    /// The preset that uses it.
    pub preset: Option<String>,
    /// Where it was found.
    pub path: Option<PathBuf>,
    /// What it says for `--version`.
    pub version: Option<String>,
    /// How to install it.
    pub install: Option<String>,
}

/// A preset of a model behind HTTP.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ModelState {
    /// Its name.
    pub preset: String,
    /// The variable that holds the key.
    pub variable: Option<String>,
    /// Whether that is set.
    pub set: Option<bool>,
    /// Where it listens, unless at its maker's.
    pub url: Option<String>,
}

/// A program that a spec starts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SpecProgram {
    /// Its name.
    pub name: String,
    /// Where it was found.
    pub path: Option<PathBuf>,
    /// The steps that start it.
    pub steps: Vec<String>,
    /// The agent whose turns it takes.
    pub agent: Option<String>,
    /// How to install it.
    pub install: Option<String>,
    /// Whether a run is refused without it.
    pub needed: bool,
}
