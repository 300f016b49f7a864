/* channel.h - messages from the computation thread to the prefetch thread. */
#ifndef CHANNEL_H
#define CHANNEL_H

#include <sys/types.h>

#include "shared.h"

/* The message of foreread_send_fd(). */
struct sent_fd {
    int fd;
    uint64_t dev;
    uint64_t ino;
    /* The program's offset in the file. */
    int64_t offset;
};

/* Puts a message into the ring, or marks the ring as lost. Called by the program: never waits, takes no lock, may be
 * called from any thread and in signal handlers, and leaves errno unchanged. */
void channel_send(struct shared *shared, int channel, const void *data, size_t bytes);

/* Waits for the next message of a channel, and copies up to `bytes` of it. Returns its size, or -1 when the ring is
 * lost. Called by the prefetch process. */
ssize_t channel_receive(struct shared *shared, int channel, void *data, size_t bytes);

#endif
