/* Asynchronous reads, one by one and as a list, with a write and a failing read among them. */
#include "observe.h"
#include <aio.h>

static char buffer[4][5000];

static long finish(struct aiocb *block) {
    const struct aiocb *list[] = {block};
    while (aio_error(block) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    return aio_return(block);
}

int main(int argc, char **argv) {
    int fd = check(open(argv[argc - 1], O_RDONLY));
    struct aiocb one = {.aio_fildes = fd, .aio_buf = buffer[0], .aio_nbytes = 5000, .aio_offset = 12000};
    check(aio_read(&one));
    if (finish(&one) != 5000)
        return 1;
    one.aio_offset = 19000;
    check(aio_read(&one));
    if (finish(&one) != 1000)
        return 2;
    struct aiocb other = {.aio_fildes = fd, .aio_buf = buffer[1], .aio_nbytes = 100, .aio_lio_opcode = LIO_READ};
    one.aio_offset = 4096;
    one.aio_nbytes = 200;
    one.aio_lio_opcode = LIO_READ;
    struct aiocb *list[] = {&other, &one};
    check(lio_listio(LIO_WAIT, list, 2, NULL));
    if (finish(&other) != 100 || finish(&one) != 200)
        return 3;
    int out = check(open("written", O_RDWR | O_CREAT, 0600));
    struct aiocb write = {.aio_fildes = out, .aio_buf = buffer[0], .aio_nbytes = 300};
    check(aio_write(&write));
    if (finish(&write) != 300)
        return 4;
    struct aiocb none = {.aio_fildes = 99, .aio_buf = buffer[0], .aio_nbytes = 300};
    check(aio_read(&none));
    return finish(&none) == -1 ? 0 : 5;
}
