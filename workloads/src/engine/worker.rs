//! One thread of a run: connects, prepares, then runs events back to back in each phase.

use std::sync::PoisonError;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

use loadprint_recording::clock::monotonic_ns;

use super::Run;
use super::client::Client;
use super::gate::Order;
use super::gate::Seat;
use crate::driver::DbError;
use crate::driver::Driver;
use crate::workload::Session;
use crate::workload::Step;

/// What the main thread reads of a worker at rest.
#[derive(Debug, Default)]
pub struct Worker {
    ran_ns: AtomicI64,
}

impl Worker {
    /// How long the thread ran events in the last phase.
    pub fn ran_ns(&self) -> i64 {
        self.ran_ns.load(Relaxed)
    }
}

/// The body of a thread.
pub fn work(run: Run<'_>, number: usize, driver: &dyn Driver) {
    let seat = Seat::new(run.gate);
    let result = driver.connect_nth(number).and_then(|connection| {
        let mut client = Client::new(connection, &run.stats[number], run.control);
        let mut session = run.load.session(number, &mut client)?;
        loop {
            client.rest();
            if run.gate.wait() != Order::Run {
                return session.finish(&mut client);
            }
            let began = monotonic_ns();
            let ended = events(&run, &mut client, session.as_mut());
            run.workers[number].ran_ns.store(monotonic_ns() - began, Relaxed);
            ended?;
        }
    });
    if let Err(failure) = result {
        seat.fail(failure);
    }
}

fn events(run: &Run<'_>, client: &mut Client<'_>, session: &mut dyn Session) -> Result<(), DbError> {
    let drains = run.load.drains();
    while run.control.may_go_on(drains) {
        client.start(0);
        loop {
            match session.event(client) {
                Ok(Step::Done(events)) => break client.succeed(events)?,
                Ok(Step::Exhausted) => return Ok(()),
                Err(DbError::Fatal(failure)) => return Err(DbError::Fatal(failure)),
                Err(error @ DbError::Ignorable(_)) => {
                    count(run, error.failure().errno);
                    client.retry_after(&error)?;
                    if run.control.aborted() {
                        return Ok(());
                    }
                }
            }
        }
    }
    Ok(())
}

fn count(run: &Run<'_>, errno: u32) {
    let mut errors = run.errors.lock().unwrap_or_else(PoisonError::into_inner);
    match errors.iter_mut().find(|(code, _)| *code == errno) {
        Some((_, count)) => *count += 1,
        None => errors.push((errno, 1)),
    }
}
