//! Properties of every swarm: it ends, keeps its limits, delivers once and in order, and neither interruptions nor
//! events that do not fit change its result.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::resume::end_state;
use super::world::{Noise, World, id, led, rules};
use crate::core::swarm::MessageType;
use crate::core::swarm::rules::Rules;
use crate::types::event::{Content, Event};
use crate::types::swarm::{Answer, End, Fault, MemberMessage, Purpose, TurnId};

const NAMES: [&str; 4] = ["takao", "mitaka", "nara", "ueno"];

/// One answer of a model.
fn answers(idles: bool) -> impl Strategy<Value = String> {
    let receiver = select(&["takao", "mitaka", "nara", "ueno", "absent"][..]);
    let kind = select(&["request", "offer", "accept", "delegation", "info"][..]);
    let idle = if idles { "idle" } else { "publish plans p" };
    prop_oneof![
        4 => Just("tool a".to_owned()),
        1 => Just("tool gated".to_owned()),
        2 => select(&["findings", "plans"][..]).prop_map(|topic| format!("publish {topic} x")),
        3 => (receiver, kind).prop_map(|(to, kind)| format!("send {to} {kind} x")),
        1 => Just("help more with web".to_owned()),
        2 => Just("done it".to_owned()),
        1 => Just("invalid".to_owned()),
        1 => Just(idle.to_owned()),
        1 => Just("429".to_owned()),
        1 => Just("later 12000".to_owned()),
        1 => Just("refuse".to_owned()),
    ]
}

/// How long something takes: seldom longer than a turn may.
fn spans() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0_u64..3_000, 1 => 50_000_u64..120_000]
}

fn turns(idles: bool) -> impl Strategy<Value = String> {
    let spoken = (answers(idles), spans()).prop_map(|(answer, takes)| format!("{answer} @{takes}"));
    let result = (select(&["found", "503", "broken"][..]), spans()).prop_map(|(it, takes)| format!("{it} @{takes}"));
    let turn = (proptest::collection::vec(spoken, 1..4), proptest::collection::vec(result, 0..4));
    let turn = turn.prop_map(|(answers, results)| match results.is_empty() {
        true => answers.join(" | "),
        false => format!("{} = {}", answers.join(" | "), results.join(" | ")),
    });
    proptest::collection::vec(turn, 1..7).prop_map(|turns| turns.join("; "))
}

/// A script for a swarm whose goal is split or not, and the rules of it.
#[derive(Clone, Debug)]
struct Case {
    script: String,
    members: usize,
    is_led: bool,
    limits: [u32; 4],
    fallbacks: u32,
}

impl Case {
    fn rules(&self) -> Rules {
        let roster: Vec<String> = NAMES[..self.members].iter().map(|name| format!("{name}?")).collect();
        let mut rules =
            if self.is_led { led(&roster.join(" ")) } else { rules(&roster.join(" ").replacen('?', "", 1)) };
        let [agents, iterations, messages, helpers] = self.limits;
        (rules.limits.agents, rules.limits.iterations, rules.limits.messages) = (agents, iterations, messages);
        rules.limits.timeout_ms = 200_000;
        rules.helpers = helpers;
        rules.gated = iterations % 2 == 0;
        rules.fallbacks.insert("coder".into(), self.fallbacks);
        rules
    }

    fn world(&self) -> World {
        World::new(self.rules(), &self.script)
    }
}

fn cases(idles: bool) -> impl Strategy<Value = Case> {
    let lead = select(&["split a, b, c", "invalid | 503 | split a, b for nara, c", "refuse", "503"][..]);
    let merge = select(&["merged all", "invalid | 503 | merged all", "refuse"][..]);
    let numbers = (1_u32..6, 1_u32..9, 0_u32..4, 0_u32..3).prop_map(|(a, b, c, d)| [a, b, c, d]);
    let lines = proptest::collection::vec(turns(idles), NAMES.len() + 1);
    (lines, lead, merge, 1_usize..=4, any::<bool>(), numbers, 0_u32..3).prop_map(
        |(lines, lead, merge, members, is_led, limits, fallbacks)| {
            let who = NAMES.iter().chain(&["*"]).zip(&lines).map(|(name, turns)| format!("{name}: {turns}\n"));
            let script = who.collect::<String>() + &format!("split: {lead}\nmerge: {merge}\n");
            Case { script, members, is_led, limits, fallbacks }
        },
    )
}

