//! Sizes of events and agents: every event fits into a line of the journal, whatever agents write, and an idle agent is
//! small.

use std::sync::Arc;

use serde_json::json;

use super::world::{World, rules};
use crate::core::swarm::Part;
use crate::core::swarm::action::{
    self, DESCRIPTION_CHARS, RECEIVER_CHARS, RawAction, SKILLS, SKILLS_BYTES, TOOL_CHARS, TOPIC_CHARS, TeamPart,
};
use crate::core::swarm::rules::PARTS;
use crate::core::swarm::state::{Agent, AgentStage, Past, QueuedMessage};
use crate::types::event::{
    AttemptId, Content, Event, LARGEST, LONGEST_PATH, Record, StepId, can_inline, truncate_message,
};
use crate::types::swarm::{Action, Answer, End, Fault, MemberMessage, MessageType, Purpose, SUPERVISOR, TurnId};
use crate::types::team::{ItemState, TeamOp};
use crate::types::team_fact::TeamFact;
use crate::{Reserved, Usage};

/// As the run stores a text.
fn stored(text: String) -> Content {
    if can_inline(&text) { Content::Text(text) } else { artifact() }
}

fn artifact() -> Content {
    Content::Artifact { digest: "f".repeat(64), bytes: u64::MAX }
}

/// The swarm with the longest id.
fn swarm() -> AttemptId {
    let step =
        StepId { within: Some("w".repeat(LONGEST_PATH).into()), ..StepId::new(&"n".repeat(100), u32::MAX, u32::MAX) };
    AttemptId { step, attempt: u32::MAX }
}

fn line(event: Event) -> String {
    serde_json::to_string(&Record { seq: u64::MAX, at: u64::MAX, event }).expect("a record can be written")
}

/// The action that an answer is read as, as the run records it.
fn act(answer: serde_json::Value) -> Option<Action> {
    Some(match action::parse_action(&answer.to_string(), None, TeamPart::None).ok()? {
        RawAction::ToolCall { tool, params } => {
            Action::ToolCall { tool: tool.into(), params: stored(params.to_string()) }
        }
        RawAction::PublishData { topic, data } => Action::PublishData { topic: topic.into(), data: stored(data) },
        RawAction::SendMessage { to, kind, payload } => {
            Action::SendMessage { to: to.into(), message_type: kind, payload: stored(payload.to_string()) }
        }
        RawAction::RequestHelp { description, skills } => {
            Action::RequestHelp { description: stored(description), skills }
        }
        RawAction::Done { response } => Action::Done { response: stored(response) },
        RawAction::Idle => Action::Idle,
        RawAction::Operate(op) => Action::Operate(match op {
            TeamOp::Post { channel, message } => TeamOp::Post { channel, message: restored(message) },
            TeamOp::SpawnAgent { plays, name, task, items, replaces, worktree } => {
                TeamOp::SpawnAgent { plays, name, task: restored(task), items, replaces, worktree }
            }
            op => op,
        }),
    })
}

fn restored(text: Content) -> Content {
    match text {
        Content::Text(text) => stored(text),
        artifact => artifact,
    }
}

/// The longest event that an operation leads to.
fn followed(op: TeamOp, name: &Arc<str>) -> Event {
    let (swarm, agent) = (swarm(), Arc::clone(name));
    match op {
        TeamOp::PlanUpdate { ops, why } => Event::Team {
            swarm,
            fact: TeamFact::PlanUpdated { version: u32::MAX, agent, ops, why, proposal: Some(u32::MAX) },
        },
        TeamOp::PlanPropose { ops, why } => {
            Event::Team { swarm, fact: TeamFact::PlanProposed { proposal: u32::MAX, agent, base: u32::MAX, ops, why } }
        }
        TeamOp::SpawnAgent { plays, task, items, replaces, worktree, .. } => Event::AgentSpawned {
            swarm,
            agent,
            plays,
            task: Some(task),
            brief: None,
            by: Some(Arc::clone(name)),
            tools: None,
            items,
            replaces,
            worktree,
        },
        TeamOp::ItemDone { item, summary } => Event::Team {
            swarm,
            fact: TeamFact::ItemMoved { agent, item, to: ItemState::Blocked, note: Some(summary) },
        },
        TeamOp::Post { channel, message } => Event::Team { swarm, fact: TeamFact::Posted { agent, channel, message } },
        TeamOp::StopAgent { agent, why } => {
            Event::Team { swarm, fact: TeamFact::AgentStopped { by: Arc::clone(name), agent, why } }
        }
        TeamOp::WorktreeOpen { worktree, manager, members, .. } => {
            Event::Team { swarm, fact: TeamFact::WorktreeOpened { agent, worktree, manager, members } }
        }
        TeamOp::Integrate { summary, .. } => Event::ActionRefused { swarm, agent, reason: summary },
        TeamOp::IntegrateContinue { dropped } => {
            let reason = dropped.iter().map(|dropped| dropped.why.as_str()).collect();
            Event::ActionRefused { swarm, agent, reason }
        }
        other => panic!("no sample is {other:?}"),
    }
}

