//! `swarmc graph`: pipelines and swarms as pictures, as text, and in the notations that other tools draw.
//!
//! In: a plan. Out: its [`Graph`], written as SVG, a listing, Mermaid or DOT.

mod svg;
mod text;
mod write;

use std::path::Path;

use miette::miette;
use swarmc_plan::Plan;
use swarmc_view::did_you_mean;
use swarmc_view::graph::{Graph, TooLarge};

use crate::args::{Graph as Args, GraphFormat};
use crate::exit::Exit;
use crate::load::load_workflow;
use crate::terminal::{self, Paint, Stream};

/// Columns of text where no terminal has its own width.
const WIDTH: usize = 100;

/// All pipelines and swarms of a plan as SVG, or the one of this name.
pub(crate) fn render_picture(plan: &Plan, name: Option<&str>) -> miette::Result<String> {
    let graph = build_graph(plan, name)?;
    svg::render_svg(&graph).map_err(|TooLarge| too_large(&graph))
}

pub(crate) fn exec(args: &Args) -> miette::Result<Exit> {
    let Some(loaded) = load_workflow(&args.spec)? else { return Ok(Exit::Spec) };
    let graph = &build_graph(&loaded.plan, args.pipeline.as_deref())?;
    let file = args.output.as_deref().filter(|file| *file != Path::new("-"));
    let text = match args.format.unwrap_or_else(|| infer_format(file)) {
        GraphFormat::Mermaid => write::render_mermaid(graph),
        GraphFormat::Dot => write::render_dot(graph),
        GraphFormat::Text => {
            let is_shown = file.is_none() && Stream::Out.is_terminal();
            let width = if is_shown { Stream::Out.size().0 } else { WIDTH };
            text::render_text(graph, width, if file.is_none() { Stream::Out.paint() } else { Paint::NONE })
        }
        GraphFormat::Svg => svg::render_svg(graph).map_err(|TooLarge| too_large(graph))?,
    };
    match file {
        Some(file) => {
            crate::plan::write_file(file, &text)?;
            terminal::eprint(format!("wrote `{}`\n", file.display()));
        }
        None => terminal::print(text)?,
    }
    Ok(Exit::Done)
}

/// What the ending of a file's name says.
fn infer_format(file: Option<&Path>) -> GraphFormat {
    match file.and_then(Path::extension).and_then(|ending| ending.to_str()) {
        Some("svg") => GraphFormat::Svg,
        Some("dot" | "gv") => GraphFormat::Dot,
        Some("txt") => GraphFormat::Text,
        _ => GraphFormat::Mermaid,
    }
}

/// All pipelines and swarms of a plan, or the one of this name.
fn build_graph(plan: &Plan, name: Option<&str>) -> miette::Result<Graph> {
    Graph::build(plan, name).ok_or_else(|| {
        let name = name.unwrap_or_default();
        let pipelines = plan.pipelines.iter().map(|pipeline| pipeline.name.as_str());
        let names = pipelines.chain(plan.swarms.iter().map(|swarm| swarm.name.as_str()));
        miette!(help = did_you_mean(name, names), "there is no pipeline or swarm `{name}`")
    })
}

fn too_large(graph: &Graph) -> miette::Report {
    let help = "draw a part with `--pipeline NAME`, or give `--format dot` to another program";
    miette!(help = help, "{} arrows are too many to draw", graph.arrows.len())
}

#[cfg(test)]
mod tests;
