/* See walk.h. */
#include "walk.h"

#include <stdlib.h>
#include <time.h>

#include "chain.h"
#include "client.h"
#include "library.h"
#include "room.h"

enum {
    FIRST_WINDOW = 16,     /* entries ahead at the start of a walk */
    GROWTH = 1,            /* the window grows to this many times the entries walked, so that a walk that
                              ends early has wasted no more than it has gained */
    FIRST_LOOK = 64,       /* entries checked to decide whether a walk needs help */
    DENSE_BYTES = 512 << 10, /* a disk reads about this much in the time of one scattered page (5 ms) */
    MAX_WINDOW = 1 << 19,  /* limit of entries ahead; the list holds twice as many */
    MIN_MAX_WINDOW = 1024, /* the limit in a small database */
    PAGE_LIST = 4,         /* limit of entries ahead for each page of the database: see window() */
    MEMORY_LIST = 2,       /* limit of entries ahead for each page that fits in the process's limit of memory */
    ASTRAY = 16,           /* reads off the list after which the list may be behind the walk */
    LOST = 1024,           /* reads off the list after which a walk has ended */
    ENTRIES = CHAIN_BATCH * (1 + CHAIN_MOST), /* limit of entries of one batch; more than ROWS_BATCH */
    CHAIN_BYTES = 32 << 20, /* limit of rows and overflow pages that are read ahead, in bytes; */
    CHAIN_ROOM = 8,         /* also this fraction of the process's limit of memory */
    CHAIN_LEAST = 64,       /* but at least this many entries */
    PROBES = 3,             /* pages read to measure the device */
    QUICK = 2000 * 1000,    /* ns: a device that answers within this time has no moving head */
};

/* After a statement that is no walk or needs no help, the connection's statements are not checked for this time, in
 * ns: it doubles from LEAST_QUIET to MOST_QUIET while checks find no walk that needs help. */
static const uint64_t LEAST_QUIET = 50u * 1000 * 1000, MOST_QUIET = 800u * 1000 * 1000;

struct walk {
    struct cursor cursor;
    struct rows rows;
    bool rows_open;
    bool wal;           /* pages in the WAL are disclosed */
    bool chains;        /* overflow pages of the rows are disclosed */
    uint64_t most;      /* limit of entries ahead */
    bool ended;         /* the index has no more entries */
    uint64_t began;     /* the watch's reads when the walk was at the cursor's start */
    uint64_t before;    /* accepted entries of earlier walks, minus entries that this walk read before its list began */
    uint64_t looked;    /* entries made for this walk */
    uint64_t listed;    /* the client's reads on the list, */
    uint64_t listed_at; /* and the watch's reads when that number last changed */
    struct item items[ROWS_BATCH];
    struct chain overflow[CHAIN_BATCH];
    foreread_entry entries[ENTRIES];
    bool in_wal[ENTRIES];
    size_t pending, given; /* entries of the last batch, and those of them that were passed on or skipped */
};

/* Counts of this process. */
static atomic_uint_fast64_t walks_helped, walks_resident, pages_disclosed;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool stopped(void *context)
{
    const struct watch *watch = context;
    return atomic_load(&watch->closing) || atomic_load(&watch->statements) != watch->statement;
}

static bool read_page(void *context, uint32_t page, uint8_t *into)
{
    return store_read(&((struct watch *)context)->store, page, into);
}

static bool resident_page(void *context, uint32_t page)
{
    return store_resident(&((struct watch *)context)->store, page);
}

static void fetch_pages(void *context, uint32_t *pages, size_t n)
{
    store_fetch(&((struct watch *)context)->store, pages, n);
}

/* Opens the database in the statement's view, and reads its schema if it is new or has changed. */
static bool know(struct watch *watch)
{
    struct btree_header header;
    struct store *store = &watch->store;
    if (store->database.fd < 0 && !store_open(store, watch->path, watch->device, watch->inode))
        return false;
    if (!store_see(store, watch->path, &watch->snapshot_view, &header)) {
        /* No database, or an encrypted one, unless the file is empty: that may become a database. */
        if (header.page_size == 0 && file_bytes(&store->database) > 0)
            atomic_store(&watch->aside, true);
        return false;
    }
    bool same = watch->schema.indexes && header.cookie == watch->header.cookie &&
                header.page_size == watch->header.page_size &&
                header.usable == watch->header.usable;
    if (same)
        return true;
    watch->header = header;
    watch->pages = (struct pages){read_page, resident_page,     fetch_pages,  stopped,
                                  watch,     header.page_size, header.usable};
    return schema_load(&watch->schema, &watch->pages);
}

/* The most entries ahead that are useful for a walk: see window(). Pages that do not fit in memory are not fetched, and
 * listing them takes memory itself. */
