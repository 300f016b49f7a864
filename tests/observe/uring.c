/* Reads by io_uring with only its system calls: completed at once, completed by a kernel thread because the pages are not in memory,
 * and as a vector. */
#include "observe.h"
#include <linux/io_uring.h>
int main(int argc, char **argv) {
    struct io_uring_params params = {0};
    char buffer[8192];
    struct iovec vectors[2] = {{buffer, 100}, {buffer + 100, 4000}};
    int fd = check(open(argv[argc - 1], O_RDONLY));
    int ring = check(syscall(SYS_io_uring_setup, 4, &params));
    size_t rings = params.sq_off.array + params.sq_entries * sizeof(unsigned);
    size_t entries = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    char *sq = need(mmap(NULL, rings, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING));
    char *cq = need(mmap(NULL, entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING));
    struct io_uring_sqe *sqes = need(mmap(NULL, params.sq_entries * sizeof *sqes, PROT_READ | PROT_WRITE, MAP_SHARED,
                                          ring, IORING_OFF_SQES));
    struct { int op, flags; unsigned long at; unsigned len; } reads[] = {
        {IORING_OP_READ, 0, 12288, 100},
        {IORING_OP_READ, IOSQE_ASYNC, 0, 4096},
        {IORING_OP_READV, 0, 5000, 4100},
        {IORING_OP_READ, 0, 19000, 8192},
    };
    unsigned mask = *(unsigned *)(sq + params.sq_off.ring_mask);
    for (unsigned i = 0; i < sizeof reads / sizeof *reads; i++) {
        struct io_uring_sqe *one = sqes + (i & mask);
        memset(one, 0, sizeof *one);
        one->opcode = reads[i].op;
        one->flags = reads[i].flags;
        one->fd = fd;
        one->off = reads[i].at;
        one->addr = (unsigned long)(reads[i].op == IORING_OP_READV ? (void *)vectors : buffer);
        one->len = reads[i].op == IORING_OP_READV ? 2 : reads[i].len;
        ((unsigned *)(sq + params.sq_off.array))[i & mask] = i & mask;
        __atomic_store_n((unsigned *)(sq + params.sq_off.tail), i + 1, __ATOMIC_RELEASE);
        check(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0));
        struct io_uring_cqe *cqes = (void *)(cq + params.cq_off.cqes);
        check(cqes[i & *(unsigned *)(cq + params.cq_off.ring_mask)].res);
        __atomic_store_n((unsigned *)(cq + params.cq_off.head), i + 1, __ATOMIC_RELEASE);
    }
    return 0;
}
