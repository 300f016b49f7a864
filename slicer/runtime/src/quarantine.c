/*
 * quarantine.c - memory, limits and faults of the prefetch process.
 *
 * Errors of a slice must end with it: a wild pointer, an endless recursion, a malloc() in a loop. They must have no
 * effect outside: no signal, no core file, no write to shared memory, no other process killed because of the memory
 * that it took.
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

/* Stack of a fault's handler. */
#define HANDLER_STACK (64 * 1024)

/* Replaces shared memory by a private copy; makes it unwritable if there is no room for one. */
static bool make_private(char *start, size_t bytes) {
    char *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return mprotect(start, bytes, PROT_READ) == 0;
    memcpy(copy, start, bytes);
    return mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, start) == start;
}

/* True if a line of /proc/self/maps is of a device, which must not even be read. Anonymous shared memory is listed
 * as /dev/zero. */
static bool is_device(const char *line) {
    return strstr(line, " /dev/") != NULL && strstr(line, " /dev/shm/") == NULL &&
           strstr(line, " /dev/zero ") == NULL;
}

/* Detaches all mappings whose changes others could see, except `shared`. */
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
        /* Permissions of shared memory end so. Few lines contain this, and parsing a line takes long. */
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

/* Prevents a core file. A limit of 1 also keeps the program in the core pattern from being run (core(5)); if the
 * hard limit is 0 it cannot be set. */
static bool no_core(void) {
    return setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1}) == 0 ||
           setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}) == 0;
}

/* Makes this process the first to be killed when memory runs out; true if that succeeded. */
static bool go_first(void) {
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool done = write(fd, "1000", 4) == 4;
    close(fd);
    return done;
}

/* Limits memory to that of the birth plus a quarter of the machine's. */
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

/* Capabilities that the process keeps if the program has them: to read everything that the program may read
 * (CAP_DAC_READ_SEARCH), to ask which of it is in memory (CAP_FOWNER), and to open the program's open files
 * (CAP_SYS_PTRACE, without which root's descriptors are hidden from a process with fewer rights). The filter refuses
 * everything else that they allow. */
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
    /* Before the process loses the right to write to its own files in /proc. */
    bool done = go_first();
    done &= leave_rights();
    done &= raw_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    /* Its memory is a copy of the program's, with secrets that the program may erase. */
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
    /* The program's handlers of other signals must not run here: those signals were blocked before the birth. */
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
