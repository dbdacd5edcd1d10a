//! Commands: what an editor shows in a window of its own. Each answers with a text.
//!
//! `swarmc.plan`, `swarmc.graph` and `swarmc.prompt` take `{ uri, name?, pipeline?, position? }`, `swarmc.explain` a code.
//! What runs something (`swarmc.run`, `swarmc.test`) is for the editor's own terminal.

use gen_lsp_types as lsp;
use serde::Deserialize;
use swarmc_compiler::Code;

use super::{Answer, Context};
use crate::ide;
use crate::server::convert;
use crate::server::dispatch::Failure;
use crate::server::workspaces::File;

/// The commands that are ours.
pub(in crate::server) const COMMANDS: &[&str] = &["swarmc.plan", "swarmc.graph", "swarmc.prompt", "swarmc.explain"];

/// What a command is about.
#[derive(Deserialize)]
struct About {
    /// A spec, or a prompt that one reads.
    uri: lsp::Uri,
    /// The pipeline or swarm; of `swarmc.prompt` the task.
    name: Option<String>,
    /// The pipeline of the task.
    pipeline: Option<String>,
    /// A place in the file: the name of a task, or a text that one says.
    position: Option<lsp::Position>,
}

pub(super) fn execute_command(context: &Context, params: lsp::ExecuteCommandParams) -> Answer<lsp::LspAny> {
    let first = params.arguments.into_iter().flatten().next().unwrap_or_default();
    let about = || serde_json::from_value::<About>(first.clone()).map_err(|error| Failure(error.to_string()));
    let text = match params.command.as_str() {
        "swarmc.plan" => render_plan(context, &about()?),
        "swarmc.graph" => render_graph(context, &about()?),
        "swarmc.prompt" => render_prompt(context, &about()?),
        "swarmc.explain" => {
            let name = first.as_str().unwrap_or_default();
            Code::find(name).map(|code| code.page().to_owned()).ok_or(format!("there is no problem called `{name}`"))
        }
        other => Err(format!("`{other}` is not a command of the server")),
    };
    text.map(|text| Some(text.into())).map_err(Failure)
}

fn render_plan(context: &Context, about: &About) -> Result<String, String> {
    let (_, analysis) = find_spec(context, about)?;
    context.moment.views().render_plan(&analysis.compilation, about.name.as_deref())
}

fn render_graph(context: &Context, about: &About) -> Result<String, String> {
    let (_, analysis) = find_spec(context, about)?;
    context.moment.views().render_graph(&analysis.compilation, about.name.as_deref())
}

fn render_prompt(context: &Context, about: &About) -> Result<String, String> {
    let (file, analysis) = find_spec(context, about)?;
    let offset = about
        .position
        .and_then(|position| Some(convert::to_offset(file.document()?.source(), position, context.encoding)));
    let task = match (&about.name, offset) {
        (Some(name), _) => (name.clone(), about.pipeline.clone()),
        (None, offset) => {
            let found = ide::find_speaker(&analysis, &file.path, offset.unwrap_or_default());
            let (task, pipeline) = found.ok_or("there is no task here")?;
            (task, about.pipeline.clone().or(pipeline))
        }
    };
    let runs = context.moment.runs(&file);
    let last = |pipeline: &str| runs.last_run(&analysis.index.workflow, pipeline);
    context.moment.views().render_prompt(&analysis.compilation, task.1.as_deref(), &task.0, &last)
}

/// The file, and the spec that it is or that reads it; one with a plan if there are several.
fn find_spec<'c>(context: &'c Context, about: &About) -> Result<(File<'c>, std::sync::Arc<ide::Analysis>), String> {
    let none = || "this is not a spec, and no spec reads it".to_owned();
    let file = context.moment.file(&about.uri).ok_or_else(none)?;
    let mut found = file.snapshot.find_analyses(&file.path);
    found.sort_by_key(|analysis| analysis.compilation.plan.is_none());
    let analysis = found.into_iter().next().ok_or_else(none)?;
    Ok((file, analysis))
}
