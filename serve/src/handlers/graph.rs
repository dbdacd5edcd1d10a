//! The picture of a run's plan, and how its boxes stand.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use swarmc_runtime::{Event, StepId, handoff::Report, single_header};
use swarmc_view::documents::{Version, encode};
use swarmc_view::graph::{Graph, Group, Node, Shape, layout_picture, step_ids};
use swarmc_view::{FollowedRun, Row};

use super::{BLOCKED, last_event, reply, state_of};
use crate::Service;
use crate::digest::short_digest;
use crate::documents::{
    BoxColumns, BoxState, FrameColumns, GraphDocument, GraphSize, GraphStates, SentCount, WireColumns,
};
use crate::problem::Problem;
use crate::routes::{Call, Reply, STATES};
use crate::store::Picture;

/// The items of an opened step that are boxes: a person looks for one of more in the list of steps.
const ITEMS: usize = 100;

/// The box of a step that has not begun.
const PENDING: &str = "pending";

pub(crate) fn get_graph(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let picture = service.store.with_slot(&service.home, call.part(0), |followed| {
        let reads = followed.run.reads;
        let opened = find_opened(&followed.run, call);
        if !opened.is_empty() {
            // Its items come with the run: no picture of before is it.
            return Ok(Arc::new(build_picture(&followed.run, &opened)?));
        }
        if let Some((_, picture)) = followed.picture.as_ref().filter(|(of, _)| *of == reads) {
            return Ok(Arc::clone(picture));
        }
        let picture = Arc::new(build_picture(&followed.run, &opened)?);
        followed.picture = Some((reads, Arc::clone(&picture)));
        Ok(picture)
    })?;
    let is_known = single_header(&call.headers, &hyper::header::IF_NONE_MATCH) == Some(&*picture.tag);
    Ok(Reply::Tagged { json: (!is_known).then(|| picture.json.clone()), tag: picture.tag.clone() })
}

fn build_picture(run: &FollowedRun, opened: &[Opened]) -> Result<Picture, Problem> {
    let json = encode(&draw_graph(run, opened)?);
    let tag = format!("\"{}\"", short_digest(json.as_bytes()));
    Ok(Picture { json, tag })
}

/// A step whose items are boxes of their own.
struct Opened {
    name: String,
    /// The id of its box, which becomes that of a frame.
    id: String,
    /// Its items, by their labels.
    items: Vec<String>,
}

impl Opened {
    /// The id of the box of an item.
    fn item_id(&self, label: &str) -> String {
        // A label has no sign that the id of another step ends with.
        format!("{}[{label}]", self.id)
    }
}

/// The steps that a request opens, as far as they have items.
fn find_opened(run: &FollowedRun, call: &Call) -> Vec<Opened> {
    let Some(names) = call.query("open") else { return Vec::new() };
    let ids = step_ids(&run.past.plan, run.past.pipeline());
    let mut items: BTreeMap<&str, Vec<StepId>> = names.split(',').map(|name| (name, Vec::new())).collect();
    let blocked: Vec<StepId> = run.blocked_steps().map(|(step, _)| step).collect();
    for step in run.report.rows.iter().map(|row| &row.step).chain(&blocked) {
        if let Some(items) = items.get_mut(&*step.name).filter(|_| step.item().is_some()) {
            items.push(step.clone());
        }
    }
    let open = |(name, mut steps): (&str, Vec<StepId>)| {
        let id = ids.get(name)?.clone();
        steps.sort_by_key(|step| step.item());
        let mut items: Vec<String> = steps.iter().map(|step| run.report.label(step)).collect();
        items.dedup();
        items.truncate(ITEMS);
        (!items.is_empty()).then_some(Opened { name: name.to_owned(), id, items })
    };
    items.into_iter().filter_map(open).collect()
}

/// Puts a frame with a box for each item in the place of the box of a step.
fn open_box(groups: &mut [Group], opened: &Opened) -> bool {
    groups.iter_mut().any(|group| {
        if let Some(place) = group.nodes.iter().position(|node| node.id == opened.id && node.is_many) {
            let node = group.nodes.remove(place);
            let name = node.lines.first().cloned().unwrap_or_default();
            let item = |label: &String| Node {
                id: opened.item_id(label),
                lines: vec![label.clone()],
                about: Vec::new(),
                shape: node.shape,
                is_many: false,
            };
            group.groups.push(Group {
                id: node.id.clone(),
                title: name.clone(),
                name,
                notes: node.lines.iter().skip(1).cloned().collect(),
                nodes: opened.items.iter().map(item).collect(),
                ..Group::default()
            });
            return true;
        }
        open_box(&mut group.groups, opened)
    })
}

