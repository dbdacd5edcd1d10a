//! `check --stats`: what a check looked at and proved, as JSON, and as tables made of the same numbers.
//!
//! In: the counts of the compiler, spec by spec. Out: a document with each spec and all of them together; a line for
//! each spec and each pipeline. What is not known, as a bound where there is no plan, is `null`, or a dash.

use std::fmt::Write;

use serde_json::{Map, Value, json};
use swarmc_compiler::stats::{Pipeline, Prompts};
use swarmc_compiler::{Bound, Stats};
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

    /// `{"all": …, "specs": […]}`.
    pub(crate) fn to_json(&self) -> Value {
        let specs: Vec<Value> = self.specs.iter().map(|(spec, stats)| of_spec(spec, stats)).collect();
        json!({ "all": self.sum_specs(), "specs": specs })
    }

    /// The sums over all specs.
    fn sum_specs(&self) -> Value {
        let mut all = Value::Null;
        self.specs.iter().for_each(|(_, stats)| add_counts(&mut all, &counts_json(stats)));
        all
    }

    /// A table of the specs, what its columns are, and a table of what runs use at most.
    pub(crate) fn render_table(&self, paint: Paint) -> String {
        let mut rows: Vec<Vec<String>> = self
            .specs
            .iter()
            .map(|(spec, stats)| spec_row(make_printable(spec).into_owned(), &counts_json(stats)))
            .collect();
        if self.specs.len() > 1 {
            rows.push(spec_row("all".to_owned(), &self.sum_specs()));
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

fn of_spec(spec: &str, stats: &Stats) -> Value {
    let mut document = counts_json(stats);
    document["spec"] = json!(spec);
    document["pipelines"] = stats.pipelines.iter().map(of_pipeline).collect();
    let swarms = stats
        .swarms
        .iter()
        .map(|swarm| json!({ "name": swarm.name, "launches": swarm.launches, "turns": swarm.turns }));
    document["swarms"] = swarms.collect();
    document
}

/// What can be summed.
fn counts_json(stats: &Stats) -> Value {
    let Stats { files, names, flows, suppressions, pipelines, swarms: _, conditions: _ } = stats;
    let mut counts = json!({
        "files": files,
        "references": names.references,
        "directives": names.directives,
        "expressions": names.expressions,
        "fields": { "read": names.fields.read, "typed": names.fields.typed },
        "steps": { "all": 0, "can_run": 0, "never_run": 0 },
        "outputs": { "read": 0, "present": 0, "guarded": 0 },
        "routes": { "branches": 0, "exhaustive": 0 },
        "prompts": null,
        "flows": {
            "ways": flows.ways, "untrusted": flows.untrusted, "private": flows.private, "exits": flows.exits,
        },
        "suppressions": {
            "written": suppressions.written, "used": suppressions.used, "hidden": suppressions.hidden,
        },
    });
    for pipeline in pipelines {
        add_counts(&mut counts, &of_steps(pipeline));
        if let Some(Prompts { all, bounded, .. }) = &pipeline.prompts {
            add_counts(&mut counts, &json!({ "prompts": { "all": all, "bounded": bounded } }));
        }
    }
    counts
}

fn of_steps(pipeline: &Pipeline) -> Value {
    let Pipeline { steps, outputs, routes, .. } = pipeline;
    json!({
        "steps": { "all": steps.all, "can_run": steps.can, "never_run": steps.never },
        "outputs": { "read": outputs.read, "present": outputs.present, "guarded": outputs.guarded },
        "routes": { "branches": routes.branches, "exhaustive": routes.exhaustive },
    })
}

fn of_pipeline(pipeline: &Pipeline) -> Value {
    let mut document = of_steps(pipeline);
    document["name"] = json!(pipeline.name);
    document["launches"] = json!(pipeline.launches);
    document["turns"] = json!(pipeline.turns);
    document["prompts"] = match &pipeline.prompts {
        None => Value::Null,
        Some(Prompts { all, bounded, largest }) => {
            let largest = largest.as_ref().map(|largest| {
                json!({
                    "step": largest.step,
                    "tokens": largest.tokens,
                    "exact": largest.exact,
                    "window": largest.window,
                })
            });
            json!({ "all": all, "bounded": bounded, "largest": largest })
        }
    };
    document
}

/// Sums numbers with those of the same name; what is unknown adds nothing.
fn add_counts(sum: &mut Value, other: &Value) {
    match (sum, other) {
        (_, Value::Null) => {}
        (Value::Object(sum), Value::Object(other)) => add_all(sum, other),
        (sum, other) => match (sum.as_u64(), other.as_u64()) {
            (Some(one), Some(more)) => *sum = json!(one + more),
            _ => *sum = other.clone(),
        },
    }
}

fn add_all(sum: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (name, value) in other {
        add_counts(sum.entry(name).or_insert(Value::Null), value);
    }
}

/// The cells of a spec: its name, and what stands below [`COLUMNS`].
fn spec_row(name: String, counts: &Value) -> Vec<String> {
    let number = |path: &str| counts.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let sum = |paths: [&str; 2]| paths.map(number).iter().sum::<u64>();
    vec![
        name,
        format_number(number("/files")),
        format_number(number("/references")),
        format_number(sum(["/directives", "/expressions"])),
        format_ratio(number("/fields/typed"), number("/fields/read")),
        format_ratio(sum(["/outputs/present", "/outputs/guarded"]), number("/outputs/read")),
        format_ratio(number("/routes/exhaustive"), number("/routes/branches")),
        format_ratio(number("/steps/can_run"), number("/steps/all")),
        format_number(number("/flows/ways")),
        format_number(number("/suppressions/hidden")),
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
