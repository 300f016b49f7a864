/* A segment of the collective cache: pages of files, in memory that a rank's foreread shares with the rank's processes.
 *
 * A rank's foreread fills the segment with pages that the rank will read. The rank copies pages from it and from the other ranks'
 * segments on its host, and makes pages void when it opens or syncs a file that has changed. The same layout in Rust is
 * observers/segment/src/layout.rs; the tests there compare both.
 *
 * Layout, with each area at a multiple of 4096 bytes. It depends only on the number of slots:
 *
 *     header | sets | slots | log | directory | pages
 *
 * A page is 64 KiB of a file, and consists of 16 parts of 4 KiB. A slot holds a page or some of its parts. Only whole parts of a
 * file are stored, so reads that reach the end of a file go to the file system. A page may be in two sets of 8 slots each, which
 * its hash determines.
 *
 * Rules. `word` has the slot's generation (high half), the parts that are being filled, and the valid parts.
 *  - Fill: claim parts in `word` by compare-and-swap; read them from the file; make them valid by compare-and-swap, but only if the
 *    generation is the same. So a page that was made void during its fill never becomes valid.
 *  - State: all valid parts of the page are at least as new as `version`, a state of the file (its size and times). The filler asks
 *    for the state after the claim and before the read. Another state starts the next generation, without valid parts. Only one thread
 *    of the owner at a time sets a state.
 *  - Void: the next generation, without valid parts. A page is made void when its file has changed, and before its slot gets another
 *    page. Parts that are being filled stay marked until their filler is done, because it still writes to the page's memory.
 *  - A slot's page changes only with a new generation, and while the thread that changes it has marked all parts as being filled, so
 *    that no other thread claims any. Before that, no part may be marked.
 *  - Read: check that the parts are valid, that the slot is for this page, and that `version` is the file's present state; copy; check
 *    that generation and parts are as before the copy. If not, the copy is garbage.
 *  - A page has one place on a host: a rank does not fill parts that another rank's segment has or is being filled with.
 *  - A rank that reads whole pages from a file itself shows them in `reading` meanwhile, and its foreread does not fill them. It is a
 *    hint: it decides only who reads a page.
 *  - No wait for a slot lasts longer than the slowest read of the files in this run: its filler may be dead or stopped.
 *  - Other processes may write any part of the segment at any time. Only `slots`, checked when the segment is mapped, is used to find
 *    places in it. */
#ifndef FOREREAD_PMPI_SEGMENT_H
#define FOREREAD_PMPI_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEGMENT_ENV "FOREREAD_CACHE" /* TOKEN, 16 hexadecimal digits, and the path of the memory file */
#define SEGMENT_MAGIC UINT64_C(0x4547415044414552) /* "READPAGE" */

enum {
    SEGMENT_VERSION = 5,
    SEGMENT_PART = 4096,
    SEGMENT_PARTS = 16,
    SEGMENT_PAGE = SEGMENT_PART * SEGMENT_PARTS,
    SEGMENT_WAYS = 8,
    SEGMENT_PEERS = 64,
    SEGMENT_FILES = 64,
    /* 64 GiB of pages. */
    SEGMENT_SLOTS_MAX = 1 << 20,
    /* Directory entries for each slot. */
    SEGMENT_PLACES = 4,
};

/* The place for the rank's pages: `mode`. */
enum segment_mode { SEGMENT_UNDECIDED, SEGMENT_PLAIN, SEGMENT_COLLECTIVE };

/* Another rank's segment on this host. */
struct segment_peer {
    _Atomic uint64_t token;
    _Atomic uint32_t pid, fd;
};

/* A file that the rank has opened through MPI. Its foreread fills only pages of such files. */
struct segment_file {
    _Atomic uint64_t dev, ino;
    /* 1 if it is read past the page cache (O_DIRECT), whatever its file system. */
    _Atomic uint64_t direct;
    /* Its state when the rank opened it or last synced it. Pages of another state are not served. */
    _Atomic uint64_t version;
};

