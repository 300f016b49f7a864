/* See host.h. Other processes determine the content of /proc. So a segment must be a memory file with the right name, owned by this
 * user or root, that can neither shrink nor grow, and its layout is checked before it is used. */
#define _GNU_SOURCE
#include "host.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct host foreread_host;

static const char MEMORY_FILE[] = "/memfd:foreread-cache (deleted)";
/* Limit of segments that are mapped. */
enum { RANKS_MAX = 4096 };
enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

/* Maps the memory file at this path as a segment with this token, or with any. */
static bool map(const char *path, uint64_t token, bool any, struct segment *segment) {
    struct stat status;
    uid_t user = geteuid();
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return false;
    void *memory = MAP_FAILED;
    bool fits = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (status.st_uid == user || status.st_uid == 0) &&
                status.st_size >= 4096 && (fcntl(fd, F_GET_SEALS) & SEALS) == SEALS;
    if (fits)
        memory = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED)
        return false;
    /* Other processes' pages do not belong in core files. */
    madvise(memory, (size_t)status.st_size, MADV_DONTDUMP);
    if (any)
        token = atomic_load_explicit(&((struct segment_header *)memory)->token, memory_order_relaxed);
    if (segment_of(segment, memory, (uint64_t)status.st_size, token))
        return true;
    munmap(memory, (size_t)status.st_size);
    return false;
}

/* The process that keeps the own segment open: the one that the launcher has started. */
static long front;

bool foreread_host_begin(void) {
    static bool begun;
    if (begun)
        return foreread_host.count > 0;
    begun = true;
    const char *value = getenv(SEGMENT_ENV);
    char *rest;
    struct rlimit limit;
    struct segment *own = calloc(RANKS_MAX, sizeof *own);
    if (!own || !value || strlen(value) < 18 || sscanf(value + 16, "/proc/%ld/fd/", &front) != 1 ||
        getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) {
        free(own);
        return false;
    }
    uint64_t token = strtoull(value, &rest, 16);
    if (rest != value + 16 || !map(rest, token, false, own)) {
        free(own);
        return false;
    }
    foreread_host.segments = own;
    atomic_store_explicit(&foreread_host.count, 1, memory_order_release);
    return true;
}

/* The parent of a process; 0 if it is unknown. */
static long parent_of(long pid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[got] = 0;
    /* The name in parentheses may contain any characters. */
    const char *after = strrchr(text, ')');
    long parent = 0;
    return after && sscanf(after, ") %*c %ld", &parent) == 1 ? parent : 0;
}

/* Maps the segment that a process keeps open, if there is one. `number` is its descriptor there. */
static bool map_of(long pid, struct segment *segment, int *number) {
    char folder[64], path[80 + NAME_MAX], target[sizeof MEMORY_FILE + 1];
    snprintf(folder, sizeof folder, "/proc/%ld/fd", pid);
    DIR *directory = opendir(folder);
    if (!directory)
        return false;
    bool mapped = false;
    for (struct dirent *entry; !mapped && (entry = readdir(directory));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        ssize_t len = readlink(path, target, sizeof target);
        if (len == sizeof MEMORY_FILE - 1 && memcmp(target, MEMORY_FILE, (size_t)len) == 0) {
            *number = atoi(entry->d_name);
            mapped = map(path, 0, true, segment);
        }
    }
    closedir(directory);
    return mapped;
}

/* Enters another rank's segment in the own header: the own foreread finds it there. */
static void make_known(const struct segment *other, long pid, int fd) {
    struct segment_header *own = foreread_host.segments[0].header;
    uint32_t count = atomic_load_explicit(&own->peer_count, memory_order_relaxed);
    if (count >= SEGMENT_PEERS)
        return;
    struct segment_peer *peer = &own->peers[count];
    atomic_store_explicit(&peer->token, atomic_load_explicit(&other->header->token, memory_order_relaxed), memory_order_relaxed);
    atomic_store_explicit(&peer->pid, (uint32_t)pid, memory_order_relaxed);
    atomic_store_explicit(&peer->fd, (uint32_t)fd, memory_order_relaxed);
    atomic_store_explicit(&own->peer_count, count + 1, memory_order_release);
}

void foreread_host_meet(void) {
    static bool met;
    if (met || foreread_host.count == 0)
        return;
    met = true;
    const char *alone = getenv("FOREREAD_CACHE_ALONE");
    long launcher = parent_of(front);
    if (launcher <= 1 || (alone && *alone == '1'))
        return;
    struct segment *all = foreread_host.segments;
    size_t count = 1;
    char path[80 + NAME_MAX];
    snprintf(path, sizeof path, "/proc/%ld/task", launcher);
    DIR *threads = opendir(path);
    for (struct dirent *thread; threads && (thread = readdir(threads));) {
        snprintf(path, sizeof path, "/proc/%ld/task/%s/children", launcher, thread->d_name);
        FILE *children = fopen(path, "re");
        for (long pid; children && count < RANKS_MAX && fscanf(children, "%ld", &pid) == 1;) {
            int fd;
            if (pid == front || !map_of(pid, &all[count], &fd))
                continue;
            make_known(&all[count], pid, fd);
            count++;
        }
        if (children)
            fclose(children);
    }
    if (threads)
        closedir(threads);
    atomic_store_explicit(&foreread_host.count, count, memory_order_release);
}

uint32_t foreread_host_publish(uint64_t dev, uint64_t ino, uint64_t version, bool direct) {
    struct segment_header *own = foreread_host.segments[0].header;
    uint64_t count = atomic_load_explicit(&own->file_count, memory_order_relaxed);
    for (uint64_t one = 0; one < count && one < SEGMENT_FILES; one++) {
        struct segment_file *file = &own->files[one];
        if (atomic_load_explicit(&file->dev, memory_order_relaxed) == dev &&
            atomic_load_explicit(&file->ino, memory_order_relaxed) == ino) {
            atomic_store_explicit(&file->version, version, memory_order_relaxed);
            if (direct)
                atomic_store_explicit(&file->direct, 1, memory_order_relaxed);
            return (uint32_t)one;
        }
    }
    struct segment_file *file = &own->files[count % SEGMENT_FILES];
    atomic_store_explicit(&file->dev, dev, memory_order_relaxed);
    atomic_store_explicit(&file->ino, ino, memory_order_relaxed);
    atomic_store_explicit(&file->version, version, memory_order_relaxed);
    atomic_store_explicit(&file->direct, direct, memory_order_relaxed);
    atomic_store_explicit(&own->file_count, count + 1, memory_order_release);
    return (uint32_t)(count % SEGMENT_FILES);
}

bool foreread_host_has(uint32_t rank, uint32_t of) {
    uint64_t wanted = ((uint64_t)of << 32 | rank) + 1;
    size_t count = atomic_load_explicit(&foreread_host.count, memory_order_acquire);
    for (size_t one = 0; one < count; one++)
        if (atomic_load_explicit(&foreread_host.segments[one].header->joined, memory_order_acquire) == wanted)
            return true;
    return false;
}
