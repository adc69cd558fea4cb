//! Answers questions on a separate thread, which a source can block for good: a watched process blocks the
//! readers of its files in `/proc` by a mapping of its memory or in execve(2).

use std::io;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::SyncSender;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

/// The wait for an answer that is not late: a search of `/proc` with ten thousand processes takes
/// about this time.
const LIMIT: Duration = Duration::from_millis(250);

/// A thread that answers one question at a time.
#[derive(Debug)]
pub struct Lookup<Q, A> {
    questions: SyncSender<Q>,
    pub(crate) answers: Receiver<A>,
    is_busy: bool,
    /// Why the thread did not start. Without it there are no answers.
    pub(crate) start_error: Option<io::Error>,
}

impl<Q: Send + 'static, A: Send + 'static> Lookup<Q, A> {
    /// Starts the thread.
    pub fn new(answer: impl FnMut(Q) -> A + Send + 'static) -> Self {
        Self::named("lookup", answer)
    }

    /// Starts the thread with a name.
    pub(crate) fn named(name: &str, mut answer: impl FnMut(Q) -> A + Send + 'static) -> Self {
        let (questions, asked) = sync_channel(1);
        let (answered, answers) = sync_channel(1);
        let work = move || {
            while let Ok(question) = asked.recv() {
                if answered.send(answer(question)).is_err() {
                    break;
                }
            }
        };
        // It is not joined: a read that hangs must not keep the recorder from exiting.
        let started = thread::Builder::new().name(name.to_owned()).spawn(work);
        Self {
            questions,
            answers,
            is_busy: false,
            start_error: started.err(),
        }
    }

    /// Sends a question; returns it if the thread has ended.
    pub(crate) fn send(&self, question: Q) -> Option<Q> {
        self.questions.send(question).err().map(|unsent| unsent.0)
    }

    /// The answer, or `None` if it takes too long. A later call then returns it in place of the answer
    /// to its own question, and does not wait.
    pub fn ask(&mut self, question: Q) -> Option<A> {
        let limit = if self.is_busy { Duration::ZERO } else { LIMIT };
        if !self.is_busy {
            self.is_busy = self.send(question).is_none();
        }
        let answer = self.answers.recv_timeout(limit).ok();
        self.is_busy &= answer.is_none();
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn late_answer_is_returned_later_and_is_not_waited_for() {
        let (release, blocked) = sync_channel(0);
        let mut lookup = Lookup::new(move |question: u32| {
            if question == 2 {
                blocked.recv().unwrap();
            }
            question
        });
        assert_eq!(lookup.ask(1), Some(1));
        assert_eq!(lookup.ask(2), None);
        let started = Instant::now();
        assert_eq!((0..10).find_map(|_| lookup.ask(3)), None);
        assert!(started.elapsed() < LIMIT);
        release.send(()).unwrap();
        let late = (0..100_000).find_map(|_| {
            thread::yield_now();
            lookup.ask(4)
        });
        assert_eq!((late, lookup.ask(5)), (Some(2), Some(5)));
    }
}
