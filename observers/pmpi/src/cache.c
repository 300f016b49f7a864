/* See cache.h. */
#define _GNU_SOURCE
#include "cache.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "host.h"
#include "real.h"
#include "remote.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct cached {
    struct cached *next;
    MPI_File handle;
    uint64_t dev, ino;
    /* True if all ranks that may write it are known, and its state is still the one when it was opened or last synced. */
    _Atomic bool known;
    /* That state. */
    _Atomic uint64_t version;
    bool atomic;
    /* True if it was opened for reading only; if only ranks on this host may write it. */
    bool read_only, alone;
    /* The descriptor whose flags were checked last; -1 for none. */
    _Atomic int fd;
    /* Its place in the header's `files`. */
    _Atomic uint32_t place;
    struct remote *remote;
    /* Time that the file system takes for a read, in ns: a moving average in which each new read weighs an eighth; 0 before the
     * first. */
    _Atomic uint64_t cost;
    char path[];
};

__thread struct cached *foreread_served;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cached *files;

static struct segment_counts *counts(void) { return &foreread_host.segments[0].header->counts; }

static void add(_Atomic uint64_t *count, uint64_t more) { atomic_fetch_add_explicit(count, more, memory_order_relaxed); }

static struct cached **place_of(MPI_File handle) {
    struct cached **place = &files;
    while (*place && (*place)->handle != handle)
        place = &(*place)->next;
    return place;
}

bool foreread_cache_holds(void) {
    size_t count = atomic_load_explicit(&foreread_host.count, memory_order_acquire);
    atomic_thread_fence(memory_order_seq_cst);
    for (size_t one = 0; one < count; one++)
        if (segment_holds(&foreread_host.segments[one]))
            return true;
    return false;
}

/* Opening, closing and syncing. */

void foreread_cache_opening(void) {
    int rank, of;
    MPI_Comm world = foreread_world();
    pthread_mutex_lock(&lock);
    bool begun = foreread_host_begin();
    pthread_mutex_unlock(&lock);
    if (begun && world && REAL(Comm_rank)(world, &rank) == MPI_SUCCESS && REAL(Comm_size)(world, &of) == MPI_SUCCESS)
        atomic_store_explicit(&foreread_host.segments[0].header->joined, ((uint64_t)of << 32 | (uint32_t)rank) + 1,
                              memory_order_release);
}

/* Makes void, in all segments of this host, a file's pages that are not of this state; all of its pages if `version` is 0. */
static void void_file(uint64_t dev, uint64_t ino, uint64_t version) {
    size_t count = atomic_load_explicit(&foreread_host.count, memory_order_acquire);
    for (size_t one = 0; one < count; one++) {
        const struct segment *segment = &foreread_host.segments[one];
        for (uint32_t number = 0; number < segment->slot_count; number++) {
            struct segment_slot *slot = &segment->slots[number];
            if (atomic_load_explicit(&slot->dev, memory_order_relaxed) == dev &&
                atomic_load_explicit(&slot->ino, memory_order_relaxed) == ino &&
                atomic_load_explicit(&slot->version, memory_order_relaxed) != version && segment_void(slot))
                add(&counts()->voided, 1);
        }
    }
}

static int64_t nanoseconds(struct statx_timestamp time) { return time.tv_sec * 1000000000 + time.tv_nsec; }

/* A regular file's device, inode and state; false if it is no regular file, or if these are unknown. */
static bool state_of(int at, const char *path, int flags, uint64_t *dev, uint64_t *ino, uint64_t *version) {
    const unsigned wanted = STATX_TYPE | STATX_INO | STATX_SIZE | STATX_MTIME | STATX_CTIME;
    struct statx status;
    if (statx(at, path, flags, wanted, &status) != 0 || (status.stx_mask & wanted) != wanted || !S_ISREG(status.stx_mode))
        return false;
    *dev = makedev(status.stx_dev_major, status.stx_dev_minor);
    *ino = status.stx_ino;
    *version = segment_version(status.stx_size, nanoseconds(status.stx_mtime), nanoseconds(status.stx_ctime));
    return true;
}

