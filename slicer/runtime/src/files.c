/* files.c - opening files without side effects, and the table of open files. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lane.h"
#include "process.h"
#include "raw.h"

/* Lower descriptor numbers are left to the program's own numbers (inform_open). */
#define FIRST_FD 256
/* Number of descriptors for which the kernel's table is made large enough. */
#define FDS 1024
/* Largest result of one read (read(2)). */
#define READ_MOST 0x7ffff000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opening **table;
static size_t table_size;
static unsigned settlings;

static struct opening *find(int fd) {
    return fd >= 0 && (size_t)fd < table_size ? table[fd] : NULL;
}

static void leave(int fd) {
    struct opening *opening = find(fd);
    if (opening == NULL)
        return;
    table[fd] = NULL;
    if (--opening->uses > 0)
        return;
    if (opening->own >= 0)
        close(opening->own);
    free(opening);
}

/* Binds a descriptor to an opening. With the lock held. */
static bool name(int fd, struct opening *opening) {
    if ((size_t)fd >= table_size) {
        size_t size = (size_t)fd * 2 + 64;
        struct opening **grown = realloc(table, size * sizeof *grown);
        if (grown == NULL)
            return false;
        for (size_t n = table_size; n < size; n++)
            grown[n] = NULL;
        table = grown;
        table_size = size;
    }
    leave(fd);
    table[fd] = opening;
    opening->uses++;
    return true;
}

static bool enter(int fd, enum kind kind, const struct stat *facts, bool announced) {
    struct opening *opening = calloc(1, sizeof *opening);
    if (opening == NULL)
        return false;
    pthread_mutex_lock(&lock);
    opening->kind = kind;
    opening->own = -1;
    opening->settled = settlings;
    if (kind == REGULAR) {
        opening->size = facts->st_size;
        opening->file = announced ? file_of(facts) : NULL;
    }
    bool entered = name(fd, opening);
    pthread_mutex_unlock(&lock);
    if (!entered)
        free(opening);
    return entered;
}

void files_make_room(void) {
    int last = raw_call(SYS_fcntl, STDIN_FILENO, F_DUPFD_CLOEXEC, FDS - 1);
    if (last >= 0)
        close(last);
}

/* Moves a descriptor to a higher number, so that the low ones stay free. */
static int move_up(int fd) {
    int moved = raw_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FIRST_FD);
    if (moved < 0)
        return fd;
    close(fd);
    return moved;
}

static int enter_or_close(int fd, enum kind kind, const struct stat *facts, bool announced) {
    fd = move_up(fd);
    if (enter(fd, kind, facts, announced))
        return fd;
    close(fd);
    errno = ENOMEM;
    return -1;
}

static int open_nowhere(enum kind kind) {
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -1 : enter_or_close(fd, kind, NULL, false);
}

/* Opens the file of a path descriptor (O_PATH). */
static int open_again(int path, int flags) {
    struct stat facts;
    if (fstat(path, &facts) != 0)
        return -1;
    if (S_ISLNK(facts.st_mode) && (flags & O_PATH) == 0) {
        errno = ELOOP;
        return -1;
    }
    bool reads = (flags & O_ACCMODE) != O_WRONLY && (flags & O_PATH) == 0;
    bool folder = S_ISDIR(facts.st_mode);
    if (!folder && !(S_ISREG(facts.st_mode) && reads))
        return open_nowhere(BLIND);
    if (folder && (flags & O_ACCMODE) != O_RDONLY) {
        errno = EISDIR;
        return -1;
    }
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", path);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    return enter_or_close(fd, folder ? BLIND : REGULAR, &facts, (flags & O_DIRECT) == 0);
}

int files_open(int folder, const char *path, int flags) {
    /* First only its path: opening a pipe or a device has effects. */
    int how = O_PATH | O_CLOEXEC | (flags & (O_NOFOLLOW | O_DIRECTORY));
    if ((flags & O_TMPFILE) == O_TMPFILE)
        return open_nowhere(EMPTY);
    int found = openat(folder, path, how);
    if (found < 0)
        return errno == ENOENT && (flags & O_CREAT) != 0 ? open_nowhere(EMPTY) : -1;
    int fd = open_again(found, flags);
    int error = errno;
    close(found);
    errno = error;
    return fd;
}

bool files_enter(int fd, int flags) {
    struct stat facts;
    if (fstat(fd, &facts) != 0)
        return false;
    bool regular = S_ISREG(facts.st_mode) && (flags & O_ACCMODE) != O_WRONLY;
    if (!enter(fd, regular ? REGULAR : BLIND, &facts, true))
        return false;
    off_t offset = lseek(fd, 0, SEEK_CUR);
    struct opening *opening = files_lock(fd);
    opening->offset = offset > 0 ? offset : 0;
    files_unlock();
    return true;
}

