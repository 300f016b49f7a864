//! Questions to the loop, from the control socket's threads or a test.
//!
//! Data flow: [`Desk::ask`] → channel → the loop, woken by an eventfd → [`Counter`] answers each. A loop that has ended
//! answers nobody.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use serde::{Deserialize, Serialize};

use crate::Status;

/// Questions that wait for the loop, at most: who asks more has no answer.
const WAITING: usize = 64;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The daemon's status.
    Status,
    /// The files that would be fetched after this file was opened by this user, limited to files that the user may read.
    Predict {
        /// The file, absolute.
        path: PathBuf,
        /// The asking user.
        uid: u32,
    },
    /// The variable by which programs find the observer.
    Environment,
    /// Save the models, close the account and end.
    Stop,
}

/// The answer to an [`Ask`].
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The daemon's status.
    Status(Box<Status>),
    /// Nearest first. Empty if nothing is predicted, or if the prediction is not for this user.
    Predicted(Vec<Predicted>),
    /// The variable and its value; `None` where programs need none.
    Environment(Option<(&'static str, String)>),
    /// It has saved the models, or has the reason why it could not, and ends.
    Stopping(Option<String>),
}

/// A file that is expected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    /// Its path.
    pub path: PathBuf,
    /// Likelihood, from 0 to 1.
    pub likelihood: f64,
    /// Number of events ahead: 1 for the next one.
    pub ahead: u32,
}

struct Question {
    ask: Ask,
    reply: SyncSender<Answer>,
}

/// The place for questions. Clones share it.
#[derive(Clone)]
pub struct Desk {
    questions: SyncSender<Question>,
    bell: Arc<OwnedFd>,
}

/// The loop's side of the desk.
pub struct Counter {
    questions: Receiver<Question>,
    bell: Arc<OwnedFd>,
}

/// A desk and its counter.
///
/// # Errors
/// When there is no descriptor left.
pub fn desk() -> std::io::Result<(Desk, Counter)> {
    let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (sender, receiver) = sync_channel(WAITING);
    let desk = Desk {
        questions: sender,
        bell: Arc::clone(&bell),
    };
    let counter = Counter {
        questions: receiver,
        bell,
    };
    Ok((desk, counter))
}

impl Desk {
    /// The answer; `None` if the loop has ended, has too many questions, or has not answered in time.
    pub fn ask(&self, ask: Ask, patience: Duration) -> Option<Answer> {
        let (reply, answer) = sync_channel(1);
        self.questions.try_send(Question { ask, reply }).ok()?;
        // A bell that rings already need not be rung.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        answer.recv_timeout(patience).ok()
    }
}

impl Counter {
    /// Readable while there are questions.
    pub(crate) fn wait_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Answers all waiting questions.
    pub(crate) fn answer(&mut self, mut answer: impl FnMut(Ask) -> Answer) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.bell, &mut count);
        for question in self.questions.try_iter().take(WAITING) {
            // The asking thread may be gone.
            let _ = question.reply.try_send(answer(question.ask));
        }
    }
}