/// What is true of every swarm that is over.
fn holds(case: &Case, world: &World) -> Result<(), TestCaseError> {
    let rules = case.rules();
    prop_assert!(world.swarm.is_over);
    prop_assert!(world.swarm.agents.len() <= rules.limits.agents as usize);
    let mut boxes: BTreeMap<&str, u64> = BTreeMap::new();
    let mut taken: BTreeSet<(&str, u64)> = BTreeSet::new();
    let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
    let mut sent: BTreeMap<&str, u32> = BTreeMap::new();
    let mut helped: BTreeMap<&str, u32> = BTreeMap::new();
    let (mut entries, mut ended) = (0, BTreeSet::new());
    for (_, event) in &world.events {
        match event {
            Event::MessageSent { message: MemberMessage { number: seq, from, to, .. }, .. } => {
                let last = boxes.entry(to).or_default();
                *last += 1;
                prop_assert_eq!(*seq, *last, "mailboxes have no gaps");
                *sent.entry(from).or_default() += 1;
            }
            Event::MessageReceived { agent, number: seq, .. } => {
                prop_assert!(taken.insert((agent, *seq)), "{} took #{} twice", agent, seq);
                prop_assert!(*seq <= boxes.get(&**agent).copied().unwrap_or(0), "what was never sent");
                let before = newest.insert(agent, *seq).unwrap_or(0);
                prop_assert!(before < *seq, "{} took #{} after #{}", agent, seq, before);
            }
            Event::DataPublished { number: seq, .. } => {
                entries += 1;
                prop_assert_eq!(*seq, entries);
            }
            Event::AgentSpawned { by: Some(by), .. } => *helped.entry(by).or_default() += 1,
            Event::AgentFinished { agent, .. } => prop_assert!(ended.insert(agent), "{} ended twice", agent),
            Event::TurnStarted { turn, .. } | Event::ToolStarted { turn, .. } => {
                prop_assert!(turn.purpose != Purpose::Act || turn.iteration <= rules.limits.iterations);
                prop_assert!(!ended.contains(&turn.agent), "{} goes on after its end", turn.agent);
            }
            _ => {}
        }
    }
    prop_assert!(
        sent.iter().all(|(from, count)| *from == crate::types::swarm::SUPERVISOR || *count <= rules.limits.messages)
    );
    prop_assert!(helped.values().all(|count| *count <= rules.helpers));
    let finished =
        world.swarm.merged.is_some() || matches!(world.events.last(), Some((_, Event::SwarmFinished { .. })));
    prop_assert!(finished);
    Ok(())
}