/// Every text that still fits where `chars` may stand and that is about `bytes` long as JSON.
fn hostile() -> impl Iterator<Item = &'static str> {
    ["x", "\"", "\\", "漢", "😀", "é", "\u{7f}", "\u{2028}"].into_iter()
}

#[test]
fn no_fact_of_hostile_agents_is_longer_than_a_line_of_the_journal() {
    // The names of agents come from the spec, which holds them to this.
    let name: Arc<str> = "n".repeat(100).into();
    let turn = || TurnId { agent: Arc::clone(&name), purpose: Purpose::Act, iteration: u32::MAX, attempt: u32::MAX };
    let usage = Some(Usage {
        input: u64::MAX,
        output: u64::MAX,
        cache_read: u64::MAX,
        cache_write: u64::MAX,
        cost: Some(f64::MAX),
        at_least: false,
    });
    let mut read = 0;
    for piece in hostile() {
        let of = |chars: usize| piece.repeat(chars);
        let inline = |most: usize| (0..=most).rev().map(of).find(|text| can_inline(text)).unwrap_or_default();
        let mut words = of(9_000);
        truncate_message(&mut words);
        let model = Some(crate::core::swarm::prompt::inline_text(&of(9_000), 100));
        let ended = |answer| Event::TurnEnded {
            swarm: swarm(),
            turn: turn(),
            answer,
            usage,
            cost: Some(u64::MAX),
            model: model.clone(),
            session: None,
        };
        let long = inline(2_048);
        let skills = |size: usize| vec![of(size); SKILLS];
        let sized = (1..=TOOL_CHARS).rev().map(skills).find(|skills| json!(skills).to_string().len() <= SKILLS_BYTES);
        let skills = sized.unwrap_or_default();
        let answers = [
            json!({"action": "tool_call", "tool": of(TOOL_CHARS), "tool_params": {"x": inline(1_900)}}),
            json!({"action": "publish_data", "topic": of(TOPIC_CHARS), "data": long}),
            json!({"action": "send_message", "to": of(RECEIVER_CHARS), "message_type": "delegation", "payload": {"x": inline(1_000)}}),
            json!({"action": "request_help", "help_description": inline(DESCRIPTION_CHARS), "help_skills": skills}),
            json!({"action": "done", "response": long}),
        ];
        let long_name = "n".repeat(RECEIVER_CHARS);
        let add = |count: usize| vec![json!({"op": "remove", "item": long_name}); count];
        let ops = (1..=50).rev().map(add).find(|ops| json!(ops).to_string().len() <= 5_000).unwrap_or_default();
        let text = json!([{"op": "edit", "item": long_name, "text": of(500)}]);
        let items = vec![long_name.clone(); 19];
        let part = |count: usize| vec![json!({"part": of(300), "why": of(200)}); count];
        let dropped =
            (0..=20).rev().map(part).find(|parts| json!(parts).to_string().len() <= 5_000).unwrap_or_default();
        let answers = answers.into_iter().chain([
            json!({"action": "integrate", "summary": of(500), "commit_rest": of(500), "although_open": of(500)}),
            json!({"action": "integrate_continue", "dropped": dropped}),
            json!({"action": "worktree_open", "worktree": long_name, "manager": long_name, "members": items, "why": of(500)}),
            json!({"action": "plan_update", "ops": ops, "why": of(500)}),
            json!({"action": "plan_propose", "ops": text, "why": of(500)}),
            json!({"action": "spawn_agent", "plays": long_name, "name": long_name, "task": long, "items": items, "replaces": long_name, "worktree": long_name}),
            json!({"action": "item_done", "item": long_name, "summary": of(500)}),
            json!({"action": "stop_agent", "agent": long_name, "why": of(500)}),
            json!({"action": "channel_send", "channel": long_name, "message": inline(900)}),
        ]);
        let mut events: Vec<Event> = Vec::new();
        for answer in answers {
            let Some(act) = act(answer) else { continue };
            read += 1;
            events.push(ended(Answer::Acts(act.clone().into())));
            let follows = match act {
                Action::ToolCall { tool, .. } => Event::ToolStarted { swarm: swarm(), turn: turn(), tool },
                Action::PublishData { topic, data } => {
                    Event::DataPublished { swarm: swarm(), number: u64::MAX, topic, author: Arc::clone(&name), data }
                }
                Action::SendMessage { to, message_type: kind, payload } => Event::MessageSent {
                    swarm: swarm(),
                    message: MemberMessage {
                        number: u64::MAX,
                        from: Arc::clone(&name),
                        to,
                        kind,
                        payload,
                        person: true,
                    },
                },
                Action::RequestHelp { description, skills } => {
                    let (agent, task, tools) = (Arc::clone(&name), Some(description.clone()), Some(skills.clone()));
                    events.push(Event::AgentSpawned {
                        swarm: swarm(),
                        agent,
                        plays: Arc::clone(&name),
                        task,
                        brief: None,
                        by: Some(Arc::clone(&name)),
                        tools,
                        items: Vec::new(),
                        replaces: None,
                        worktree: None,
                    });
                    Event::HelpRequested { swarm: swarm(), agent: Arc::clone(&name), description, skills }
                }
                Action::Operate(op) => followed(op, &name),
                Action::Done { .. } | Action::Idle => Event::AgentIdled { swarm: swarm(), agent: Arc::clone(&name) },
            };
            events.push(follows);
        }
        events.extend([
            ended(Answer::Invalid(words.clone())),
            ended(Answer::Failed { message: words.clone(), fault: Fault::Transient { after_ms: u64::MAX } }),
            ended(Answer::Merged(stored(long.clone()))),
            Event::ToolEnded {
                swarm: swarm(),
                turn: turn(),
                result: stored(long.clone()),
                fault: Some(Fault::Permanent),
            },
            Event::AgentFinished {
                swarm: swarm(),
                agent: Arc::clone(&name),
                how: End::Unreachable,
                response: Some(stored(long.clone())),
                error: Some(words.clone()),
            },
            Event::SwarmFinished { swarm: swarm(), result: None, error: Some(words.clone()) },
            Event::TurnStarted {
                swarm: swarm(),
                turn: turn(),
                reserved: Some(Reserved { calls: 1, tokens: Some(u64::MAX), cost: Some(u64::MAX) }),
            },
        ]);
        for parts in 1..=PARTS as usize {
            let room = Part::max_task_bytes(parts);
            let tasks = (0..2_048)
                .rev()
                .map(of)
                .find(|text| crate::types::event::escaped_length(text) <= room && can_inline(text));
            let stored = Content::Artifact { digest: "f".repeat(64), bytes: 16_000 };
            for task in [Content::Text(tasks.unwrap_or_default()), stored] {
                let part = Part { task, name: Some("n".repeat(40).into()) };
                events.push(ended(Answer::Split(vec![part; parts])));
            }
        }
        for event in events {
            let line = line(event);
            assert!(line.len() < LARGEST, "{piece:?}: {} bytes: {line}", line.len());
        }
    }
    assert!(read > 30, "most answers are read: {read}");
}