/* Reads the file's state, and makes pages of other states void. False if the state is unknown. */
static bool look(struct cached *file) {
    uint64_t version;
    if (!state_of(AT_FDCWD, file->path, AT_STATX_FORCE_SYNC, &file->dev, &file->ino, &version))
        return false;
    uint64_t last = atomic_exchange_explicit(&file->version, version, memory_order_relaxed);
    /* A write sets the file's times when it begins. A page that was filled during a long write has the new state, but may be older
     * than the write. */
    bool is_suspect = last != 0 && last != version;
    if (foreread_cache_holds())
        void_file(file->dev, file->ino, is_suspect ? 0 : version);
    return true;
}

/* True if all ranks of a group are on this host and have this library. `all` is the group by whose numbers they are known. */
static bool group_here(MPI_Group group, MPI_Group all) {
    int size, of;
    if (REAL(Group_size)(group, &size) != MPI_SUCCESS || REAL(Group_size)(all, &of) != MPI_SUCCESS)
        return false;
    bool here = true;
    for (int one = 0; here && one < size; one++) {
        int rank = 0;
        here = REAL(Group_translate_ranks)(group, 1, &one, all, &rank) == MPI_SUCCESS && rank >= 0 &&
               foreread_host_has((uint32_t)rank, (uint32_t)of);
    }
    return here;
}

/* The same for a communicator. */
static bool all_here(MPI_Comm comm) {
    MPI_Group group, all;
    MPI_Comm world = foreread_world();
    if (!world || REAL(Comm_group)(world, &all) != MPI_SUCCESS)
        return false;
    bool here = false;
    if (REAL(Comm_group)(comm, &group) == MPI_SUCCESS) {
        here = group_here(group, all);
        REAL(Group_free)(&group);
    }
    REAL(Group_free)(&all);
    return here;
}

/* The description of a file that was just opened; null without an own segment or memory. `here` is set as by all_here(). */
static struct cached *make(MPI_Comm comm, MPI_File handle, const char *path, bool *here) {
    struct cached *file = foreread_host.count > 0 ? calloc(1, sizeof *file + strlen(path) + 1) : NULL;
    if (!file)
        return NULL;
    file->handle = handle;
    file->fd = -1;
    strcpy(file->path, path);
    *here = all_here(comm);
    file->known = look(file);
    return file;
}

void foreread_cache_opened(MPI_Comm comm, MPI_File handle, const char *path, int mode) {
    pthread_mutex_lock(&lock);
    foreread_host_meet();
    pthread_mutex_unlock(&lock);
    bool here = false;
    struct cached *file = make(comm, handle, path, &here);
    bool known = file && file->known;
    /* Collective: all ranks make this call, or none does. */
    struct remote *remote = foreread_remote_open(comm, known ? &foreread_host.segments[0] : NULL, file ? file->dev : 0,
                                                 file ? file->ino : 0, here);
    if (!file)
        return;
    file->remote = remote;
    file->read_only = !(mode & (MPI_MODE_WRONLY | MPI_MODE_RDWR));
    file->alone = here || file->read_only;
    file->known = known && file->alone;
    pthread_mutex_lock(&lock);
    file->next = files;
    files = file;
    file->place = foreread_host_publish(file->dev, file->ino, file->version, false);
    pthread_mutex_unlock(&lock);
}

void foreread_cache_closing(MPI_File handle) {
    if (foreread_host.count == 0)
        return;
    pthread_mutex_lock(&lock);
    struct cached **place = place_of(handle), *file = *place;
    if (file)
        *place = file->next;
    pthread_mutex_unlock(&lock);
    if (file) {
        foreread_remote_close(file->remote);
        free(file);
    }
}

static struct cached *file_of(MPI_File handle) {
    pthread_mutex_lock(&lock);
    struct cached *file = *place_of(handle);
    pthread_mutex_unlock(&lock);
    return file;
}

