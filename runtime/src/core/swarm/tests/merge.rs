//! Worktrees of a team: who works in which, who merges it, and when.
//!
//! The Git of these tests answers by the summary of a merge: `conflict` has one in `src/a.rs`, `dirty` is refused, and every
//! other one goes well.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::team::{coordinated, done, interrupted, list_events, op, script};
use super::touch::{list_notices, touched};
use super::within::working;
use super::world::{World, id, run};
use crate::core::swarm::merge::{TreeStage, WorkPlace, Worktree};
use crate::core::swarm::rules::Rules;
use crate::core::swarm::state::Swarm;
use crate::types::approval::Choice;
use crate::types::event::Event;
use crate::types::swarm::TurnId;
use crate::types::team::{MergeState, TeamOp};
use crate::types::team_fact::TeamFact;

/// What Git does for the turn of a manager: the name of the call, and what ends it.
pub(super) fn run_git(swarm: &Swarm, turn: &TurnId) -> Option<(Arc<str>, Event)> {
    let op = swarm.find_git_call(turn)?;
    let by = Arc::clone(&turn.agent);
    let fact = match op.clone() {
        TeamOp::WorktreeOpen { worktree, manager, members, .. } => {
            Some(TeamFact::WorktreeOpened { agent: by, worktree, manager, members })
        }
        TeamOp::WorktreeMove { agent, to } => Some(TeamFact::AgentMoved { by, agent, to }),
        _ => None,
    };
    if let Some(fact) = fact {
        return Some((op.name().into(), Event::Team { swarm: id(), fact }));
    }
    let (name, tree) = swarm.find_managed(&turn.agent)?;
    if matches!(op, TeamOp::Integrate { summary, .. } if summary == "dirty") {
        let (agent, reason) = (Arc::clone(&turn.agent), "not merged: x is not committed".to_owned());
        return Some((op.name().into(), Event::ActionRefused { swarm: id(), agent, reason }));
    }
    let ended = if tree.into.is_some() { MergeState::Committed } else { MergeState::Merged };
    let (to, note) = match (op, &tree.stage) {
        (_, TreeStage::Committed(_)) => (MergeState::Merged, "the branch is moved"),
        (TeamOp::Integrate { summary, .. }, _) if summary == "conflict" => {
            (MergeState::Open, "1 file is in conflict: ")
        }
        (TeamOp::IntegrateAbort { .. }, _) => (MergeState::Aborted, "too much"),
        _ => (ended, "well"),
    };
    let files = if to == MergeState::Open { vec!["src/a.rs".to_owned()] } else { Vec::new() };
    let (agent, worktree, commit) = (Arc::clone(&turn.agent), Arc::clone(name), Some("c0ffee".to_owned()));
    let fact = TeamFact::Integrated { agent, worktree, to, commit, files, note: note.to_owned() };
    Some((op.name().into(), Event::Team { swarm: id(), fact }))
}

/// A team whose worktrees are `parser:wtm1=a1,a2 docs:wtm2=a3>main`: a name, a manager, members, and a branch.
fn treed(roster: &str, items: &str, trees: &str) -> Rules {
    let tree = |word: &str| {
        let (word, into) = word.split_once('>').map_or((word, None), |(word, into)| (word, Some(into)));
        let (name, rest) = word.split_once(':').expect("a manager");
        let (manager, members) = rest.split_once('=').expect("members");
        let members = members.split(',').map(Arc::from).collect();
        let tree = Worktree { manager: manager.into(), members, into: into.map(Arc::from), stage: TreeStage::Quiet };
        (Arc::from(name), tree)
    };
    Rules { worktrees: trees.split_whitespace().map(tree).collect::<BTreeMap<_, _>>(), ..coordinated(roster, items) }
}

fn integrate(summary: &str) -> String {
    op(&format!("\"integrate\", \"summary\": \"{summary}\""))
}