#[test]
fn what_the_core_itself_writes_fits_too() {
    // Twenty names of a hundred bytes stand in a refusal.
    let roster: Vec<String> = (0..60).map(|number| format!("{number:0>100}")).collect();
    let mut wide = rules(&roster.join(" "));
    wide.limits.agents = 60;
    let names: Vec<Arc<str>> = roster.iter().map(|name| Arc::from(&**name)).collect();
    wide.edges = Some(names.iter().skip(2).map(|to| (Arc::clone(&names[0]), Arc::clone(to))).collect());
    let script = format!("{}: send absent info x; send {} info x; help a; done it \n *: refuse", names[0], names[1]);
    let over = World::new(wide, &script).go();
    assert_eq!(over.count("refused"), 3);
    let room = serde_json::to_string(&swarm()).expect("an id can be written").len();
    for (_, event) in over.events {
        let line = line(event);
        assert!(line.len() + room < LARGEST, "{} bytes: {line}", line.len());
    }
}

/// The bytes of an agent, with what it holds.
fn weight(agent: &Agent) -> usize {
    let text = |content: &Content| match content {
        Content::Text(text) => text.capacity(),
        Content::Artifact { digest, .. } => digest.capacity(),
    };
    let act = |act: &Action| match act {
        Action::ToolCall { tool, params } => tool.len() + 16 + text(params),
        Action::PublishData { topic, data } => topic.len() + 16 + text(data),
        Action::SendMessage { to, payload, .. } => to.len() + 16 + text(payload),
        Action::RequestHelp { description, skills } => {
            text(description) + skills.iter().map(|it| it.capacity() + 24).sum::<usize>()
        }
        Action::Done { response } => text(response),
        Action::Operate(_) | Action::Idle => 0,
    };
    let letters =
        |letters: &mut dyn Iterator<Item = &QueuedMessage>| letters.map(|letter| text(&letter.payload)).sum::<usize>();
    // What an action holds in the heap, with the counts of those that share it.
    let act = |shared: &Action| size_of::<Action>() + 16 + act(shared);
    let past: usize = agent
        .history
        .iter()
        .map(|past| past.act.as_deref().map_or(0, act) + past.result.as_ref().map_or(0, text))
        .sum();
    let stage = match &agent.stage {
        AgentStage::Acting(wanted) | AgentStage::Calling(wanted, _) | AgentStage::Retrying(wanted, _) => act(wanted),
        _ => 0,
    };
    size_of::<Agent>()
        + agent.name.len()
        + 16
        + agent.task.as_ref().map_or(0, text)
        + agent.tools.iter().flatten().map(|tool| tool.capacity() + 24).sum::<usize>()
        + agent.repair.as_ref().map_or(0, String::capacity)
        + agent.models.iter().map(|model| model.capacity() + 24).sum::<usize>()
        + agent.mailbox.capacity() * size_of::<QueuedMessage>()
        + letters(&mut agent.mailbox.iter())
        + agent.inbox.capacity() * size_of::<QueuedMessage>()
        + letters(&mut agent.inbox.iter())
        + agent.history.capacity() * size_of::<Past>()
        + past
        + stage
        // Its places in the maps of names, of those who wait, and of timers.
        + 3 * 64
}

