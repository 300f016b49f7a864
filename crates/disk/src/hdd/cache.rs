//! The drive's cache: segments of read data, the last of which grows.
//!
//! After a read the head stays and continues to read, as far as a segment has room, until it is called elsewhere: the *stream*. Its
//! progress is a function of time, computed on demand. Finished segments stay until they are the least recently used.

use super::geometry::Geometry;
use crate::Request;

/// Segments kept.
pub(crate) const SEGMENTS: usize = 16;
/// Bytes of a segment: with `SEGMENTS`, the drive's 32 MB.
pub(crate) const SEGMENT_BYTES: u64 = 2 << 20;
/// Bytes that the head reads beyond the request: the rest of the segment is for the request itself.
const READ_AHEAD_BYTES: u64 = SEGMENT_BYTES * 3 / 4;

/// The head's doing: it passed `from` at `since` and reads on up to `limit`.
pub(crate) struct Stream {
    /// Start of the segment; it has data up to the head.
    start: u64,
    from: u64,
    since: u64,
    limit: u64,
}

impl Stream {
    /// The head's position at `now`.
    fn head(&self, geometry: &Geometry, now: u64) -> u64 {
        match now.checked_sub(self.since) {
            Some(passed) => geometry.reach(self.from, passed).min(self.limit),
            None => self.from,
        }
    }

    /// The cached part at `now`.
    fn held(&self, geometry: &Geometry, now: u64) -> (u64, u64) {
        let end = self.head(geometry, now);
        (self.start.max(end.saturating_sub(SEGMENT_BYTES)), end)
    }

    /// Goes on to `limit`; a head that had stopped waits for its place to come round.
    fn extend(&mut self, geometry: &Geometry, now: u64, limit: u64) {
        if limit <= self.limit {
            return;
        }
        let head = self.head(geometry, now);
        if head == self.limit && self.stopped_at(geometry) < now {
            self.start = self.held(geometry, now).0;
            self.from = head;
            self.since = geometry.position(now, head, head, 0);
        }
        self.limit = limit;
    }

    fn stopped_at(&self, geometry: &Geometry) -> u64 {
        self.since + geometry.media_ns(self.from, self.limit)
    }
}

pub(crate) struct Cache {
    /// Extents [start, end), least recently used first.
    segments: Vec<(u64, u64)>,
    stream: Stream,
}

impl Cache {
    pub(crate) fn new() -> Cache {
        Cache {
            segments: Vec::new(),
            stream: Stream {
                start: 0,
                from: 0,
                since: 0,
                limit: 0,
            },
        }
    }

    /// Over which byte the head is.
    pub(crate) fn head(&self, geometry: &Geometry, now: u64) -> u64 {
        self.stream.head(geometry, now)
    }

    /// True if the whole request is cached; then its segment becomes the most recently used, and an idle head reads on beyond it.
    pub(crate) fn serve(
        &mut self,
        geometry: &Geometry,
        now: u64,
        request: &Request,
        head_is_free: bool,
    ) -> bool {
        let holds = |(start, end): (u64, u64)| start <= request.offset && request.end() <= end;
        if holds(self.stream.held(geometry, now)) {
            if head_is_free {
                let limit = request.end() + READ_AHEAD_BYTES;
                self.stream.extend(geometry, now, limit);
            }
            return true;
        }
        let Some(index) = self.segments.iter().position(|segment| holds(*segment)) else {
            return false;
        };
        self.segments[index..].rotate_left(1);
        true
    }

    /// When the stream, going on, has passed the request's first byte and its
    /// last; None if that is not on its way.
    pub(crate) fn stream_ns(
        &self,
        geometry: &Geometry,
        now: u64,
        request: &Request,
    ) -> Option<(u64, u64)> {
        let stream = &self.stream;
        let (start, head) = stream.held(geometry, now);
        let moving = now <= stream.stopped_at(geometry);
        if !moving || request.offset < start || request.offset > stream.limit {
            return None;
        }
        let at = |byte: u64| {
            if byte <= head {
                now
            } else {
                stream.since + geometry.media_ns(stream.from, byte)
            }
        };
        Some((at(request.offset), at(request.end())))
    }

    /// The stream continues through the request.
    pub(crate) fn streamed(&mut self, geometry: &Geometry, now: u64, request: &Request) {
        let limit = request.end() + READ_AHEAD_BYTES;
        self.stream.extend(geometry, now, limit);
    }

    /// The head goes elsewhere, to read the request from `begins` on.
    pub(crate) fn read(&mut self, geometry: &Geometry, now: u64, request: &Request, begins: u64) {
        let (start, end) = self.stream.held(geometry, now);
        let goes_on = request.offset == end;
        if !goes_on {
            self.leave((start, end));
        }
        self.stream = Stream {
            start: if goes_on { start } else { request.offset },
            from: request.offset,
            since: begins,
            limit: request.end() + READ_AHEAD_BYTES,
        };
    }

    /// The head moves elsewhere to write until `ends`; overwritten data leave the cache.
    pub(crate) fn written(&mut self, geometry: &Geometry, now: u64, request: &Request, ends: u64) {
        self.leave(self.stream.held(geometry, now));
        self.segments
            .retain(|(start, end)| request.end() <= *start || *end <= request.offset);
        self.stream = Stream {
            start: request.end(),
            from: request.end(),
            since: ends,
            limit: request.end(),
        };
    }

    /// Empties the cache; the head stays and stops reading.
    pub(crate) fn forget(&mut self, geometry: &Geometry, now: u64) {
        self.segments.clear();
        let stream = &mut self.stream;
        if stream.since <= now {
            let head = stream.head(geometry, now);
            *stream = Stream {
                start: head,
                from: head,
                since: now,
                limit: head,
            };
        }
    }

    /// Stores the stream's data among the other segments.
    fn leave(&mut self, held: (u64, u64)) {
        if held.0 < held.1 {
            if self.segments.len() == SEGMENTS - 1 {
                self.segments.remove(0);
            }
            self.segments.push(held);
        }
    }
}
