//! What is inside of steps: the frames of loops, calls and items, from their opening to their outcome.
//!
//! Of a for-each only as many items are open as may run; what the others left is kept in a few bytes each.

use std::sync::Arc;

use swarmc_plan::EachJoin;

use super::State;
use super::frame::{Each, End, Frame, Inner, Past, Phase, Reason, Step};
use crate::core::graph::{Key, Kind};
use crate::types::digest::{digest_bytes, file_name};
use crate::types::event::{Content, Failure, LONGEST_PATH, Status};

/// The items of a for-each without a `parallel` that are open at once: those that wait for a slot are few bytes each.
const WINDOW: u32 = 256;

impl State {
    /// A loop, a for-each or a call begins.
    pub(super) fn open_inside(&mut self, key: Key, items: u32, list: Option<&Content>, params: Option<&Content>) {
        // What an attempt before this one left inside is freed, and its place taken again.
        self.close_inside(key);
        match self.node(key).kind {
            Kind::Loop(region) => {
                let frame = self.add_frame(key, region, None, None);
                self.enter_inside(key, Inner::Frame(frame));
                self.begin_round(frame);
            }
            Kind::Call(scope) => {
                let region = self.graph.scope(scope).region;
                let frame = self.add_frame(key, region, None, params.cloned());
                // Names in a called pipeline mean its own steps.
                self.frame_mut(frame).scope = frame;
                self.enter_inside(key, Inner::Frame(frame));
                self.begin_round(frame);
            }
            Kind::Each { .. } => {
                let each = Each { list: list.cloned(), count: items, ..Each::default() };
                self.enter_inside(key, Inner::Each(each));
                self.open_known_items(key);
                self.open_items(key);
            }
            Kind::Task | Kind::Value | Kind::Stop(_) | Kind::Gate(_) => return,
        }
        self.pass_down(key);
    }

    fn enter_inside(&mut self, key: Key, inner: Inner) {
        self.step_mut(key).inner = Some(Box::new(inner));
        self.enter_phase(key, Phase::Inside);
    }

    /// Opens as many items as may run, and ends the for-each when there is none left.
    pub(super) fn open_items(&mut self, key: Key) {
        let Kind::Each { region, parallel, .. } = self.node(key).kind else { return };
        let most = parallel.unwrap_or(self.graph.concurrency.max(WINDOW)) as usize;
        let closed = self.is_ended(key) || self.frame(key.frame).cut;
        // While records of before are folded, only the items that they name are opened: see `open_known_items`.
        let opens = !closed && self.past.is_none();
        while let Some(each) = self.each_mut(key)
            && opens
        {
            let Some(item) = each.next_item().filter(|_| each.open.len() < most) else { break };
            self.open_item(key, region, item);
        }
        if let Some(each) = self.step(key).each()
            && each.open.is_empty()
            // Of what has not come to its end yet, further items are opened when the run goes on.
            && (closed || self.past.is_none() || each.count_ended() == each.count)
        {
            // Where an item was cut, the for-each is skipped, and has no value.
            let carried_through = each.count_ended() == each.count && each.settled[Status::Skipped as usize] == 0;
            self.leave_inside(key, carried_through);
        }
    }

    fn open_item(&mut self, key: Key, region: u32, item: u32) {
        let frame = self.add_frame(key, region, Some(item), None);
        if let Some(each) = self.each_mut(key) {
            each.open.insert(item, frame);
        }
        // An item counts the rounds of what is around it.
        self.frame_mut(frame).iteration = self.frame(key.frame).iteration - 1;
        self.begin_round(frame);
    }

    /// Opens the items of which records of before the run went on tell, in whatever order they came.
    fn open_known_items(&mut self, key: Key) {
        let Kind::Each { region, .. } = self.node(key).kind else { return };
        let Some(past) = self.past.as_deref() else { return };
        let (count, instance) = (self.step(key).each().map_or(0, |each| each.count), self.frame(key.frame).instance);
        let known = (0..count).filter(|&item| past.tells_of(instance, &self.path_inside(key, Some(item))));
        let known: Vec<u32> = known.collect();
        known.into_iter().for_each(|item| self.open_item(key, region, item));
    }

