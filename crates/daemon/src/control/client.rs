//! The side of whoever asks.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use foreread_sys::user::User;

use super::wire::{self, Answer, MOST_ANSWER, PROTOCOL, SAVING, Said, Subject};

/// Time for an answer: the loop may be saving its models to a slow disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// The reason for having no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// Nobody listens.
    #[error("no daemon is running")]
    NotRunning,
    /// The listener belongs to another user.
    #[error("{path} belongs to user {uid}, who is neither root nor the one who asks")]
    Stranger {
        /// The socket.
        path: String,
        /// Whose process listens.
        uid: u32,
    },
    /// It refused, with this reason.
    #[error("the daemon refuses: {0}")]
    Refused(String),
    /// It has another version.
    #[error(
        "the daemon is of version {version}, and this program of version {}: restart the daemon",
        env!("CARGO_PKG_VERSION")
    )]
    OtherVersion {
        /// The daemon's.
        version: String,
    },
    /// There was none, or none to be understood.
    #[error("the daemon does not answer: {0}")]
    NoAnswer(io::Error),
}

/// Asks the daemon that listens at `socket`.
///
/// # Errors
/// If there is no daemon, no answer, or a refusal.
pub fn ask(socket: &Path, asked: &Subject) -> Result<Answer, AskError> {
    let stream = UnixStream::connect(socket).map_err(|why| match why.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => AskError::NotRunning,
        _ => AskError::NoAnswer(why),
    })?;
    let listener = User::at(stream.as_fd()).map_err(AskError::NoAnswer)?;
    if listener.uid != 0 && listener.uid != rustix::process::geteuid().as_raw() {
        return Err(AskError::Stranger {
            path: socket.display().to_string(),
            uid: listener.uid,
        });
    }
    // A daemon that refuses at once closes its end before it has read the question; its answer is available all the same.
    let written = wire::write(&stream, &asked.encode(), PATIENCE);
    let patience = if *asked == Subject::Stop {
        SAVING
    } else {
        PATIENCE
    };
    let bytes = wire::read(&stream, MOST_ANSWER, patience);
    let bytes = bytes.map_err(|why| AskError::NoAnswer(written.err().unwrap_or(why)))?;
    let answer = decode(&bytes)?;
    match answer.said {
        Said::Refused { why } => Err(AskError::Refused(why)),
        _ => Ok(answer),
    }
}

/// The answer, if its protocol is this program's.
fn decode(bytes: &[u8]) -> Result<Answer, AskError> {
    #[derive(serde::Deserialize)]
    struct Version {
        protocol: u32,
        version: String,
    }
    if let Ok(Version { protocol, version }) = serde_json::from_slice(bytes)
        && protocol != PROTOCOL
    {
        return Err(AskError::OtherVersion { version });
    }
    Answer::decode(bytes).map_err(|why| AskError::NoAnswer(why.into()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// The error about a daemon that answers with these bytes.
    fn told(bytes: &'static [u8]) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        let daemon = std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a client");
            wire::read(&stream, wire::MOST_QUESTION, PATIENCE).expect("a question");
            wire::write(&stream, bytes, PATIENCE).expect("room");
        });
        let answer = ask(&path, &Subject::Status);
        daemon.join().expect("it ends");
        answer.expect_err("no answer").to_string()
    }

    #[test]
    fn a_daemon_of_another_version_is_named() {
        let newer = br#"{"protocol":2,"version":"9.8.7","answer":"a poem"}"#;
        assert!(told(newer).contains("version 9.8.7"));
        assert!(told(b"{}").contains("does not answer"));
        let refused = br#"{"protocol":1,"version":"1","pid":1,"answer":"refused","why":"no"}"#;
        assert_eq!(told(refused), "the daemon refuses: no");
    }

    #[test]
    fn where_nobody_listens_no_daemon_is_running() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        assert!(matches!(
            ask(&path, &Subject::Status),
            Err(AskError::NotRunning)
        ));
        drop(UnixListener::bind(&path).expect("a socket"));
        assert!(matches!(
            ask(&path, &Subject::Status),
            Err(AskError::NotRunning)
        ));
    }
}