/* Counts. The rank's processes count the first group, its foreread the second. */
struct segment_counts {
    _Atomic uint64_t hits, hit_bytes;       /* reads served from the own segment */
    _Atomic uint64_t host_hits, host_bytes; /* reads served from another rank's segment on this host */
    _Atomic uint64_t remote_hits, remote_bytes; /* reads served from another host's segments */
    _Atomic uint64_t late;     /* hits that waited for a fill */
    _Atomic uint64_t missed;   /* reads that were not served as a whole */
    _Atomic uint64_t voided;   /* pages made void when a file that had changed was opened or synced */
    _Atomic uint64_t changed;  /* files that changed while they were open, and were left to their file systems */

    _Atomic uint64_t filled, filled_bytes; /* fills that became valid */
    _Atomic uint64_t left_bytes;           /* foretold bytes left to another rank of the host, which has them or is reading them */
    _Atomic uint64_t beside_bytes;         /* bytes filled beside the rank's foretold reads, because other ranks read them */
    _Atomic uint64_t lost;                 /* fills without a valid part: made void meanwhile, or the file could not be read */
    _Atomic uint64_t evicted, unread;      /* evicted pages; evicted pages with parts that were never read */
};

struct segment_header {
    _Atomic uint64_t magic;
    _Atomic uint32_t version, slots;
    _Atomic uint64_t token;
    _Atomic uint32_t mode, peer_count;
    /* Number of uses of slots: a clock. */
    _Atomic uint64_t clock;
    /* Number of entries ever added to the log. */
    _Atomic uint64_t logged;
    /* This process's rank in the low half and the number of ranks in the high half, plus 1; 0 before a file is opened through MPI. */
    _Atomic uint64_t joined;
    /* Number of files that the rank has opened through MPI so far. File n is in `files` at n modulo SEGMENT_FILES. */
    _Atomic uint64_t file_count;
    /* Number of claims of parts. While it is 0, no page can be found or made void. See segment_holds(). */
    _Atomic uint64_t claimed;
    /* Duration of the rank's own slowest read, in ns; 0 before the first. */
    _Atomic uint64_t slowest;
    /* The whole pages that the rank is reading from a file itself; see segment_reading(). 0 for none. */
    _Atomic uint64_t reading;
    struct segment_counts counts;
    struct segment_peer peers[SEGMENT_PEERS];
    struct segment_file files[SEGMENT_FILES];
};

struct segment_set {
    _Atomic uint64_t tag[SEGMENT_WAYS];
};

struct segment_slot {
    _Atomic uint64_t word;
    _Atomic uint64_t dev, ino, page;
    /* The file's state when the page was filled: segment_version(). */
    _Atomic uint64_t version;
    /* The clock at its last use. */
    _Atomic uint64_t used;
    /* In `expected`, parts that are foretold and not read since: in the low half to the owner, in the high half to ranks that have left
     * them to the owner. In `fresh`, parts that were never read. */
    _Atomic uint32_t expected, fresh;
    /* Number of waiters for a fill, on the low half of `word`. */
    _Atomic uint32_t waiters;
    /* In the low half, parts that were foretold to the owner, or to a rank that left them to it, since the slot got its page; in the
     * high half, parts that the owner is reading from the file. For the ranks' forereads. */
    _Atomic uint32_t wanted;
};

/* A possible place of a page: the rank in the high half, the slot in the low half. */
struct segment_place {
    _Atomic uint64_t tag, place;
};

_Static_assert(sizeof(struct segment_header) <= 4096, "the header has one page");
_Static_assert(sizeof(struct segment_set) == 64 && sizeof(struct segment_slot) == 64, "a cache line each");

/* A page of a file. */
struct segment_key {
    uint64_t dev, ino, page;
};

/* A mapped segment. */
struct segment {
    struct segment_header *header;
    struct segment_set *sets;
    struct segment_slot *slots;
    _Atomic uint32_t *log;
    struct segment_place *directory;
    unsigned char *pages;
    uint32_t slot_count, set_count;
    /* Number of its fills when a wait for it ended without a result. No further wait before the next fill: its foreread may be gone. */
    _Atomic uint64_t vain;
};

static inline uint64_t segment_up(uint64_t bytes) { return (bytes + 4095) & ~UINT64_C(4095); }

