/* Uses files as its arguments say: opens WHAT PATH [NAME]. */
#include "observe.h"
#include <dirent.h>

static int descriptor(const char *path, int flags) {
    return check(open(path, flags));
}

int main(int argc, char **argv) {
    const char *what = argv[1], *path = argv[2];
    struct stat facts;
    char bytes[100];
    pid_t child = 0;
    int fd;
    if (!strcmp(what, "read")) {
        check(read(descriptor(path, O_RDONLY), bytes, sizeof bytes));
    } else if (!strcmp(what, "map")) {
        fd = descriptor(path, O_RDONLY);
        volatile char *map = need(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0));
        bytes[0] = map[100];
    } else if (!strcmp(what, "write")) {
        descriptor(path, O_WRONLY);
    } else if (!strcmp(what, "place")) {
        descriptor(path, O_PATH);
    } else if (!strcmp(what, "look")) {
        check(stat(path, &facts));
    } else if (!strcmp(what, "list")) {
        need(readdir(need(opendir(path))));
    } else if (!strcmp(what, "pipe")) {
        check(mkfifo(path, 0600));
        descriptor(path, O_RDWR);
    } else if (!strcmp(what, "remove")) {
        descriptor(path, O_RDONLY);
        check(unlink(path));
    } else if (!strcmp(what, "rename")) {
        check(rename(path, argv[3]));
        descriptor(argv[3], O_RDONLY);
    } else if (!strcmp(what, "fork")) {
        child = check(fork());
        if (child == 0) {
            descriptor(path, O_RDONLY);
            check(raise(SIGSTOP));
            return 0;
        }
        /* The child exists while observers look. */
        check(waitpid(child, NULL, WUNTRACED));
        hold();
        check(kill(child, SIGCONT));
        check(waitpid(child, NULL, 0));
    } else {
        return 98;
    }
    return 0;
}
