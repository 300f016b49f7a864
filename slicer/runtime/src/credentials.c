/*
 * credentials.c - the program's rights, as shown in /proc.
 *
 * A program that gives up rights leaves none of them to its prefetch process. If it calls the C library for that,
 * the process is gone when the call returns (ends/). This file detects all other ways: calls inside a library,
 * system calls made without the C library. Compared are users, groups, capabilities, no_new_privs, filters of system
 * calls, the root folder and the mount name space.
 */
#include "credentials.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process.h"
#include "raw.h"

/* The lines of /proc/PID/status that are compared. */
static const char *const lines[] = {"Uid:", "Gid:", "Groups:", "Cap", "NoNewPrivs:", "Seccomp"};

struct rights {
    /* A hash of those lines; 0 if they are unknown. */
    uint64_t status;
    /* Of the root folder; 0 if it may not be read. */
    uint64_t root_dev, root_ino;
    char mounts[32];
};

static struct rights at_birth;

static bool is_compared(const char *line) {
    for (size_t n = 0; n < sizeof lines / sizeof lines[0]; n++)
        if (strncmp(line, lines[n], strlen(lines[n])) == 0)
            return true;
    return false;
}

/* A hash (FNV-1a) of the compared lines. Lines that the end of the text cuts off are long and rare. */
static uint64_t hash_of(const char *text) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        for (size_t n = 0; is_compared(line) && n < length; n++)
            hash = (hash ^ (unsigned char)line[n]) * UINT64_C(0x100000001b3);
        line += length + (line[length] == '\n');
    }
    return hash;
}

static uint64_t status_of(const char *process) {
    char path[64], text[8192];
    snprintf(path, sizeof path, "/proc/%s/status", process);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0)
        return 0;
    text[got] = '\0';
    return hash_of(text);
}

static void look(const char *process, struct rights *rights) {
    char path[64];
    struct stat facts;
    *rights = (struct rights){.status = status_of(process)};
    snprintf(path, sizeof path, "/proc/%s/root", process);
    if (fstatat(AT_FDCWD, path, &facts, 0) == 0) {
        rights->root_dev = facts.st_dev;
        rights->root_ino = facts.st_ino;
    }
    snprintf(path, sizeof path, "/proc/%s/ns/mnt", process);
    ssize_t got = readlinkat(AT_FDCWD, path, rights->mounts, sizeof rights->mounts - 1);
    rights->mounts[got < 0 ? 0 : got] = '\0';
}

/* True if /proc belongs to the name space in which the processes have their IDs. */
static bool is_our_proc(void) {
    char number[16] = {0};
    return readlinkat(AT_FDCWD, "/proc/self", number, sizeof number - 1) > 0 &&
           strtol(number, NULL, 10) == raw_call(SYS_getpid);
}

void credentials_remember(void) {
    if (is_our_proc())
        look("self", &at_birth);
}

bool credentials_differ(void) {
    if (at_birth.status == 0)
        return false;
    char process[16];
    struct rights now;
    snprintf(process, sizeof process, "%d", (int)process_program());
    look(process, &now);
    if (now.status == 0)
        return false;
    if (now.status != at_birth.status)
        return true;
    if (now.root_ino != 0 && (now.root_ino != at_birth.root_ino || now.root_dev != at_birth.root_dev))
        return true;
    return now.mounts[0] != '\0' && strcmp(now.mounts, at_birth.mounts) != 0;
}