#[test]
fn an_idle_agent_takes_less_than_20_kilobytes() {
    // It has done what an agent can do, and waits: 24 turns, each with a call of a few hundred bytes, and 20 messages.
    let result = "r".repeat(300);
    let turns: Vec<String> = (0..23).map(|_| format!("tool search = {result}")).collect();
    let script = format!("takao: {}; idle \n mitaka: tool a = found @500000; done J", turns.join("; "));
    let mut world = World::new(rules("takao mitaka nara?"), &script);
    world.drain();
    while world.swarm.agents[0].stage != AgentStage::Idle {
        world.step();
    }
    let letter = |number| {
        let payload = Content::Text(format!("{{\"message\":\"{}\"}}", "m".repeat(180)));
        MemberMessage {
            number,
            from: SUPERVISOR.into(),
            to: "nara".into(),
            kind: MessageType::Info,
            payload,
            person: false,
        }
    };
    let waiting = weight(&world.swarm.agents[2]);
    assert!(waiting < 1_024, "one that waits for its first message: {waiting}");
    for seq in 1..=20 {
        let sent = Event::MessageSent { swarm: swarm(), message: letter(seq) };
        world.swarm.apply(&sent, 0);
    }
    for agent in &world.swarm.agents {
        assert!(weight(agent) < 20 * 1_024, "{}: {}", agent.name, weight(agent));
    }
}
