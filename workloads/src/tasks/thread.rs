//! One thread that runs many tasks: waits in epoll(7) for all of them and resumes those that can go on.

use std::io;

use corosensei::Coroutine;
use corosensei::CoroutineResult;
use corosensei::stack::DefaultStack;
use loadprint_recording::clock::monotonic_ns;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;

use super::hub::Hub;
use super::hub::OUTSIDE;
use super::hub::TIMER;

/// Address space of a task's stack, behind a guard page; what is not touched takes no memory.
const STACK_BYTES: usize = 256 * 1024;
/// Replies taken from the kernel at once.
const BATCH: usize = 256;

type Task = Coroutine<(), (), (), DefaultStack>;

/// Runs all tasks on this thread until each has returned.
///
/// # Errors
/// When epoll or a stack cannot be had; no task has run then.
pub fn run<'a>(bodies: Vec<Box<dyn FnOnce() + 'a>>) -> io::Result<()> {
    let hub = Hub::new(bodies.len())?;
    let hub = &hub;
    let mut tasks: Vec<Option<Task>> = Vec::with_capacity(bodies.len());
    for body in bodies {
        let stack = DefaultStack::new(STACK_BYTES)?;
        // SAFETY: `tasks` is dropped before this function returns, so before `hub` and what the bodies borrow.
        let task = unsafe {
            Coroutine::with_stack_unchecked(stack, move |yielder, ()| {
                hub.begin(yielder);
                body();
            })
        };
        tasks.push(Some(task));
    }
    let mut left = tasks.len();
    let mut resume = |number: usize| {
        let Some(slot) = tasks.get_mut(number) else {
            return 0;
        };
        let Some(task) = slot else { return 0 };
        match hub.enter(number, || task.resume(())) {
            CoroutineResult::Yield(()) => 0,
            CoroutineResult::Return(()) => {
                *slot = None;
                1
            }
        }
    };
    left -= (0..left).map(&mut resume).sum::<usize>();
    let mut events: Vec<epoll::Event> = Vec::with_capacity(BATCH);
    let mut due = Vec::new();
    while left > 0 {
        events.clear();
        match epoll::wait(&hub.epoll, spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            match event.data.u64() {
                OUTSIDE => due.extend(hub.outside.take()),
                TIMER => hub.due(monotonic_ns(), &mut due),
                task => {
                    let task = task as usize;
                    hub.set_readable(task);
                    left -= resume(task);
                }
            }
        }
        for task in due.drain(..) {
            left -= resume(task);
        }
    }
    Ok(())
}
