//! Passes the scheduler's requests to the backend.

use std::ops::Range;

use foreread_backend::Backend;
use foreread_plan::{FileId, Request, RequestId};

use super::Engine;

impl<B: Backend> Engine<B> {
    /// Submit these requests in this order; those that follow each other and are of small files that are kin, together.
    pub(super) fn submit(&mut self, requests: Vec<Request>) {
        let mut together = Vec::new();
        let mut kin = None;
        for request in requests {
            // The request may want infill of an earlier one.
            self.want(request.id, request.file, &request.pages);
            let next = self.backend.kin(request.file);
            if next.is_none() || next != kin {
                self.submit_all(&mut together);
            }
            kin = next;
            together.push(request);
        }
        self.submit_all(&mut together);
    }

    fn submit_all(&mut self, together: &mut Vec<Request>) {
        let requests = std::mem::take(together);
        match <[_; 1]>::try_from(requests) {
            Ok([request]) => self.backend.submit(request),
            Err(requests) if requests.is_empty() => {}
            Err(requests) => self.backend.submit_together(requests),
        }
    }

    /// These pages of a request are wanted, except for its infill.
    pub(super) fn want(&mut self, id: RequestId, file: FileId, pages: &Range<u64>) {
        let Some(at) = self.made_for(id) else {
            return;
        };
        let strand = &mut self.strands[at];
        let gaps = self.scheduler.infill(id);
        let mut from = pages.start;
        for gap in gaps {
            strand.pages.want(file, &(from..gap.start.min(pages.end)));
            from = from.max(gap.end);
        }
        strand.pages.want(file, &(from..pages.end));
    }
}
