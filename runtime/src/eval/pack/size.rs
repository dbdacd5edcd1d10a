//! The size of a pack in tokens, and what is cut where it is larger than its budget.
//!
//! In: the parts of a pack, in the order of its rules. Out: the pack with as many of them as fit, from the first on,
//! and what was left out in words. Invariant: a pack in a prompt has no more tokens than the budget says.

use std::sync::OnceLock;

use swarmc_plan::Overflow;
use tiktoken::CoreBpe;

use super::{Head, Item, Pack, Part};
use crate::types::artifact::id_of;

/// What is put where a text was cut.
const CUT: &str = "…";

/// What is said of what was left out: so many rules, each by so many characters of its name.
const TOLD: usize = 8;
const NAME: usize = 80;

static VOCABULARY: OnceLock<CoreBpe> = OnceLock::new();

/// A pack of the right size.
#[derive(Debug)]
pub(crate) struct Fitted {
    pub id: String,
    pub json: String,
    /// As a prompt holds it.
    pub text: String,
    pub omitted: Vec<String>,
}

impl Fitted {
    /// The pack of this JSON.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn read(name: &str, json: String) -> Result<Fitted, String> {
        let pack: Pack = serde_json::from_str(&json).map_err(|error| format!("context pack `{name}`: {error}"))?;
        let omitted = pack.meta.map(|meta| meta.omitted).unwrap_or_default();
        Ok(Fitted { id: pack.pack_id, text: shown(name, &json), json, omitted })
    }
}

/// A pack as a prompt holds it.
fn shown(name: &str, json: &str) -> String {
    format!("--- Context pack \"{name}\" ---\n{json}\n--- End of context pack ---")
}

/// Cuts a pack to its budget, the last rules first.
///
/// # Errors
/// It is too large where that is an error, or nothing of it fits.
pub(crate) fn fit(
    name: &str,
    head: &Head,
    parts: &[Part],
    (budget, overflow): (Option<u64>, Overflow),
) -> Result<Fitted, String> {
    let all: usize = parts.iter().map(|part| part.items.len()).sum();
    let budget = budget.unwrap_or(u64::MAX);
    let whole = made(name, head, parts, Cut { items: all, chars: None });
    if fits(&whole.text, budget) {
        return Ok(whole);
    }
    if overflow == Overflow::Error {
        let tokens = count(&whole.text);
        return Err(format!(
            "context pack `{name}` has {tokens} tokens, and its budget allows {budget}: raise `budget tokens=`, or say \
             `on-overflow drop`"
        ));
    }
    // Where it may end: behind a rule, or behind any item.
    let mut ends = vec![0];
    for part in parts {
        let last = ends[ends.len() - 1];
        match overflow {
            Overflow::Truncate => ends.extend(last + 1..=last + part.items.len()),
            Overflow::Drop | Overflow::Error => ends.push(last + part.items.len()),
        }
    }
    let fitting = |cut: Cut| Some(made(name, head, parts, cut)).filter(|made| fits(&made.text, budget));
    let kept = most(ends.len() - 1, |end| fitting(Cut { items: ends[end], chars: None }).is_some());
    let nothing = || {
        let least = count(&made(name, head, parts, Cut { items: 0, chars: None }).text);
        format!(
            "no rule of context pack `{name}` fits into its budget of {budget} tokens: the frame alone takes {least}"
        )
    };
    let Some(items) = kept.map(|end| ends[end]) else { return Err(nothing()) };
    let plain = || fitting(Cut { items, chars: None });
    let longest = parts.iter().flat_map(|part| &part.items).nth(items).map_or(0, length);
    let cut = match overflow {
        Overflow::Truncate if longest > 0 => {
            let chars = most(longest, |chars| fitting(Cut { items, chars: Some(chars) }).is_some());
            chars.filter(|&chars| chars > 0).and_then(|chars| fitting(Cut { items, chars: Some(chars) })).or_else(plain)
        }
        _ => plain(),
    };
    cut.ok_or_else(nothing)
}

