//! Passes snapshots from the thread that reads the probes to the HTTP server.
//!
//! The recorder answers between two ticks. Without a request it copies nothing.

use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc;

use rustix::event::EventfdFlags;
use rustix::event::eventfd;
use rustix::io;
use tokio::sync::oneshot;

use crate::exposition::Snapshot;

type Reply = oneshot::Sender<Arc<Snapshot>>;

/// The server's side: requests a snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotRequester {
    requests: mpsc::Sender<Reply>,
    wakeup_fd: Arc<OwnedFd>,
}

/// The recorder's side: answers requests.
#[derive(Debug)]
pub struct SnapshotResponder {
    requests: mpsc::Receiver<Reply>,
    wakeup_fd: Arc<OwnedFd>,
}

/// Creates both sides.
///
/// # Errors
/// When the process has no descriptor left.
pub fn channel() -> std::io::Result<(SnapshotRequester, SnapshotResponder)> {
    let wakeup_fd = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (sender, receiver) = mpsc::channel();
    let requester = SnapshotRequester {
        requests: sender,
        wakeup_fd: Arc::clone(&wakeup_fd),
    };
    let responder = SnapshotResponder {
        requests: receiver,
        wakeup_fd,
    };
    Ok((requester, responder))
}

impl SnapshotRequester {
    /// The newest values; `None` if the recorder is ending.
    pub async fn snapshot(&self) -> Option<Arc<Snapshot>> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(reply).ok()?;
        io::write(&*self.wakeup_fd, &1_u64.to_ne_bytes()).ok()?;
        answer.await.ok()
    }
}

impl SnapshotResponder {
    /// Readable while a request waits.
    pub fn wakeup_fd(&self) -> BorrowedFd<'_> {
        self.wakeup_fd.as_fd()
    }

    /// Answers all waiting requests with one snapshot.
    pub fn answer(&self, take_snapshot: impl FnOnce() -> Snapshot) {
        // The read resets the eventfd; it fails with EAGAIN if there is no request.
        if io::read(&*self.wakeup_fd, &mut [0; 8]).is_err() {
            return;
        }
        let waiting: Vec<_> = self.requests.try_iter().collect();
        if !waiting.is_empty() {
            let snapshot = Arc::new(take_snapshot());
            for reply in waiting {
                // The client may have disconnected meanwhile.
                drop(reply.send(Arc::clone(&snapshot)));
            }
        }
    }
}
