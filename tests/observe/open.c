/* Every function that opens; the length of each read shows which function opened the file. */
#include "observe.h"
#include <libgen.h>
#include <linux/openat2.h>
static char buffer[100];
static void take(long fd, size_t len) {
    check(pread(check(fd), buffer, len, 0));
    check(close(fd));
}
int main(int argc, char **argv) {
    char *data = argv[argc - 1], copy[4096], made[4200];
    int flags = argc > 100 ? O_WRONLY : O_RDONLY; /* not known to the compiler: __open_2 */
    take(open(data, O_RDONLY), 1);
    take(open64(data, O_RDONLY), 2);
    take(openat(AT_FDCWD, data, O_RDONLY), 3);
    take(openat64(AT_FDCWD, data, O_RDONLY), 4);
    strcpy(copy, data);
    char *name = basename(copy);
    int base = check(open(dirname(data), O_RDONLY | O_DIRECTORY));
    take(openat(base, name, O_RDONLY), 5);
    int path_only = check(open(data, O_PATH));
    check(close(path_only));
    check(fchdir(base));
    take(open(name, O_RDONLY), 6);
    sprintf(made, "./%s", name);
    take(open(made, O_RDONLY), 7);
    take(open(name, flags), 8);
    take(openat(base, name, flags), 9);
    struct open_how how = {.flags = O_RDONLY};
    take(syscall(SYS_openat2, base, name, &how, sizeof how), 10);
    take(syscall(SYS_openat, base, name, O_RDONLY, 0), 11);
    check(chdir("/"));
    sprintf(made, "%s/%s", data + 1, name); /* dirname() has cut data down to its directory */
    take(open(made, O_RDONLY), 12);
    FILE *file = need(fopen(made, "r"));
    take(dup(fileno(file)), 13);
    fclose(file);
    file = need(fopen64(made, "re"));
    take(dup(fileno(file)), 14);
    fclose(file);
    /* A directory that gets the number of another one. */
    check(close(base));
    if (check(open("/usr", O_RDONLY | O_DIRECTORY)) != base)
        return 1;
    take(openat(base, "../etc/passwd", O_RDONLY), 15);
    if (open("/does/not/exist", O_RDONLY) != -1 || errno != ENOENT)
        return 2;
    sprintf(made, "%s/data.made", data);
    check(close(check(creat(made, 0600))));
    check(close(check(open(made, O_RDWR | O_TRUNC))));
    check(close(check(open(made, O_WRONLY | O_CREAT | O_APPEND, 0600))));
    file = need(fopen(made, "w+"));
    fclose(file);
    check(unlink(made));
    return 0;
}
