/* See remote.h. */
#define _GNU_SOURCE
#include "remote.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "real.h"

/* Limit of hints that are on their way at once, and of log entries that one call handles. */
enum { HINTS = 64 };
/* After VAIN searches without a result, only every second page is searched; after VAIN more, every fourth, and so on up to
 * 2^SELDOM_MAX. A search that got no answer in time counts as VAIN searches: it takes as long as a read of the file system, much
 * longer than one that finds nothing. */
enum { VAIN = 8, SELDOM_MAX = 6 };

struct hint {
    uint64_t tag, place;
};

/* Facts about a rank, from the rank itself. */
struct member {
    uint64_t dev, ino;
    uint32_t slots;
    uint8_t able, here;
};

struct remote {
    MPI_Comm comm;
    MPI_Win window;
    int rank, ranks;
    struct segment own;
    struct member *members;
    pthread_mutex_t lock;
    /* Number of entries of the own log that were handled. */
    uint64_t told;
    /* Hints on their way. Each stays here until its request is complete. */
    struct hint hints[HINTS];
    MPI_Request putting[HINTS];
    bool used[HINTS];
    unsigned next;
    /* A get that got no answer in time, and the memory that it will still write. */
    bool pending;
    MPI_Request request;
    struct segment_slot slot;
    struct hint hint;
    unsigned char page[SEGMENT_PAGE];
    unsigned in_vain, skipped;
};

/* True if the environment states that all ranks of the job run under foreread. */
static bool allowed(void) {
    const char *value = getenv("FOREREAD_CACHE_BETWEEN_HOSTS");
    return value && strcmp(value, "1") == 0;
}

static void give_up(struct remote *remote) {
    free(remote->members);
    free(remote);
}

/* A communicator of the same ranks, without the attributes of the program's. */
static bool own_communicator(MPI_Comm comm, MPI_Comm *own) {
    MPI_Group group;
    if (REAL(Comm_group)(comm, &group) != MPI_SUCCESS)
        return false;
    bool made = REAL(Comm_create)(comm, group, own) == MPI_SUCCESS;
    REAL(Group_free)(&group);
    return made && REAL(Comm_set_errhandler)(*own, foreread_errors_return()) == MPI_SUCCESS;
}

/* True if all ranks are able to take part, and at least one needs a window. */
static bool agreed(const struct remote *remote) {
    bool able = true, here = true;
    for (int one = 0; one < remote->ranks; one++) {
        const struct member *member = &remote->members[one];
        able &= member->able && member->slots > 0 && member->slots <= SEGMENT_SLOTS_MAX;
        here &= member->here;
    }
    return able && !here;
}

/* Exchanges the facts of all ranks. */
static bool exchange(struct remote *remote, struct member self) {
    MPI_Datatype byte = foreread_byte();
    return REAL(Allgather)(&self, sizeof self, byte, remote->members, sizeof self, byte, remote->comm) == MPI_SUCCESS;
}

/* Opens the own segment to all ranks, until the window is freed. */
static bool begin(struct remote *remote) {
    const struct segment *own = &remote->own;
    int *model, found;
    return REAL(Win_create)(own->header, (MPI_Aint)segment_size(own->slot_count, NULL), 1, foreread_info_null(), remote->comm,
                            &remote->window) == MPI_SUCCESS &&
           REAL(Win_set_errhandler)(remote->window, foreread_errors_return()) == MPI_SUCCESS &&
           REAL(Win_get_attr)(remote->window, MPI_WIN_MODEL, &model, &found) == MPI_SUCCESS && found &&
           *model == MPI_WIN_UNIFIED && REAL(Win_lock_all)(MPI_MODE_NOCHECK, remote->window) == MPI_SUCCESS;
}

