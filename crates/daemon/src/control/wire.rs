//! Questions and answers as bytes: the length (u32, little-endian), then JSON. One question and one answer per connection.
//!
//! The first field of both says the protocol's version, so that programs and daemons of different versions understand at least that.
//!
//! Invariants: at most the stated length is read; decoding any bytes ends in a value or an error; a path is kept unchanged, also if it is
//! no UTF-8.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::{Predicted, Status};

/// The version of questions and answers.
pub const PROTOCOL: u32 = 1;
/// The longest question, in bytes: one with a path of 4096 bytes, each written as a number.
pub const MOST_QUESTION: usize = 32 << 10;
/// The longest answer, in bytes.
pub const MOST_ANSWER: usize = 8 << 20;
/// Time for saving the models before the daemon announces its end: up to 64 MiB, perhaps on a slow disk.
pub const SAVING: Duration = Duration::from_secs(60);
/// Bytes of the longest path, as the kernel has it.
const MOST_PATH: usize = 4096;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// [`PROTOCOL`] of who asks.
    pub protocol: u32,
    /// The question.
    #[serde(flatten)]
    pub asked: Subject,
}

/// The question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase")]
pub enum Subject {
    /// The daemon's status.
    Status,
    /// The successors of a file.
    Predict {
        /// The file, absolute.
        #[serde(with = "path")]
        path: PathBuf,
    },
    /// The variable by which programs find the observer.
    Environment,
    /// Save the models and end.
    Stop,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// [`PROTOCOL`] of the daemon.
    pub protocol: u32,
    /// foreread's version, of the daemon.
    pub version: String,
    /// The daemon's process.
    pub pid: u32,
    /// The answer.
    #[serde(flatten)]
    pub said: Said,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "lowercase")]
pub enum Said {
    /// The daemon's status.
    Status {
        /// The part that the user may know.
        status: Box<Status>,
    },
    /// The successors of a file, nearest first.
    Predicted {
        /// The files that the user may know of.
        files: Vec<Following>,
    },
    /// The variable by which programs find the observer.
    Environment {
        /// Its name and its value; `None` where programs need none.
        variable: Option<(String, String)>,
    },
    /// It ends.
    Stopping {
        /// Why the models are not saved; `None` if they are.
        #[serde(default)]
        unsaved: Option<String>,
    },
    /// There is no answer.
    Refused {
        /// In a sentence.
        why: String,
    },
}

/// A file that follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Following {
    /// Its path.
    #[serde(with = "path")]
    pub path: PathBuf,
    /// Likelihood, from 0 to 1.
    pub likelihood: f64,
    /// Number of events ahead: 1 for the next one.
    pub ahead: u32,
}

impl From<Predicted> for Following {
    fn from(one: Predicted) -> Self {
        Self {
            path: one.path,
            likelihood: one.likelihood,
            ahead: one.ahead,
        }
    }
}

impl Subject {
    /// The question, in bytes.
    pub fn encode(&self) -> Vec<u8> {
        let question = Question {
            protocol: PROTOCOL,
            asked: self.clone(),
        };
        serde_json::to_vec(&question).unwrap_or_default()
    }

    /// The question that these bytes are, or why they are none, in a sentence for who asked.
    ///
    /// # Errors
    /// Another version of the protocol, an invalid question, or an invalid path.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            protocol: u32,
        }
        let other = serde_json::from_slice(bytes).map_or(None, |Version { protocol }| {
            (protocol != PROTOCOL).then_some(protocol)
        });
        if let Some(protocol) = other {
            return Err(format!(
                "the question has version {protocol} of the protocol, and the daemon version {PROTOCOL}"
            ));
        }
        let question: Question =
            serde_json::from_slice(bytes).map_err(|why| format!("not a question: {why}"))?;
        if let Subject::Predict { path } = &question.asked {
            let name = path.as_os_str().as_bytes();
            let sound = path.is_absolute() && name.len() < MOST_PATH && !name.contains(&0);
            if !sound {
                return Err("not an absolute path".to_owned());
            }
        }
        Ok(question.asked)
    }
}

