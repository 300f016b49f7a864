/* Reads by io_submit, which libaio calls: several at once, as a vector, and beyond the end of the file. */
#include "observe.h"
#include <linux/aio_abi.h>
int main(int argc, char **argv) {
    char buffer[8192];
    struct iovec vectors[2] = {{buffer, 100}, {buffer + 100, 4000}};
    int fd = check(open(argv[argc - 1], O_RDONLY));
    aio_context_t context = 0;
    struct io_event events[5];
    struct iocb all[] = {
        {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = fd, .aio_buf = (long)buffer, .aio_nbytes = 100, .aio_offset = 12288},
        {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = fd, .aio_buf = (long)buffer, .aio_nbytes = 4096},
        {.aio_lio_opcode = IOCB_CMD_PREADV, .aio_fildes = fd, .aio_buf = (long)vectors, .aio_nbytes = 2, .aio_offset = 5000},
        {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = fd, .aio_buf = (long)buffer, .aio_nbytes = 8192, .aio_offset = 19000},
        {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = fd, .aio_buf = (long)buffer, .aio_nbytes = 10, .aio_offset = 1 << 20},
    };
    struct iocb *each[5];
    for (int i = 0; i < 5; i++)
        each[i] = all + i;
    check(syscall(SYS_io_setup, 5, &context));
    check(syscall(SYS_io_submit, context, 5, each));
    check(syscall(SYS_io_getevents, context, 5, 5, events, NULL));
    return 0;
}