static uint64_t most_ahead(const struct watch *watch)
{
    uint64_t most = PAGE_LIST * store_pages(&watch->store);
    uint64_t held = MEMORY_LIST * (room_limit() / watch->header.page_size);
    most = most < held ? most : held;
    if (most < MIN_MAX_WINDOW)
        return MIN_MAX_WINDOW;
    return most < MAX_WINDOW ? most : MAX_WINDOW;
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
    libforeread.request_prefetching(watch->client, NULL, 0, FOREREAD_CLEAR);
    free_walk(watch);
}

/* Adds an entry for a page, if it can be disclosed. True if the page is in memory or cannot be disclosed. */
static bool add_entry(struct watch *watch, uint32_t page)
{
    struct walk *walk = watch->walk;
    struct place place;
    if (!store_place(&watch->store, page, &place) ||
        (place.in_wal && !walk->wal))
        return true;
    walk->entries[walk->pending] = (foreread_entry){
        .offset = place.offset,
        .length = watch->header.page_size,
    };
    walk->in_wal[walk->pending] = place.in_wal;
    walk->pending++;
    return store_resident(&watch->store, page);
}

/* True if the database is mapped, and missing pages arrive quickly. The kernel reads 128 KiB around each of them, which brings the
 * database into memory sooner than requests for single pages. A device with a moving head gains from requests in order. */
static bool reads_around_suffice(struct watch *watch)
{
    const struct walk *walk = watch->walk;
    unsigned probes = 0, quick = 0;
    if (!atomic_load(&watch->mapped))
        return false;
    for (size_t i = 0; i < walk->pending && probes < PROBES; i++) {
        struct file *database = &watch->store.database;
        uint64_t offset = walk->entries[i].offset, began = now_ns();
        uint8_t byte;
        if (walk->in_wal[i] || file_resident(database, offset, 1) ||
            !file_read(database, offset, &byte, 1))
            continue;
        probes++;
        quick += now_ns() - began < QUICK;
    }
    return 2 * quick > probes;
}

/* Makes entries for the walk's next `most` rows and index pages. True if all of them are in memory. */
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
        /* Rows do not matter if only the index is read. */
        n += walk->rows_open || !walk->items[n].row;
    }
    if (walk->rows_open)
        rows_resolve(&walk->rows, walk->items, n);
    /* Checked first, because chains_follow reads the rows. */
    for (size_t i = 0; i < n && walk->chains; i++)
        resident = resident && (walk->items[i].page == 0 ||
                                store_resident(&watch->store, walk->items[i].page));
    bool chains = walk->chains && chains_follow(&watch->pages, walk->items, n,
                                                atomic_load(&watch->reach), walk->overflow);
    for (size_t i = 0; i < n; i++) {
        if (walk->items[i].page == 0)
            continue;
        resident = add_entry(watch, walk->items[i].page) && resident;
        for (unsigned next = 0; chains && next < walk->overflow[i].n; next++)
            resident = add_entry(watch, walk->overflow[i].pages[next]) && resident;
    }
    walk->looked += walk->pending;
    return resident;
}

/* Passes on the pending entries, as far as the list has room. */
static void hand_over(struct watch *watch)
{
    struct walk *walk = watch->walk;
    if (walk->given == walk->pending)
        return;
    /* The client, and so its descriptors, may not have existed when the entries were made. */
    for (size_t i = walk->given; i < walk->pending; i++)
        walk->entries[i].fd = walk->in_wal[i] ? watch->client_wal_fd : watch->client_fd;
    int64_t taken =
        libforeread.request_prefetching(watch->client, walk->entries + walk->given,
                                     walk->pending - walk->given, FOREREAD_APPEND);
    if (taken <= 0)
        return;
    walk->given += (size_t)taken;
    atomic_fetch_add(&pages_disclosed, (uint64_t)taken);
}

/* The number of entries ahead, for a walk that has read `walked` entries. A disk could read the whole file in the time of
 * some number of scattered pages. After as many entries, reading the whole file ahead wastes no more time than the walk
 * has gained, and the window grows to its limit. The limit is a few times the pages of the database, because by then
 * nearly every page is on the list. */
static uint64_t window(const struct watch *watch, uint64_t walked)
{
    uint64_t pages = store_pages(&watch->store), most = watch->walk->most;
    uint64_t wanted = GROWTH * walked > FIRST_WINDOW ? GROWTH * walked : FIRST_WINDOW;
    /* Not with overflow pages: for their list rows are read. */
    bool dense = !watch->walk->chains && wanted * DENSE_BYTES >= pages * watch->header.page_size;
    return wanted < most && !dense ? wanted : most;
}

/* Sets the number of index leaves to request at once, for so many entries. */
static void pace_cursor(struct walk *walk, uint64_t entries)
{
    struct cursor *cursor = &walk->cursor;
    uint64_t leaves = entries;
    if (cursor->level > 0 && (cursor->skim || cursor->level == cursor->depth))
        leaves = entries / (cursor->levels[cursor->level - 1].page.cells + 1u) + 1;
    cursor->ahead = leaves < CURSOR_MAX_AHEAD ? (unsigned)leaves : CURSOR_MAX_AHEAD;
}

