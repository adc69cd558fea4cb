//! What the tasks of one thread share: the epoll instance, the timers, and who is running.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::mem;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use corosensei::Yielder;
use rustix::event::EventfdFlags;
use rustix::event::epoll;
use rustix::event::eventfd;
use rustix::time::Itimerspec;
use rustix::time::TimerfdClockId;
use rustix::time::TimerfdFlags;
use rustix::time::TimerfdTimerFlags;
use rustix::time::Timespec;
use rustix::time::timerfd_create;
use rustix::time::timerfd_settime;

use super::buffers::Buffers;

/// Tokens of epoll that are no task.
pub(super) const OUTSIDE: u64 = u64::MAX;
pub(super) const TIMER: u64 = u64::MAX - 1;

const INCOMING: epoll::EventFlags = epoll::EventFlags::IN
    .union(epoll::EventFlags::RDHUP)
    .union(epoll::EventFlags::ET);

thread_local!(static HUB: Cell<*const Hub> = const { Cell::new(ptr::null()) });

/// The hub of the running task; `None` outside of tasks. Not to be kept beyond the task.
pub(super) fn current<'a>() -> Option<&'a Hub> {
    let hub = HUB.get();
    // SAFETY: the pointer is only set while `Hub::enter` runs on this thread, which borrows the hub.
    (!hub.is_null()).then(|| unsafe { &*hub })
}

/// Wakes tasks of a thread from any thread.
#[derive(Debug)]
pub(super) struct Outside {
    woken: Mutex<Vec<usize>>,
    event: OwnedFd,
}

impl Outside {
    pub fn wake(&self, task: usize) {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        woken.push(task);
        if woken.len() == 1 {
            // Fails only when the counter is full, and then the thread wakes up anyway.
            rustix::io::write(&self.event, &1_u64.to_ne_bytes()).ok();
        }
    }

    pub fn take(&self) -> Vec<usize> {
        // Edge-triggered: the counter need not be read.
        mem::take(&mut *self.woken.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
struct Slot {
    yielder: Cell<*const Yielder<(), ()>>,
    readable: Cell<bool>,
}

#[derive(Debug)]
pub(super) struct Hub {
    pub epoll: OwnedFd,
    pub outside: Arc<Outside>,
    timer: OwnedFd,
    armed_ns: Cell<i64>,
    sleepers: RefCell<BTreeSet<(i64, usize)>>,
    slots: Box<[Slot]>,
    running: Cell<usize>,
    pub packets: Buffers,
    pub rooms: Buffers,
}

impl Hub {
    pub fn new(tasks: usize) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        epoll::add(&epoll, &event, epoll::EventData::new_u64(OUTSIDE), INCOMING)?;
        epoll::add(&epoll, &timer, epoll::EventData::new_u64(TIMER), INCOMING)?;
        let slot = || Slot {
            yielder: Cell::new(ptr::null()),
            readable: Cell::new(false),
        };
        Ok(Self {
            epoll,
            outside: Arc::new(Outside {
                woken: Mutex::new(Vec::new()),
                event,
            }),
            timer,
            armed_ns: Cell::new(i64::MAX),
            sleepers: RefCell::new(BTreeSet::new()),
            slots: (0..tasks).map(|_| slot()).collect(),
            running: Cell::new(0),
            packets: Buffers::default(),
            rooms: Buffers::default(),
        })
    }

    /// Runs `resume`, during which this task is the running one.
    pub fn enter<R>(&self, task: usize, resume: impl FnOnce() -> R) -> R {
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                HUB.set(ptr::null());
            }
        }
        self.running.set(task);
        HUB.set(self);
        let _leave = Leave;
        resume()
    }

    /// The first thing that a task does.
    pub fn begin(&self, yielder: &Yielder<(), ()>) {
        self.slots[self.running.get()].yielder.set(yielder);
    }

    /// Something came in for this task.
    pub fn set_readable(&self, task: usize) {
        self.slots[task].readable.set(true);
    }

    /// The number of the running task.
    pub fn running(&self) -> usize {
        self.running.get()
    }

    fn yielder(&self) -> &Yielder<(), ()> {
        // SAFETY: set by `begin` of the running task; the yielder lives as long as the task's stack.
        unsafe { &*self.slots[self.running.get()].yielder.get() }
    }

    /// Gives the thread to other tasks until somebody wakes this one.
    pub fn suspend(&self) {
        self.yielder().suspend(());
    }

    /// As [`Hub::suspend`], and wakes at this moment of CLOCK_MONOTONIC.
    pub fn suspend_until(&self, moment_ns: i64) {
        let sleeper = (moment_ns, self.running.get());
        self.sleepers.borrow_mut().insert(sleeper);
        self.arm();
        self.suspend();
        self.sleepers.borrow_mut().remove(&sleeper);
    }

    /// Sets the timer to the first moment that somebody waits for.
    fn arm(&self) {
        let first = self
            .sleepers
            .borrow()
            .first()
            .map_or(i64::MAX, |(moment, _)| *moment);
        if first >= self.armed_ns.get() {
            return;
        }
        self.armed_ns.set(first);
        let it_value = Timespec {
            tv_sec: first / 1_000_000_000,
            // Zero would disarm it.
            tv_nsec: (first % 1_000_000_000).max(1),
        };
        let once = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value,
        };
        // A moment of CLOCK_MONOTONIC is always valid.
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once).ok();
    }

    /// The sleepers whose moment has come; the timer is set to the next one.
    pub fn due(&self, now_ns: i64, due: &mut Vec<usize>) {
        self.armed_ns.set(i64::MAX);
        let mut sleepers = self.sleepers.borrow_mut();
        while let Some((moment, task)) = sleepers.first().copied().filter(|(moment, _)| *moment <= now_ns) {
            sleepers.remove(&(moment, task));
            due.push(task);
        }
        drop(sleepers);
        self.arm();
    }

    pub fn watch(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let task = self.running.get();
        self.slots[task].readable.set(false);
        Ok(epoll::add(
            &self.epoll,
            socket,
            epoll::EventData::new_u64(task as u64),
            INCOMING,
        )?)
    }

    pub fn wait_readable(&self) {
        let slot = &self.slots[self.running.get()];
        while !slot.readable.replace(false) {
            self.suspend();
        }
    }

    pub fn wait_writable(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let data = epoll::EventData::new_u64(self.running.get() as u64);
        // Only while it is wanted: a unix socket reports each packet that the other end takes.
        epoll::modify(&self.epoll, socket, data, INCOMING | epoll::EventFlags::OUT)?;
        self.suspend();
        Ok(epoll::modify(&self.epoll, socket, data, INCOMING)?)
    }

    pub fn on_thread_stack<R>(&self, code: impl FnOnce() -> R) -> R {
        /// Both stacks belong to this thread, and the task waits meanwhile.
        struct Here<T>(T);
        // SAFETY: nothing is sent: the code runs on this very thread.
        unsafe impl<T> Send for Here<T> {}
        let code = Here(code);
        self.yielder().on_parent_stack(move || {
            let whole = code;
            (whole.0)()
        })
    }
}
