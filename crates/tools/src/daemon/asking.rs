//! Selects the daemon's socket and asks for its status.

use std::path::{Path, PathBuf};

use anyhow::{Error, Result, anyhow};
use foreread_daemon::Status;
use foreread_daemon::cli::{SYSTEM_SOCKET, Where, own_socket};
use foreread_daemon::control::ask;
use foreread_daemon::control::wire::{Said, Subject};

/// The status of the daemon that listens on this socket.
pub(crate) fn status_at(socket: &Path) -> Result<Status> {
    match ask(socket, &Subject::Status)?.said {
        Said::Status { status } => Ok(*status),
        other => Err(unexpected(&other)),
    }
}

/// The error for an answer to another question.
pub(crate) fn unexpected(answer: &Said) -> Error {
    anyhow!("the daemon sent an answer that does not fit the question: {answer:?}")
}

/// The socket of the user's own daemon if there is one, else of root's.
pub(crate) fn to_ask(place: &Where) -> PathBuf {
    let own = || own_socket().filter(|socket| socket.exists());
    let given = place.socket.clone().or_else(own);
    given.unwrap_or_else(|| SYSTEM_SOCKET.into())
}
