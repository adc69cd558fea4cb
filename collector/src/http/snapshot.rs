//! Who scrapes asks, and the thread that has the probes answers between its ticks: while nobody asks, nothing is copied.

use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc;

use rustix::event::EventfdFlags;
use rustix::event::eventfd;
use rustix::io;
use tokio::sync::oneshot;

use crate::exposition::Published;

type Reply = oneshot::Sender<Arc<Published>>;

/// The side that asks.
#[derive(Clone, Debug)]
pub struct Asker {
    ask: mpsc::Sender<Reply>,
    bell: Arc<OwnedFd>,
}

/// The side that answers.
#[derive(Debug)]
pub struct Desk {
    asked: mpsc::Receiver<Reply>,
    bell: Arc<OwnedFd>,
}

/// Both sides.
///
/// # Errors
/// When there can be no further descriptor.
pub fn sides() -> std::io::Result<(Asker, Desk)> {
    let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (ask, asked) = mpsc::channel();
    let asker = Asker {
        ask,
        bell: Arc::clone(&bell),
    };
    Ok((asker, Desk { asked, bell }))
}

impl Asker {
    /// The newest values; nothing if the recorder is ending.
    pub async fn published(&self) -> Option<Arc<Published>> {
        let (reply, answer) = oneshot::channel();
        self.ask.send(reply).ok()?;
        io::write(&*self.bell, &1_u64.to_ne_bytes()).ok()?;
        answer.await.ok()
    }
}

impl Desk {
    /// Readable while somebody waits for an answer.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Answers everyone who waits with the same values.
    pub fn answer(&self, publish: impl FnOnce() -> Published) {
        // Reading empties it, and says that there is nothing to read if nobody rang.
        if io::read(&*self.bell, &mut [0; 8]).is_err() {
            return;
        }
        let waiting: Vec<_> = self.asked.try_iter().collect();
        if !waiting.is_empty() {
            let published = Arc::new(publish());
            for reply in waiting {
                // Who has gone away in the meantime needs no answer.
                drop(reply.send(Arc::clone(&published)));
            }
        }
    }
}
