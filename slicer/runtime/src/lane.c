/* lane.c - the call IDs of one prefetch thread (AASFP, section 5.1). */
#include "lane.h"

#include "counter.h"
#include "hold.h"
#include "process.h"
#include "trace.h"

#define PAGE_SHIFT 12
/* Time, in ns, after which a prefetch thread ends that is behind and does not catch up: the length of some waits of
 * the program for a disk, during which it could catch up. Checked every LATE late calls. */
#define HOPELESS 5000000
#define LATE 1024
/* Number of stretches (256 KiB) in order in which the program is let go first: from an index of that length, the
 * thread can still learn what follows. After more, the rest is assumed to be in order, too. */
#define STRETCHES 64
/* Time between two checks while the thread waits for the program, and time without a call after which it stops
 * waiting; ns. */
#define GLANCE 200000
#define STALLED 20000000
/* Calls between two reads of the program's counter. */
#define LOOK 64
/* Calls that a thread may be ahead, per entry of the queue. Calls without an entry (reads in order, or repeated
 * ones) would otherwise let it run an endless loop as long as the program lives. REST: time between two checks
 * whether it may continue, in ns. */
#define CALLS_AHEAD 256
#define REST 10000000

static uint64_t ahead(const struct lane *lane) {
    return lane->pushed - lane->passed + lane->hold.count;
}

/* Sleeps until ROOM entries of a full queue are free. With the lock held. */
static void wait_for_room(struct lane *lane) {
    uint64_t room = lanes_size() < ROOM ? lanes_size() : ROOM;
    int64_t since = clock_ns(CLOCK_MONOTONIC);
    hold_release(lane);
    lane->sleeps = true;
    trace_waits(1);
    while (lanes_size() - ahead(lane) < room)
        pthread_cond_wait(&lane->room, &lane->lock);
    trace_waits(-1);
    lane->sleeps = false;
    lane->waited_ns[WAIT_ROOM] += clock_ns(CLOCK_MONOTONIC) - since;
}

/* True if the last read was of these pages, too. */
static bool is_again(struct lane *lane, struct file *file, uint64_t first, uint64_t end) {
    if (file == lane->last_file && first >= lane->last_first && end <= lane->last_end)
        return true;
    lane->last_file = file;
    lane->last_first = first;
    lane->last_end = end;
    return false;
}

/* The program's number of calls, as far as it matters here. Each read of its counter takes the cache line from the
 * program's processor. No read is needed if the last one showed that the program is ahead, or was less than LOOK
 * calls ago. */
static uint64_t program_calls(struct lane *lane, uint64_t id) {
    if (lane->known_calls <= id && id >= lane->look_at) {
        lane->known_calls = shared_calls(lane->shared);
        lane->look_at = id + LOOK;
    }
    return lane->known_calls;
}

/* True if the program has made this call already. A thread that only repeats the program's reads, because each
 * address depends on the data before, wastes processor and disk: it ends. */
static bool is_late(struct lane *lane, uint64_t id) {
    if (program_calls(lane, id) <= id) {
        lane->late = 0;
        return false;
    }
    if (lane->late++ % LATE != 0)
        return true;
    int64_t now = clock_ns(CLOCK_MONOTONIC);
    uint64_t behind = shared_calls(lane->shared) - id;
    if (lane->late == 1 || behind < lane->behind) {
        lane->behind = behind;
        lane->late_ns = now;
    } else if (now - lane->late_ns > HOPELESS) {
        lane_end("does not keep up");
    }
    return true;
}

/* True if a lane has been assigned to the program's thread of this path. */
static bool has_counter(struct lane *lane) {
    if (lane->shared == NULL)
        lane->shared = shared_lane(process_shared(), lane->path);
    return lane->shared != NULL;
}

