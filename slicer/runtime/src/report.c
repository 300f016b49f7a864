/* report.c - the file with the reports of prefetch processes. */
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "raw.h"

/* Opens an existing file if it is a regular one of this user with a single name: not a file that another user may
 * have put there. The path is first resolved without opening the file, which is then opened by the result. */
static int open_own(const char *path, int how) {
    struct stat facts;
    int found = (int)raw_call(SYS_openat, AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (found < 0)
        return -1;
    int fd = -1;
    if (fstat(found, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() && facts.st_nlink == 1) {
        char name[40];
        snprintf(name, sizeof name, "/proc/thread-self/fd/%d", found);
        fd = (int)raw_call(SYS_openat, AT_FDCWD, name, how | O_NONBLOCK, 0);
    }
    raw_call(SYS_close, found);
    return fd;
}

const char *report_wanted(void) {
    const char *path = getenv("FOREREAD_PREEXEC_REPORT");
    return path != NULL && *path != '\0' ? path : NULL;
}

int report_open(void) {
    const char *path = report_wanted();
    if (path == NULL)
        return -1;
    const int how = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY;
    int fd = (int)raw_call(SYS_openat, AT_FDCWD, path, how | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    return fd >= 0 || errno != EEXIST ? fd : open_own(path, how);
}

void report_append(int fd, const char *text, int length) {
    if (fd >= 0 && length > 0 && write(fd, text, (size_t)length) < 0)
        return;
}

void report_failure(int fd, pid_t program, const char *why) {
    char text[256];
    int length = snprintf(text, sizeof text, "{\"pid\": %d, \"ended\": \"%s\"}\n",
                          (int)program, why);
    report_append(fd, text, length);
}
