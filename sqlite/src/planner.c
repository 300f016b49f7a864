/* See planner.h. */
#include "planner.h"

#include <errno.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "room.h"

enum {
    FIRST_WINDOW = 16,     /* entries ahead when a walk has just been found */
    GROWTH = 1,            /* the window grows to so many times the entries walked: a walk that
                              ends at once has wasted no more than it has gained */
    FIRST_LOOK = 64,       /* entries looked at to see whether a walk needs help */
    DENSE_BYTES = 256 << 10, /* between entries; what a disk reads in the time of a short seek */
    MAX_WINDOW = 1 << 19,  /* entries ahead; half of what the list holds */
    MIN_MAX_WINDOW = 1024, /* of a small database */
    PAGE_LIST = 4,         /* entries ahead at most, in pages of the database: see window() */
    ASTRAY = 16,           /* reads off the list after which the list may be behind the walk */
    LOST = 1024,           /* reads off the list after which a walk has ended */
    STACK_BYTES = 512 << 10,
};

/* A connection whose statement is no walk, or needs no help, is not looked at again so soon: nanoseconds,
 * doubled from the least to the most while it goes on like that. */
static const uint64_t LEAST_QUIET = 50u * 1000 * 1000, MOST_QUIET = 800u * 1000 * 1000;

/* What a limited process needs beside the database, in bytes; libforeread takes as much again. */
static const uint64_t OWN_USE = 2u << 20;
/* Bytes of memory that it must be allowed to have: with less nothing was measured. */
static const uint64_t LEAST_LIMIT = 12u << 20;

struct walk {
    struct cursor cursor;
    struct rows rows;
    bool rows_open;
    bool ended;         /* the index has no more entries */
    uint64_t began;     /* the database's reads when the walk was where the cursor began */
    uint64_t before;    /* entries accepted by the client before this walk */
    uint64_t looked;    /* entries made for this walk */
    uint64_t listed;    /* reads on the list, and */
    uint64_t listed_at; /* reads in all, when that last changed */
    struct item items[ROWS_BATCH];
    foreread_entry entries[ROWS_BATCH];
    size_t pending, given; /* entries made, and of them those the list had room for */
};

static struct {
    pthread_mutex_t lock; /* guards the members below and each watch's next, gone and more */
    pthread_cond_t served;
    struct watch *first;
    enum { ASLEEP, RUNNING, BROKEN } state;
    sem_t wake;
    atomic_bool started; /* `state` is no longer ASLEEP */
    atomic_uint_fast64_t walks, resident, disclosed;
} planner = {.lock = PTHREAD_MUTEX_INITIALIZER, .served = PTHREAD_COND_INITIALIZER};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- one watch -------------------------------------------------------------------------------- */

static bool stopped(void *context)
{
    const struct watch *watch = context;
    return atomic_load(&watch->closing) || atomic_load(&watch->statements) != watch->statement;
}

static bool read_page(void *context, uint32_t page, uint8_t *into)
{
    return file_read(&((struct watch *)context)->file, page, into);
}

static bool resident_page(void *context, uint32_t page)
{
    return file_resident(&((struct watch *)context)->file, page);
}

static void fetch_pages(void *context, uint32_t *pages, size_t n)
{
    file_fetch(&((struct watch *)context)->file, pages, n);
}

/* Opens the database and reads its schema, again when it has changed. */
static bool know(struct watch *watch)
{
    struct btree_header header;
    if (watch->file.fd < 0 &&
        !file_open(&watch->file, watch->path, watch->device, watch->inode))
        return false;
    if (!file_header(&watch->file, &header)) {
        /* Encrypted, foreign or empty; an empty one may become a database. */
        watch->file.page_size = 512;
        if (file_pages(&watch->file) > 0)
            atomic_store(&watch->aside, true);
        return false;
    }
    bool same = watch->schema.indexes && header.cookie == watch->header.cookie &&
                header.page_size == watch->header.page_size &&
                header.usable == watch->header.usable;
    if (same)
        return true;
    watch->header = header;
    watch->file.page_size = header.page_size;
    watch->pages = (struct pages){read_page, resident_page,     fetch_pages,  stopped,
                                  watch,     header.page_size, header.usable};
    return schema_load(&watch->schema, &watch->pages);
}

/* Entries ahead of a walk that make sense: see window(). */
static uint64_t most_ahead(const struct watch *watch)
{
    uint64_t most = PAGE_LIST * file_pages(&watch->file);
    if (most < MIN_MAX_WINDOW)
        return MIN_MAX_WINDOW;
    return most < MAX_WINDOW ? most : MAX_WINDOW;
}

