/* Reads a file in all ways that move a file position: duplicate descriptors, children, threads, vectors, seeks.
 *
 *     cursors FILE [OUT]
 *
 * With OUT, parts of FILE are copied there as well. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[1 << 16];

static void need(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static void *strided(void *given)
{
    int fd = *(int *)given;
    for (off_t at = 0; at < 50; at++)
        need(pread(fd, buffer, 512, at * 8192 + 100) == 512, "pread");
    return NULL;
}

int main(int count, char **words)
{
    int fd = open(words[1], O_RDONLY | O_CLOEXEC);
    need(fd >= 0, words[1]);
    for (int i = 0; i < 20; i++)
        need(read(fd, buffer, 1000) == 1000, "read");
    need(lseek(fd, 300000, SEEK_SET) == 300000, "lseek");
    int copy = dup(fd);
    need(read(copy, buffer, 77) == 77, "read of a copy");
    struct iovec parts[2] = {{buffer, 10}, {buffer + 10, 20}};
    need(readv(fd, parts, 2) == 30, "readv");
    need(preadv(copy, parts, 2, 5000) == 30, "preadv");
    need(preadv2(fd, parts, 2, 6000, 0) == 30, "preadv2");
    need(lseek(fd, -4096, SEEK_CUR) > 0, "lseek back");

    pid_t child = fork();
    need(child >= 0, "fork");
    if (child == 0) {
        for (int i = 0; i < 5; i++)
            need(read(fd, buffer, 111) == 111, "read of a child");
        close(fd);
        _exit(0);
    }
    need(wait(NULL) == child, "wait");
    need(read(fd, buffer, 222) == 222, "read after the child");

    pthread_t thread;
    need(pthread_create(&thread, NULL, strided, &copy) == 0, "thread");
    need(pthread_join(thread, NULL) == 0, "join");

    if (count > 2) {
        int out = open(words[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
        need(out >= 0, words[2]);
        off_t at = 9000;
        need(sendfile(out, fd, &at, 500) == 500, "sendfile");
        need(sendfile(out, fd, NULL, 400) == 400, "sendfile at the position");
    }
    dup2(fd, 30);
    close(fd);
    close(copy);
    need(lseek(30, -50, SEEK_END) > 0, "lseek to the end");
    need(read(30, buffer, 100) == 50, "read of the end");
    need(read(30, buffer, 100) == 0, "read at the end");
    return 0;
}