static inline uint32_t segment_sets(uint32_t slots) { return (slots + SEGMENT_WAYS - 1) / SEGMENT_WAYS; }

/* The size of a segment with this many slots, in bytes, and the places of its areas if `at` is not null. */
static inline uint64_t segment_size(uint32_t slots, uint64_t at[5])
{
    const uint64_t lengths[] = {sizeof(struct segment_set) * segment_sets(slots), sizeof(struct segment_slot) * (uint64_t)slots,
                                sizeof(uint32_t) * (uint64_t)slots, sizeof(struct segment_place) * SEGMENT_PLACES * (uint64_t)slots,
                                SEGMENT_PAGE * (uint64_t)slots};
    uint64_t end = 4096;
    for (int i = 0; i < 5; i++) {
        if (at)
            at[i] = end;
        end += segment_up(lengths[i]);
    }
    return end;
}

/* Describes mapped memory of this size as a segment; false if it is none with this token. */
static inline bool segment_of(struct segment *segment, void *memory, uint64_t size, uint64_t token)
{
    struct segment_header *header = memory;
    if (size < 4096 || atomic_load_explicit(&header->magic, memory_order_acquire) != SEGMENT_MAGIC ||
        atomic_load_explicit(&header->version, memory_order_relaxed) != SEGMENT_VERSION ||
        atomic_load_explicit(&header->token, memory_order_relaxed) != token)
        return false;
    uint32_t slots = atomic_load_explicit(&header->slots, memory_order_relaxed);
    uint64_t at[5];
    if (slots == 0 || slots > SEGMENT_SLOTS_MAX || segment_size(slots, at) != size)
        return false;
    unsigned char *bytes = memory;
    *segment = (struct segment){.header = header,
                                .vain = UINT64_MAX,
                                .sets = (void *)(bytes + at[0]),
                                .slots = (void *)(bytes + at[1]),
                                .log = (void *)(bytes + at[2]),
                                .directory = (void *)(bytes + at[3]),
                                .pages = bytes + at[4],
                                .slot_count = slots,
                                .set_count = segment_sets(slots)};
    return true;
}

static inline uint64_t segment_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t segment_hash(const struct segment_key *key)
{
    return segment_mix(segment_mix(segment_mix(key->dev + UINT64_C(0x9e3779b97f4a7c15)) ^ key->ino) ^ key->page);
}

/* The tag of a page in a set; never 0. */
static inline uint64_t segment_tag(uint64_t hash) { return hash | 1; }

/* One of the two sets that a page may be in. */
static inline uint32_t segment_set_of(uint64_t hash, uint32_t sets, int which)
{
    uint64_t half = which ? hash & UINT32_MAX : hash >> 32;
    return (uint32_t)((half * sets) >> 32);
}

/* A number for the state of a file; never 0. */
static inline uint64_t segment_version(uint64_t size, int64_t mtime_ns, int64_t ctime_ns)
{
    return segment_mix(segment_mix(segment_mix(size + 1) ^ (uint64_t)mtime_ns) ^ (uint64_t)ctime_ns) | 1;
}

/* A word for the whole pages within `len` bytes from `offset` on, of the file at this place in `files`: their number in the low 24 bits,
 * the first page above, the place in the high 6 bits. 0 if there are none, or if they have no word. */
static inline uint64_t segment_reading(uint32_t place, uint64_t offset, uint64_t len)
{
    uint64_t first = (offset + SEGMENT_PAGE - 1) / SEGMENT_PAGE, end = (offset + len) / SEGMENT_PAGE;
    if (end <= first || end - first >= 1 << 24 || first >> 34 != 0)
        return 0;
    return (uint64_t)place << 58 | first << 24 | (end - first);
}

static inline uint32_t segment_generation(uint64_t word) { return (uint32_t)(word >> 32); }
static inline uint32_t segment_filling(uint64_t word) { return (uint32_t)(word >> 16) & 0xffff; }
static inline uint32_t segment_valid(uint64_t word) { return (uint32_t)word & 0xffff; }

/* The parts of a page that contain `len` bytes from `from` on, within the page. */
static inline uint32_t segment_parts(uint32_t from, uint32_t len)
{
    uint32_t first = from / SEGMENT_PART, last = (from + len - 1) / SEGMENT_PART;
    return ((UINT32_C(2) << last) - 1) & ~((UINT32_C(1) << first) - 1);
}