int files_open_programs(int number) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)process_program(), number);
    int fd = files_open(AT_FDCWD, path, O_RDONLY);
    if (fd < 0)
        fd = open_nowhere(BLIND);
    if (fd < 0 || raw_call(SYS_fcntl, number, F_GETFD) >= 0)
        return fd;
    pthread_mutex_lock(&lock);
    int same = dup3(fd, number, O_CLOEXEC);
    bool named = same >= 0 && name(same, find(fd));
    pthread_mutex_unlock(&lock);
    if (!named)
        return fd;
    files_close(fd);
    return same;
}

int files_dup(int from, int to) {
    if (to >= 0)
        lane_closes();
    int fd = to < 0 ? raw_call(SYS_fcntl, from, F_DUPFD_CLOEXEC, FIRST_FD) : dup3(from, to, O_CLOEXEC);
    if (fd < 0)
        return fd;
    pthread_mutex_lock(&lock);
    struct opening *opening = find(from);
    if (opening == NULL)
        leave(fd);
    else if (find(fd) != opening)
        name(fd, opening);
    pthread_mutex_unlock(&lock);
    return fd;
}

int files_close(int fd) {
    lane_closes();
    pthread_mutex_lock(&lock);
    leave(fd);
    int closed = close(fd);
    pthread_mutex_unlock(&lock);
    return closed;
}

/* The descriptor whose kernel offset is kept equal to the table's while the lock is held, or -1. */
static int shared = -1;

/* True if the descriptor still refers to the opening's file. */
static bool is_of(int fd, const struct opening *opening) {
    struct stat facts;
    uint64_t dev, ino;
    file_identity(opening->file, &dev, &ino);
    return fstat(fd, &facts) == 0 && dev == facts.st_dev && ino == facts.st_ino;
}

/* Enters a descriptor that code of the program opened, if it is a regular file. With the lock held. */
static struct opening *adopt(int fd) {
    struct stat facts;
    int flags = raw_call(SYS_fcntl, fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY || (flags & O_PATH) != 0 ||
        fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode))
        return NULL;
    struct file *file = file_of(&facts);
    struct opening *opening = file != NULL ? calloc(1, sizeof *opening) : NULL;
    if (opening == NULL)
        return NULL;
    *opening = (struct opening){.kind = REGULAR, .file = file, .size = facts.st_size, .settled = settlings};
    opening->own = raw_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FIRST_FD);
    if (opening->own >= 0 && name(fd, opening))
        return opening;
    if (opening->own >= 0)
        close(opening->own);
    free(opening);
    return NULL;
}

struct opening *files_lock(int fd) {
    pthread_mutex_lock(&lock);
    struct opening *opening = find(fd);
    if (opening != NULL && opening->own >= 0 && !is_of(fd, opening)) {
        pthread_mutex_unlock(&lock);
        lane_closes();
        pthread_mutex_lock(&lock);
        leave(fd);
        opening = NULL;
    }
    if (opening == NULL)
        opening = adopt(fd);
    if (opening == NULL) {
        pthread_mutex_unlock(&lock);
    } else if (opening->own >= 0) {
        opening->offset = lseek(fd, 0, SEEK_CUR);
        shared = fd;
    } else if (opening->settled != settlings) {
        if (opening->kind == REGULAR)
            opening->offset = opening->kernel = lseek(fd, 0, SEEK_CUR);
        opening->settled = settlings;
    }
    return opening;
}

void files_leave(int report) {
    if (report > 0)
        raw_call(SYS_close_range, 0, report - 1, 0);
    raw_call(SYS_close_range, report + 1, ~0u, 0);
    raw_call(SYS_chdir, "/");
}

void files_settle(void) {
    pthread_mutex_lock(&lock);
    for (size_t fd = 0; fd < table_size; fd++) {
        struct opening *opening = table[fd];
        if (opening == NULL || opening->own >= 0 || opening->kind != REGULAR)
            continue;
        if (opening->settled == settlings && opening->offset != opening->kernel)
            opening->kernel = lseek((int)fd, opening->offset, SEEK_SET);
    }
    settlings++;
    pthread_mutex_unlock(&lock);
}

void files_unlock(void) {
    if (shared >= 0) {
        lseek(shared, find(shared)->offset, SEEK_SET);
        shared = -1;
    }
    pthread_mutex_unlock(&lock);
}

int64_t opening_size(struct opening *opening, int fd) {
    struct stat facts;
    if (opening->kind == REGULAR && fstat(fd, &facts) == 0)
        opening->size = facts.st_size;
    return opening->size;
}

uint64_t opening_bytes(struct opening *opening, int fd, int64_t offset, uint64_t bytes) {
    if (bytes > READ_MOST)
        bytes = READ_MOST;
    if (opening->kind == BLIND)
        return bytes;
    /* The file may have grown. */
    if (offset > opening->size || bytes > (uint64_t)(opening->size - offset))
        opening_size(opening, fd);
    if (offset >= opening->size)
        return 0;
    uint64_t left = (uint64_t)(opening->size - offset);
    return bytes < left ? bytes : left;
}