/* Whether what is fetched ahead stays, and costs nothing that would have stayed without. A database that just
 * fits is read once and is there for all further walks; with libforeread, which uses three quarters of what is
 * free, it would not be. On a modelled disk in a group of 16 MiB, three walks through 12 MiB took 13 s and
 * not 10, through 13 MiB 26 s and not 11; but through 8 MiB 0.5 s and not 1.8, and one through 16 MiB 16 s
 * and not 33. */
static bool has_room(const struct watch *watch)
{
    uint64_t limit = room_limit(), bytes = file_pages(&watch->file) * watch->header.page_size;
    if (limit < LEAST_LIMIT)
        return false;
    uint64_t room = limit - OWN_USE;
    return bytes > room || bytes <= room / 4 * 3;
}

static bool join_client(struct watch *watch)
{
    if (watch->client)
        return true;
    if (!has_room(watch))
        return false;
    foreread_options options = {
        .struct_size = sizeof options,
        .capacity = 2 * most_ahead(watch),
        .flags = FOREREAD_TIMED,
    };
    if (foreread_register_client(&watch->client, &options, NULL, NULL) < 0) {
        watch->client = NULL;
        return false;
    }
    watch->client_fd = foreread_register_file(watch->client, watch->path);
    if (watch->client_fd >= 0 &&
        foreread_register_region(watch->client, watch->client_fd, 0, UINT64_MAX) >= 0)
        return true;
    foreread_unregister_client(watch->client);
    watch->client = NULL;
    return false;
}

static void free_walk(struct watch *watch)
{
    if (!watch->walk)
        return;
    cursor_close(&watch->walk->cursor);
    if (watch->walk->rows_open)
        rows_close(&watch->walk->rows);
    free(watch->walk);
    watch->walk = NULL;
}

static void end_walk(struct watch *watch)
{
    if (!watch->walk)
        return;
    atomic_store(&watch->walking, false);
    foreread_request_prefetching(watch->client, NULL, 0, FOREREAD_CLEAR);
    free_walk(watch);
}

/* Fills `pending` with what the walk will read next; true when all of it is in memory. */
static bool look_ahead(struct watch *watch, size_t most)
{
    struct walk *walk = watch->walk;
    size_t n = 0;
    bool resident = true;
    walk->pending = walk->given = 0;
    while (n < most && !walk->ended) {
        if (!cursor_next(&walk->cursor, &walk->items[n])) {
            walk->ended = !stopped(watch);
            break;
        }
        /* Rows are of no interest while the index alone is read. */
        n += walk->rows_open || !walk->items[n].row;
    }
    if (walk->rows_open)
        rows_resolve(&walk->rows, walk->items, n);
    for (size_t i = 0; i < n; i++) {
        uint32_t page = walk->items[i].page;
        if (page == 0)
            continue;
        resident = resident && file_resident(&watch->file, page);
        walk->entries[walk->pending++] = (foreread_entry){
            .offset = (uint64_t)(page - 1) * watch->header.page_size,
            .length = watch->header.page_size,
        };
    }
    walk->looked += walk->pending;
    return resident;
}

/* Hands over what is pending, as far as the list has room. */
static void hand_over(struct watch *watch)
{
    struct walk *walk = watch->walk;
    if (walk->given == walk->pending)
        return;
    /* The client, and with it the descriptor, may be younger than the entries. */
    for (size_t i = walk->given; i < walk->pending; i++)
        walk->entries[i].fd = watch->client_fd;
    int64_t taken =
        foreread_request_prefetching(watch->client, walk->entries + walk->given,
                                     walk->pending - walk->given, FOREREAD_APPEND);
    if (taken <= 0)
        return;
    walk->given += (size_t)taken;
    atomic_fetch_add(&planner.disclosed, (uint64_t)taken);
}

/* How many entries ahead of a walk that has come so far. When they lie so close together that fetching
 * them in the device's order means going through the file once, more of them cost little more: then as
 * many as make sense. Beyond a few times the pages of the database that is none, since nearly every
 * page is on the list already. */
static uint64_t window(const struct watch *watch, uint64_t walked)
{
    uint64_t pages = file_pages(&watch->file), most = most_ahead(watch);
    uint64_t wanted = GROWTH * walked > FIRST_WINDOW ? GROWTH * walked : FIRST_WINDOW;
    bool dense = wanted * DENSE_BYTES >= pages * watch->header.page_size;
    return wanted < most && !dense ? wanted : most;
}