/* Sleeps while the program is far behind. */
static void rest(struct lane *lane, uint64_t id) {
    if (id - lane->known_calls < lanes_size() * CALLS_AHEAD)
        return;
    int64_t since = lane_wait_begin();
    trace_waits(1);
    while (id - (lane->known_calls = shared_calls(lane->shared)) > lanes_size() * CALLS_AHEAD / 2)
        nanosleep(&(struct timespec){.tv_nsec = REST}, NULL);
    trace_waits(-1);
    lane_wait_end(WAIT_ROOM, since);
}

/* Writes a call to the trace, once per call, and reports that it is reached. */
static void write_down(enum trace_kind kind, const struct lane *lane, uint64_t id, const struct file *file, uint64_t offset,
                       uint64_t bytes) {
    struct trace_seen read = {.placed = file != NULL, .offset = offset, .bytes = bytes};
    if (file != NULL)
        file_identity(file, &read.dev, &read.ino);
    trace_add(kind, lane->path, id, &read);
    if (lane->shared != NULL)
        trace_reached((size_t)(lane->shared - process_shared()->lanes), id + 1);
}

/* Counts the characters that the program's own code has read here, unless counting is paused. */
static void count_characters(void) {
    unsigned n = FOREREAD_CHARACTERS - foreread_left;
    foreread_left = FOREREAD_CHARACTERS;
    if (foreread_counter != &counter_nobody)
        lane_calls(n);
}

/* Assigns the next call its ID, a read of these bytes if a file is given. True if the program has not made the call
 * yet. */
static bool next_call(struct lane *lane, uint64_t *id, enum trace_kind kind, const struct file *file, uint64_t offset,
                      uint64_t bytes) {
    if (foreread_left != FOREREAD_CHARACTERS)
        count_characters();
    *id = atomic_load_explicit(&lane->next_id, memory_order_relaxed);
    atomic_store_explicit(&lane->next_id, *id + 1, memory_order_relaxed);
    bool counted = has_counter(lane);
    if (trace_is_on())
        write_down(kind, lane, *id, file, offset, bytes);
    if (!counted) {
        lane->refused++;
        return false;
    }
    if (is_late(lane, *id)) {
        lane->expired++;
        return false;
    }
    rest(lane, *id);
    return true;
}

void lane_count(void) {
    uint64_t id;
    if (lane_self != NULL)
        next_call(lane_self, &id, TRACE_CALL, NULL, 0, 0);
}

void lane_had(struct file *file, uint64_t offset, uint64_t bytes) {
    uint64_t id;
    if (lane_self != NULL)
        next_call(lane_self, &id, TRACE_READ, file, offset, bytes);
}

void lane_calls(unsigned n) {
    uint64_t id;
    while (n-- > 0 && lane_self != NULL)
        next_call(lane_self, &id, TRACE_WHOLE, NULL, 0, 0);
}

void prefetch_uncount(void) {
    if (lane_self == NULL)
        return;
    atomic_fetch_sub_explicit(&lane_self->next_id, 1, memory_order_relaxed);
    trace_add(TRACE_UNCOUNT, lane_self->path, 0, NULL);
}

/* Puts a read with this ID on hold, unless the last was of the same pages. */
static void announce(struct lane *lane, uint64_t id, struct file *file, int fd, uint64_t offset,
                     uint64_t bytes) {
    if (is_again(lane, file, offset >> PAGE_SHIFT, ((offset + bytes - 1) >> PAGE_SHIFT) + 1)) {
        lane->coalesced++;
        return;
    }
    pthread_mutex_lock(&lane->lock);
    if (ahead(lane) >= lanes_size())
        wait_for_room(lane);
    hold_add(lane, (struct reading){id, file, fd, offset, bytes});
    bool first = lane->hold.count == 1;
    pthread_mutex_unlock(&lane->lock);
    if (first)
        process_ring();
}

static void next_read(enum trace_kind kind, struct file *file, int fd, uint64_t offset, uint64_t bytes) {
    struct lane *lane = lane_self;
    uint64_t id;
    if (lane == NULL || !next_call(lane, &id, kind, file, offset, bytes) || file == NULL || bytes == 0)
        return;
    announce(lane, id, file, fd, offset, bytes);
}