fn resolve() -> String {
    op(r#""integrate_continue", "dropped": []"#)
}

const ROSTER: &str = "a1? a2? wtm1?";

#[test]
fn a_manager_merges_when_the_members_have_nothing_more_to_do() {
    let (api, parser, merge) = (done("api"), done("parser"), integrate("all of it"));
    let script = script(&[
        ("chief", &["idle", "idle", "done too early", "idle", "done good"]),
        ("a1", &[&api]),
        ("a2", &[&parser]),
        ("wtm1", &[&merge]),
    ]);
    let over = interrupted(|| treed(ROSTER, "api:a1 parser:a2<api", "tree:wtm1=a1,a2"), &script);
    assert_eq!(
        list_events(&over, &["wtm1 asks", "wtm1 calls", "→ wtm1", "merged", " refused", "over"]),
        "swarm-supervisor → wtm1 #1 request {\"message\":\"the members of worktree `tree` have nothing more to do: merge it by `integrate`\"}\n\
         wtm1 asks 1.1\n\
         chief refused: not done: worktree `tree` of manager wtm1: not merged yet: wait for the manager, or stop it\n\
         wtm1 calls integrate 1.1\n\
         tree is merged: well\n\
         swarm-supervisor → chief #3 request {\"message\":\"wtm1 merged worktree `tree` as c0ffee: well\"}\n\
         over: good"
    );
}

#[test]
fn conflicts_stay_open_until_they_are_resolved_or_dropped() {
    let (api, merge, resolve) = (done("api"), integrate("conflict"), resolve());
    let abort = op(r#""integrate_abort", "why": "too much""#);
    for (last, ended) in [(&resolve, "tree is merged: well"), (&abort, "tree is aborted: too much")] {
        let turns: [&str; 4] = [&merge, "tool a", &merge, last];
        let script = script(&[("chief", &["idle", "idle", "done good"]), ("a1", &[&api]), ("wtm1", &turns)]);
        let over = interrupted(|| treed("a1? wtm1?", "api:a1", "tree:wtm1=a1"), &script);
        assert_eq!(
            list_events(&over, &["wtm1 calls", "tree is", "wtm1 refused"]).replace("integrate_continue 4.1", "X 4.1"),
            format!(
                "wtm1 calls integrate 1.1\n\
                 tree is open: 1 file is in conflict: src/a.rs\n\
                 wtm1 calls a 2.1\n\
                 wtm1 refused: your merge is open: resolve it and use `integrate_continue`, or drop it by `integrate_abort`\n\
                 wtm1 calls {} 4.1\n\
                 {ended}",
                if last == &abort { "integrate_abort" } else { "X" }
            )
        );
    }
}

#[test]
fn a_branch_is_moved_when_a_person_agrees() {
    let (api, merge) = (done("api"), integrate("all"));
    let script = script(&[("chief", &["idle", "idle", "done good"]), ("a1", &[&api]), ("wtm1", &[&merge])]);
    for (choice, last) in [
        (Choice::Allow, "the branch is moved"),
        (Choice::Deny, "merged, and branch `main` stays as it is: a person said no"),
    ] {
        let mut world = World::new(treed("a1? wtm1?", "api:a1", "tree:wtm1=a1>main"), &script);
        world.says = Some((choice, 5_000));
        let over = world.go();
        assert_eq!(
            list_events(&over, &["tree is", "over"]),
            format!("tree is committed: well\ntree is merged: {last}\nover: good")
        );
        assert_eq!(over.approvals.len(), 2, "a request and its answer");
    }
    // So it is after conflicts.
    let (conflict, resolve) = (integrate("conflict"), resolve());
    let resolved = super::team::script(&[
        ("chief", &["idle", "idle", "done good"]),
        ("a1", &[&api]),
        ("wtm1", &[&conflict, &resolve]),
    ]);
    let rules =
        || Rules { integrate: swarmc_plan::Approval::Auto, ..treed("a1? wtm1?", "api:a1", "tree:wtm1=a1>main") };
    assert_eq!(
        list_events(&interrupted(rules, &resolved), &["tree is", "over"]),
        "tree is open: 1 file is in conflict: src/a.rs\ntree is committed: well\n\
         tree is merged: the branch is moved\nover: good"
    );
    let auto = || Rules { integrate: swarmc_plan::Approval::Auto, ..treed("a1? wtm1?", "api:a1", "tree:wtm1=a1>main") };
    let over = interrupted(auto, &script);
    assert_eq!(
        list_events(&over, &["tree is", "over"]),
        "tree is committed: well\ntree is merged: the branch is moved\nover: good"
    );
}

#[test]
fn worktrees_of_one_branch_are_merged_one_after_the_other() {
    let (api, docs, conflict, merge, resolve) =
        (done("api"), done("docs"), integrate("conflict"), integrate("docs"), resolve());
    let script = script(&[
        ("chief", &["idle", "idle", "idle", "idle", "done good"]),
        ("a1", &[&api]),
        ("a2", &[&docs]),
        ("wtm1", &[&conflict, "tool a", "tool b", "tool c", &resolve]),
        ("wtm2", &["tool a", &merge, "idle", &merge]),
    ]);
    let over = run(treed("a1? a2? wtm1? wtm2?", "api:a1 docs:a2", "tree:wtm1=a1 pages:wtm2=a2"), &script);
    assert_eq!(
        list_events(&over, &["tree is", "pages is", "wtm2 refused", "→ wtm2", "over"]),
        "swarm-supervisor → wtm2 #1 request {\"message\":\"the members of worktree `pages` have nothing more to do: merge it by `integrate`\"}\n\
         tree is open: 1 file is in conflict: src/a.rs\n\
         wtm2 refused: wtm1 merges `tree` into the same branch: return `idle`; a message says when it is done\n\
         tree is merged: well\n\
         swarm-supervisor → wtm2 #2 request {\"message\":\"wtm1 is done: merge worktree `pages` by `integrate`\"}\n\
         pages is merged: well\n\
         over: good"
    );
}

#[test]
fn a_manager_that_waits_hears_when_git_refuses_the_merge_before() {
    let (api, docs, dirty, merge) = (done("api"), done("docs"), integrate("dirty"), integrate("docs"));
    let script = script(&[
        ("chief", &["idle", "idle", "idle", "done good"]),
        ("a1", &[&api]),
        ("a2", &[&docs]),
        ("wtm1", &[&dirty, "tool a @9000", &merge]),
        ("wtm2", &[&merge, "idle", &merge]),
    ]);
    let over = run(treed("a1? a2? wtm1? wtm2?", "api:a1 docs:a2", "tree:wtm1=a1 pages:wtm2=a2"), &script);
    assert_eq!(
        list_events(&over, &["wtm1 refused", "wtm2 refused", "→ wtm2", "pages is"]),
        "swarm-supervisor → wtm2 #1 request {\"message\":\"the members of worktree `pages` have nothing more to do: merge it by `integrate`\"}\n\
         wtm2 refused: wtm1 merges `tree` into the same branch: return `idle`; a message says when it is done\n\
         wtm1 refused: not merged: x is not committed\n\
         swarm-supervisor → wtm2 #2 request {\"message\":\"wtm1 is done: merge worktree `pages` by `integrate`\"}\n\
         pages is merged: well"
    );
}

#[test]
fn only_the_manager_of_a_worktree_merges_it_and_only_what_is_done() {
    let (api, merge) = (done("api"), integrate("x"));
    let although = op(r#""integrate", "summary": "x", "although_open": "the others wait""#);
    let lines: [(&str, &[&str]); 3] =
        [("chief", &[&merge, "idle", "idle", "done good"]), ("a1", &["tool a @9000", &merge, &api]), ("wtm1", &[])];
    let refused = |manager: &str, turns: &[&str]| {
        let mut lines = lines;
        lines[2].1 = turns;
        let mut rules = treed("a1? wtm1", "api:a1", "tree:wtm1=a1");
        rules.roster[1].has_task = true;
        let over = run(rules, &script(&lines));
        list_events(&over, &[&format!("{manager} refused"), "tree is"])
    };
    let only = "only the manager of a worktree may use `integrate`: wtm1 (`tree`)";
    assert_eq!(refused("chief", &["idle", &merge]), format!("chief refused: {only}\ntree is merged: well"));
    assert_eq!(refused("a1", &["idle", &merge]), format!("a1 refused: {only}\ntree is merged: well"));
    assert_eq!(
        refused("wtm1", &[&merge, &resolve(), &although, "idle", &merge]),
        "wtm1 refused: not merged: members of `tree` have open items: `api`; wait for them, or say why not in `although_open`\n\
         wtm1 refused: you have no open merge: begin one by `integrate`\n\
         tree is merged: well\n\
         tree is merged: well"
    );
}

#[test]
fn another_agent_takes_the_place_of_a_manager() {
    let spawn = op(r#""spawn_agent", "plays": "coder", "name": "wtm2", "task": "merge", "replaces": "wtm1""#);
    let stop = op(r#""stop_agent", "agent": "wtm1", "why": "stuck""#);
    let (api, merge) = (done("api"), integrate("x"));
    let script = script(&[
        ("chief", &[&stop, "idle", &spawn, "idle", "idle", "done good"]),
        ("a1", &["tool a @9000", &api]),
        ("wtm2", &[&merge, "done merged"]),
    ]);
    let over = run(treed("a1? wtm1?", "api:a1", "tree:wtm1=a1"), &script);
    assert_eq!(
        list_events(&over, &["has no manager", "tree is", "over"]),
        "swarm-supervisor → chief #1 info {\"message\":\"wtm1 has ended (chief stopped it: stuck); worktree `tree` has no manager: spawn an agent that replaces it\"}\n\
         tree is merged: well\n\
         over: good"
    );
}

#[test]
fn a_manager_that_takes_over_hears_of_the_open_merge() {
    let spawn = op(r#""spawn_agent", "plays": "coder", "name": "wtm2", "task": "merge", "replaces": "wtm1""#);
    let stop = op(r#""stop_agent", "agent": "wtm1", "why": "stuck""#);
    let (api, conflict, resolve) = (done("api"), integrate("conflict"), resolve());
    let script = script(&[
        ("chief", &["idle", "send a1 info {\"message\":\"wait\"} @6000", &stop, &spawn, "idle", "done good"]),
        ("a1", &[&api, "idle"]),
        ("wtm1", &[&conflict, "tool a @90000"]),
        ("wtm2", &[&resolve, "done merged"]),
    ]);
    let over = run(treed("a1? wtm1?", "api:a1", "tree:wtm1=a1"), &script.replace(" @6000 @500", " @6000"));
    assert_eq!(
        list_events(&over, &["tree is", "→ wtm2", "over"]),
        "tree is open: 1 file is in conflict: src/a.rs\n\
         swarm-supervisor → wtm2 #1 request {\"message\":\"worktree `tree` is yours to merge: its merge is open: src/a.rs\"}\n\
         tree is merged: well\n\
         over: good"
    );
}

#[test]
fn agents_work_in_their_trees_and_managers_where_these_are_merged() {
    let swarm = World::new(treed(ROSTER, "", "tree:wtm1=a1>main"), "").swarm;
    let places = ["a1", "a2", "wtm1", "chief"].map(|name| swarm.place_of(name));
    let workspace = WorkPlace::Workspace;
    assert_eq!(places, [WorkPlace::Worktree("tree"), workspace, WorkPlace::Merges(Some("main")), workspace]);
}

#[test]
fn of_a_file_that_is_changed_in_two_trees_the_managers_hear() {
    let mut world = working();
    let trees = treed("a1? a2?", "", "tree:wtm1=a1").worktrees;
    let Some(team) = &mut world.swarm.team else { panic!("it is a team") };
    team.worktrees = trees;
    if let Some(tree) = team.worktrees.get_mut("tree") {
        tree.manager = "chief".into();
    }
    let told =
        list_notices(&mut world, &[touched("a2", "src/a.rs", Some((3, 9))), touched("a1", "src/a.rs", Some((3, 9)))]);
    assert_eq!(
        told,
        "chief (info): a1 changed src/a.rs, lines 3 to 9 (+2 -1) in worktree `tree`, and a2 changed the file in the \
         workspace: the changes meet when they are merged"
    );
}

#[test]
fn the_coordinator_opens_worktrees_and_moves_agents_that_wait() {
    let open =
        op(r#""worktree_open", "worktree": "parser", "manager": "wtm1", "members": ["a1"], "why": "it breaks much""#);
    let spawn = op(
        r#""spawn_agent", "plays": "coder", "name": "a3", "task": "test it", "items": ["tests"], "worktree": "parser""#,
    );
    let away = op(r#""worktree_move", "agent": "a2", "to": "parser""#);
    let nowhere = op(r#""worktree_move", "agent": "a2", "to": "docs""#);
    let (api, tests, merge) = (done("api"), done("tests"), integrate("it"));
    let assign = op(r#""assign", "item": "api", "to": "a1""#);
    let script = script(&[
        ("chief", &[&open, &open, &away, &nowhere, &spawn, &assign, "idle", "idle", "idle", "done good"]),
        ("a1", &[&api]),
        ("a3", &[&tests, "done tested"]),
        ("wtm1", &[&merge]),
    ]);
    let over = interrupted(|| coordinated("a1? a2? wtm1?", "api tests<api"), &script);
    assert_eq!(
        list_events(&over, &["chief calls", "chief refused", "chief opens", "chief moves", "parser is merged", "over"]),
        "chief calls worktree_open 1.1\n\
         chief opens parser for a1, merged by wtm1\n\
         chief refused: there is a worktree `parser` already: move agents to it by `worktree_move`\n\
         chief calls worktree_move 3.1\n\
         chief moves a2 to parser\n\
         chief refused: there is no worktree `docs`; there are parser\n\
         parser is merged: well\n\
         over: good"
    );
    let places = ["a1", "a2", "a3", "wtm1"].map(|name| over.swarm.place_of(name));
    let parser = WorkPlace::Worktree("parser");
    assert_eq!(places, [parser, parser, parser, WorkPlace::Merges(None)]);
}

#[test]
fn an_agent_that_works_elsewhere_or_takes_a_turn_is_not_put_into_a_worktree() {
    let open = |manager: &str, member: &str| {
        op(&format!(
            "\"worktree_open\", \"worktree\": \"x\", \"manager\": \"{manager}\", \"members\": [\"{member}\"], \"why\": \"y\""
        ))
    };
    for (manager, member, why) in [
        ("a2", "a2", "a2 cannot merge `x` and work in it: name another `manager`"),
        ("a2", "chief", "chief coordinates the team, and works in no worktree"),
        ("a2", "nara", "there is no agent `nara` that works"),
        ("a2", "a1", "a1 takes a turn: wait until it is over, or stop a1"),
        ("a1", "a2", "a1 works on `api`: name a `manager` without items"),
        ("a2", "wtm1", "wtm1 merges another worktree"),
        ("a2", "a3", "a3 works in worktree `tree`: move it first"),
    ] {
        let (asked, api) = (open(manager, member), done("api"));
        let script = script(&[("chief", &["idle", &asked, "idle", "done good"]), ("a1", &["tool a", "tool b", &api])]);
        let rules = treed("a1? a2? a3? wtm1?", "docs:a2 api:a1", "tree:wtm1=a3");
        let over = run(
            rules,
            &script.replace(
                "a1:",
                "a2: {\"action\": \"item_done\", \"item\": \"docs\", \"summary\": \"x\"} @400; idle\na1:",
            ),
        );
        assert_eq!(list_events(&over, &["chief refused"]), format!("chief refused: {why}"));
    }
}