/* How many index leaves to ask for at once, for so many entries. */
static void pace_cursor(struct walk *walk, uint64_t entries)
{
    struct cursor *cursor = &walk->cursor;
    uint64_t leaves = entries;
    if (cursor->level > 0 && (cursor->skim || cursor->level == cursor->depth))
        leaves = entries / (cursor->levels[cursor->level - 1].page.cells + 1u) + 1;
    cursor->ahead = leaves < CURSOR_MAX_AHEAD ? (unsigned)leaves : CURSOR_MAX_AHEAD;
}

/* How many entries of this walk are behind it. */
static uint64_t progress(struct watch *watch, const foreread_stats *stats, uint64_t reads)
{
    struct walk *walk = watch->walk;
    uint64_t walked = stats->accepted - walk->before - stats->ahead;
    if (stats->listed != walk->listed) {
        walk->listed = stats->listed;
        walk->listed_at = reads;
    } else if (reads - walk->listed_at > ASTRAY && reads - walk->began > walked) {
        /* The list says nothing; about one entry a read. */
        walked = reads - walk->began;
    }
    return walked;
}

/* Keeps the list as long as the walk deserves. One batch at a time, so that several databases are
 * served in turn; true when there is more to do at once. */
static bool extend(struct watch *watch)
{
    struct walk *walk = watch->walk;
    foreread_stats stats = {.struct_size = sizeof stats};
    uint64_t reads = atomic_load(&watch->reads);
    if (foreread_get_stats(watch->client, &stats) < 0) {
        end_walk(watch);
        return false;
    }
    uint64_t walked = progress(watch, &stats, reads);
    if (reads - walk->listed_at > LOST) {
        end_walk(watch);
        return false;
    }
    uint64_t wanted = window(watch, walked);
    uint64_t enough = wanted - wanted / 4;
    if (walk->given < walk->pending) {
        hand_over(watch);
    } else if (!walk->ended && walk->looked < walked + enough) {
        uint64_t missing = walked + wanted - walk->looked;
        pace_cursor(walk, missing);
        look_ahead(watch, missing < ROWS_BATCH ? (size_t)missing : ROWS_BATCH);
        hand_over(watch);
    }
    bool full = walk->given < walk->pending;
    bool more = !full && !walk->ended && !stopped(watch) && walk->looked < walked + enough;
    uint64_t unread = walk->looked > walked ? walk->looked - walked : 0;
    uint64_t step = walk->ended ? LOST : unread / 4 > 4 ? unread / 4 : 4;
    atomic_store(&watch->wake_at, reads + step);
    return more;
}

/* Finds out whether the snapshot is of a walk that needs help, and begins to help. */
static bool begin(struct watch *watch)
{
    struct walk_found found;
    foreread_stats stats = {.struct_size = sizeof stats};
    if (!know(watch) ||
        !trail_walk(&watch->snapshot, &watch->schema, &watch->pages, &found))
        return false;
    struct walk *walk = calloc(1, sizeof *walk);
    if (!walk)
        return false;
    watch->walk = walk;
    if (!cursor_open(&walk->cursor, &watch->pages, &found.path)) {
        free_walk(watch);
        return false;
    }
    walk->rows_open = found.table != 0 &&
                      rows_open(&walk->rows, &watch->pages, found.table, found.rowid, false);
    if (found.table != 0 && !walk->rows_open) {
        free_walk(watch);
        return false;
    }
    uint64_t length = trail_length(&watch->snapshot);
    size_t most = length < FIRST_LOOK ? (size_t)length : FIRST_LOOK;
    walk->cursor.skim = !walk->rows_open;
    if (look_ahead(watch, most)) {
        /* All there: the kernel does without us. */
        atomic_fetch_add(&planner.resident, walk->pending > 0);
        free_walk(watch);
        return false;
    }
    if (!join_client(watch) || foreread_get_stats(watch->client, &stats) < 0) {
        free_walk(watch);
        return false;
    }
    walk->began = watch->snapshot_reads;
    walk->before = stats.accepted - stats.ahead;
    walk->listed = stats.listed;
    walk->listed_at = atomic_load(&watch->reads);
    /* Those that have been read while all this was found out are of no use any more. */
    uint64_t passed = walk->listed_at - walk->began;
    walk->given = passed < walk->pending ? (size_t)passed : walk->pending;
    walk->before -= walk->given;
    hand_over(watch);
    atomic_fetch_add(&planner.walks, 1);
    atomic_store(&watch->walking, true);
    return true;
}

/* Looks at a snapshot. */
static void answer(struct watch *watch)
{
    if (begin(watch)) {
        watch->quiet = LEAST_QUIET;
        return;
    }
    atomic_store(&watch->quiet_until, now_ns() + watch->quiet);
    if (watch->quiet < MOST_QUIET)
        watch->quiet *= 2;
}

