/*
 * ends.c - functions of the C library at which the program ends its prefetch process.
 *
 * With such a call the program gives up rights, which the process still has; installs a filter, under which the
 * runtime may make no calls; removes a file, a lease or a mount, which the process may have open; or ends, after
 * which another process may rewrite its file.
 *
 * Each function is a separate object in the archive (the Makefile compiles this file once for each, with its name
 * defined). The linker takes the objects of the functions that the program or a library of it calls, and none of a
 * function that the program defines itself. The C library's function receives the arguments unchanged, and the
 * program receives its result and errno. The real call comes first where possible: the process is ended when the
 * rights are gone. Calls that cannot succeed while the process exists (a lease, an unmount), that do not return
 * (exec, exit), or after which the runtime could make no call (filters) come after its end.
 *
 * The functions are looked up before any constructor of the program runs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "../src/leave.h"

/* The C library's function of the same name. */
#define REAL(type, name, parameters)                                                               \
    static type(*real) parameters;                                                                 \
    static void look_up(void) {                                                                    \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                                                 \
    }                                                                                              \
    static void (*const at_start)(void)                                                            \
        __attribute__((used, section(".preinit_array"))) = look_up

#define SHOWN __attribute__((visibility("default")))

/* The program has given up rights if the call succeeded. */
#define GIVES_UP(type, name, parameters, arguments)                                                \
    REAL(type, name, parameters);                                                                  \
    SHOWN type name parameters {                                                                   \
        type answer = real arguments;                                                              \
        if (answer == 0)                                                                           \
            foreread_leave(LEAVE_RIGHTS);                                                          \
        return answer;                                                                             \
    }

/* The prefetch process ends before the call. */
#define AFTER_ITS_END(type, name, parameters, arguments, milliseconds)                             \
    REAL(type, name, parameters);                                                                  \
    SHOWN type name parameters {                                                                   \
        foreread_leave(milliseconds);                                                              \
        return real arguments;                                                                     \
    }

#define NEVER_RETURNS(name)                                                                        \
    REAL(void, name, (int));                                                                       \
    SHOWN void name(int status) {                                                                  \
        foreread_leave(LEAVE_END);                                                                 \
        real(status);                                                                              \
        __builtin_unreachable();                                                                   \
    }

/* ---- users, groups, capabilities ---- */

#if defined END_setuid
GIVES_UP(int, setuid, (uid_t id), (id))
#elif defined END_setgid
GIVES_UP(int, setgid, (gid_t id), (id))
#elif defined END_seteuid
GIVES_UP(int, seteuid, (uid_t id), (id))
#elif defined END_setegid
GIVES_UP(int, setegid, (gid_t id), (id))
#elif defined END_setreuid
GIVES_UP(int, setreuid, (uid_t real_id, uid_t id), (real_id, id))
#elif defined END_setregid
GIVES_UP(int, setregid, (gid_t real_id, gid_t id), (real_id, id))
#elif defined END_setresuid
GIVES_UP(int, setresuid, (uid_t real_id, uid_t id, uid_t saved), (real_id, id, saved))
#elif defined END_setresgid
GIVES_UP(int, setresgid, (gid_t real_id, gid_t id, gid_t saved), (real_id, id, saved))
#elif defined END_setgroups
GIVES_UP(int, setgroups, (size_t count, const gid_t *ids), (count, ids))
#elif defined END_initgroups
GIVES_UP(int, initgroups, (const char *user, gid_t id), (user, id))
#elif defined END_capset
/* The C library's headers do not declare it. */
SHOWN int capset(void *version, const void *rights);
GIVES_UP(int, capset, (void *version, const void *rights), (version, rights))

/* These return the previous value, which does not show whether they succeeded. */
#elif defined END_setfsuid
REAL(int, setfsuid, (uid_t));
SHOWN int setfsuid(uid_t id) {
    int answer = real(id);
    foreread_leave(LEAVE_RIGHTS);
    return answer;
}
#elif defined END_setfsgid
REAL(int, setfsgid, (gid_t));
SHOWN int setfsgid(gid_t id) {
    int answer = real(id);
    foreread_leave(LEAVE_RIGHTS);
    return answer;
}

/* ---- root folder and name spaces ---- */

#elif defined END_chroot
GIVES_UP(int, chroot, (const char *path), (path))
#elif defined END_setns
GIVES_UP(int, setns, (int fd, int kind), (fd, kind))
#elif defined END_unshare
GIVES_UP(int, unshare, (int flags), (flags))

/* ---- functions with a number ---- */