/* The number of items of a batch, for so many entries. */
static size_t batch(const struct watch *watch, uint64_t entries)
{
    uint64_t most = ROWS_BATCH;
    if (watch->walk->chains) {
        most = CHAIN_BATCH;
        entries = entries / (1 + atomic_load(&watch->reach)) + 1;
    }
    return (size_t)(entries < most ? entries : most);
}

/* Limit of entries ahead of this walk. A row must be read to find its overflow pages, so with those the limit also
 * bounds the memory for the rows that are read ahead. */
static uint64_t limit_of(const struct watch *watch)
{
    uint64_t most = most_ahead(watch), room = room_limit() / CHAIN_ROOM;
    if (!watch->walk->chains)
        return most;
    uint64_t entries = (room < CHAIN_BYTES ? room : CHAIN_BYTES) / watch->header.page_size;
    entries = entries > CHAIN_LEAST ? entries : CHAIN_LEAST;
    return entries < most ? entries : most;
}

/* The number of entries that this walk has passed. */
static uint64_t progress(struct watch *watch, const foreread_stats *stats, uint64_t reads)
{
    struct walk *walk = watch->walk;
    uint64_t walked = stats->accepted - walk->before - stats->ahead;
    if (stats->listed != walk->listed) {
        walk->listed = stats->listed;
        walk->listed_at = reads;
    } else if (reads - walk->listed_at > ASTRAY && reads - walk->began > walked) {
        /* The reads do not match the list: estimated as one entry for each read. */
        walked = reads - walk->began;
    }
    return walked;
}

/* Extends the list to the walk's window, by one batch at most, so that several databases are served in
 * turn. True if more is to be done at once. */
static bool extend(struct watch *watch)
{
    struct walk *walk = watch->walk;
    foreread_stats stats = {.struct_size = sizeof stats};
    uint64_t reads = atomic_load(&watch->reads);
    if (libforeread.get_stats(watch->client, &stats) < 0) {
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
        look_ahead(watch, batch(watch, missing));
        hand_over(watch);
    }
    bool full = walk->given < walk->pending;
    bool more = !full && !walk->ended && !stopped(watch) && walk->looked < walked + enough;
    uint64_t unread = walk->looked > walked ? walk->looked - walked : 0;
    uint64_t step = walk->ended ? LOST : unread / 4 > 4 ? unread / 4 : 4;
    atomic_store(&watch->wake_at, reads + step);
    return more;
}

/* If the snapshot shows a walk that needs help, begins to help it. True if so. */
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
    walk->wal = atomic_load(&watch->sees_wal);
    walk->chains = walk->rows_open && trail_spills(&watch->snapshot);
    walk->most = limit_of(watch);
    uint64_t length = trail_length(&watch->snapshot);
    size_t most = length < FIRST_LOOK ? (size_t)length : FIRST_LOOK;
    walk->cursor.skim = !walk->rows_open;
    if (look_ahead(watch, most)) {
        /* All pages are in memory, so no help is needed. */
        atomic_fetch_add(&walks_resident, walk->pending > 0);
        free_walk(watch);
        return false;
    }
    if (reads_around_suffice(watch)) {
        free_walk(watch);
        return false;
    }
    if (!client_join(watch, 2 * most_ahead(watch)) || libforeread.get_stats(watch->client, &stats) < 0) {
        free_walk(watch);
        return false;
    }
    client_join_wal(watch);
    if (walk->wal && watch->store.map.slots && watch->client_wal_fd < 0) {
        free_walk(watch);
        return false;
    }
    walk->began = watch->snapshot_reads;
    walk->before = stats.accepted - stats.ahead;
    walk->listed = stats.listed;
    walk->listed_at = atomic_load(&watch->reads);
    /* Entries that the walk has read in the meantime are skipped. */
    uint64_t passed = walk->listed_at - walk->began;
    walk->given = passed < walk->pending ? (size_t)passed : walk->pending;
    walk->before -= walk->given;
    hand_over(watch);
    atomic_fetch_add(&walks_helped, 1);
    atomic_store(&watch->walking, true);
    return true;
}

/* Handles a snapshot. */
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

bool walk_serve(struct watch *watch)
{
    if (watch->walk && stopped(watch))
        end_walk(watch);
    if (atomic_load(&watch->closing)) {
        /* May happen twice, if the database is closed while its watch is being served. */
        if (watch->client)
            libforeread.unregister_client(watch->client);
        watch->client = NULL;
        store_close(&watch->store);
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

bool walk_due(const struct watch *watch)
{
    return watch->more || atomic_load(&watch->closing) || atomic_load(&watch->posted) ||
           (watch->walk && (atomic_load(&watch->statements) != watch->statement ||
                            atomic_load(&watch->wake_at) == WATCH_WOKEN));
}

void walk_init(struct watch *watch)
{
    store_init(&watch->store);
    watch->quiet = LEAST_QUIET;
}

struct walk_counts walk_counts(void)
{
    return (struct walk_counts){atomic_load(&walks_helped), atomic_load(&walks_resident),
                                atomic_load(&pages_disclosed)};
}