    /// A frame inside of the step ended.
    pub(super) fn inside_ended(&mut self, key: Key, number: u32, end: End) {
        let Some(item) = self.frame(number).item else {
            return self.leave_inside(key, end != End::Cut);
        };
        let size = self.size(Key { frame: number, step: 0 });
        // An item is a frame of one step.
        let past = self.frame_mut(number).steps.pop().map(|step| Box::new(Past::from_step(step, Vec::new())));
        self.release_frame(number);
        if let Some(each) = self.each_mut(key) {
            each.open.remove(&item);
            if each.ended.len() <= item as usize {
                each.ended.resize_with(item as usize + 1, || None);
            }
            let status = past.as_ref().map_or(Status::Skipped, |past| past.status);
            each.settled[status as usize] += 1;
            each.size = each.size.saturating_add(size);
            each.ended[item as usize] = past;
        }
        self.open_items(key);
    }

    /// Nothing inside of the step runs any more.
    fn leave_inside(&mut self, key: Key, carried_through: bool) {
        let phase = match carried_through {
            _ if self.is_ended(key) => Phase::Skipping(Reason::Ended),
            true => Phase::Concluding,
            false => Phase::Skipping(Reason::Cut),
        };
        // One that concludes still has an end to come, and is open until then.
        if matches!(phase, Phase::Skipping(_)) {
            self.open.remove(&key);
        }
        self.enter_phase(key, phase);
    }

    /// What ends or cuts the frame of a step ends or cuts what is inside of it.
    pub(super) fn pass_down(&mut self, key: Key) {
        if self.step(key).phase != Phase::Inside {
            return;
        }
        let inner: Vec<u32> = match self.step(key).inner.as_deref() {
            Some(Inner::Frame(frame)) => vec![*frame],
            Some(Inner::Each(each)) => each.open.values().copied().collect(),
            Some(Inner::Closed(_)) | None => Vec::new(),
        };
        if self.is_ended(key)
            && let Some(ending) = self.frame(key.frame).ending.clone()
        {
            inner.iter().for_each(|&frame| self.end_early(frame, &ending));
        }
        if self.frame(key.frame).cut {
            inner.iter().for_each(|&frame| self.cut_frame(frame));
        }
    }

    /// What the inside of a step came to: why it failed, if it did.
    pub(crate) fn conclusion(&self, key: Key) -> Option<Failure> {
        let message = match (self.node(key).kind, self.step(key).inner.as_deref()) {
            (Kind::Each { join, .. }, Some(Inner::Each(each))) => self.items_failed(join, each)?,
            (_, Some(Inner::Frame(frame))) => self.frame_failed(*frame)?,
            _ => return None,
        };
        Some(Failure::Inside { message })
    }

    fn items_failed(&self, join: EachJoin, each: &Each) -> Option<String> {
        let [succeeded, failed, _] = each.settled;
        let holds = match join {
            EachJoin::All => failed == 0,
            EachJoin::Any => succeeded > 0 || each.count == 0,
            EachJoin::Settled => true,
        };
        if holds {
            return None;
        }
        let (index, why) = each.failures().next()?;
        let first = format!("item {index}: {why}");
        Some(match each.count {
            1 => first,
            count => format!("{failed} of {count} items failed, first {first}"),
        })
    }

    fn frame_failed(&self, number: u32) -> Option<String> {
        let frame = self.frame(number);
        match (frame.end?, &frame.ending) {
            (End::Succeeded | End::Cut, _) => None,
            (End::Exhausted, _) => Some(match frame.iteration {
                1 => "no `until` held in its only round".to_owned(),
                rounds => format!("no `until` held in {rounds} rounds"),
            }),
            (End::Stopped, ending) => {
                let by = ending.as_ref().map_or("a stop", |ending| &*ending.by);
                let said = self.read_from_frame(number, by).and_then(|reading| reading.output);
                Some(match said {
                    Some(Content::Text(text)) if !text.trim().is_empty() => {
                        format!("`{by}` ended it as failed: {}", text.trim())
                    }
                    _ => format!("`{by}` ended it as failed"),
                })
            }
            (End::Unhandled, _) => {
                let key = Key { frame: number, step: *frame.unhandled.first()? };
                let detail = self.step(key).detail.as_deref();
                let why = detail.and_then(|detail| detail.error.as_deref()).unwrap_or("it failed");
                Some(format!("`{}` failed: {why}", self.node(key).name))
            }
        }
    }

