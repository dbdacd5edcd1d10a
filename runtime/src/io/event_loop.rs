//! The event loop of one thread: the attempts that it carries out wait here for what happens to their processes.
//!
//! In: tasks, each a future that only this thread polls, and the descriptors that they wait for. Out: each task is
//! polled when one of its descriptors is ready, when its deadline has passed, or when another thread has woken it.
//! Invariant: a task that waits holds no thread, no stack and no buffer.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

/// The events that are taken at once.
const EVENTS: usize = 64;

/// The longest wait: what is due later is looked at again then.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// What a task waits for beside its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// The process has ended. Told once.
    Exit,
    /// There is room in its standard input, again. Told when that begins.
    Stdin,
    /// There are bytes on its standard output, or its end.
    Stdout,
    /// The same of its standard error.
    Stderr,
}

/// What has happened since a task looked last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready(u8);

impl Ready {
    pub(crate) fn has(self, interest: Interest) -> bool {
        self.0 & interest_bit(interest) != 0
    }
}

fn interest_bit(interest: Interest) -> u8 {
    1 << interest as u8
}

/// A descriptor that a task waits for, until this is dropped.
pub(crate) struct Registered<'e, F: AsFd> {
    events: &'e EventLoop,
    fd: F,
    /// The task, and what it waits for.
    data: u64,
    flags: EventFlags,
    is_paused: bool,
}

impl<F: AsFd> Drop for Registered<'_, F> {
    fn drop(&mut self) {
        // A process that is being started may share the descriptor for a moment: closing it would not be enough.
        self.pause();
    }
}

impl<F: AsFd> Registered<'_, F> {
    /// What is waited for.
    pub(crate) fn get(&self) -> &F {
        &self.fd
    }

    /// Nothing of it is reported until [`Registered::resume`], not even that it was closed.
    pub(crate) fn pause(&mut self) {
        if !std::mem::replace(&mut self.is_paused, true) {
            let _ = epoll::delete(&self.events.epoll, self.fd.as_fd());
        }
    }

    /// What is waited for was reported, and is no more: it was registered for one time.
    pub(crate) fn note_reported(mut self) {
        self.is_paused = true;
    }

    /// It is reported again, as at first. Where the system has no room for that, the next call may succeed.
    pub(crate) fn resume(&mut self) {
        let data = EventData::new_u64(self.data);
        self.is_paused = self.is_paused && epoll::add(&self.events.epoll, self.fd.as_fd(), data, self.flags).is_err();
    }
}

impl<F: AsFd> AsFd for Registered<'_, F> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The number under which the loop's own wake-ups are registered; those of tasks are smaller.
const INBOX: u64 = u64::MAX;

/// Where the tasks of one thread wait.
pub(crate) struct EventLoop {
    epoll: OwnedFd,
    inbox: Arc<Inbox>,
    slots: RefCell<Vec<Slot>>,
    free: RefCell<Vec<usize>>,
    /// The slots of the tasks that are to be polled.
    runnable: RefCell<Vec<usize>>,
    deadlines: RefCell<BTreeSet<(Instant, usize)>>,
    /// The slot of the task that is being polled.
    current: Cell<usize>,
}

/// The place of a task.
struct Slot {
    waker: Waker,
    ready: Ready,
    /// Whether it has something to look at.
    is_woken: bool,
    /// Whether it is among those that are to be polled.
    is_runnable: bool,
    deadline: Option<Instant>,
}

/// Where other threads wake the loop and its tasks.
#[derive(Debug)]
pub(crate) struct Inbox {
    woken: Mutex<Vec<usize>>,
    /// One of [`AWAKE`], [`ASLEEP`], [`WOKEN`].
    state: AtomicU8,
    event: OwnedFd,
}

/// The loop will look at everything before it waits.
const AWAKE: u8 = 0;
/// The loop waits, and is woken by the event.
const ASLEEP: u8 = 1;
/// Something was told that the loop has not looked at.
const WOKEN: u8 = 2;

