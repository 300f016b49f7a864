/* Every way to look up a name, in the folder in which the program is started. */
#include "observe.h"
#include <dirent.h>
extern int __xstat(int, const char *, void *), __lxstat(int, const char *, void *), __fxstatat(int, int, const char *, void *, int);
extern ssize_t __readlink_chk(const char *, char *, size_t, size_t);

static void list(DIR *directory) {
    while (readdir(need(directory)))
        ;
    check(closedir(directory));
}

/* Makes the call on a file whose name is the way's. */
#define EACH(name, call)                   \
    do {                                   \
        const char *path = name;           \
        check(call);                       \
    } while (0)

int main(void) {
    struct stat stat_;
    struct statx statx_;
    struct dirent **found;
    char text[4096];
    EACH("stat", stat(path, &stat_));
    EACH("stat64", stat64(path, (void *)&stat_));
    EACH("lstat", lstat(path, &stat_));
    EACH("lstat64", lstat64(path, (void *)&stat_));
    EACH("__xstat", __xstat(1, path, &stat_));
    EACH("__lxstat", __lxstat(1, path, &stat_));
    EACH("__fxstatat", __fxstatat(1, AT_FDCWD, path, &stat_, 0));
    EACH("access", access(path, R_OK));
    EACH("eaccess", eaccess(path, R_OK));
    EACH("readlink", readlink(path, text, sizeof text));
    EACH("__readlink_chk", __readlink_chk(path, text, 100, sizeof text));
    EACH("syscall", syscall(SYS_newfstatat, AT_FDCWD, path, &stat_, 0));
    /* The link's target, and the link itself. */
    EACH("through", stat(path, &stat_));
    EACH("at", fstatat(AT_FDCWD, path, &stat_, AT_SYMLINK_NOFOLLOW));
    /* Relative to a directory, and to a directory in that one. */
    int sub = check(open("sub", O_RDONLY | O_DIRECTORY));
    EACH("fstatat", fstatat(sub, path, &stat_, 0));
    EACH("faccessat", faccessat(sub, path, R_OK, 0));
    EACH("readlinkat", readlinkat(sub, path, text, sizeof text));
    EACH("statx", statx(sub, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &statx_));
    int inner = check(openat(sub, "inner", O_RDONLY | O_DIRECTORY));
    EACH("./deep", fstatat(inner, path, &stat_, 0));
    EACH("../up", fstatat(inner, path, &stat_, 0));
    /* After as many opens of directories as the library remembers, the first one is still known. */
    for (int n = 0; n < 100; n++) {
        int again = check(openat(sub, "inner", O_RDONLY | O_DIRECTORY));
        check(close(again));
    }
    EACH("after", fstatat(inner, path, &stat_, 0));
    /* An empty name, a name that does not exist, and files that are open already. */
    check(fstatat(inner, "", &stat_, AT_EMPTY_PATH));
    check(fstat(inner, &stat_));
    if (stat("none", &stat_) == 0 || access("sub/none", R_OK) == 0 || opendir("none"))
        return 1;
    /* Listings of directories. */
    list(opendir("opendir"));
    list(fdopendir(check(openat(sub, "fdopendir", O_RDONLY | O_DIRECTORY))));
    check(scandir("scandir", &found, NULL, NULL));
    int raw = check(open("getdents64", O_RDONLY | O_DIRECTORY));
    while (check(getdents64(raw, text, sizeof text)) > 0)
        ;
    check(open("opath", O_PATH));
    /* Opened, but not looked up. */
    check(open("untouched", O_RDONLY));
    return 0;
}