fn draw_graph(run: &FollowedRun, opened: &[Opened]) -> Result<GraphDocument, Problem> {
    let mut graph = Graph::build_run(&run.past.plan, run.past.pipeline());
    opened.iter().for_each(|opened| _ = open_box(&mut graph.groups, opened));
    let picture = layout_picture(&graph)
        .map_err(|_| Problem::internal("the plan has too many edges to be drawn: look at the list of steps"))?;
    let steps: BTreeMap<String, String> =
        step_ids(&run.past.plan, run.past.pipeline()).into_iter().map(|(step, id)| (id, step.to_owned())).collect();
    let mut frames = FrameColumns::default();
    for (rect, group) in &picture.frames {
        frames.id.push(group.id.clone());
        // How often it runs again stands on a wire.
        frames.title.push(group.title.clone());
        frames.notes.push(group.notes.clone());
        frames.x.push(rect.at.x);
        frames.y.push(rect.at.y);
        frames.w.push(rect.size.width);
        frames.h.push(rect.size.height);
    }
    let mut boxes = BoxColumns::default();
    for (rect, node) in &picture.boxes {
        boxes.id.push(node.id.clone());
        boxes.step.push(steps.get(&node.id).cloned());
        boxes.lines.push(node.lines.clone());
        boxes.shape.push(name_shape(node.shape));
        boxes.many.push(node.is_many);
        boxes.x.push(rect.at.x);
        boxes.y.push(rect.at.y);
        boxes.w.push(rect.size.width);
        boxes.h.push(rect.size.height);
    }
    let mut wires = WireColumns::default();
    for drawn in &picture.wires {
        let arrow = drawn.arrow;
        wires.from.push(arrow.map(|arrow| arrow.from.clone()).unwrap_or_default());
        wires.to.push(arrow.map(|arrow| arrow.to.clone()).unwrap_or_default());
        wires.kind.push(match arrow {
            None => "again",
            Some(arrow) if arrow.is_message => "message",
            Some(_) => "order",
        });
        wires.label.push(drawn.label.join("\n"));
        wires.label_at.push(drawn.wire.label.map(|rect| [rect.at.x, rect.at.y, rect.size.width, rect.size.height]));
        let parts = drawn.wire.parts.iter();
        wires.path.push(parts.map(|part| part.iter().flat_map(|point| [point.x, point.y]).collect()).collect());
    }
    let size = GraphSize { width: picture.size.width, height: picture.size.height };
    Ok(GraphDocument { version: Version, size, frames, boxes, wires })
}

fn name_shape(shape: Shape) -> &'static str {
    match shape {
        Shape::Agent => "agent",
        Shape::Command => "command",
        Shape::Value => "value",
        Shape::Gate => "gate",
        Shape::Stop => "stop",
        Shape::Call => "call",
    }
}

pub(crate) fn get_states(service: &Service, call: &Call) -> Result<Reply, Problem> {
    service.store.with_run(&service.home, call.part(0), |run| {
        let ids = step_ids(&run.past.plan, run.past.pipeline());
        let mut boxes: BTreeMap<String, BoxState> = BTreeMap::new();
        let begin = || BoxState { state: PENDING, ..BoxState::default() };
        for id in ids.values() {
            boxes.insert(id.clone(), begin());
        }
        for row in &run.report.rows {
            let Some(found) = ids.get(&*row.step.name).and_then(|id| boxes.get_mut(id)) else { continue };
            let state = state_of(row);
            *found.counts.entry(state.to_owned()).or_default() += 1;
            // Of an earlier round only the counts tell.
            let counts = run.report.is_current(row);
            if counts && rank_state(state) <= rank_state(found.state) {
                (found.state, found.label) = (state, Some(run.report.label(&row.step)));
                found.progress = describe_progress(run, &row.step);
            }
        }
        for opened in find_opened(run, call) {
            let rows = run.report.rows.iter().filter(|row| *row.step.name == *opened.name);
            // Of several rounds the last one counts.
            let rows: HashMap<String, &Row> = rows.map(|row| (run.report.label(&row.step), row)).collect();
            for label in &opened.items {
                let row = rows.get(label).copied();
                let state = row.map_or(PENDING, state_of);
                let progress = row.and_then(|row| describe_progress(run, &row.step));
                let label = Some(label.clone());
                boxes.insert(
                    opened.item_id(label.as_deref().unwrap_or_default()),
                    BoxState { state, label, progress, ..BoxState::default() },
                );
            }
        }
        for (step, _) in run.blocked_steps() {
            if let Some(found) = ids.get(&*step.name).and_then(|id| boxes.get_mut(id)) {
                *found.counts.entry(BLOCKED.to_owned()).or_default() += 1;
                found.label.get_or_insert_with(|| run.report.label(&step));
            }
        }
        let sent = count_envelopes(run, &ids);
        reply(&GraphStates { version: Version, as_of: last_event(run), boxes, sent })
    })
}

/// How many envelopes went from each box to each other one. What people wrote came from no box.
fn count_envelopes(run: &FollowedRun, ids: &BTreeMap<&str, String>) -> Vec<SentCount> {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for record in &run.past.records {
        if let Event::Sent { from: Some(from), to, .. } = &record.event {
            *counts.entry((&from.name, to)).or_default() += 1;
        }
    }
    let find = |((from, to), count): ((&str, &str), u64)| {
        Some(SentCount { from: ids.get(from)?.clone(), to: ids.get(to)?.clone(), count })
    };
    counts.into_iter().filter_map(find).collect()
}

/// How urgent a state is: 0 is the most urgent.
fn rank_state(state: &str) -> usize {
    STATES.iter().position(|known| *known == state).unwrap_or(STATES.len())
}

fn describe_progress(run: &FollowedRun, step: &swarmc_runtime::StepId) -> Option<String> {
    let report = run.state.last_report(step)?;
    let report: Report = serde_json::from_str(&run.folder.read_text(report).ok()?).ok()?;
    Some(report.summarize())
}
