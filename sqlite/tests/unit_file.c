/* Beside a database anything may lie: nothing but a regular file is opened, not even for a moment. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "file.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Whether anybody has opened what is watched. */
static bool was_opened(int watch)
{
    char events[4096];
    return read(watch, events, sizeof events) > 0;
}

int main(void)
{
    char folder[] = "/tmp/foreread-unit-XXXXXX", path[64], link[64];
    struct file file;
    struct stat facts;
    int watch = inotify_init1(IN_NONBLOCK);
    CHECK(mkdtemp(folder) != NULL && watch >= 0);
    snprintf(path, sizeof path, "%s/place", folder);

    CHECK(!file_open(&file, path, &facts) && file.fd == -1);
    CHECK(mkfifo(path, 0600) == 0 && inotify_add_watch(watch, path, IN_OPEN) >= 0);
    CHECK(!file_open(&file, path, NULL) && file.fd == -1 && !was_opened(watch));
    snprintf(link, sizeof link, "%s/link", folder);
    CHECK(symlink(path, link) == 0);
    CHECK(!file_open(&file, link, &facts) && file.fd == -1 && !was_opened(watch));
    CHECK(!file_open(&file, folder, &facts) && file.fd == -1);
    CHECK(unlink(link) == 0);
    CHECK(unlink(path) == 0);
    CHECK(close(open(path, O_CREAT | O_WRONLY, 0600)) == 0);
    CHECK(inotify_add_watch(watch, path, IN_OPEN) >= 0);
    CHECK(file_open(&file, path, &facts) && S_ISREG(facts.st_mode) && was_opened(watch));
    file_close(&file);
    unlink(path);
    rmdir(folder);
    printf("ok: nothing but a regular file is opened\n");
    return 0;
}