impl Answer {
    /// The answer, in bytes.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The answer that these bytes are.
    ///
    /// # Errors
    /// If they are none of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

/// Writes bytes with their length, within `patience`.
///
/// # Errors
/// `TimedOut` if the other side does not take them in time.
pub fn write(mut stream: &UnixStream, bytes: &[u8], patience: Duration) -> std::io::Result<()> {
    let until = Instant::now() + patience;
    let len = u32::try_from(bytes.len()).map_err(std::io::Error::other)?;
    let mut rest = &[&len.to_le_bytes(), bytes].concat()[..];
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        match stream.write(rest) {
            Ok(written) => rest = &rest[written.min(rest.len())..],
            Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

/// Reads bytes with their length, with limits of size and time.
///
/// # Errors
/// `TimedOut` or `WouldBlock` if they do not come in time, `InvalidData` if there are more, `UnexpectedEof` if there are fewer.
pub fn read(mut stream: &UnixStream, most: usize, patience: Duration) -> std::io::Result<Vec<u8>> {
    let until = Instant::now() + patience;
    let mut fill = |room: &mut [u8]| {
        let mut got = 0;
        while got < room.len() {
            stream.set_read_timeout(Some(left(until)?))?;
            match stream.read(&mut room[got..]) {
                Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => got += more,
                Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    };
    let mut len = [0; 4];
    fill(&mut len)?;
    let len = u32::from_le_bytes(len) as usize;
    if len > most {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; len];
    fill(&mut bytes)?;
    Ok(bytes)
}

/// The time left until then.
fn left(until: Instant) -> std::io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    // No time at all would be no limit.
    if left.is_zero() {
        return Err(std::io::ErrorKind::TimedOut.into());
    }
    Ok(left)
}

/// A path as text, or as a list of bytes if it is no UTF-8.
mod path {
    use serde::{Deserializer, Serializer};

    use super::{Deserialize, OsStrExt, OsString, OsStringExt, Path, PathBuf, Serialize};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, out: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => text.serialize(out),
            None => path.as_os_str().as_bytes().serialize(out),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(match Either::deserialize(from)? {
            Either::Text(text) => PathBuf::from(text),
            Either::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_question_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Subject::decode(&bytes);
            let _ = Answer::decode(&bytes);
        }

        #[test]
        fn any_path_is_asked_for_as_it_is(name in prop::collection::vec(1..=255_u8, 0..4000)) {
            let path = PathBuf::from(OsString::from_vec([b"/", &name[..]].concat()));
            let asked = Subject::Predict { path };
            let bytes = asked.encode();
            prop_assert!(bytes.len() <= MOST_QUESTION);
            prop_assert_eq!(Subject::decode(&bytes), Ok(asked));
        }

        #[test]
        fn a_damaged_question_is_one_or_an_error(at in 0..60_usize, value: u8) {
            let asked = Subject::Predict { path: PathBuf::from("/some/path") };
            let mut bytes = asked.encode();
            let len = bytes.len();
            bytes[at % len] = value;
            if let Ok(Subject::Predict { path }) = Subject::decode(&bytes) {
                prop_assert!(path.is_absolute());
            }
        }
    }

    #[test]
    fn paths_that_are_no_text_are_kept() {
        let path = PathBuf::from(OsString::from_vec(b"/a\xff\n\"b".to_vec()));
        let asked = Subject::Predict { path: path.clone() };
        assert_eq!(Subject::decode(&asked.encode()), Ok(asked));
        let answer = Answer {
            protocol: PROTOCOL,
            version: "1".to_owned(),
            pid: 1,
            said: Said::Predicted {
                files: vec![Following {
                    path,
                    likelihood: 0.5,
                    ahead: 1,
                }],
            },
        };
        assert_eq!(Answer::decode(&answer.encode()).expect("an answer"), answer);
    }

    #[test]
    fn questions_of_other_versions_and_bad_paths_are_refused_with_a_reason() {
        let refused = |text: &str| Subject::decode(text.as_bytes()).expect_err("refused");
        assert!(refused(r#"{"protocol":7,"ask":"dance","to":[1]}"#).contains("version 7"));
        assert!(refused(r#"{"protocol":1,"ask":"dance"}"#).contains("not a question"));
        let many = "[".repeat(10_000);
        assert!(refused(&many).contains("not a question"));
        for path in ["\"etc\"", "\"\"", "\"/a\\u0000b\"", "[47,0]"] {
            let text = format!(r#"{{"protocol":1,"ask":"predict","path":{path}}}"#);
            assert!(refused(&text).contains("absolute path"), "{path}");
        }
        let long = format!(
            r#"{{"protocol":1,"ask":"predict","path":"/{}"}}"#,
            "a".repeat(4096)
        );
        assert!(refused(&long).contains("absolute path"));
    }

    #[test]
    fn what_is_too_long_too_short_or_too_slow_is_an_error() {
        let pair = || UnixStream::pair().expect("sockets");
        let soon = Duration::from_millis(50);
        let (near, far) = pair();
        write(&near, b"12345", soon).expect("room");
        assert_eq!(read(&far, 5, soon).expect("bytes"), b"12345");
        write(&near, b"123456", soon).expect("room");
        assert_eq!(
            read(&far, 5, soon).map_err(|why| why.kind()),
            Err(std::io::ErrorKind::InvalidData)
        );
        let (near, far) = pair();
        (&near).write_all(&[5, 0, 0, 0, b'1']).expect("room");
        assert!(read(&far, 5, soon).is_err(), "too slow");
        let (near, far) = pair();
        (&near).write_all(&[5, 0, 0, 0, b'1']).expect("room");
        drop(near);
        assert_eq!(
            read(&far, 5, soon).map_err(|why| why.kind()),
            Err(std::io::ErrorKind::UnexpectedEof)
        );
        // A client that does not read is not waited for.
        let (near, _far) = pair();
        assert!(write(&near, &vec![0; MOST_ANSWER], soon).is_err());
    }
}
