/*
 * hold.c - decides which reads are left to the kernel.
 *
 * The kernel reads ahead by itself in a file that is read in order, as well as any list could. Announcing such reads
 * would only make two ask for the same data, on a disk that has better things to do. A prefetch thread is usually
 * far ahead, so its reads can wait until it is clear which belong to such streams: those are dropped, and the others
 * released. If there are no others, the process costs the program no more than a sleeping one.
 *
 * A program may read several files in turn. Several streams in one file count as none: the kernel, too, loses track
 * of them (it keeps one window per open file).
 */
#include "hold.h"

/* Bytes after which a stream is left to the kernel: two of its default windows (128 KiB). */
#define KERNELS (256 * 1024)
/* Bytes that a stream may skip between two reads. With larger gaps, a read misses the four pages with which the
 * kernel's read-ahead begins, and read-ahead never starts. */
#define SKIP (12 * 1024)

/* Number of reads outside of streams at which the session begins at once: its start takes some milliseconds. */
#define SCATTERED 256

/* The stream of the reading's file. A new stream if the reading does not continue the old one. */
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
    /* Held reads of the replaced stream are in no stream. */
    for (size_t n = hold->streams[found].first; n < hold->count; n++)
        if (hold->in_stream[n] == found)
            hold->in_stream[n] = STREAMS;
    hold->streams[found] = (struct stream){.file = reading->file, .end = reading->offset, .first = hold->count};
    return found;
}

/* Extends the stream to the end of the reading. */
static void advance(struct stream *stream, const struct reading *reading) {
    stream->run += reading->offset - stream->end + reading->bytes;
    stream->end = reading->offset + reading->bytes;
    /* Call IDs only grow, so they show the time of the last use. */
    stream->used_at = reading->id + 1;
}

/* Sets the number of held readings, whose places have changed. */
static void settle(struct hold *hold, size_t count) {
    hold->count = count;
    for (size_t n = 0; n < STREAMS; n++)
        hold->streams[n].first = 0;
}

/* Removes a stream's held readings. */
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
    /* A single read of that size is not a stream: the kernel waits for it until its end. */
    if (before > 0 && stream->run >= KERNELS)
        drop(hold, number);
    if (!lane_is_ready(lane) && scattered(hold) >= SCATTERED)
        hold_release(lane);
}

/* Starts a new sum of the bytes that the thread fetches for itself, at this call. */
static void begin(struct hold *hold, uint64_t id) {
    hold->fetched = 0;
    hold->fetched_from = id;
}

/* If both threads read a file in order at the same time, both are slower than the program alone: each finds in
 * memory what the other has read, so that the kernel recognizes neither as reading in order. A thread that is
 * further ahead than the kernel's read-ahead does no harm, and one that announces reads in between is useful. */
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
