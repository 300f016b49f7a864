/* Restricts itself so that a loader lacks something, and executes another program: `landlock` allows only files below /usr, /etc,
 * /dev and /proc; `noexec` forbids executing programs from the mount of argv[2]. Ends with 77 if the restriction is impossible here. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns the value if the call succeeded, or else ends the program. */
static long check(long value)
{
    if (value < 0) {
        perror("restrict");
        exit(99);
    }
    return value;
}

/* The content of <linux/landlock.h>, which older systems lack. */
struct rules { uint64_t access; };
struct __attribute__((packed)) below { uint64_t access; int32_t folder; };
enum { EXECUTE = 1, READ_FILE = 4, READ_FOLDER = 8, ACCESS = EXECUTE | READ_FILE | READ_FOLDER };
enum { CREATE = 444, ADD = 445, RESTRICT = 446, PATH_BENEATH = 1 };

static int landlock(void) {
    struct rules rules = {ACCESS};
    int set = syscall(CREATE, &rules, sizeof rules, 0);
    if (set < 0)
        return 77;
    const char *const folders[] = {"/usr", "/etc", "/dev", "/proc"};
    for (int one = 0; one < 4; one++) {
        struct below below = {ACCESS, check(open(folders[one], O_PATH | O_CLOEXEC))};
        check(syscall(ADD, set, PATH_BENEATH, &below, 0));
    }
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    check(syscall(RESTRICT, set, 0));
    return 0;
}

static int noexec(const char *mount_point) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(mount_point, mount_point, NULL, MS_BIND, NULL) != 0)
        return 77;
    check(mount("none", mount_point, NULL, MS_REMOUNT | MS_BIND | MS_NOEXEC, NULL));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    int failed = strcmp(argv[1], "landlock") == 0 ? landlock() : noexec(argv[2]);
    if (failed)
        return failed;
    check(execv(argv[3], argv + 3));
    return 99;
}
