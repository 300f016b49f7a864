//! A backend that does nothing.

use std::ops::Range;

use foreread_plan::{FileId, Kind, Request};

use crate::{Answer, Backend, DeviceFacts, Event, Outcome, Question, Standing};

/// A backend that completes every request at once without fetching.
#[derive(Debug, Default)]
pub struct NullBackend {
    events: Vec<Event>,
}

impl Backend for NullBackend {
    fn device(&mut self, _: FileId) -> Option<u64> {
        Some(0)
    }

    fn facts(&mut self, _: u64) -> DeviceFacts {
        DeviceFacts {
            name: "null".into(),
            positions: Some(false),
        }
    }

    fn prepare(&mut self, _: FileId) {}

    fn submit(&mut self, request: Request) {
        self.events.push(Event::Done {
            id: request.id,
            fetched: false,
            complete: false,
        });
    }

    fn poll(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.events);
    }

    fn look(&mut self, names: &[(FileId, Kind)]) {
        let looked = names.iter().map(|&(file, kind)| Event::Looked {
            file,
            kind,
            outcome: Outcome::InMemory,
        });
        self.events.extend(looked);
    }

    fn ask(&mut self, question: Question) {
        let answer = Answer {
            length: None,
            parts: vec![Standing::default(); question.parts.len()],
        };
        self.events.push(Event::Answered {
            ticket: question.ticket,
            answer,
        });
    }

    fn discard(&mut self, _: FileId, _: Range<u64>) {}
}