/// How much of a pack is kept: so many items, and of the next one so many characters.
#[derive(Clone, Copy)]
struct Cut {
    items: usize,
    chars: Option<usize>,
}

/// The greatest number up to `last` that fits, where everything below fits too.
fn most(last: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
    if !fits(0) {
        return None;
    }
    // By halves, as every question makes the pack anew and counts its tokens.
    let (mut low, mut high) = (0, last + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

fn made(name: &str, head: &Head, parts: &[Part], cut: Cut) -> Fitted {
    let mut items: Vec<Item> = Vec::new();
    let mut omitted: Vec<String> = Vec::new();
    let mut left = cut.items;
    let mut chars = cut.chars;
    for part in parts {
        let taken = left.min(part.items.len());
        left -= taken;
        items.extend(part.items[..taken].iter().cloned());
        let label: String = part.label.chars().take(NAME).collect();
        omitted.extend(part.omitted.as_ref().map(|words| format!("`{label}`: {words}")));
        if taken == part.items.len() {
            continue;
        }
        match chars.take().map(|chars| shortened(&part.items[taken], chars)) {
            Some(item) => {
                items.push(item);
                omitted.push(format!("`{label}`: the rest of it, over the budget"));
            }
            None if taken == 0 => omitted.push(format!("`{label}`: over the budget")),
            None => omitted.push(format!(
                "`{label}`: {} of {}, over the budget",
                part.items.len() - taken,
                part.items.len()
            )),
        }
    }
    let more = omitted.len().saturating_sub(TOLD);
    omitted.truncate(TOLD);
    if more > 0 {
        omitted.push(format!("{more} rules more"));
    }
    let mut pack = Pack::assemble(head, &items, omitted.clone());
    // The same context has the same id, whenever it is put together.
    let (run, at) = (std::mem::take(&mut pack.run_id), std::mem::take(&mut pack.created_at));
    pack.pack_id = id_of(&pack.json());
    (pack.run_id, pack.created_at) = (run, at);
    let json = pack.json();
    Fitted { id: pack.pack_id, text: shown(name, &json), json, omitted }
}

/// The characters of an item that can be cut.
fn length(item: &Item) -> usize {
    match item {
        Item::Goal(text) | Item::Done(text) | Item::Fact(_, text) | Item::Appended(text) => text.chars().count(),
        Item::Doc(doc) => doc.excerpt.chars().count(),
        Item::File(file) => file.summary.as_ref().map_or(0, |summary| summary.chars().count()),
        Item::Input(_) | Item::Artifact(_) | Item::Constraint(..) => 0,
    }
}

fn shortened(item: &Item, chars: usize) -> Item {
    let mut item = item.clone();
    let cut = |text: &mut String| {
        if let Some((at, _)) = text.char_indices().nth(chars) {
            text.truncate(at);
            text.push_str(CUT);
        }
    };
    match &mut item {
        Item::Goal(text) | Item::Done(text) | Item::Fact(_, text) | Item::Appended(text) => cut(text),
        Item::Doc(doc) => cut(&mut doc.excerpt),
        Item::File(file) => file.summary.iter_mut().for_each(cut),
        Item::Input(_) | Item::Artifact(_) | Item::Constraint(..) => {}
    }
    item
}

/// Whether a text has so many tokens at most. There are never more of them than bytes.
fn fits(text: &str, budget: u64) -> bool {
    text.len() as u64 <= budget || count(text) <= budget
}

/// The tokens of a text, in the vocabulary o200k, as the compiler counts them.
fn count(text: &str) -> u64 {
    VOCABULARY.get_or_init(tiktoken::encoding::o200k_base).count(text) as u64
}

#[cfg(test)]
mod tests {
    use super::super::{DocRef, FileRef};
    use super::*;

    fn parts() -> Vec<Part> {
        let part = |label: &str, items| Part { label: label.to_owned(), depth: 0, items, omitted: None };
        let file = |number: usize| {
            let path = format!("src/file{number}.rs");
            Item::File(FileRef { path, summary: Some(format!("reads the dates of kind {number}")) })
        };
        let excerpt = "A line of the plan that goes on for a while.\n".repeat(40);
        vec![
            part("goal", vec![Item::Goal("Build it".to_owned())]),
            part("docs", vec![Item::Doc(DocRef { path: "docs/PLAN.md".to_owned(), excerpt })]),
            part("files src/*.rs", (0..50).map(file).collect()),
        ]
    }

    fn cut(budget: u64, overflow: Overflow) -> Result<(Pack, Fitted), String> {
        let fitted = fit("impl", &Head::default(), &parts(), (Some(budget), overflow))?;
        assert!(count(&fitted.text) <= budget, "{budget}: {}", count(&fitted.text));
        Ok((serde_json::from_str(&fitted.json).expect("it is a pack"), fitted))
    }

    #[test]
    fn packs_should_be_small_so_rules_are_cut_from_the_last_upwards() {
        let (whole, fitted) = cut(6_000, Overflow::Drop).expect("it fits");
        assert_eq!((whole.relevant_files.len(), fitted.omitted.len(), whole.meta.is_none()), (50, 0, true));
        let (pack, fitted) = cut(1_000, Overflow::Drop).expect("some of it fits");
        assert_eq!((pack.relevant_files.len(), pack.doc_refs.len()), (0, 1));
        assert_eq!(fitted.omitted, ["`files src/*.rs`: over the budget"]);
        assert_eq!(pack.meta.expect("it says so").omitted, fitted.omitted);
        let (pack, _) = cut(300, Overflow::Drop).expect("some of it fits");
        assert_eq!((pack.relevant_files.len(), pack.doc_refs.len(), pack.goal.as_str()), (0, 0, "Build it"));
    }

    #[test]
    fn truncated_packs_keep_the_beginning_of_what_is_cut() {
        let (pack, fitted) = cut(1_000, Overflow::Truncate).expect("some of it fits");
        let files = pack.relevant_files.len();
        assert!((1..50).contains(&files), "{files}");
        assert!(fitted.omitted[0].starts_with("`files src/*.rs`: "), "{:?}", fitted.omitted);
        let (pack, fitted) = cut(300, Overflow::Truncate).expect("some of it fits");
        let excerpt = &pack.doc_refs[0].excerpt;
        assert!(excerpt.starts_with("A line of the plan") && excerpt.ends_with('…'), "{excerpt}");
        assert_eq!(fitted.omitted, ["`docs`: the rest of it, over the budget", "`files src/*.rs`: over the budget"]);
    }

    #[test]
    fn a_pack_over_its_budget_is_an_error_where_it_says_so() {
        let problem = cut(1_000, Overflow::Error).expect_err("it is too large");
        assert!(problem.contains("its budget allows 1000"), "{problem}");
        let problem = cut(20, Overflow::Drop).expect_err("nothing fits");
        assert!(problem.contains("no rule of context pack `impl` fits"), "{problem}");
        let least = problem.rsplit_once("takes ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        assert!(cut(least.expect("it says how many"), Overflow::Drop).is_ok());
    }

    #[test]
    fn what_surrounds_a_pack_takes_what_the_compiler_takes_it_for() {
        // `FRAME` of the compiler's check of budgets: never more than there is in any run.
        let head = Head {
            run: "r".to_owned(),
            node: "t".to_owned(),
            created_at: "2026-01-01T00:00:00Z".to_owned(),
            ..Head::default()
        };
        let fitted = fit("p", &head, &[], (None, Overflow::Drop)).expect("it fits");
        let tokens = count(&fitted.text);
        assert!((90..=130).contains(&tokens), "{tokens}: {}", fitted.text);
    }

    #[test]
    fn the_same_context_has_the_same_id() {
        let at = |created_at: &str| Head { created_at: created_at.to_owned(), ..Head::default() };
        let made = |head: &Head| fit("impl", head, &parts(), (None, Overflow::Drop)).expect("it fits");
        let (one, other) = (made(&at("2026-01-01T00:00:00Z")), made(&at("2026-01-02T00:00:00Z")));
        assert_eq!(one.id, other.id);
        assert_ne!(one.json, other.json);
    }
}