    /// What the ids of steps inside of a step say in `within`.
    fn path_inside(&self, key: Key, item: Option<u32>) -> Arc<str> {
        let around = self.frame(key.frame);
        let step = self.step(key);
        let mut path = around.path.as_ref().map_or(String::new(), |path| format!("{path}/"));
        path.push_str(&file_name(&self.node(key).name));
        // The ids of two rounds, or two attempts, must differ; where there is one, the name stays short.
        if self.region(key.frame).rounds.max > 1 {
            path.push_str(&format!(".{}", around.iteration));
        }
        if step.attempt > 1 {
            path.push_str(&format!("~{}", step.attempt));
        }
        if let Some(item) = item {
            path.push_str(&format!("[{item}]"));
        }
        // Every event of a step inside holds the path, and an event has a greatest length.
        if path.len() > LONGEST_PATH {
            path = format!("~{}", digest_bytes(path.as_bytes()));
        }
        path.into()
    }

    /// Adds a frame inside of a step.
    fn add_frame(&mut self, key: Key, region: u32, item: Option<u32>, params: Option<Content>) -> u32 {
        let path = self.path_inside(key, item);
        let around = self.frame(key.frame);
        let instance = around.instance;
        let rank = around.rank.iter().copied().chain([key.step, item.unwrap_or(0)]).collect();
        let frame = Frame {
            region,
            parent: Some(key),
            scope: around.scope,
            instance,
            item,
            path: Some(Arc::clone(&path)),
            rank,
            opened: self.seq,
            params,
            ..Frame::default()
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.frames[number as usize] = frame;
                number
            }
            None => {
                self.frames.push(frame);
                self.frames.len() as u32 - 1
            }
        };
        self.paths.insert((instance, path), number);
        number
    }

    /// Frees what an earlier attempt or round left inside of the step.
    pub(super) fn close_inside(&mut self, key: Key) {
        if let Some(inner) = self.step_mut(key).inner.take()
            && let Inner::Frame(frame) = *inner
        {
            let steps = std::mem::take(&mut self.frame_mut(frame).steps);
            self.archive_steps(steps);
            self.release_frame(frame);
        }
    }

    /// The steps of a round that is over; what is inside of them is freed, and kept of loops.
    pub(super) fn archive_steps(&mut self, steps: Vec<Step>) -> Vec<Past> {
        let past = |mut step: Step| {
            let inside = match step.inner.take().map(|inner| *inner) {
                Some(Inner::Frame(frame)) => {
                    let steps = std::mem::take(&mut self.frame_mut(frame).steps);
                    let inside = self.archive_steps(steps);
                    self.release_frame(frame);
                    inside
                }
                // The frames of items were freed one by one as they ended.
                Some(Inner::Each(_) | Inner::Closed(_)) | None => Vec::new(),
            };
            Past::from_step(step, inside)
        };
        steps.into_iter().map(past).collect()
    }

    /// Gives a frame's place to the next one. Everything in it has settled.
    fn release_frame(&mut self, number: u32) {
        self.spawns_over(number, |_| true);
        let frame = std::mem::take(&mut self.frames[number as usize]);
        self.posts.remove(&number);
        self.clear_shelf(number);
        self.swarms.retain(|key, _| key.frame != number);
        self.agenda.swarms.retain(|key| key.frame != number);
        self.agenda.posts.remove(&number);
        if let Some(path) = frame.path {
            self.paths.remove(&(frame.instance, path));
        }
        self.free.push(number);
    }

    fn each_mut(&mut self, key: Key) -> Option<&mut Each> {
        match self.step_mut(key).inner.as_deref_mut() {
            Some(Inner::Each(each)) => Some(each),
            _ => None,
        }
    }
}

impl Each {
    /// The outputs of the items that succeeded, in order.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (usize, &Content)> {
        self.ended.iter().enumerate().filter_map(|(index, past)| {
            let past = past.as_ref().filter(|past| past.status == Status::Succeeded)?;
            Some((index, past.detail.as_ref()?.output.as_ref()?))
        })
    }

    /// The items that failed, with the reason, in order.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (usize, &str)> {
        self.ended.iter().enumerate().filter_map(|(index, past)| {
            let past = past.as_ref().filter(|past| past.status == Status::Failed)?;
            let why = past.detail.as_ref().and_then(|detail| detail.error.as_deref());
            Some((index, why.unwrap_or("it failed")))
        })
    }
}