void lane_read(struct file *file, int fd, uint64_t offset, uint64_t bytes) {
    next_read(TRACE_READ, file, fd, offset, bytes);
}

void lane_look(struct file *file, int fd, uint64_t offset, uint64_t bytes) {
    next_read(TRACE_LOOK, file, fd, offset, bytes);
}

/* True if all these pages were loaded recently: loads return to a page more often than reads do. */
static bool is_recent(struct lane *lane, const struct file *file, uint64_t first, uint64_t end) {
    bool every = true;
    for (uint64_t page = first; page < end; page++) {
        uint64_t key = ((uint64_t)file_number(file) + 1) << 48 | page;
        uint64_t *place = &lane->recent[page & (RECENT - 1)];
        every &= *place == key;
        *place = key;
    }
    return every;
}

void lane_load(struct file *file, int fd, uint64_t offset, uint64_t bytes) {
    struct lane *lane = lane_self;
    if (lane == NULL || !has_counter(lane))
        return;
    if (is_recent(lane, file, offset >> PAGE_SHIFT, ((offset + bytes - 1) >> PAGE_SHIFT) + 1)) {
        lane->coalesced++;
        return;
    }
    uint64_t id = atomic_load_explicit(&lane->next_id, memory_order_relaxed);
    if (program_calls(lane, id) > id) {
        lane->expired++;
        return;
    }
    announce(lane, id, file, fd, offset, bytes);
}

void lane_closes(void) {
    struct lane *lane = lane_self;
    if (lane == NULL)
        return;
    pthread_mutex_lock(&lane->lock);
    hold_release(lane);
    pthread_mutex_unlock(&lane->lock);
}

int64_t lane_wait_begin(void) {
    struct lane *lane = lane_self;
    if (lane != NULL) {
        pthread_mutex_lock(&lane->lock);
        hold_release(lane);
        pthread_mutex_unlock(&lane->lock);
    }
    return clock_ns(CLOCK_MONOTONIC);
}

/* Waits until the program has made this many calls, or makes none for a while. */
static void let_ahead(struct lane *lane, uint64_t calls) {
    if (++lane->behind_in_order > STRETCHES)
        lane_end("reads in order with the program");
    uint64_t seen = 0;
    trace_waits(1);
    int64_t now = clock_ns(CLOCK_MONOTONIC), moved = now;
    for (uint64_t made; (made = shared_calls(lane->shared)) < calls; now = clock_ns(CLOCK_MONOTONIC)) {
        if (made != seen)
            moved = now;
        else if (now - moved > STALLED)
            break;
        seen = made;
        nanosleep(&(struct timespec){.tv_nsec = GLANCE}, NULL);
    }
    trace_waits(-1);
    /* Being behind is intended here. */
    lane->late = 0;
}

int64_t lane_fetch(struct file *file, uint64_t offset, uint64_t bytes) {
    struct lane *lane = lane_self;
    int64_t since = lane_wait_begin();
    uint64_t id;
    if (lane == NULL)
        return since;
    next_call(lane, &id, TRACE_READ, file, offset, bytes);
    trace_reads();
    if (file == NULL || lane->shared == NULL)
        return since;
    const struct reading reading = {.id = id, .file = file, .offset = offset, .bytes = bytes};
    pthread_mutex_lock(&lane->lock);
    uint64_t stretch = hold_fetch(lane, &reading);
    pthread_mutex_unlock(&lane->lock);
    if (stretch > 0)
        let_ahead(lane, id + stretch);
    return since;
}

void lane_fetched(int64_t bytes) {
    trace_bytes(bytes);
}

void lane_wait_end(enum wait what, int64_t since) {
    if (lane_self != NULL)
        lane_self->waited_ns[what] += clock_ns(CLOCK_MONOTONIC) - since;
}