#elif defined END_prctl
REAL(int, prctl, (int, ...));
SHOWN int prctl(int option, ...) {
    va_list list;
    unsigned long with[4];
    va_start(list, option);
    for (int n = 0; n < 4; n++)
        with[n] = va_arg(list, unsigned long);
    va_end(list);
    if (option == PR_SET_SECCOMP)
        foreread_leave(LEAVE_RIGHTS);
    int answer = real(option, with[0], with[1], with[2], with[3]);
    switch (option) {
    case PR_CAPBSET_DROP:
    case PR_CAP_AMBIENT:
    case PR_SET_SECUREBITS:
    case PR_SET_NO_NEW_PRIVS:
    case PR_SET_DUMPABLE:
        if (answer == 0)
            foreread_leave(LEAVE_RIGHTS);
    }
    return answer;
}
#elif defined END_syscall
REAL(long, syscall, (long, ...));
SHOWN long syscall(long number, ...) {
    va_list list;
    long with[6];
    va_start(list, number);
    for (int n = 0; n < 6; n++)
        with[n] = va_arg(list, long);
    va_end(list);
    switch (number) {
    case SYS_prctl:
        if (with[0] != PR_SET_SECCOMP)
            break;
        __attribute__((fallthrough));
    case SYS_seccomp:
        foreread_leave(LEAVE_RIGHTS);
        break;
    case SYS_umount2:
        foreread_leave(LEAVE_FILES);
        break;
    case SYS_fcntl:
        if (with[1] == F_SETLEASE)
            foreread_leave(LEAVE_FILES);
        break;
    case SYS_execve:
    case SYS_execveat:
    case SYS_exit_group:
        foreread_leave(LEAVE_END);
    }
    long answer = real(number, with[0], with[1], with[2], with[3], with[4], with[5]);
    switch (number) {
    case SYS_setuid:
    case SYS_setgid:
    case SYS_setreuid:
    case SYS_setregid:
    case SYS_setresuid:
    case SYS_setresgid:
    case SYS_setgroups:
    case SYS_capset:
    case SYS_chroot:
    case SYS_pivot_root:
    case SYS_setns:
    case SYS_unshare:
        if (answer != 0)
            break;
        __attribute__((fallthrough));
    case SYS_setfsuid:
    case SYS_setfsgid:
        foreread_leave(LEAVE_RIGHTS);
    }
    return answer;
}

/* ---- files that the process may have open ---- */

#elif defined END_umount
AFTER_ITS_END(int, umount, (const char *path), (path), LEAVE_FILES)
#elif defined END_umount2
AFTER_ITS_END(int, umount2, (const char *path, int flags), (path, flags), LEAVE_FILES)
#elif defined END_system
AFTER_ITS_END(int, system, (const char *command), (command), LEAVE_FILES)
#elif defined END_fcntl || defined END_fcntl64
#ifdef END_fcntl
#define NAME fcntl
#else
#define NAME fcntl64
#endif
#define REAL_OF(name) REAL(int, name, (int, int, ...))
REAL_OF(NAME);
SHOWN int NAME(int fd, int command, ...) {
    va_list list;
    va_start(list, command);
    /* An argument of another type, or none, is passed on unchanged, as in the C library. */
    void *with = va_arg(list, void *);
    va_end(list);
    if (command == F_SETLEASE)
        foreread_leave(LEAVE_FILES);
    return real(fd, command, with);
}

/* ---- the end ---- */

#elif defined END_execve
AFTER_ITS_END(int, execve, (const char *path, char *const *words, char *const *all), (path, words, all), LEAVE_END)
#elif defined END_execv
AFTER_ITS_END(int, execv, (const char *path, char *const *words), (path, words), LEAVE_END)
#elif defined END_execvp
AFTER_ITS_END(int, execvp, (const char *name, char *const *words), (name, words), LEAVE_END)
#elif defined END_execvpe
AFTER_ITS_END(int, execvpe, (const char *name, char *const *words, char *const *all), (name, words, all), LEAVE_END)
#elif defined END_execl || defined END_execlp || defined END_execle
/* The C library has no variant that takes the arguments as a list: they are put into an array, as the C library
 * itself does. */
#ifdef END_execl
#define NAME execl
REAL(int, execv, (const char *, char *const *));
#elif defined END_execlp
#define NAME execlp
REAL(int, execvp, (const char *, char *const *));
#else
#define NAME execle
REAL(int, execve, (const char *, char *const *, char *const *));
#endif
SHOWN int NAME(const char *path, const char *word, ...) {
    va_list list;
    size_t count = 1;
    va_start(list, word);
    for (const char *next = word; next != NULL; next = va_arg(list, const char *))
        count++;
    va_end(list);
    char *words[count];
    words[0] = (char *)word;
    va_start(list, word);
    for (size_t n = 1; n < count; n++)
        words[n] = va_arg(list, char *);
#ifdef END_execle
    char *const *all = va_arg(list, char *const *);
#endif
    va_end(list);
    foreread_leave(LEAVE_END);
#ifdef END_execle
    return real(path, words, all);
#else
    return real(path, words);
#endif
}
#elif defined END_fexecve
AFTER_ITS_END(int, fexecve, (int fd, char *const *words, char *const *all), (fd, words, all), LEAVE_END)
#elif defined END__exit
NEVER_RETURNS(_exit)
#elif defined END__Exit
NEVER_RETURNS(_Exit)
#elif defined END_quick_exit
NEVER_RETURNS(quick_exit)
#else
#error "which function?"
#endif
