//! `check --stats`: what a check looked at and proved, as JSON, and as tables made of the same numbers.
//!
//! In: the counts of the compiler, spec by spec. Out: a document with each spec and all of them together; a line for
//! each spec and each pipeline. What is not known, as a bound where there is no plan, is `null`, or a dash.

use std::fmt::Write;

use swarmc_compiler::stats::{self, Pipeline, Prompts};
use swarmc_compiler::{Bound, Stats};
use swarmc_view::documents::{
    CheckStats, Counts, Fields, FlowCounts, Largest, OutputCounts, PipelinePrompts, PipelineStats, PromptCounts,
    RouteCounts, SpecStats, StepCounts, Suppressions, SwarmStats,
};
use swarmc_view::{format_number, make_printable};

use crate::terminal::Paint;

/// What stands above the lines of the specs, and what it means.
const COLUMNS: [(&str, &str); 9] = [
    ("files", "texts read"),
    ("names", "references that resolve"),
    ("reads", "directives and expressions that read a value"),
    ("fields", "fields that are read, with a known type"),
    ("outputs", "reads of an output that exists for certain, or is optional"),
    ("routes", "values over which steps branch, with a step for every case"),
    ("steps", "steps that a run can reach"),
    ("flows", "paths of free text that were followed"),
    ("hidden", "problems that suppressions hide"),
];

/// The counts of the specs that were checked.
#[derive(Default)]
pub(crate) struct Tally {
    specs: Vec<(String, Stats)>,
}

impl Tally {
    pub(crate) fn add(&mut self, spec: String, stats: Stats) {
        self.specs.push((spec, stats));
    }

    /// The counts of each spec, and their sums.
    pub(crate) fn to_document(&self) -> CheckStats {
        let specs = self.specs.iter().map(|(spec, stats)| document_spec(spec, stats)).collect();
        CheckStats { all: self.sum_specs(), specs }
    }

    /// The sums over all specs; none where there is none.
    fn sum_specs(&self) -> Option<Counts> {
        self.specs.iter().map(|(_, stats)| count_spec(stats)).reduce(|mut all, counts| {
            all += counts;
            all
        })
    }

    /// A table of the specs, what its columns are, and a table of what runs use at most.
    pub(crate) fn render_table(&self, paint: Paint) -> String {
        let mut rows: Vec<Vec<String>> = self
            .specs
            .iter()
            .map(|(spec, stats)| spec_row(make_printable(spec).into_owned(), &count_spec(stats)))
            .collect();
        if let Some(all) = self.sum_specs().filter(|_| self.specs.len() > 1) {
            rows.push(spec_row("all".to_owned(), &all));
        }
        let mut out = format!("\n{}\n", paint.bold("what was checked"));
        write_table(&mut out, &COLUMNS.map(|(column, _)| column), &rows, paint);
        for (column, meaning) in COLUMNS {
            let _ = writeln!(out, "  {}", paint.dim(&format!("{column:<7}  {meaning}")));
        }
        let bounds = self.bound_rows();
        if !bounds.is_empty() {
            let _ = writeln!(out, "\n{}", paint.bold("one run uses at most"));
            write_table(&mut out, &["launches", "turns", "prompts", "largest", "window", "of step"], &bounds, paint);
            let note = "prompts: those whose tokens have a bound; ~ an estimate. `swarmc plan` says more";
            let _ = writeln!(out, "  {}", paint.dim(note));
        }
        out
    }

    /// The lines of pipelines and swarms that are in a plan.
    fn bound_rows(&self) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for (spec, stats) in &self.specs {
            let named = |name: &str| match self.specs.len() {
                1 => name.to_owned(),
                _ => format!("{} {name}", make_printable(spec)),
            };
            for pipeline in &stats.pipelines {
                let Some(prompts) = &pipeline.prompts else { continue };
                let [tokens, window, step] = largest_cells(prompts);
                let part = format_ratio(prompts.bounded as u64, prompts.all as u64);
                let (launches, turns) =
                    (format_bound(pipeline.launches.as_ref()), format_bound(pipeline.turns.as_ref()));
                rows.push(vec![named(&pipeline.name), launches, turns, part, tokens, window, step]);
            }
            for swarm in &stats.swarms {
                let (launches, turns) = (format_bound(Some(&swarm.launches)), format_bound(Some(&swarm.turns)));
                let unknown = || "-".to_owned();
                rows.push(vec![named(&swarm.name), launches, turns, unknown(), unknown(), unknown(), unknown()]);
            }
        }
        rows
    }
}

fn document_spec(spec: &str, stats: &Stats) -> SpecStats {
    let swarm = |swarm: &stats::Swarm| SwarmStats {
        name: swarm.name.clone(),
        launches: swarm.launches.clone(),
        turns: swarm.turns.clone(),
    };
    SpecStats {
        spec: spec.to_owned(),
        counts: count_spec(stats),
        pipelines: stats.pipelines.iter().map(document_pipeline).collect(),
        swarms: stats.swarms.iter().map(swarm).collect(),
    }
}

