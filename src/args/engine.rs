//! The options of commands that reach runs of an engine.

use clap::Args;

/// Where runs of an engine are.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Several machines")]
pub(crate) struct Engine {
    /// Includes the runs of this engine: the ingress of Restate, as in `http://127.0.0.1:8080`. By default `$SWARM_ENGINE`.
    #[arg(long, value_name = "URL", env = "SWARM_ENGINE", hide_env = true)]
    pub(crate) engine: Option<String>,
    /// The object store of the engine, where it is not reached by the address that the engine says: `file:///FOLDER`
    /// or `s3://BUCKET/PREFIX`.
    #[arg(long, value_name = "URL", env = "SWARM_STORE", hide_env = true, requires = "engine")]
    pub(crate) store: Option<String>,
}