/// Events that belong to nothing.
fn foreign() -> impl Strategy<Value = Noise> {
    let (unknown, known) = ("absent", select(&NAMES[..]));
    let turn = |agent: &str, iteration: u32, attempt: u32| TurnId {
        agent: agent.into(),
        purpose: Purpose::Act,
        iteration,
        attempt,
    };
    let lead =
        |purpose, attempt| TurnId { agent: crate::types::swarm::SUPERVISOR.into(), purpose, iteration: 1, attempt };
    let ended = |turn: TurnId| {
        let answer = Answer::Failed { message: "foreign".to_owned(), fault: Fault::Permanent };
        Event::TurnEnded {
            swarm: id(),
            turn,
            answer,
            usage: None,
            cost: None,
            model: Some("m2".to_owned()),
            session: None,
        }
    };
    let text = || Content::Text("foreign".to_owned());
    let event = prop_oneof![
        Just(Event::AgentStarted { swarm: id(), agent: unknown.into() }),
        Just(Event::ActionRefused { swarm: id(), agent: unknown.into(), reason: "foreign".to_owned() }),
        Just(Event::AgentIdled { swarm: id(), agent: unknown.into() }),
        Just(Event::AgentFinished { swarm: id(), agent: unknown.into(), how: End::Done, response: None, error: None }),
        Just(Event::MessageReceived { swarm: id(), agent: unknown.into(), from: "takao".into(), number: 1, count: 1 }),
        Just(ended(turn(unknown, 0, 1))),
        (known.clone(), 100_u32..102, 1_u32..3)
            .prop_map(move |(agent, iteration, attempt)| ended(turn(agent, iteration, attempt))),
        (known.clone(), 50_u32..60).prop_map(move |(agent, attempt)| ended(turn(agent, 0, attempt))),
        (50_u32..60).prop_map(move |attempt| ended(lead(Purpose::Synthesize, attempt))),
        (50_u32..60).prop_map(move |attempt| Event::TurnStarted {
            swarm: id(),
            turn: lead(Purpose::Decompose, attempt),
            reserved: None
        }),
        known.clone().prop_map(move |agent| {
            Event::ToolEnded { swarm: id(), turn: turn(agent, 0, 77), result: text(), fault: Some(Fault::Permanent) }
        }),
        known.clone().prop_map(move |agent| Event::TurnStarted {
            swarm: id(),
            turn: turn(agent, 90, 1),
            reserved: None
        }),
        (known.clone(), select(&[0_u64, 999][..])).prop_map(move |(to, seq)| {
            Event::MessageSent {
                swarm: id(),
                message: MemberMessage {
                    number: seq,
                    from: "takao".into(),
                    to: to.into(),
                    kind: MessageType::Info,
                    payload: text(),
                    person: false,
                },
            }
        }),
        (known.clone(), 1_u64..4).prop_map(move |(to, seq)| {
            Event::MessageSent {
                swarm: id(),
                message: MemberMessage {
                    number: seq,
                    from: unknown.into(),
                    to: to.into(),
                    kind: MessageType::Info,
                    payload: text(),
                    person: false,
                },
            }
        }),
        known.prop_map(move |author| {
            Event::DataPublished {
                swarm: id(),
                number: 999,
                topic: "findings".into(),
                author: author.into(),
                data: text(),
            }
        }),
    ];
    event.prop_map(|event| Noise::Foreign(Box::new(event)))
}

fn noise() -> impl Strategy<Value = Noise> {
    prop_oneof![3 => (0_usize..12).prop_map(Noise::Again), 1 => (0_usize..300).prop_map(Noise::Again), 3 => foreign()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_swarm_ends_within_its_limits(case in cases(true)) {
        holds(&case, &case.world().go())?;
    }

    #[test]
    fn the_same_answers_give_the_same_facts(case in cases(true)) {
        prop_assert_eq!(case.world().go().events, case.world().go().events);
    }

    #[test]
    fn another_process_makes_the_same_of_the_facts(case in cases(true)) {
        let world = case.world().go();
        prop_assert_eq!(format!("{:?}", world.replayed().agents), format!("{:?}", world.swarm.agents));
    }

    #[test]
    fn what_is_late_doubled_or_foreign_changes_nothing(
        case in cases(true), noise in proptest::collection::vec((any::<Index>(), noise()), 1..40),
    ) {
        let events = case.world().go().events;
        let mut world = case.world();
        for (at, noise) in noise {
            world.noise.entry(1 + at.index(events.len())).or_default().push(noise);
        }
        let world = world.go();
        prop_assert_eq!(world.events, events);
    }

    #[test]
    fn interruptions_change_nothing_in_the_end(
        case in cases(false), at in proptest::collection::vec(any::<Index>(), 1..6),
    ) {
        let whole = case.world().go();
        let mut world = case.world();
        world.crashes = at.iter().map(|at| 1 + at.index(whole.events.len())).collect();
        let world = world.go();
        holds(&case, &world)?;
        prop_assert_eq!(end_state(&world), end_state(&whole));
    }

    #[test]
    fn interrupted_swarms_whose_agents_wait_keep_their_limits(
        case in cases(true), at in proptest::collection::vec(1_usize..200, 1..9),
    ) {
        let mut world = case.world();
        world.crashes = at.into_iter().collect();
        holds(&case, &world.go())?;
    }
}
