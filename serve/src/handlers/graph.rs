//! The picture of a run's plan, and how its boxes stand.

use std::collections::BTreeMap;
use std::sync::Arc;

use swarmc_runtime::{handoff::Report, single_header};
use swarmc_view::FollowedRun;
use swarmc_view::documents::{Version, encode};
use swarmc_view::graph::{Graph, Shape, layout_picture, step_ids};

use super::{BLOCKED, last_event, reply, state_of};
use crate::Service;
use crate::digest::short_digest;
use crate::documents::{BoxColumns, BoxState, FrameColumns, GraphDocument, GraphSize, GraphStates, WireColumns};
use crate::problem::Problem;
use crate::routes::{Call, Reply, STATES};
use crate::store::Picture;

/// The box of a step that has not begun.
const PENDING: &str = "pending";

pub(crate) fn get_graph(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let picture = service.store.with_slot(&service.home, call.part(0), |followed| {
        let reads = followed.run.reads;
        if let Some((_, picture)) = followed.picture.as_ref().filter(|(of, _)| *of == reads) {
            return Ok(Arc::clone(picture));
        }
        let json = encode(&draw_graph(&followed.run)?);
        let tag = format!("\"{}\"", short_digest(json.as_bytes()));
        let picture = Arc::new(Picture { json, tag });
        followed.picture = Some((reads, Arc::clone(&picture)));
        Ok(picture)
    })?;
    let is_known = single_header(&call.headers, &hyper::header::IF_NONE_MATCH) == Some(&*picture.tag);
    Ok(Reply::Tagged { json: (!is_known).then(|| picture.json.clone()), tag: picture.tag.clone() })
}

fn draw_graph(run: &FollowedRun) -> Result<GraphDocument, Problem> {
    let graph = Graph::build_run(&run.past.plan, run.past.pipeline());
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
        for (step, _) in run.blocked_steps() {
            if let Some(found) = ids.get(&*step.name).and_then(|id| boxes.get_mut(id)) {
                *found.counts.entry(BLOCKED.to_owned()).or_default() += 1;
                found.label.get_or_insert_with(|| run.report.label(&step));
            }
        }
        reply(&GraphStates { version: Version, as_of: last_event(run), boxes })
    })
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
