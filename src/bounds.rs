//! What a run is likely to use and what it uses at most, as tables: a line for each pipeline and swarm, and below them why
//! something has no end.
//!
//! In: a plan. Out: text. Unknown is never nought: it says because of what. What is estimated is marked.

use std::collections::BTreeMap;
use std::fmt::Write;

use swarmc_compiler::{O200k, Turn};
use swarmc_plan::{Body, Bound, Bounds, Likely, Pipeline, Plan};
use swarmc_view::{format_limit, format_number};

use crate::terminal::Paint;

/// The columns behind the name.
const COLUMNS: [&str; 6] = ["launches", "turns", "tokens in", "tokens out", "cost", "time"];

/// The tables of a plan, or of what is called `chosen` in it.
pub(crate) fn render_tables(plan: &Plan, chosen: Option<&str>, paint: Paint) -> String {
    // A plan may come from elsewhere, or from a build that did not know bounds.
    let counted = match plan.bounds.is_empty() {
        true => swarmc_compiler::compute_bounds(plan, &O200k),
        false => BTreeMap::new(),
    };
    let bounds = |name: &str| plan.bounds.get(name).or_else(|| counted.get(name));
    let pipelines = plan.pipelines.iter().map(|pipeline| (pipeline.name.as_str(), is_estimate(plan, pipeline)));
    let swarms = plan.swarms.iter().map(|swarm| (swarm.name.as_str(), true));
    let rows: Vec<(&str, bool, &Bounds)> = pipelines
        .chain(swarms)
        .filter(|(name, _)| chosen.is_none_or(|chosen| chosen == *name))
        .filter_map(|(name, estimate)| Some((name, estimate, bounds(name)?)))
        .collect();
    let mut out = String::new();
    let likely = rows.iter().filter_map(|(name, _, bounds)| Some((*name, format_likely(bounds.likely.as_ref()?))));
    let likely: Vec<(&str, [String; 5])> = likely.collect();
    if !likely.is_empty() {
        write_table(&mut out, "one run is likely to use", &likely, paint);
        let _ = writeln!(out, "  {}", paint.dim(&describe_likely()));
    }
    let most = rows.iter().map(|(name, estimate, bounds)| (*name, format_most(bounds, *estimate)));
    write_table(&mut out, "one run uses at most", &most.collect::<Vec<_>>(), paint);
    for (name, _, bounds) in &rows {
        write_reasons(&mut out, name, bounds, rows.len() > 1, paint);
    }
    if rows.iter().any(|(_, estimate, bounds)| *estimate && bounds.turns != Bound::Most(0)) {
        let note = "~ an estimate: the tokenizers of these models are not public. Tokens in are the inputs of \
                    turns, without what agents read with their own tools.";
        let _ = writeln!(out, "  {}", paint.dim(note));
    }
    out
}

/// What makes a run likely.
fn describe_likely() -> String {
    let [items, turns] = [Likely::ITEMS, Likely::TURNS.into()].map(format_number);
    let [shown, text] = [Likely::TURN_TOKENS, Likely::TEXT_TOKENS].map(format_number);
    format!(
        "if nothing fails or repeats, a list has {items} items, a member of a swarm takes {turns} turns of {shown} tokens, \
         and a value in a prompt and an answer have {text} tokens; each within its limit."
    )
}

/// A table with a row for each name, as many of the columns as there are.
fn write_table<const N: usize>(out: &mut String, title: &str, rows: &[(&str, [String; N])], paint: Paint) {
    let width = |column: usize| {
        rows.iter().map(|(_, row)| row[column].chars().count()).chain([COLUMNS[column].len()]).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let names = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let _ = write!(out, "\n{}\n  {:<names$}", paint.bold(title), "");
    for (column, width) in COLUMNS.iter().zip(&widths) {
        let _ = write!(out, "  {}", paint.dim(&format!("{column:>width$}")));
    }
    out.push('\n');
    for (name, row) in rows {
        let _ = write!(out, "  {}", paint.bold(&format!("{name:<names$}")));
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(out, "  {cell:>width$}");
        }
        out.push('\n');
    }
}

