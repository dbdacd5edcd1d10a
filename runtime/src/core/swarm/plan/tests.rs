//! The plan of a team: versions, circles, what is ready, and table T2 of proposals.

use std::sync::Arc;

use proptest::prelude::*;
use swarmc_plan::Priority;

use super::*;

fn add(item: &str, owner: Option<&str>, depends_on: &[&str]) -> PlanOp {
    PlanOp::Add {
        item: item.into(),
        text: format!("do {item}"),
        owner: owner.map(Into::into),
        priority: Priority::Normal,
        depends_on: depends_on.iter().map(|on| Arc::from(*on)).collect(),
        checkpoints: Vec::new(),
        scope: Vec::new(),
    }
}

fn link(item: &str, on: &str) -> PlanOp {
    PlanOp::Link { item: item.into(), on: on.into() }
}

fn edit(item: &str) -> PlanOp {
    PlanOp::Edit { item: item.into(), text: Some("more".to_owned()), priority: None, checkpoints: None, scope: None }
}

fn remove(item: &str) -> PlanOp {
    PlanOp::Remove { item: item.into() }
}

fn plan(ops: &[PlanOp]) -> TeamPlan {
    let mut plan = TeamPlan::default();
    plan.check_ops(ops, |_| true, 200).expect("a plan");
    plan.update(1, &"chief".into(), ops, "the beginning");
    plan
}

fn refused(plan: &TeamPlan, ops: &[PlanOp]) -> String {
    plan.check_ops(ops, |name| name != "absent", 5).expect_err("it does not apply")
}

#[test]
fn changes_that_do_not_apply_say_why() {
    let mut plan = plan(&[add("api", Some("a1"), &[]), add("parser", None, &["api"])]);
    plan.move_item("api", ItemState::Running, None);
    for (ops, why) in [
        (vec![], "`ops` is empty: name at least one change"),
        (
            vec![add("api", None, &[])],
            "`add api`: the plan has an item of this name: choose another name, or use `edit`",
        ),
        (
            vec![add("x", Some("absent"), &[])],
            "`add x`: `absent` is no agent that works: leave `owner` out, or name another one",
        ),
        (vec![add("x", None, &["x"])], "`add x`: an item cannot wait for itself"),
        (vec![add("x", None, &["y"])], "`add x`: the plan has no item `y`: it has api, parser"),
        (vec![edit("y")], "`edit y`: the plan has no item `y`: it has api, parser"),
        (vec![remove("api")], "`remove api`: a1 works on it: stop a1 first, or wait"),
        (vec![link("api", "parser")], "`api waits for parser`: it has begun, so it waits for nothing any more"),
        (
            vec![add("x", None, &["parser"]), link("parser", "x")],
            "`parser waits for x`: `x` waits for `parser` already: they would wait for each other",
        ),
        (
            vec![add("x", None, &[]), link("x", "x")],
            "`x waits for x`: `x` waits for `x` already: they would wait for each other",
        ),
        (vec![add("x", None, &["parser"]), remove("parser")], "`remove parser`: `x` waits for it: unlink that first"),
        (
            vec![PlanOp::Unlink { item: "api".into(), on: "parser".into() }],
            "`api no longer waits for parser`: it does not wait for that",
        ),
        (
            ["u", "v", "w", "x"].map(|name| add(name, None, &[])).to_vec(),
            "`add x`: the plan has 5 items, which is the limit: remove one first",
        ),
        (vec![edit("parser"); OPS + 1], "`ops` has 51 changes and may have 50: make several updates"),
    ] {
        assert_eq!(refused(&plan, &ops), why);
    }
    assert_eq!(plan.version, 1, "a refused change leaves the plan");
}

#[test]
fn an_item_is_ready_once_what_it_waits_for_is_done() {
    let mut plan = plan(&[add("api", Some("a1"), &[]), add("parser", Some("a2"), &["api"]), add("docs", None, &[])]);
    let states = |plan: &TeamPlan| plan.items.iter().map(|item| plan.describe_state(item)).collect::<Vec<_>>();
    assert_eq!(states(&plan), ["ready", "queued", "queued"]);
    assert_eq!(plan.current_item("a2"), None);
    plan.move_item("api", ItemState::Done, Some("it stands"));
    assert_eq!(states(&plan), ["done", "ready", "queued"]);
    assert_eq!(plan.current_item("a2").map(|item| &*item.name), Some("parser"));
    plan.move_item("parser", ItemState::Blocked, Some("no key"));
    assert_eq!(plan.current_item("a2"), None);
    plan.assign("parser", Some(&"a1".into()));
    assert_eq!(plan.current_item("a1").map(|item| &*item.name), Some("parser"));
    plan.move_item("parser", ItemState::Running, None);
    plan.release_items("a1");
    assert_eq!(states(&plan), ["done", "ready", "queued"]);
}