static inline bool segment_is_for(const struct segment_slot *slot, const struct segment_key *key)
{
    return atomic_load_explicit(&slot->dev, memory_order_relaxed) == key->dev &&
           atomic_load_explicit(&slot->ino, memory_order_relaxed) == key->ino &&
           atomic_load_explicit(&slot->page, memory_order_relaxed) == key->page;
}

/* A loop over the numbers of slots that seem to be for a page. A page can be in two slots for a moment, if two threads have begun to
 * fill it. */
#define SEGMENT_EACH(segment, key, hash, number)                                                                                 \
    for (uint32_t which_ = 0; which_ < 2; which_++)                                                                              \
        for (uint32_t way_ = 0, set_ = segment_set_of(hash, (segment)->set_count, (int)which_), number; way_ < SEGMENT_WAYS;     \
             way_++)                                                                                                             \
            if ((number = set_ * SEGMENT_WAYS + way_) < (segment)->slot_count &&                                                 \
                atomic_load_explicit(&(segment)->sets[set_].tag[way_], memory_order_relaxed) == segment_tag(hash) &&             \
                segment_is_for(&(segment)->slots[number], key))

/* Finds a slot that has one of these parts of a page, of the file in this state, and the slot's word. A copy of its bytes is valid only
 * if segment_still() returns true afterwards. */
static inline bool segment_find(const struct segment *segment, const struct segment_key *key, uint64_t version, uint32_t parts,
                                uint32_t *found, uint64_t *word)
{
    const uint64_t hash = segment_hash(key);
    SEGMENT_EACH(segment, key, hash, number)
    {
        /* The word is read first: key and state are constant while the generation is. */
        *word = atomic_load_explicit(&segment->slots[number].word, memory_order_acquire);
        *found = number;
        if ((segment_valid(*word) & parts) != 0 && segment_is_for(&segment->slots[number], key) &&
            atomic_load_explicit(&segment->slots[number].version, memory_order_acquire) == version)
            return true;
    }
    return false;
}

/* True if bytes copied from a slot, since it had this word, are the page's content. */
static inline bool segment_still(const struct segment *segment, uint32_t number, uint64_t word)
{
    atomic_thread_fence(memory_order_acquire);
    uint64_t now = atomic_load_explicit(&segment->slots[number].word, memory_order_relaxed);
    return segment_generation(now) == segment_generation(word) && (segment_valid(now) & segment_valid(word)) == segment_valid(word);
}

/* These parts of a slot were read, by the owner or by another rank. */
static inline void segment_used(const struct segment *segment, uint32_t number, uint32_t parts, bool owner)
{
    struct segment_slot *slot = &segment->slots[number];
    uint64_t now = atomic_fetch_add_explicit(&segment->header->clock, 1, memory_order_relaxed);
    atomic_store_explicit(&slot->used, now + 1, memory_order_relaxed);
    uint32_t read = owner ? parts : parts << 16;
    if (atomic_load_explicit(&slot->expected, memory_order_relaxed) & read)
        atomic_fetch_and_explicit(&slot->expected, ~read, memory_order_relaxed);
    if (atomic_load_explicit(&slot->fresh, memory_order_relaxed) & parts)
        atomic_fetch_and_explicit(&slot->fresh, ~parts, memory_order_relaxed);
}

/* Makes a slot's page void, including parts that are being filled. True if there were any parts. */
static inline bool segment_void(struct segment_slot *slot)
{
    uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
    while ((uint32_t)word != 0) {
        uint64_t next = (uint64_t)(segment_generation(word) + 1) << 32 | (uint64_t)segment_filling(word) << 16;
        if (atomic_compare_exchange_weak_explicit(&slot->word, &word, next, memory_order_acq_rel, memory_order_relaxed))
            return true;
    }
    return false;
}

/* True if any part was ever claimed for a fill. */
static inline bool segment_holds(const struct segment *segment)
{
    return atomic_load_explicit(&segment->header->claimed, memory_order_relaxed) != 0;
}

#endif