void foreread_cache_synced(MPI_File handle) {
    struct cached *file = foreread_host.count > 0 ? file_of(handle) : NULL;
    if (!file)
        return;
    file->known = look(file) && file->alone;
    pthread_mutex_lock(&lock);
    file->place = foreread_host_publish(file->dev, file->ino, file->version, false);
    pthread_mutex_unlock(&lock);
}

void foreread_cache_atomic(MPI_File handle, bool atomic) {
    struct cached *file = foreread_host.count > 0 ? file_of(handle) : NULL;
    if (!file)
        return;
    file->atomic = atomic;
    foreread_cache_synced(handle);
}

/* Reads. */

void foreread_cache_enter(MPI_File handle, enum kind kind) {
    if (kind != KIND_READ || foreread_host.count == 0 ||
        atomic_load_explicit(&foreread_host.segments[0].header->mode, memory_order_relaxed) == SEGMENT_PLAIN)
        return;
    struct cached *file = file_of(handle);
    if (!file || !file->known || file->atomic)
        return;
    foreread_remote_tell(file->remote);
    /* Without pages on this host: other hosts may have some, and the flags of the descriptor are to be checked once. */
    bool asked = atomic_load_explicit(&file->fd, memory_order_relaxed) >= 0;
    if (!asked || file->remote || foreread_cache_holds())
        foreread_served = file;
}

/* A piece of a page. */
struct piece {
    struct segment_key key;
    uint64_t version;
    uint32_t from, len, parts;
    unsigned char *buffer;
};