struct remote *foreread_remote_open(MPI_Comm comm, const struct segment *own, uint64_t dev, uint64_t ino, bool here) {
    if (!allowed())
        return NULL;
    struct remote *remote = calloc(1, sizeof *remote);
    if (!remote || REAL(Comm_size)(comm, &remote->ranks) != MPI_SUCCESS || REAL(Comm_rank)(comm, &remote->rank) != MPI_SUCCESS ||
        !(remote->members = calloc((size_t)remote->ranks, sizeof *remote->members)) || !own_communicator(comm, &remote->comm)) {
        if (remote)
            give_up(remote);
        return NULL;
    }
    pthread_mutex_init(&remote->lock, NULL);
    struct member self = {.dev = dev, .ino = ino, .here = here, .able = own && dev + ino > 0};
    if (own) {
        remote->own = *own;
        self.slots = own->slot_count;
    }
    if (exchange(remote, self) && agreed(remote)) {
        self.able = begin(remote);
        /* No rank asks another before all have begun. If one has failed, the windows cannot be freed. */
        if (exchange(remote, self) && agreed(remote))
            return remote;
    } else {
        REAL(Comm_free)(&remote->comm);
    }
    give_up(remote);
    return NULL;
}

void foreread_remote_close(struct remote *remote) {
    if (!remote)
        return;
    MPI_Status status;
    if (remote->pending)
        REAL(Wait)(&remote->request, &status);
    for (unsigned one = 0; one < HINTS; one++)
        if (remote->used[one])
            REAL(Wait)(&remote->putting[one], &status);
    REAL(Win_unlock_all)(remote->window);
    REAL(Win_free)(&remote->window);
    REAL(Comm_free)(&remote->comm);
    pthread_mutex_destroy(&remote->lock);
    give_up(remote);
}

/* The rank that keeps the hint for a page, and the hint's place in its window. All ranks identify the file by the first rank's
 * device and inode. Returns the hint's tag. */
static uint64_t hint_of(const struct remote *remote, uint64_t page, int *keeper, MPI_Aint *at) {
    struct segment_key key = {.dev = remote->members[0].dev, .ino = remote->members[0].ino, .page = page};
    uint64_t hash = segment_hash(&key), places[5];
    *keeper = (int)((hash >> 32) % (uint64_t)remote->ranks);
    uint32_t slots = remote->members[*keeper].slots;
    segment_size(slots, places);
    *at = (MPI_Aint)(places[3] + sizeof(struct hint) * ((hash & UINT32_MAX) % ((uint64_t)SEGMENT_PLACES * slots)));
    return segment_tag(hash);
}

/* True if this place holds no hint that is still on its way. */
static bool is_free(struct remote *remote, unsigned one) {
    int done = 1;
    MPI_Status status;
    if (remote->used[one] && REAL(Test)(&remote->putting[one], &done, &status) != MPI_SUCCESS)
        return false;
    remote->used[one] = !done;
    return done;
}

