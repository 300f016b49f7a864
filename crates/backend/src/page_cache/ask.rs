//! The thread that answers questions about files: opening a file may take as long as its device, or for ever.
//!
//! Invariants: every question is answered by exactly one `Event::Answered`, in order, unless its file system never answers; between
//! questions no file is open: they may come for as long as the program runs, and its file system is to be unmounted meanwhile.

use std::collections::HashSet;
use std::io;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::Thread;

use foreread_plan::FileId;
use foreread_sys::processor::Aside;

use super::context::Context;
use super::file::Opened;
use super::files::Files;
use crate::{Answer, Change, Event, Question, Standing};

/// The state of the thread.
pub(super) struct Asker {
    files: Files,
    events: Sender<Event>,
    /// The thread that takes the events.
    taker: Thread,
    /// The file of the last question, kept open while another question waits.
    last: Option<(FileId, Opened)>,
    /// Examined files, by number and inode as they were known.
    met: HashSet<(FileId, u64)>,
    aside: Aside,
}

impl Asker {
    /// Creates it; the taker of its events starts it.
    pub(super) fn new(context: &Context) -> Self {
        Self {
            files: context.files.clone(),
            events: context.event.clone(),
            taker: std::thread::current(),
            last: None,
            met: HashSet::new(),
            aside: context.aside.clone(),
        }
    }

    /// Answer until the backend is dropped.
    pub(super) fn run(mut self, inbox: &Receiver<Question>) {
        while let Ok(question) = inbox.recv() {
            self.aside.keep();
            self.answer(&question);
            while let Ok(question) = inbox.try_recv() {
                self.answer(&question);
            }
            self.last = None;
            self.taker.unpark();
        }
    }

    fn answer(&mut self, question: &Question) {
        let answer = match self.look_at(question.file) {
            Some(opened) => Answer {
                length: Some(opened.pages()),
                parts: question
                    .parts
                    .iter()
                    .map(|part| opened.standing(part, question.which))
                    .collect(),
            },
            // A file that cannot be opened has no missing pages.
            None => Answer {
                length: None,
                parts: question
                    .parts
                    .iter()
                    .map(|part| Standing {
                        resident: Some(part.end - part.start),
                        ..Standing::default()
                    })
                    .collect(),
            },
        };
        self.report(Event::Answered {
            ticket: question.ticket,
            answer,
        });
    }

    /// The file in its present state, opened for examination.
    fn look_at(&mut self, file: FileId) -> Option<&mut Opened> {
        let (_, place) = self.files.place(file);
        let is_it = |(last, opened): &(FileId, Opened)| *last == file && opened.place.1 == place;
        if !self.last.as_ref().is_some_and(is_it) {
            let known = self.files.get(file)?;
            let ino = known.meta.ino;
            let opened = Opened::open(known);
            if self.met.insert((file, ino)) {
                self.differs(file, &opened);
            }
            self.last = Some((file, opened.ok()?));
        }
        let (_, opened) = self.last.as_mut()?;
        opened.look_again();
        Some(opened)
    }

    /// Reports how a file differs from its record. A file written in place may still be read as before.
    fn differs(&self, file: FileId, opened: &io::Result<Opened>) {
        match opened {
            Ok(opened) => match &opened.change {
                None | Some(Change::Modified) => {}
                Some(change) => self.report(Event::Changed {
                    file,
                    change: change.clone(),
                }),
            },
            Err(why) => self.report(Event::Gone {
                file,
                why: why.to_string(),
            }),
        }
    }

    fn report(&self, event: Event) {
        // The session may be over.
        let _ = self.events.send(event);
    }
}