#[test]
fn of_ready_items_the_most_urgent_one_is_next_and_then_the_first() {
    let mut plan = plan(&[add("a", Some("a1"), &[]), add("b", Some("a1"), &[]), add("c", Some("a1"), &[])]);
    assert_eq!(plan.current_item("a1").map(|item| &*item.name), Some("a"));
    let urgent =
        PlanOp::Edit { item: "b".into(), text: None, priority: Some(Priority::High), checkpoints: None, scope: None };
    plan.update(2, &"chief".into(), &[urgent], "it is late");
    assert_eq!(plan.current_item("a1").map(|item| &*item.name), Some("b"));
    plan.move_item("c", ItemState::Running, None);
    assert_eq!(plan.current_item("a1").map(|item| &*item.name), Some("c"), "what runs is not left for it");
}

#[test]
fn versions_follow_each_other_and_changes_are_known_since_one() {
    let mut plan = plan(&[add("a", None, &[])]);
    plan.update(3, &"chief".into(), &[add("b", None, &[])], "too early");
    assert_eq!((plan.version, plan.items.len()), (1, 1));
    for version in 2..=KEPT as u32 + 10 {
        plan.update(version, &"chief".into(), &[edit("a")], "again");
    }
    assert_eq!(plan.changes_since(plan.version).map(<[Change]>::len), Some(0));
    assert_eq!(plan.changes_since(plan.version - 3).map(<[Change]>::len), Some(3));
    assert_eq!(plan.changes_since(2), None, "too many versions ago");
}

#[test]
fn the_critical_path_is_the_longest_chain_of_what_is_open() {
    let mut plan = plan(&[
        add("a", None, &[]),
        add("b", None, &["a"]),
        add("c", None, &["b"]),
        add("d", None, &["a"]),
        add("e", None, &["d", "c"]),
    ]);
    assert_eq!(plan.critical_path().join(" "), "a b c e");
    plan.move_item("a", ItemState::Done, None);
    plan.move_item("b", ItemState::Done, None);
    plan.move_item("c", ItemState::Done, None);
    assert_eq!(plan.critical_path().join(" "), "d e");
    assert_eq!(TeamPlan::default().critical_path(), Vec::<Arc<str>>::new());
}

/// Table T2: the base of a proposal, what it changes, and whether it waits for the coordinator or is stale.
#[test]
fn proposals_are_stale_where_what_they_change_has_changed() {
    let mut plan = plan(&[add("a", Some("a1"), &[]), add("b", Some("a2"), &[]), add("c", None, &[])]);
    let proposal = |base, ops: &[PlanOp]| Proposal { by: "a1".into(), base, ops: ops.to_vec(), why: String::new() };
    let check = |plan: &TeamPlan, wanted: &Proposal| plan.check_proposal(wanted, |name| name != "dead", 200);
    // The base is current.
    assert_eq!(check(&plan, &proposal(1, &[edit("a")])), Ok(()));
    plan.update(2, &"chief".into(), &[edit("a"), link("c", "b")], "meanwhile");
    // Older, and other items.
    assert_eq!(check(&plan, &proposal(1, &[add("d", None, &[])])), Ok(()));
    // Older, and the same items, by name or by a link.
    let changed = |item: &str| Err(format!("version 2 has changed `{item}` since version 1: edit a, c waits for b"));
    assert_eq!(check(&plan, &proposal(1, &[edit("a")])), changed("a"));
    assert_eq!(check(&plan, &proposal(1, &[add("d", None, &["b"])])), changed("b"));
    // Any base, and it does not apply now.
    let gone = Err("`edit x`: the plan has no item `x`: it has a, b, c".to_owned());
    assert_eq!(check(&plan, &proposal(2, &[edit("x")])), gone);
    let dead = Err("`add d`: `dead` is no agent that works: leave `owner` out, or name another one".to_owned());
    assert_eq!(check(&plan, &proposal(2, &[add("d", Some("dead"), &[])])), dead);
    let circle = "`b waits for c`: `c` waits for `b` already: they would wait for each other";
    assert_eq!(check(&plan, &proposal(2, &[link("b", "c")])), Err(circle.to_owned()));
}

proptest! {
    #[test]
    fn no_changes_that_are_accepted_make_a_circle_or_name_what_is_not_there(
        steps in proptest::collection::vec((0_u8..5, 0_u8..8, 0_u8..8), 1..60),
    ) {
        let (mut plan, mut version) = (TeamPlan::default(), 0);
        for (kind, one, other) in steps {
            let (item, on): (Arc<str>, Arc<str>) = (format!("i{one}").into(), format!("i{other}").into());
            let op = match kind {
                0 => add(&item, None, &[&on]),
                1 => add(&item, None, &[]),
                2 => PlanOp::Remove { item },
                3 => PlanOp::Link { item, on },
                _ => PlanOp::Unlink { item, on },
            };
            if plan.check_ops(std::slice::from_ref(&op), |_| true, 6).is_ok() {
                version += 1;
                plan.update(version, &"chief".into(), &[op], "");
            }
            prop_assert!(plan.items.len() <= 6);
            prop_assert_eq!(plan.version, version);
            // Every item can be done, one after the other.
            let mut rest = plan.clone();
            while let Some(next) = rest.items.iter().find(|item| rest.is_ready(item)).map(|item| item.name.clone()) {
                rest.move_item(&next, ItemState::Done, None);
            }
            prop_assert_eq!(rest.count_done(), plan.items.len());
            prop_assert!(plan.critical_path().len() <= plan.items.len());
        }
    }
}