/// What can be summed.
fn count_spec(stats: &Stats) -> Counts {
    let Stats { files, names, flows, suppressions, pipelines, swarms: _, conditions: _ } = stats;
    let mut counts = Counts {
        files: *files,
        references: names.references,
        directives: names.directives,
        expressions: names.expressions,
        fields: Fields { read: names.fields.read, typed: names.fields.typed },
        flows: FlowCounts { ways: flows.ways, untrusted: flows.untrusted, private: flows.private, exits: flows.exits },
        suppressions: Suppressions {
            written: suppressions.written,
            used: suppressions.used,
            hidden: suppressions.hidden,
        },
        ..Counts::default()
    };
    for pipeline in pipelines {
        let (steps, outputs, routes) = count_pipeline(pipeline);
        counts.steps += steps;
        counts.outputs += outputs;
        counts.routes += routes;
        counts.add_prompts(pipeline.prompts.as_ref().map(count_prompts));
    }
    counts
}

fn count_pipeline(pipeline: &Pipeline) -> (StepCounts, OutputCounts, RouteCounts) {
    let Pipeline { steps, outputs, routes, .. } = pipeline;
    (
        StepCounts { all: steps.all, can_run: steps.can, never_run: steps.never },
        OutputCounts { read: outputs.read, present: outputs.present, guarded: outputs.guarded },
        RouteCounts { branches: routes.branches, exhaustive: routes.exhaustive },
    )
}

fn count_prompts(prompts: &Prompts) -> PromptCounts {
    PromptCounts { all: prompts.all, bounded: prompts.bounded }
}

fn document_pipeline(pipeline: &Pipeline) -> PipelineStats {
    let (steps, outputs, routes) = count_pipeline(pipeline);
    let largest = |largest: &stats::Largest| Largest {
        step: largest.step.clone(),
        tokens: largest.tokens,
        exact: largest.exact,
        window: largest.window,
    };
    let prompts = pipeline.prompts.as_ref().map(|prompts| PipelinePrompts {
        counts: count_prompts(prompts),
        largest: prompts.largest.as_ref().map(largest),
    });
    PipelineStats {
        name: pipeline.name.clone(),
        steps,
        outputs,
        routes,
        prompts,
        launches: pipeline.launches.clone(),
        turns: pipeline.turns.clone(),
    }
}

/// The cells of a spec: its name, and what stands below [`COLUMNS`].
fn spec_row(name: String, counts: &Counts) -> Vec<String> {
    let number = |number: usize| format_number(number as u64);
    let ratio = |some: usize, all: usize| format_ratio(some as u64, all as u64);
    vec![
        name,
        number(counts.files),
        number(counts.references),
        number(counts.directives + counts.expressions),
        ratio(counts.fields.typed, counts.fields.read),
        ratio(counts.outputs.present + counts.outputs.guarded, counts.outputs.read),
        ratio(counts.routes.exhaustive, counts.routes.branches),
        ratio(counts.steps.can_run, counts.steps.all),
        number(counts.flows.ways),
        number(counts.suppressions.hidden),
    ]
}

/// `3/4`; a dash of nothing.
fn format_ratio(some: u64, all: u64) -> String {
    if all == 0 { "-".to_owned() } else { format!("{}/{}", format_number(some), format_number(all)) }
}

fn format_bound(bound: Option<&Bound>) -> String {
    match bound {
        None => "-".to_owned(),
        Some(Bound::Most(u64::MAX)) => "beyond counting".to_owned(),
        Some(Bound::Most(most)) => format_number(*most),
        Some(Bound::Unbounded { .. }) => "unbounded".to_owned(),
    }
}

/// The tokens of the largest prompt, the window that it has to fit, and whose it is.
fn largest_cells(prompts: &Prompts) -> [String; 3] {
    let Some(largest) = &prompts.largest else { return ["-", "-", "-"].map(str::to_owned) };
    let tilde = if largest.exact { "" } else { "~" };
    let window = largest.window.map_or_else(|| "-".to_owned(), format_number);
    [format!("{tilde}{}", format_number(largest.tokens)), window, make_printable(&largest.step).into_owned()]
}

/// Rows below their columns, the first cell to the left.
fn write_table(out: &mut String, columns: &[&str], rows: &[Vec<String>], paint: Paint) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let first = width(0);
    let widths: Vec<usize> =
        columns.iter().enumerate().map(|(index, column)| width(index + 1).max(column.len())).collect();
    let _ = write!(out, "  {:first$}", "");
    for (column, width) in columns.iter().zip(&widths) {
        let _ = write!(out, "  {}", paint.dim(&format!("{column:>width$}")));
    }
    out.push('\n');
    for row in rows {
        let _ = write!(out, "  {}", paint.bold(&format!("{:first$}", row[0])));
        for (cell, width) in row[1..].iter().zip(&widths) {
            let _ = write!(out, "  {cell:>width$}");
        }
        out.push('\n');
    }
}