void foreread_remote_tell(struct remote *remote) {
    if (!remote || pthread_mutex_trylock(&remote->lock) != 0)
        return;
    const struct segment *own = &remote->own;
    const struct member *self = &remote->members[remote->rank];
    MPI_Datatype byte = foreread_byte();
    uint64_t logged = atomic_load_explicit(&own->header->logged, memory_order_acquire);
    if (logged - remote->told > own->slot_count)
        remote->told = logged - own->slot_count;
    for (unsigned looked = 0; looked < HINTS && remote->told < logged; looked++, remote->told++) {
        uint32_t number = atomic_load_explicit(&own->log[remote->told % own->slot_count], memory_order_relaxed);
        if (number >= own->slot_count)
            continue;
        const struct segment_slot *slot = &own->slots[number];
        if (atomic_load_explicit(&slot->dev, memory_order_relaxed) != self->dev ||
            atomic_load_explicit(&slot->ino, memory_order_relaxed) != self->ino)
            continue;
        int keeper;
        MPI_Aint at;
        unsigned free = remote->next % HINTS;
        if (!is_free(remote, free))
            break;
        struct hint *hint = &remote->hints[free];
        hint->tag = hint_of(remote, atomic_load_explicit(&slot->page, memory_order_relaxed), &keeper, &at);
        hint->place = (uint64_t)remote->rank << 32 | number;
        remote->used[free] = REAL(Rput)(hint, sizeof *hint, byte, keeper, at, sizeof *hint, byte, remote->window,
                                        &remote->putting[free]) == MPI_SUCCESS;
        remote->next++;
    }
    pthread_mutex_unlock(&remote->lock);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Waits for the last get until this time. True if it has arrived. */
static bool arrived(struct remote *remote, uint64_t until) {
    int done = 0;
    MPI_Status status;
    do {
        if (REAL(Test)(&remote->request, &done, &status) != MPI_SUCCESS)
            return false;
    } while (!done && now() < until);
    remote->pending = !done;
    return done;
}

static bool get(struct remote *remote, void *buffer, size_t len, int rank, uint64_t at, uint64_t until) {
    MPI_Datatype byte = foreread_byte();
    if (REAL(Rget)(buffer, (int)len, byte, rank, (MPI_Aint)at, (int)len, byte, remote->window, &remote->request) != MPI_SUCCESS)
        return false;
    remote->pending = true;
    return arrived(remote, until);
}

static bool fetch(struct remote *remote, uint64_t page, uint64_t version, uint32_t from, uint32_t len, uint64_t until) {
    int keeper;
    MPI_Aint at;
    uint64_t tag = hint_of(remote, page, &keeper, &at), places[5];
    if (!get(remote, &remote->hint, sizeof remote->hint, keeper, (uint64_t)at, until) || remote->hint.tag != tag)
        return false;
    uint64_t rank = remote->hint.place >> 32, number = remote->hint.place & UINT32_MAX;
    if (rank >= (uint64_t)remote->ranks || rank == (uint64_t)remote->rank || number >= remote->members[rank].slots)
        return false;
    const struct member *member = &remote->members[rank];
    struct segment_key key = {.dev = member->dev, .ino = member->ino, .page = page};
    uint32_t parts = segment_parts(from, len);
    segment_size(member->slots, places);
    uint64_t slot_at = places[1] + sizeof(struct segment_slot) * number;
    if (!get(remote, &remote->slot, sizeof remote->slot, (int)rank, slot_at, until))
        return false;
    uint64_t word = atomic_load_explicit(&remote->slot.word, memory_order_relaxed);
    if ((segment_valid(word) & parts) != parts || !segment_is_for(&remote->slot, &key) ||
        atomic_load_explicit(&remote->slot.version, memory_order_relaxed) != version ||
        !get(remote, remote->page, len, (int)rank, places[4] + SEGMENT_PAGE * number + from, until) ||
        !get(remote, &remote->slot, sizeof remote->slot, (int)rank, slot_at, until))
        return false;
    uint64_t after = atomic_load_explicit(&remote->slot.word, memory_order_relaxed);
    return segment_generation(after) == segment_generation(word) && (segment_valid(after) & parts) == parts;
}

bool foreread_remote_take(struct remote *remote, uint64_t page, uint64_t version, uint32_t from, uint32_t len, void *buffer,
                          uint64_t patience) {
    if (!remote || pthread_mutex_trylock(&remote->lock) != 0)
        return false;
    unsigned seldom = remote->in_vain / VAIN < SELDOM_MAX ? remote->in_vain / VAIN : SELDOM_MAX;
    bool taken = false;
    /* No new search before a late answer has arrived. */
    if ((!remote->pending || arrived(remote, 0)) && ++remote->skipped >= 1U << seldom) {
        remote->skipped = 0;
        taken = fetch(remote, page, version, from, len, now() + patience);
        remote->in_vain = taken ? 0 : remote->in_vain + (remote->pending ? VAIN : 1);
        if (taken)
            memcpy(buffer, remote->page, len);
    }
    pthread_mutex_unlock(&remote->lock);
    return taken;
}
