/*
 * descriptors.c - the calls on descriptors: results of the real calls, and one entry of the list per read.
 *
 * prefetch_* move no data. fetch_* really read, by pread() at the table's offset.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "../foreread_preexec.h"
#include "channel.h"
#include "files.h"
#include "lane.h"
#include "process.h"
#include "raw.h"
#include "trace.h"

static const char no_data[] = "needs data of what is no regular file";

int prefetch_open(const char *path, int flags, ...) {
    return files_open(AT_FDCWD, path, flags);
}

int prefetch_openat(int folder, const char *path, int flags, ...) {
    return files_open(folder, path, flags);
}

int prefetch_creat(const char *path, mode_t mode) {
    (void)mode;
    return files_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC);
}

int prefetch_dup(int fd) {
    return files_dup(fd, -1);
}

int prefetch_dup2(int from, int to) {
    return from == to ? to : files_dup(from, to);
}

int prefetch_dup3(int from, int to, int flags) {
    (void)flags;
    if (from != to)
        return files_dup(from, to);
    errno = EINVAL;
    return -1;
}

int prefetch_close(int fd) {
    return files_close(fd);
}

int inform_open(int fd) {
    struct opening *opening = files_lock(fd);
    if (opening == NULL)
        return files_open_programs(fd);
    files_unlock();
    return fd;
}

int inform_close(int fd) {
    return files_close(fd);
}

size_t foreread_receive(int channel, void *data, size_t bytes) {
    if (!process_is_prefetch())
        return 0;
    int64_t since = lane_wait_begin();
    trace_waits(1);
    ssize_t got = channel_receive(process_shared(), channel, data, bytes);
    trace_waits(-1);
    lane_wait_end(WAIT_MESSAGE, since);
    if (got < 0)
        lane_end("a message was lost");
    return (size_t)got;
}

int foreread_receive_fd(int channel) {
    struct sent_fd sent;
    if (foreread_receive(channel, &sent, sizeof sent) != sizeof sent)
        lane_end("a descriptor was expected and something else sent");
    int fd = files_open_programs(sent.fd);
    struct opening *opening = files_lock(fd);
    if (opening != NULL) {
        opening->offset = sent.offset;
        files_unlock();
    }
    return fd;
}

/* A read of a descriptor, resolved. */
struct plan {
    /* A descriptor that stays open. */
    int fd;
    enum kind kind;
    struct file *file;
    int64_t offset;
    uint64_t bytes;
};

/* Looks a read up in the table: at offset `at`, or at the descriptor's offset if `moves`, which it then moves. 0, or
 * an errno value. */
static int plan_read(int fd, uint64_t bytes, int64_t at, bool moves, struct plan *plan) {
    struct opening *opening = files_lock(fd);
    if (opening == NULL) {
        *plan = (struct plan){.kind = BLIND, .bytes = bytes};
        return raw_call(SYS_fcntl, fd, F_GETFD) < 0 ? EBADF : 0;
    }
    plan->fd = opening->own >= 0 ? opening->own : fd;
    plan->kind = opening->kind;
    plan->file = opening->file;
    plan->offset = moves ? opening->offset : at;
    plan->bytes = plan->offset < 0 ? 0 : opening_bytes(opening, fd, plan->offset, bytes);
    if (moves)
        opening->offset += (int64_t)plan->bytes;
    files_unlock();
    return plan->offset < 0 ? EINVAL : 0;
}

static ssize_t announce(int fd, uint64_t bytes, int64_t at, bool moves) {
    struct plan plan = {0};
    int error = plan_read(fd, bytes, at, moves, &plan);
    lane_read(error == 0 ? plan.file : NULL, plan.fd, (uint64_t)plan.offset, plan.bytes);
    if (error != 0) {
        errno = error;
        return -1;
    }
    return (ssize_t)plan.bytes;
}

/* Total bytes of a vector, or -1 and EINVAL. */
static ssize_t bytes_of(const struct iovec *parts, int count) {
    size_t bytes = 0;
    for (int n = 0; n < count; n++)
        if (parts[n].iov_len > SSIZE_MAX || (bytes += parts[n].iov_len) > SSIZE_MAX)
            count = -1;
    if (count >= 0 && count <= IOV_MAX)
        return (ssize_t)bytes;
    lane_count();
    errno = EINVAL;
    return -1;
}

ssize_t prefetch_read(int fd, size_t bytes) {
    return announce(fd, bytes, 0, true);
}

ssize_t prefetch_pread(int fd, size_t bytes, off_t offset) {
    return announce(fd, bytes, offset, false);
}

ssize_t prefetch_readv(int fd, const struct iovec *parts, int count) {
    ssize_t bytes = bytes_of(parts, count);
    return bytes < 0 ? -1 : announce(fd, (uint64_t)bytes, 0, true);
}

ssize_t prefetch_preadv(int fd, const struct iovec *parts, int count, off_t offset) {
    ssize_t bytes = bytes_of(parts, count);
    return bytes < 0 ? -1 : announce(fd, (uint64_t)bytes, offset, false);
}

off_t prefetch_lseek(int fd, off_t offset, int whence) {
    struct opening *opening = files_lock(fd);
    if (opening == NULL)
        return lseek(fd, offset, whence);
    off_t place = -1;
    off_t from = whence == SEEK_CUR   ? opening->offset
                 : whence == SEEK_END ? opening_size(opening, fd)
                                      : 0;
    if (whence != SEEK_SET && whence != SEEK_CUR && whence != SEEK_END)
        place = lseek(fd, offset, whence);
    else if (__builtin_add_overflow(from, offset, &place) || place < 0) {
        errno = EINVAL;
        place = -1;
    }
    if (place >= 0)
        opening->offset = place;
    files_unlock();
    return place;
}

/* Really reads. The data is in memory afterwards, and there is nothing to announce. */
static ssize_t fetch(int fd, const struct iovec *parts, int count, int64_t at, bool moves) {
    ssize_t bytes = bytes_of(parts, count);
    if (bytes < 0)
        return -1;
    struct plan plan = {0};
    int error = plan_read(fd, (uint64_t)bytes, at, moves, &plan);
    int64_t since = lane_fetch(error == 0 ? plan.file : NULL, (uint64_t)plan.offset, plan.bytes);
    if (error != 0) {
        errno = error;
        return -1;
    }
    if (plan.kind == BLIND && bytes > 0)
        lane_end(no_data);
    if (plan.kind == EMPTY)
        return 0;
    ssize_t done = preadv(fd, parts, count, plan.offset);
    lane_fetched(done);
    /* Files of /proc have size 0 and data. */
    if (moves && done >= 0 && (uint64_t)done != plan.bytes)
        prefetch_lseek(fd, plan.offset + done, SEEK_SET);
    lane_wait_end(WAIT_DATA, since);
    return done;
}

ssize_t fetch_read(int fd, void *data, size_t bytes) {
    struct iovec part = {data, bytes};
    return fetch(fd, &part, 1, 0, true);
}

ssize_t fetch_pread(int fd, void *data, size_t bytes, off_t offset) {
    struct iovec part = {data, bytes};
    return fetch(fd, &part, 1, offset, false);
}

ssize_t fetch_readv(int fd, const struct iovec *parts, int count) {
    return fetch(fd, parts, count, 0, true);
}

ssize_t fetch_preadv(int fd, const struct iovec *parts, int count, off_t offset) {
    return fetch(fd, parts, count, offset, false);
}