/* Copies these parts of a piece as far as a segment has them, and adds their bytes to `bytes`. Returns the copied parts. */
static uint32_t copy(const struct segment *segment, const struct piece *piece, uint32_t parts, uint64_t *bytes) {
    uint32_t number;
    uint64_t word, copied = 0;
    if (!segment_find(segment, &piece->key, piece->version, parts, &number, &word))
        return 0;
    const unsigned char *page = segment->pages + (uint64_t)number * SEGMENT_PAGE;
    const uint32_t end = piece->from + piece->len;
    parts &= segment_valid(word);
    for (uint32_t rest = parts, from, to; rest; rest &= UINT32_MAX << to) {
        from = (uint32_t)__builtin_ctz(rest);
        to = from + (uint32_t)__builtin_ctz(~(rest >> from));
        uint32_t first = from * SEGMENT_PART > piece->from ? from * SEGMENT_PART : piece->from;
        uint32_t last = to * SEGMENT_PART < end ? to * SEGMENT_PART : end;
        memcpy(piece->buffer + (first - piece->from), page + first, last - first);
        copied += last - first;
    }
    if (!segment_still(segment, number, word))
        return 0;
    segment_used(segment, number, parts, segment == foreread_host.segments);
    *bytes += copied;
    return parts;
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* The longest time that a read of any rank of this host has taken in this run, in ns. The forereads' own reads do not count: ranks
 * that poll while they wait take the processors from their forereads, and not from each other's reads. */
static uint64_t slowest(void) {
    size_t count = atomic_load_explicit(&foreread_host.count, memory_order_acquire);
    uint64_t most = 0;
    for (size_t one = 0; one < count; one++) {
        uint64_t took = atomic_load_explicit(&foreread_host.segments[one].header->slowest, memory_order_relaxed);
        most = took > most ? took : most;
    }
    return most;
}

/* Waits until one of these parts of a page is valid, if the segment is being filled with it. True if one is valid. The wait ends at the
 * time `end`, which the first wait of a read sets: as late as the slowest read of this run would have ended. The rank's own read,
 * queued behind those under way, could not be expected earlier. Before the first read was measured there is no wait. */
static bool wait_for(struct segment *segment, const struct piece *piece, uint32_t parts, uint64_t *end) {
    uint64_t hash = segment_hash(&piece->key);
    uint64_t filled = atomic_load_explicit(&segment->header->counts.filled, memory_order_relaxed);
    if (atomic_load_explicit(&segment->vain, memory_order_relaxed) == filled)
        return false;
    SEGMENT_EACH(segment, &piece->key, hash, number) {
        struct segment_slot *slot = &segment->slots[number];
        for (;;) {
            uint64_t word = atomic_load_explicit(&slot->word, memory_order_acquire);
            if (!segment_is_for(slot, &piece->key))
                break;
            if (segment_valid(word) & parts &&
                atomic_load_explicit(&slot->version, memory_order_acquire) == piece->version)
                return true;
            if (!(segment_filling(word) & parts))
                break;
            if (*end == 0)
                *end = now() + slowest();
            if (now() >= *end) {
                atomic_store_explicit(&segment->vain, filled, memory_order_relaxed);
                break;
            }
            struct timespec until = {.tv_sec = (time_t)(*end / 1000000000), .tv_nsec = (long)(*end % 1000000000)};
            atomic_fetch_add_explicit(&slot->waiters, 1, memory_order_seq_cst);
            /* Waits on the low half of the word, which a fill changes. The end is a time of the monotonic clock. */
            syscall(SYS_futex, (uint32_t *)&slot->word, FUTEX_WAIT_BITSET, (uint32_t)word, &until, NULL, FUTEX_BITSET_MATCH_ANY);
            atomic_fetch_sub_explicit(&slot->waiters, 1, memory_order_relaxed);
        }
    }
    return false;
}

/* The segment that a page came from, the nearest first. */
enum source { NOWHERE, OWN, HOST, REMOTE };

/* Copies these parts of a piece as far as the segments of this host have them, and adds their bytes to `bytes`: of the own segment, and
 * of the others. Returns the parts that are left. */
static uint32_t gather(const struct piece *piece, uint32_t parts, uint64_t bytes[2]) {
    size_t count = atomic_load_explicit(&foreread_host.count, memory_order_acquire);
    for (size_t one = 0; one < count && parts; one++)
        parts &= ~copy(&foreread_host.segments[one], piece, parts, &bytes[one > 0]);
    return parts;
}

/* Waits until a segment of this host has one of these parts of a piece. False if none is being filled with one, or at the end. */
static bool await(const struct piece *piece, uint32_t parts, uint64_t *end) {
    size_t count = atomic_load_explicit(&foreread_host.count, memory_order_acquire);
    for (size_t one = 0; one < count; one++)
        if (wait_for(&foreread_host.segments[one], piece, parts, end))
            return true;
    return false;
}

/* Copies a piece from any segments. `late` is set if it had to be waited for. */
static enum source take(const struct piece *piece, uint64_t *end, bool *late) {
    uint64_t bytes[2] = {0, 0};
    uint32_t left = gather(piece, piece->parts, bytes);
    while (left && await(piece, left, end)) {
        uint32_t rest = gather(piece, left, bytes);
        /* The part was made void again. */
        if (rest == left)
            break;
        left = rest;
        *late = true;
    }
    if (!left) {
        add(&counts()->hit_bytes, bytes[0]);
        add(&counts()->host_bytes, bytes[1]);
        return bytes[1] == 0 ? OWN : HOST;
    }
    uint64_t cost = atomic_load_explicit(&foreread_served->cost, memory_order_relaxed);
    if (cost > 0 && foreread_remote_take(foreread_served->remote, piece->key.page, piece->version, piece->from, piece->len,
                                         piece->buffer, cost)) {
        add(&counts()->remote_bytes, piece->len);
        return REMOTE;
    }
    return NOWHERE;
}

/* Counts a read that was served as a whole, for the farthest segment that it was served from. */
static void served(enum source farthest, bool late) {
    if (late)
        add(&counts()->late, 1);
    if (farthest == OWN)
        add(&counts()->hits, 1);
    if (farthest == HOST)
        add(&counts()->host_hits, 1);
    if (farthest == REMOTE)
        add(&counts()->remote_hits, 1);
}

/* True if reads of this descriptor of the file may be served. If the file was opened for reading only, a descriptor that can write
 * belongs to another opening, and unknown ranks may write by that one: bytes read by it may be written back, so they must come from
 * the file. Also notes a descriptor that reads past the page cache. */
static bool ask(struct cached *file, int fd) {
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (file->read_only && (flags & O_ACCMODE) != O_RDONLY))
        return false;
    if (flags & O_DIRECT) {
        pthread_mutex_lock(&lock);
        file->place = foreread_host_publish(file->dev, file->ino, file->version, true);
        pthread_mutex_unlock(&lock);
    }
    atomic_store_explicit(&file->fd, fd, memory_order_relaxed);
    return true;
}

