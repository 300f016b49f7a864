//! The daemon's control socket, on bytes of anybody.
//!
//! Whatever is a question is the same question once more; whatever is an answer can be written.
//!
//!     cargo +nightly fuzz run control_decode

#![no_main]

use foreread_daemon::control::wire::{Answer, Subject};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(asked) = Subject::decode(bytes) {
        assert_eq!(Subject::decode(&asked.encode()), Ok(asked));
    }
    if let Ok(answer) = Answer::decode(bytes) {
        assert!(Answer::decode(&answer.encode()).is_ok());
    }
});
