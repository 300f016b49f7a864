/*
 * quarantine.c - memory, limits and faults of the prefetch process.
 *
 * What a slice does wrong must end with it: a wild pointer, an endless recursion, a malloc() in a loop. None of
 * it may show outside: no signal, no core file, nothing written to shared memory, no other process
 * killed for the memory it took.
 */
#include "quarantine.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "queue.h"
#include "raw.h"

/* Of a fault's handler. */
#define HANDLER_STACK (64 * 1024)

/* Puts a private copy in the place of memory that is shared; where there is no room for one, makes it
 * unwritable. */
static bool make_private(char *start, size_t bytes) {
    char *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return mprotect(start, bytes, PROT_READ) == 0;
    memcpy(copy, start, bytes);
    return mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, start) == start;
}

/* Whether a line of /proc/self/maps is of a device, which is not even to be read. Shared memory without a name goes by
 * that of /dev/zero. */
static bool is_device(const char *line) {
    return strstr(line, " /dev/") != NULL && strstr(line, " /dev/shm/") == NULL &&
           strstr(line, " /dev/zero ") == NULL;
}

/* All mappings that others could see change, but for `shared`. */
static bool leave_memory(const struct shared *shared) {
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL)
        return false;
    struct {
        char *start;
        size_t bytes;
        bool device;
    } found[64];
    size_t count = 0;
    char line[512];
    bool fits = true;
    while (fgets(line, sizeof line, maps) != NULL) {
        uintptr_t start, end;
        char rights[5];
        /* The rights of shared memory end so; few lines have it, and to take one apart takes long. */
        if (strstr(line, "s ") == NULL || sscanf(line, "%lx-%lx %4s", &start, &end, rights) != 3)
            continue;
        bool ours = start >= (uintptr_t)shared && start < (uintptr_t)(shared + 1);
        if (rights[1] != 'w' || rights[3] != 's' || ours)
            continue;
        fits = count < sizeof found / sizeof found[0];
        if (!fits)
            break;
        found[count].start = (char *)start;
        found[count].bytes = end - start;
        found[count++].device = is_device(line);
    }
    fclose(maps);
    for (size_t n = 0; n < count; n++)
        fits &= found[n].device ? mprotect(found[n].start, found[n].bytes, PROT_NONE) == 0
                                : make_private(found[n].start, found[n].bytes);
    return fits;
}

/* Leaves no core file. A limit of 1 also keeps a program that the core pattern names from being run (core(5));
 * where the hard limit is 0 it may not be had. */
static bool no_core(void) {
    return setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1}) == 0 ||
           setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}) == 0;
}

/* The first to be killed when memory runs out; whether it is. */
static bool go_first(void) {
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool done = write(fd, "1000", 4) == 4;
    close(fd);
    return done;
}

/* No more memory than it was born with, and a quarter of the machine's. */
static void limit_memory(void) {
    struct sysinfo machine;
    struct rlimit limit;
    FILE *statm = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;
    if (statm != NULL) {
        /* The sixth number: pages of data and stack. */
        if (fscanf(statm, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
            pages = 0;
        fclose(statm);
    }
    if (sysinfo(&machine) != 0 || getrlimit(RLIMIT_DATA, &limit) != 0)
        return;
    rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) +
                  (rlim_t)machine.totalram * machine.mem_unit / 4;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > most)
        limit.rlim_cur = most;
    setrlimit(RLIMIT_DATA, &limit);
}

/* The rights it keeps, if the program has them: to read what the program may read (CAP_DAC_READ_SEARCH), to be told what of it
 * is in memory (CAP_FOWNER), and to open what the program has open (CAP_SYS_PTRACE, without which root's descriptors are not
 * shown to a process with fewer rights). What else those allow the filter refuses. */
static const unsigned kept[] = {CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_SYS_PTRACE};

static bool leave_rights(void) {
    struct __user_cap_header_struct version = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3], least[_LINUX_CAPABILITY_U32S_3] = {0};
    if (raw_call(SYS_capget, &version, rights) != 0)
        return false;
    for (size_t n = 0; n < sizeof kept / sizeof kept[0]; n++) {
        unsigned word = CAP_TO_INDEX(kept[n]), bit = CAP_TO_MASK(kept[n]);
        least[word].effective |= rights[word].effective & bit;
        least[word].permitted |= rights[word].permitted & bit;
    }
    return raw_call(SYS_capset, &version, least) == 0;
}

bool quarantine_birth(void) {
    /* While the process may still write to its own files in /proc. */
    bool done = go_first();
    done &= leave_rights();
    done &= raw_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    /* Its memory is a copy of the program's, with secrets that the program may wipe. */
    done &= raw_call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
    return done;
}

bool quarantine_process(struct shared *shared) {
    bool done = no_core();
    limit_memory();
    done &= mprotect(shared->life_page, sizeof shared->life_page, PROT_READ) == 0;
    done &= leave_memory(shared);
    return done;
}

static const struct {
    int number;
    const char *meaning;
} faults[] = {
    {SIGSEGV, "SIGSEGV"},
    {SIGBUS, "SIGBUS"},
    {SIGFPE, "SIGFPE"},
    {SIGILL, "SIGILL"},
    {SIGTRAP, "SIGTRAP"},
    {SIGSYS, "SIGSYS"},
    {SIGABRT, "abort"},
    {SIGXCPU, "computes without end"},
};
#define FAULTS (sizeof faults / sizeof faults[0])

static void end(int number) {
    for (size_t n = 0; n < FAULTS; n++)
        if (faults[n].number == number)
            lane_end(faults[n].meaning);
}

void quarantine_faults(void) {
    /* What the program does about all others is not for here: they were blocked before the process was born. */
    struct sigaction action = {.sa_handler = end, .sa_flags = SA_ONSTACK | SA_NODEFER};
    for (size_t n = 0; n < FAULTS; n++)
        sigaction(faults[n].number, &action, NULL);
}

bool quarantine_thread(void) {
    stack_t stack = {.ss_size = HANDLER_STACK};
    stack.ss_sp = mmap(NULL, HANDLER_STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL) != 0)
        return false;
    sigset_t ours;
    sigemptyset(&ours);
    for (size_t n = 0; n < FAULTS; n++)
        sigaddset(&ours, faults[n].number);
    return pthread_sigmask(SIG_UNBLOCK, &ours, NULL) == 0;
}