fn format_cell(bound: &Bound, open: &str, show: &dyn Fn(u64) -> String) -> String {
    match bound {
        // Sums saturate: this one may be any larger number.
        Bound::Most(u64::MAX) => "beyond counting".to_owned(),
        Bound::Most(most) => show(*most),
        Bound::Unbounded { .. } => open.to_owned(),
    }
}

/// Of what is likely no figure is exact: the first two are shown.
fn format_likely(likely: &Likely) -> [String; 5] {
    let about = |most: u64| if most > 0 { format!("~{}", format_number(round_up(most))) } else { "0".to_owned() };
    let dollars = |most: u64| if most > 0 { format!("~{}", format_dollars(round_up(most))) } else { "$0".to_owned() };
    [
        format_cell(&likely.launches, "unknown", &format_number),
        format_cell(&likely.turns, "unknown", &format_number),
        format_cell(&likely.input_tokens, "unknown", &about),
        format_cell(&likely.output_tokens, "unknown", &about),
        format_cell(&likely.cost, "unknown", &dollars),
    ]
}

/// A number with two figures that are not zero, at least as large.
fn round_up(number: u64) -> u64 {
    // `ilog10` panics for 0.
    let unit = 10_u64.pow(number.max(1).ilog10().saturating_sub(1));
    number.div_ceil(unit).saturating_mul(unit)
}

fn format_most(bounds: &Bounds, estimate: bool) -> [String; 6] {
    let cell = |bound: &Bound, show: &dyn Fn(u64) -> String| format_cell(bound, "unbounded", show);
    let tilde = |most: u64| if estimate && most > 0 { "~" } else { "" };
    let tokens = |most: u64| format!("{}{}", tilde(most), format_number(most));
    [
        cell(&bounds.launches, &format_number),
        cell(&bounds.turns, &format_number),
        cell(&bounds.input_tokens, &tokens),
        cell(&bounds.output_tokens, &format_number),
        cell(&bounds.cost, &|most| format!("{}{}", tilde(most), format_dollars(most))),
        cell(&bounds.critical_path_ms, &format_time),
    ]
}

/// Why columns have no end; a reason that several share stands once.
fn write_reasons(out: &mut String, name: &str, bounds: &Bounds, several: bool, paint: Paint) {
    let all = [
        &bounds.launches,
        &bounds.turns,
        &bounds.input_tokens,
        &bounds.output_tokens,
        &bounds.cost,
        &bounds.critical_path_ms,
    ];
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    for (bound, column) in all.into_iter().zip(COLUMNS) {
        let Bound::Unbounded { because, origin } = bound else { continue };
        let reason = format!("{} ({origin})", swarmc_view::make_printable(because));
        match told.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, columns)) => columns.push(column),
            None => told.push((reason, vec![column])),
        }
    }
    for (reason, columns) in told {
        let of = if several { format!("{name}: ") } else { String::new() };
        let line = format!("{of}{} unbounded because {reason}", columns.join(", "));
        let _ = writeln!(out, "  {}", paint.dim(&line));
    }
}

/// Whether what a pipeline's turns are given was counted with the tokenizer of another family.
fn is_estimate(plan: &Plan, pipeline: &Pipeline) -> bool {
    let inexact = |pipeline: &Pipeline| turn_bounds(plan, pipeline).values().any(|turn| !turn.exact);
    let starts = pipeline.all_steps().any(|step| matches!(step.body, Body::Call(_) | Body::Swarm(_)));
    match starts {
        true => !plan.swarms.is_empty() || plan.pipelines.iter().any(inexact),
        false => inexact(pipeline),
    }
}

/// What each turn of a pipeline is given, by step.
pub(crate) fn turn_bounds<'p>(plan: &'p Plan, pipeline: &'p Pipeline) -> std::collections::HashMap<&'p str, Turn> {
    swarmc_compiler::count_turn_inputs(plan, pipeline, &O200k)
}

