/*
 * channel.c - the ring of messages.
 *
 * A sender reserves room by moving the head, copies its message into the ring, and stores the message's first word
 * last, which makes it nonzero. The receiver takes messages out in order, zeroes their bytes, so that the first
 * words of later messages start as 0, and moves the tail. Messages of channels without a waiting receiver are put
 * aside.
 *
 * Invariant: the sender does not trust head and tail: whatever they contain, it copies within the ring's bytes.
 */
#include "channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MASK (RING - 1)

/* The beginning of a message. RING is a multiple of its size, so it does not wrap around. */
struct head {
    /* 1 + number of bytes that follow; 0 until they are stored. */
    _Atomic uint32_t size;
    int32_t channel;
};

/* Bytes that a message occupies: messages begin at multiples of the head's size. */
static uint64_t room_for(size_t bytes) {
    return sizeof(struct head) + ((bytes + sizeof(struct head) - 1) & ~(sizeof(struct head) - 1));
}

static struct head *head_at(struct shared_ring *ring, uint64_t at) {
    return (struct head *)(ring->bytes + (at & MASK & ~(uint64_t)(sizeof(struct head) - 1)));
}

/* Bytes up to the place where the ring wraps around. */
static size_t first_part(uint64_t at, size_t bytes) {
    size_t left = RING - (at & MASK);
    return bytes < left ? bytes : left;
}

static void copy_in(struct shared_ring *ring, uint64_t at, const void *data, size_t bytes) {
    size_t first = first_part(at, bytes);
    memcpy(ring->bytes + (at & MASK), data, first);
    memcpy(ring->bytes, (const char *)data + first, bytes - first);
}

static void copy_out(struct shared_ring *ring, uint64_t at, void *data, size_t bytes) {
    size_t first = first_part(at, bytes);
    memcpy(data, ring->bytes + (at & MASK), first);
    memcpy((char *)data + first, ring->bytes, bytes - first);
}

static void zero(struct shared_ring *ring, uint64_t at, size_t bytes) {
    size_t first = first_part(at, bytes);
    memset(ring->bytes + (at & MASK), 0, first);
    memset(ring->bytes, 0, bytes - first);
}

static void tell(struct shared_ring *ring) {
    atomic_fetch_add(&ring->count, 1);
    if (atomic_load(&ring->waiting) != 0)
        shared_wake(&ring->count);
}

void channel_send(struct shared *shared, int channel, const void *data, size_t bytes) {
    struct shared_ring *ring = &shared->ring;
    if (atomic_load_explicit(&ring->lost, memory_order_relaxed) != 0)
        return;
    uint64_t at = atomic_load(&ring->head);
    do {
        uint64_t used = at - atomic_load(&ring->tail);
        if (bytes > RING / 2 || used > RING || room_for(bytes) > RING - used) {
            atomic_store(&ring->lost, 1);
            tell(ring);
            return;
        }
    } while (!atomic_compare_exchange_weak(&ring->head, &at, at + room_for(bytes)));
    struct head *head = head_at(ring, at);
    head->channel = channel;
    if (bytes > 0)
        copy_in(ring, at + sizeof *head, data, bytes);
    atomic_store_explicit(&head->size, (uint32_t)bytes + 1, memory_order_release);
    tell(ring);
}

/* A message that is put aside. */
struct aside {
    struct aside *next;
    int channel;
    uint32_t bytes;
    unsigned char data[];
};

/* Oldest first. */
static struct aside *asides;
/* Protects the receiving side: asides, and the ring's tail. */
static pthread_mutex_t receiving = PTHREAD_MUTEX_INITIALIZER;

/* Takes the next message out of the ring; NULL if there is none. */
static struct aside *take(struct shared_ring *ring) {
    uint64_t at = atomic_load(&ring->tail);
    struct head *head = head_at(ring, at);
    uint32_t size = atomic_load_explicit(&head->size, memory_order_acquire);
    if (size == 0)
        return NULL;
    struct aside *message = malloc(sizeof *message + size);
    if (message == NULL) {
        /* The receiver must not wait for more. */
        atomic_store(&ring->lost, 1);
        return NULL;
    }
    *message = (struct aside){.channel = head->channel, .bytes = size - 1};
    copy_out(ring, at + sizeof *head, message->data, message->bytes);
    uint64_t room = room_for(message->bytes);
    zero(ring, at, room);
    atomic_store(&ring->tail, at + room);
    return message;
}

/* Takes the oldest message of a channel out of the list; NULL if there is none. */
static struct aside *find(int channel) {
    for (struct aside **link = &asides; *link != NULL; link = &(*link)->next) {
        struct aside *message = *link;
        if (message->channel == channel) {
            *link = message->next;
            return message;
        }
    }
    return NULL;
}

static struct aside *next_message(struct shared_ring *ring, int channel) {
    pthread_mutex_lock(&receiving);
    struct aside **end = &asides;
    while (*end != NULL)
        end = &(*end)->next;
    struct aside *message;
    while ((message = take(ring)) != NULL) {
        *end = message;
        end = &message->next;
    }
    message = find(channel);
    pthread_mutex_unlock(&receiving);
    return message;
}

ssize_t channel_receive(struct shared *shared, int channel, void *data, size_t bytes) {
    struct shared_ring *ring = &shared->ring;
    for (;;) {
        uint32_t count = atomic_load(&ring->count);
        struct aside *message = next_message(ring, channel);
        if (message != NULL) {
            size_t size = message->bytes;
            if (bytes > 0)
                memcpy(data, message->data, size < bytes ? size : bytes);
            free(message);
            return (ssize_t)size;
        }
        if (atomic_load(&ring->lost) != 0)
            return -1;
        atomic_fetch_add(&ring->waiting, 1);
        shared_wait(&ring->count, count, -1);
        atomic_fetch_sub(&ring->waiting, 1);
    }
}