/* True if this memory of the program can be written to. A read into other memory would fail, but a copy would end the program. So the
 * kernel is asked to prepare the pages for writing, which does not change their content. */
static bool is_writable(const void *buffer, size_t len) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)buffer & ~(page - 1);
    if (madvise((void *)from, (uintptr_t)buffer + len - from, MADV_POPULATE_WRITE) == 0)
        return true;
    /* Linux before 5.14 does not know this request, which then fails even for memory that is certainly writable. */
    return madvise((void *)((uintptr_t)&page & ~(page - 1)), page, MADV_POPULATE_WRITE) != 0;
}

/* True if this descriptor is of the file, and the file is in the state in which it was opened or last synced. A file that has changed is
 * left to the file system. The kernel knows each change on this host, by any call; for changes of other hosts it asks the server as
 * for stat(2). */
static bool is_same(struct cached *file, int fd, struct piece *piece) {
    if (!state_of(fd, "", AT_EMPTY_PATH, &piece->key.dev, &piece->key.ino, &piece->version) || piece->key.dev != file->dev ||
        piece->key.ino != file->ino)
        return false;
    if (piece->version == atomic_load_explicit(&file->version, memory_order_relaxed))
        return true;
    if (atomic_exchange_explicit(&file->known, false, memory_order_relaxed))
        add(&counts()->changed, 1);
    return false;
}

size_t foreread_cache_take(int fd, void *buffer, size_t len, off_t offset) {
    struct cached *file = foreread_served;
    struct piece piece;
    int before = errno;
    size_t taken = 0;
    uint64_t end = 0;
    bool late = false;
    enum source farthest = NOWHERE;
    bool asked = atomic_load_explicit(&file->fd, memory_order_relaxed) == fd;
    bool ours = offset >= 0 && is_same(file, fd, &piece) && (asked || ask(file, fd));
    while (ours && taken < len) {
        uint64_t at = (uint64_t)offset + taken;
        piece.key.page = at / SEGMENT_PAGE;
        piece.from = (uint32_t)(at % SEGMENT_PAGE);
        size_t left = SEGMENT_PAGE - piece.from;
        piece.len = (uint32_t)(left < len - taken ? left : len - taken);
        piece.parts = segment_parts(piece.from, piece.len);
        piece.buffer = (unsigned char *)buffer + taken;
        if (!is_writable(piece.buffer, piece.len))
            break;
        enum source source = take(&piece, &end, &late);
        if (source == NOWHERE)
            break;
        farthest = source > farthest ? source : farthest;
        taken += piece.len;
    }
    if (taken == len)
        served(farthest, late);
    errno = before;
    return taken;
}

uint64_t foreread_cache_missed(size_t len, off_t offset) {
    add(&counts()->missed, 1);
    uint32_t place = atomic_load_explicit(&foreread_served->place, memory_order_relaxed);
    atomic_store_explicit(&foreread_host.segments[0].header->reading, segment_reading(place, (uint64_t)offset, len),
                          memory_order_relaxed);
    return now();
}

void foreread_cache_read(uint64_t begun) {
    atomic_store_explicit(&foreread_host.segments[0].header->reading, 0, memory_order_relaxed);
    uint64_t took = now() - begun, mean = atomic_load_explicit(&foreread_served->cost, memory_order_relaxed);
    mean = mean == 0 ? took : mean - mean / 8 + took / 8;
    atomic_store_explicit(&foreread_served->cost, mean, memory_order_relaxed);
    _Atomic uint64_t *slowest = &foreread_host.segments[0].header->slowest;
    uint64_t before = atomic_load_explicit(slowest, memory_order_relaxed);
    while (took > before && !atomic_compare_exchange_weak_explicit(slowest, &before, took, memory_order_relaxed, memory_order_relaxed))
        ;
}