/// What a turn is given: `at most ~1,200 tokens`, or why that is not known.
pub(crate) fn describe_turn(turn: &Turn) -> String {
    match &turn.input {
        Bound::Most(most) => format!("at most {}{} tokens", if turn.exact { "" } else { "~" }, format_number(*most)),
        Bound::Unbounded { because, .. } => {
            format!("any number of tokens, because {}", swarmc_view::make_printable(because))
        }
    }
}

/// A time as it stands in a spec; a long one by the minute, rounded up.
fn format_time(milliseconds: u64) -> String {
    let minutes = milliseconds.div_ceil(60_000);
    match minutes {
        0..10 => format_limit(milliseconds),
        10..60 => format!("{minutes}m"),
        _ => format!("{}h {:02}m", minutes / 60, minutes % 60),
    }
}

/// `$1.25`; less than a cent in full.
fn format_dollars(micro: u64) -> String {
    match micro {
        0 => "$0".to_owned(),
        1..10_000 => format!("$0.{micro:06}"),
        _ => format!("${}.{:02}", format_number(micro.div_ceil(10_000) / 100), micro.div_ceil(10_000) % 100),
    }
}

#[cfg(test)]
mod tests {
    use swarmc_plan::Origin;

    use super::*;

    const PAINT: Paint = Paint { colour: false };

    #[test]
    fn what_has_no_end_says_why() {
        let origin = Origin { file: "flow.kdl".to_owned(), line: 4, column: 7 };
        let open = |because: &str| Bound::Unbounded { because: because.to_owned(), origin: origin.clone() };
        let mut plan = Plan { default: "main".to_owned(), ..Plan::default() };
        plan.pipelines = ["main", "other"].map(|name| Pipeline { name: name.to_owned(), ..Pipeline::default() }).into();
        let first = Bounds {
            launches: Bound::Most(12),
            turns: Bound::Most(9),
            input_tokens: Bound::Most(41_200),
            output_tokens: open("agent `coder` declares no `max-output`"),
            cost: open("agent `coder` declares no `max-output`"),
            critical_path_ms: Bound::Most(7_200_000),
            likely: None,
        };
        let second = Bounds { cost: Bound::Most(12_345), output_tokens: Bound::Most(u64::MAX), ..first.clone() };
        plan.bounds = BTreeMap::from([("main".to_owned(), first), ("other".to_owned(), second)]);
        insta::assert_snapshot!(render_tables(&plan, None, PAINT).trim_start(), @r"
        one run uses at most
                 launches  turns  tokens in       tokens out       cost    time
          main         12      9     41,200        unbounded  unbounded  2h 00m
          other        12      9     41,200  beyond counting      $0.02  2h 00m
          main: tokens out, cost unbounded because agent `coder` declares no `max-output` (flow.kdl:4:7)
        ");
        assert!(!render_tables(&plan, Some("other"), PAINT).contains("main"));
        let (launches, turns, output_tokens) = (Bound::Most(3), Bound::Most(2), Bound::Most(2_000));
        let likely =
            Likely { launches, turns, input_tokens: Bound::Most(3_312), output_tokens, cost: open("no price") };
        plan.bounds.values_mut().for_each(|bounds| bounds.likely = Some(Box::new(likely.clone())));
        let shown = render_tables(&plan, Some("main"), PAINT);
        let (shown, _) = shown.split_once("\n\n").expect("another table follows");
        insta::assert_snapshot!(shown.trim_start(), @r"
        one run is likely to use
                launches  turns  tokens in  tokens out     cost
          main         3      2     ~3,400      ~2,000  unknown
          if nothing fails or repeats, a list has 10 items, a member of a swarm takes 4 turns of 2,000 tokens, and a value in a prompt and an answer have 1,000 tokens; each within its limit.
        ");
    }

    #[test]
    fn money_and_time_are_rounded_up() {
        assert_eq!([0, 7, 99, 101, 12_345].map(round_up), [0, 7, 99, 110, 13_000]);
        assert_eq!([format_time(90_000), format_time(1_200_000), format_time(18_015_000)], ["90s", "20m", "5h 01m"]);
        assert_eq!([format_dollars(0), format_dollars(12), format_dollars(1_250_001)], ["$0", "$0.000012", "$1.26"]);
    }
}