impl Inbox {
    /// Wakes the loop. One that does not wait needs no system call for that.
    pub(crate) fn wake(&self) {
        if self.state.swap(WOKEN, Ordering::SeqCst) == ASLEEP {
            // It fails only when the counter is full, and then the loop is awake anyway.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }

    /// The loop is about to wait; false where it was woken since it last looked.
    fn falls_asleep(&self) -> bool {
        self.state.compare_exchange(AWAKE, ASLEEP, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// The loop waits no longer: whether it was woken.
    fn wakes_up(&self) -> bool {
        self.state.swap(AWAKE, Ordering::SeqCst) == WOKEN
    }

    fn wake_slot(&self, slot: usize) {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        // The loop takes the whole list at once: for one that is not empty it has been woken already.
        let is_first = woken.is_empty();
        woken.push(slot);
        drop(woken);
        if is_first {
            self.wake();
        }
    }

    fn take_woken(&self) -> Vec<usize> {
        std::mem::take(&mut *self.woken.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Wakes the task of a slot, whichever has it then: one that is woken without a reason waits again.
struct SlotWaker {
    inbox: Arc<Inbox>,
    slot: usize,
}

impl Wake for SlotWaker {
    fn wake(self: Arc<SlotWaker>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<SlotWaker>) {
        self.inbox.wake_slot(self.slot);
    }
}

impl EventLoop {
    pub(crate) fn new() -> io::Result<EventLoop> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &event, EventData::new_u64(INBOX), EventFlags::IN)?;
        Ok(EventLoop {
            epoll,
            inbox: Arc::new(Inbox { woken: Mutex::default(), state: AtomicU8::new(AWAKE), event }),
            slots: RefCell::default(),
            free: RefCell::default(),
            runnable: RefCell::default(),
            deadlines: RefCell::default(),
            current: Cell::new(0),
        })
    }

    /// What wakes the loop from other threads.
    pub(crate) fn inbox(&self) -> Arc<Inbox> {
        Arc::clone(&self.inbox)
    }

    /// Polls `future` to its end: the only task of the loop.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let slot = self.take_slot();
        let waker = self.slots.borrow()[slot].waker.clone();
        let outcome = loop {
            self.current.set(slot);
            if let Poll::Ready(outcome) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                break outcome;
            }
            while !std::mem::take(&mut self.slots.borrow_mut()[slot].is_runnable) {
                self.wait_for_events(None);
            }
            self.runnable.borrow_mut().clear();
        };
        self.free_slot(slot);
        outcome
    }

    /// From now on [`EventLoop::next`] reports `interest` in `fd` to the current task.
    pub(crate) fn register<F: AsFd>(&self, fd: F, interest: Interest) -> io::Result<Registered<'_, F>> {
        let flags = match interest {
            // The descriptor of a process that has ended stays readable for ever.
            Interest::Exit => EventFlags::IN | EventFlags::ONESHOT,
            // A pipe with room stays writable while there is nothing to write: only that room appears is of interest.
            Interest::Stdin => EventFlags::OUT | EventFlags::ET,
            Interest::Stdout | Interest::Stderr => EventFlags::IN,
        };
        // The interest takes the two lowest bits: there are four.
        let data = (self.current.get() as u64) << 2 | interest as u64;
        epoll::add(&self.epoll, fd.as_fd(), EventData::new_u64(data), flags)?;
        Ok(Registered { events: self, fd, data, flags, is_paused: false })
    }

    /// Waits until something happens to a registered descriptor, the current task is woken, or `deadline` has passed.
    pub(crate) async fn next(&self, deadline: Option<Instant>) -> Ready {
        let mut has_waited = false;
        poll_fn(|_| {
            let number = self.current.get();
            let mut slots = self.slots.borrow_mut();
            let slot = &mut slots[number];
            // Not at the first poll: a task whose deadline is always over would keep the others from their turn.
            let is_due = has_waited && deadline.is_some_and(|deadline| deadline <= Instant::now());
            if slot.ready.0 == 0 && !slot.is_woken && !is_due {
                has_waited = true;
                self.set_deadline(slot, number, deadline);
                return Poll::Pending;
            }
            slot.is_woken = false;
            Poll::Ready(std::mem::take(&mut slot.ready))
        })
        .await
    }

    /// Forgets what has happened to the descriptors of a process that has ended.
    pub(crate) fn forget(&self) {
        self.slots.borrow_mut()[self.current.get()].ready = Ready::default();
    }

    /// Wakes the current task.
    pub(crate) fn current_waker(&self) -> Waker {
        self.slots.borrow()[self.current.get()].waker.clone()
    }

    fn take_slot(&self) -> usize {
        if let Some(slot) = self.free.borrow_mut().pop() {
            return slot;
        }
        let mut slots = self.slots.borrow_mut();
        let slot = slots.len();
        slots.push(Slot {
            waker: Waker::from(Arc::new(SlotWaker { inbox: Arc::clone(&self.inbox), slot })),
            ready: Ready::default(),
            is_woken: false,
            is_runnable: false,
            deadline: None,
        });
        slot
    }

    fn free_slot(&self, number: usize) {
        let mut slots = self.slots.borrow_mut();
        let slot = &mut slots[number];
        // The next task of the slot must not be woken for the deadline of this one.
        self.set_deadline(slot, number, None);
        (slot.ready, slot.is_woken) = (Ready::default(), false);
        self.free.borrow_mut().push(number);
    }

    fn set_deadline(&self, slot: &mut Slot, number: usize, deadline: Option<Instant>) {
        // Most waits have the deadline of the one before: that needs no change of the tree.
        if slot.deadline == deadline {
            return;
        }
        let mut deadlines = self.deadlines.borrow_mut();
        if let Some(before) = slot.deadline {
            deadlines.remove(&(before, number));
        }
        deadlines.extend(deadline.map(|deadline| (deadline, number)));
        slot.deadline = deadline;
    }

    fn make_runnable(&self, number: usize) {
        let slot = &mut self.slots.borrow_mut()[number];
        if !std::mem::replace(&mut slot.is_runnable, true) {
            self.runnable.borrow_mut().push(number);
        }
    }

    /// Waits until something happens, at the latest until `latest`, and marks the tasks that it has happened to.
    fn wait_for_events(&self, latest: Option<Instant>) {
        let first = self.deadlines.borrow().first().map(|(deadline, _)| *deadline);
        let mut timeout = first.into_iter().chain(latest).min().map(|moment| {
            let rest = moment.saturating_duration_since(Instant::now());
            // A moment more than asked for: waking too early would only mean to wait again.
            let rest = if rest.is_zero() { rest } else { (rest + Duration::from_micros(100)).min(LONGEST_WAIT) };
            Timespec { tv_sec: rest.as_secs() as i64, tv_nsec: i64::from(rest.subsec_nanos()) }
        });
        // A loop that only looks stays awake: others then wake it without a system call. One that was woken since it
        // last looked must not wait.
        if timeout != Some(Timespec::default()) && !self.inbox.falls_asleep() {
            timeout = Some(Timespec::default());
        }
        // What does not fit is reported by the next wait.
        let mut room = [MaybeUninit::uninit(); EVENTS];
        // Interrupted by a signal: the deadlines are looked at, and then everything again.
        let events = epoll::wait(&self.epoll, &mut room, timeout.as_ref()).map_or(&mut [][..], |(events, _)| events);
        // The state before the list: who is added in between is in the list, or sets the state once more.
        if self.inbox.wakes_up() {
            for slot in self.inbox.take_woken() {
                self.slots.borrow_mut()[slot].is_woken = true;
                self.make_runnable(slot);
            }
        }
        for event in events {
            match event.data.u64() {
                // Reading sets the counter to zero. Without that, every further wait would return at once.
                INBOX => _ = rustix::io::read(&self.inbox.event, &mut [0; 8]),
                data => {
                    let slot = (data >> 2) as usize;
                    self.slots.borrow_mut()[slot].ready.0 |= 1 << (data & 3);
                    self.make_runnable(slot);
                }
            }
        }
        if self.deadlines.borrow().is_empty() {
            return;
        }
        let now = Instant::now();
        loop {
            let first = self.deadlines.borrow().first().copied();
            let Some((_, number)) = first.filter(|(deadline, _)| *deadline <= now) else { break };
            self.set_deadline(&mut self.slots.borrow_mut()[number], number, None);
            self.make_runnable(number);
        }
    }
}

/// The tasks of one thread that has several.
pub(crate) struct Tasks<'t> {
    events: &'t EventLoop,
    /// By their slots.
    tasks: Vec<Option<Pin<Box<dyn Future<Output = ()> + 't>>>>,
    /// Those that have not ended.
    count: usize,
}

impl<'t> Tasks<'t> {
    pub(crate) fn new(events: &'t EventLoop) -> Tasks<'t> {
        Tasks { events, tasks: Vec::new(), count: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Has `task` polled until it has ended, in [`Tasks::run_once`].
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + 't) {
        let slot = self.place(task);
        self.events.make_runnable(slot);
    }

    /// The same, and polls it at once.
    pub(crate) fn start(&mut self, task: impl Future<Output = ()> + 't) {
        let slot = self.place(task);
        self.poll(slot);
    }

    fn place(&mut self, task: impl Future<Output = ()> + 't) -> usize {
        let slot = self.events.take_slot();
        if slot >= self.tasks.len() {
            self.tasks.resize_with(slot + 1, || None);
        }
        self.tasks[slot] = Some(Box::pin(task));
        self.count += 1;
        slot
    }

    /// Looks for what has happened, and waits for that until `latest` where nothing else is to be done; then polls the
    /// tasks that it has happened to.
    pub(crate) fn run_once(&mut self, latest: Option<Instant>) {
        let is_idle = self.events.runnable.borrow().is_empty();
        // A task that was just spawned has nothing to wait for yet.
        self.events.wait_for_events(if is_idle { latest } else { Some(Instant::now()) });
        // What becomes runnable meanwhile waits for the next call, so that the caller has its turn in between.
        let runnable = std::mem::take(&mut *self.events.runnable.borrow_mut());
        for slot in runnable {
            self.poll(slot);
        }
    }

    fn poll(&mut self, slot: usize) {
        let waker = {
            let mut slots = self.events.slots.borrow_mut();
            slots[slot].is_runnable = false;
            slots[slot].waker.clone()
        };
        // A waker may outlive its task, and wake a slot that is free.
        let Some(task) = &mut self.tasks[slot] else { return };
        self.events.current.set(slot);
        if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            self.tasks[slot] = None;
            self.count -= 1;
            self.events.free_slot(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const NEVER: Option<Instant> = None;

    #[test]
    fn a_task_is_told_of_its_own_descriptors_alone() {
        let events = EventLoop::new().unwrap();
        let story = RefCell::new(Vec::new());
        let pipes: Vec<_> = (0..3).map(|_| std::io::pipe().unwrap()).collect();
        let mut tasks = Tasks::new(&events);
        for (number, (reader, _)) in pipes.iter().enumerate() {
            let (events, story) = (&events, &story);
            tasks.spawn(async move {
                let registered = events.register(reader, Interest::Stderr).unwrap();
                while !events.next(NEVER).await.has(Interest::Stderr) {}
                rustix::io::read(&registered, &mut [0; 8]).unwrap();
                story.borrow_mut().push(number);
            });
        }
        tasks.run_once(Some(Instant::now()));
        for number in [2, 0, 1] {
            rustix::io::write(&pipes[number].1, b"x").unwrap();
            while story.borrow().last() != Some(&number) {
                tasks.run_once(NEVER);
            }
        }
        assert!(tasks.is_empty());
        assert_eq!(*story.borrow(), [2, 0, 1]);
    }

    #[test]
    fn a_deadline_that_passes_wakes_and_one_that_is_replaced_does_not() {
        let events = EventLoop::new().unwrap();
        let woken = events.block_on(async {
            let now = Instant::now();
            // A deadline that is over lets the others have their turn first.
            events.next(Some(now)).await;
            let waker = events.current_waker();
            let thread = std::thread::spawn(move || waker.wake());
            events.next(Some(now + Duration::from_secs(3600))).await;
            thread.join().unwrap();
            Instant::now() < now + Duration::from_secs(3600)
        });
        assert!(woken);
        assert!(events.deadlines.borrow().is_empty(), "what has ended waits for nothing");
    }

    #[test]
    fn a_loop_that_was_woken_before_it_waits_looks_once_more() {
        let events = EventLoop::new().unwrap();
        let mut tasks = Tasks::new(&events);
        for _ in 0..3 {
            events.inbox().wake();
            events.inbox().wake();
            // It would wait for ever.
            tasks.run_once(NEVER);
        }
        let began = Instant::now();
        tasks.run_once(Some(began + Duration::from_millis(20)));
        assert!(began.elapsed() >= Duration::from_millis(20), "nothing has woken it since");
    }

    #[test]
    fn a_loop_that_waits_wakes_at_once() {
        let events = EventLoop::new().unwrap();
        let mut tasks = Tasks::new(&events);
        for _ in 0..1000 {
            let inbox = events.inbox();
            let thread = std::thread::spawn(move || inbox.wake());
            tasks.run_once(NEVER);
            thread.join().unwrap();
        }
    }

    #[test]
    fn a_slot_is_used_again_and_what_was_meant_for_the_task_before_does_no_harm() {
        let events = EventLoop::new().unwrap();
        let late = RefCell::new(None);
        let (reader, writer) = std::io::pipe().unwrap();
        let heard = Cell::new(false);
        let mut tasks = Tasks::new(&events);
        tasks.spawn(async { *late.borrow_mut() = Some(events.current_waker()) });
        tasks.run_once(Some(Instant::now()));
        tasks.spawn(async {
            let _registered = events.register(&reader, Interest::Stdout).unwrap();
            while !events.next(NEVER).await.has(Interest::Stdout) {}
            heard.set(true);
        });
        tasks.run_once(Some(Instant::now()));
        late.borrow().as_ref().unwrap().wake_by_ref();
        tasks.run_once(NEVER);
        tasks.run_once(Some(Instant::now()));
        assert!(!heard.get());
        assert_eq!(events.slots.borrow().len(), 1);
        rustix::io::write(&writer, b"x").unwrap();
        while !tasks.is_empty() {
            tasks.run_once(NEVER);
        }
        assert!(heard.get());
    }
}
