/*
 * hold.c - which reads are left to the kernel.
 *
 * A file that is read in order the kernel reads ahead by itself, as well as any list would have it; announcing it
 * would only have two ask for the same, on a disk that has better things to do. A prefetch thread is usually far
 * ahead, so its reads can wait for a moment until it shows which belong to such streams: those are dropped, and
 * the others released. Without any other the program costs no more than a process that sleeps.
 *
 * A program may read several files in turn. Several streams in one file are none: the kernel, too, loses sight of
 * them (it keeps one window for each open file).
 */
#include "hold.h"

/* Bytes from which on a stream is the kernel's: two of its default windows (128 KiB). */
#define KERNELS (256 * 1024)
/* Bytes a stream may leave out between two reads: with more, a read misses the four pages that the
 * kernel's read-ahead begins with, and it never starts. */
#define SKIP (12 * 1024)

/* Reads in no stream with which the session is begun at once: what they lead to takes some milliseconds. */
#define SCATTERED 256

/* The stream of the reading's file, begun anew if the reading does not go on with it. */
static size_t stream_of(struct hold *hold, const struct reading *reading) {
    size_t found = 0;
    for (size_t n = 0; n < STREAMS; n++) {
        const struct stream *stream = &hold->streams[n];
        if (stream->file == reading->file) {
            if (reading->offset >= stream->end && reading->offset - stream->end <= SKIP)
                return n;
            found = n;
            break;
        }
        if (stream->used_at < hold->streams[found].used_at)
            found = n;
    }
    /* What is on hold of the one it replaces is in no stream. */
    for (size_t n = hold->streams[found].first; n < hold->count; n++)
        if (hold->in_stream[n] == found)
            hold->in_stream[n] = STREAMS;
    hold->streams[found] = (struct stream){.file = reading->file, .end = reading->offset, .first = hold->count};
    return found;
}

/* The stream has come to the reading's end. */
static void advance(struct stream *stream, const struct reading *reading) {
    stream->run += reading->offset - stream->end + reading->bytes;
    stream->end = reading->offset + reading->bytes;
    /* Call IDs only grow: the time it was used. */
    stream->used_at = reading->id + 1;
}

/* So many stay on hold, in other places than before. */
static void settle(struct hold *hold, size_t count) {
    hold->count = count;
    for (size_t n = 0; n < STREAMS; n++)
        hold->streams[n].first = 0;
}

/* Takes what is on hold of a stream out. */
static void drop(struct hold *hold, size_t stream) {
    size_t kept = 0;
    for (size_t n = 0; n < hold->count; n++) {
        if (hold->in_stream[n] == stream)
            continue;
        hold->readings[kept] = hold->readings[n];
        hold->in_stream[kept++] = hold->in_stream[n];
    }
    hold->left += hold->count - kept;
    settle(hold, kept);
}

static size_t scattered(const struct hold *hold) {
    size_t found = 0;
    for (size_t n = 0; n < hold->count; n++)
        found += hold->in_stream[n] == STREAMS;
    return found;
}

void hold_add(struct lane *lane, struct reading reading) {
    struct hold *hold = &lane->hold;
    size_t number = stream_of(hold, &reading);
    struct stream *stream = &hold->streams[number];
    uint64_t before = stream->run;
    advance(stream, &reading);
    if (before >= KERNELS) {
        hold->left++;
        return;
    }
    if (hold->count == HELD)
        hold_release(lane);
    if (hold->count == 0)
        hold->since = clock_ns(CLOCK_MONOTONIC);
    hold->readings[hold->count] = reading;
    hold->in_stream[hold->count++] = (unsigned char)number;
    /* One read of that size is not a stream: the kernel waits for it to its end. */
    if (before > 0 && stream->run >= KERNELS)
        drop(hold, number);
    if (!lane_is_ready(lane) && scattered(hold) >= SCATTERED)
        hold_release(lane);
}

/* What the thread fetches for itself counts from this call on. */
static void begin(struct hold *hold, uint64_t id) {
    hold->fetched = 0;
    hold->fetched_from = id;
}

/* A file that both read in order at the same time, they read slower than the program would by itself: each finds in
 * memory what the other has read, so that the kernel takes neither for a reader in order. A thread that is further ahead
 * than the kernel reads does no harm, and one that announces something meanwhile has a use. */
uint64_t hold_fetch(struct lane *lane, const struct reading *reading) {
    struct hold *hold = &lane->hold;
    struct stream *stream = &hold->streams[stream_of(hold, reading)];
    uint64_t before = stream->run;
    advance(stream, reading);
    if (before == 0)
        begin(hold, reading->id);
    hold->fetched += stream->run - before;
    if (hold->fetched < KERNELS)
        return 0;
    uint64_t from = hold->fetched_from;
    begin(hold, reading->id);
    return shared_calls(lane->shared) > from ? reading->id - from : 0;
}

void hold_release(struct lane *lane) {
    struct hold *hold = &lane->hold;
    for (size_t n = 0; n < hold->count; n++)
        lane_push(lane, &hold->readings[n]);
    settle(hold, 0);
    lane_flush(lane);
}
