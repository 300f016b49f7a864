/* Reads by io_submit, which libaio calls: several at once, as vectors, the longest of them included, and beyond the end of the file. */
#include "observe.h"
#include <linux/aio_abi.h>
int main(int argc, char **argv) {
    char buffer[8192];
    struct iovec vectors[2] = {{buffer, 100}, {buffer + 100, 4000}}, longest[1024];
    for (int i = 0; i < 1024; i++)
        longest[i] = (struct iovec){buffer + i * 3, 3};
    int fd = check(open(argv[argc - 1], O_RDONLY));
    aio_context_t context = 0;
    struct io_event events[6];
    struct iocb all[] = {
        {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = fd, .aio_buf = (long)buffer, .aio_nbytes = 100, .aio_offset = 12288},
        {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = fd, .aio_buf = (long)buffer, .aio_nbytes = 4096},
        {.aio_lio_opcode = IOCB_CMD_PREADV, .aio_fildes = fd, .aio_buf = (long)vectors, .aio_nbytes = 2, .aio_offset = 5000},
        {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = fd, .aio_buf = (long)buffer, .aio_nbytes = 8192, .aio_offset = 19000},
        {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = fd, .aio_buf = (long)buffer, .aio_nbytes = 10, .aio_offset = 1 << 20},
        {.aio_lio_opcode = IOCB_CMD_PREADV, .aio_fildes = fd, .aio_buf = (long)longest, .aio_nbytes = 1024, .aio_offset = 9000},
    };
    struct iocb *each[6];
    for (int i = 0; i < 6; i++)
        each[i] = all + i;
    check(syscall(SYS_io_setup, 6, &context));
    check(syscall(SYS_io_submit, context, 6, each));
    check(syscall(SYS_io_getevents, context, 6, 6, events, NULL));
    return 0;
}
