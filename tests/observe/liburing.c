/* Reads through liburing: one at a time, several at once, as a vector, into a registered buffer, at the cursor, and by a registered
 * file. */
#include "observe.h"
#include <liburing.h>
static void done(struct io_uring *ring, int count) {
    while (count--) {
        struct io_uring_cqe *result;
        check(-io_uring_wait_cqe(ring, &result) ? -1 : 0);
        check(result->res);
        io_uring_cqe_seen(ring, result);
    }
}
int main(int argc, char **argv) {
    struct io_uring ring;
    static char buffer[8192];
    struct iovec vectors[2] = {{buffer, 100}, {buffer + 100, 4000}}, whole = {buffer, sizeof buffer};
    int fd = check(open(argv[argc - 1], O_RDONLY));
    check(io_uring_queue_init(4, &ring, 0) ? -1 : 0);
    io_uring_prep_read(io_uring_get_sqe(&ring), fd, buffer, 100, 12288);
    check(io_uring_submit(&ring));
    done(&ring, 1);
    /* Nine requests wrap around the ring of four entries. */
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            io_uring_prep_read(io_uring_get_sqe(&ring), fd, buffer, 10, 1000 * (3 * round + i));
        check(io_uring_submit_and_wait(&ring, 3));
        done(&ring, 3);
    }
    io_uring_prep_readv(io_uring_get_sqe(&ring), fd, vectors, 2, 5000);
    check(io_uring_submit(&ring));
    done(&ring, 1);
    check(io_uring_register_buffers(&ring, &whole, 1) ? -1 : 0);
    io_uring_prep_read_fixed(io_uring_get_sqe(&ring), fd, buffer, 64, 7000, 0);
    check(io_uring_submit(&ring));
    done(&ring, 1);
    /* Beyond the end of the file. */
    io_uring_prep_read(io_uring_get_sqe(&ring), fd, buffer, 8192, 19000);
    check(io_uring_submit(&ring));
    done(&ring, 1);
    /* At the cursor, without an offset: the reads after it are seen at their own offsets. */
    io_uring_prep_read(io_uring_get_sqe(&ring), fd, buffer, 33, -1);
    check(io_uring_submit(&ring));
    done(&ring, 1);
    check(read(fd, buffer, 7));
    check(io_uring_register_files(&ring, &fd, 1) ? -1 : 0);
    io_uring_prep_read(io_uring_get_sqe(&ring), 0, buffer, 20, 300);
    /* By a registered file: the preload library does not see it. */
    ring.sq.sqes[(ring.sq.sqe_tail - 1) & *ring.sq.kring_mask].flags |= IOSQE_FIXED_FILE;
    check(io_uring_submit(&ring));
    done(&ring, 1);
    io_uring_queue_exit(&ring);
    return 0;
}