/* Does what is due; true when there is more of it. */
static bool serve(struct watch *watch)
{
    if (watch->walk && stopped(watch))
        end_walk(watch);
    if (atomic_load(&watch->closing)) {
        if (watch->client)
            foreread_unregister_client(watch->client);
        file_close(&watch->file);
        schema_free(&watch->schema);
        return false;
    }
    if (atomic_load(&watch->posted)) {
        watch->statement = watch->snapshot_statement;
        if (!watch->walk && !stopped(watch))
            answer(watch);
        atomic_store(&watch->posted, false);
    }
    return watch->walk && extend(watch);
}

/* ---- the thread ------------------------------------------------------------------------------- */

static bool due(const struct watch *watch)
{
    if (watch->gone)
        return false;
    return watch->more || atomic_load(&watch->closing) || atomic_load(&watch->posted) ||
           (watch->walk && (atomic_load(&watch->statements) != watch->statement ||
                            atomic_load(&watch->wake_at) == WATCH_WOKEN));
}

static struct watch **find(const struct watch *watch)
{
    struct watch **link = &planner.first;
    while (*link && *link != watch)
        link = &(*link)->next;
    return link;
}

static void append(struct watch *watch)
{
    watch->next = NULL;
    *find(NULL) = watch;
}

/* Serves one watch that is due, and puts it last in the row; false when none is. */
static bool serve_next(void)
{
    struct watch *watch;
    pthread_mutex_lock(&planner.lock);
    for (watch = planner.first; watch && !due(watch); watch = watch->next)
        ;
    if (watch) {
        bool closing = atomic_load(&watch->closing);
        *find(watch) = watch->next;
        append(watch);
        pthread_mutex_unlock(&planner.lock);
        bool more = serve(watch);
        pthread_mutex_lock(&planner.lock);
        watch->more = more;
        watch->gone = closing;
        pthread_cond_broadcast(&planner.served);
    }
    pthread_mutex_unlock(&planner.lock);
    return watch != NULL;
}

/* Nobody will serve; whoever waits for it need not. */
static void give_up(void)
{
    pthread_mutex_lock(&planner.lock);
    planner.state = BROKEN;
    for (struct watch *watch = planner.first; watch; watch = watch->next)
        watch->gone = true;
    pthread_cond_broadcast(&planner.served);
    pthread_mutex_unlock(&planner.lock);
}

static void *run(void *unused)
{
    /* A copy of the descriptor table, emptied: what is opened and closed here from now on leaves
     * the program's descriptors, and the locks that hang on them, alone. */
    if (syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE) != 0) {
        give_up();
        return unused;
    }
    for (;;) {
        while (sem_wait(&planner.wake) != 0)
            ; /* EINTR */
        while (serve_next())
            ;
    }
}

/* A child has no planner: what it inherits is left alone, what it opens itself gets a new one. */
static void forked(void)
{
    pthread_mutex_init(&planner.lock, NULL);
    pthread_cond_init(&planner.served, NULL);
    planner.first = NULL;
    planner.state = ASLEEP;
    atomic_store(&planner.started, false);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forked);
}

static void start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&planner.lock);
    if (planner.state == ASLEEP) {
        sem_init(&planner.wake, 0, 0);
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        planner.state =
            pthread_create(&thread, &attributes, run, NULL) == 0 ? RUNNING : BROKEN;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
        atomic_store(&planner.started, true);
    }
    pthread_mutex_unlock(&planner.lock);
}

/* ---- what vfs.c calls ------------------------------------------------------------------------- */

void planner_add(struct watch *watch)
{
    watch->file.fd = -1;
    watch->quiet = LEAST_QUIET;
    pthread_mutex_lock(&planner.lock);
    append(watch);
    pthread_mutex_unlock(&planner.lock);
}

void planner_wake(void)
{
    if (!atomic_load(&planner.started))
        start();
    sem_post(&planner.wake);
}

void planner_remove(struct watch *watch)
{
    pthread_mutex_lock(&planner.lock);
    bool ours = *find(watch) != NULL;
    if (ours && planner.state == RUNNING) {
        atomic_store(&watch->closing, true);
        sem_post(&planner.wake);
        while (!watch->gone)
            pthread_cond_wait(&planner.served, &planner.lock);
    }
    if (ours)
        *find(watch) = watch->next;
    pthread_mutex_unlock(&planner.lock);
}

struct planner_counts planner_counts(void)
{
    return (struct planner_counts){atomic_load(&planner.walks), atomic_load(&planner.resident),
                                   atomic_load(&planner.disclosed)};
}
