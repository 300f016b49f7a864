//! Events made up for tests.

use foreread_observe::{Event, File, How, What, Who};

/// An event of a user's process.
pub(crate) fn event((pid, uid): (u32, u32), at: u64, what: What) -> Event {
    let who = Who {
        pid,
        tid: 0,
        uid: Some(uid),
    };
    Event { who, at, what }
}

/// The process runs another program.
pub(crate) fn began(parent: u32, program: File) -> What {
    What::Begin {
        parent,
        program,
        stdio: true,
    }
}

/// The process opens a file for reading.
pub(crate) fn opened(file: File) -> What {
    What::Open {
        handle: 0,
        file,
        took: 0,
        how: How::default(),
    }
}
