/* Stands in for foreread: creates a segment of the collective cache, puts a file into it, and runs a program with it.
 *
 *     seed LIBRARY FILE HOW COUNTS PROGRAM…
 *
 * HOW is made of words: `whole`, all pages of the file; `parts`, only the pages whose number is this rank's modulo the number
 * of ranks; `none`; `marked`, with each bit of the file inverted, so that bytes from the cache can be distinguished from bytes
 * that were read; `kept`, void pages are filled again all the time; `stuck`, all pages seem to be on their way for ever;
 * `waited`, each page comes once a process waits for it, with `slow` 4 ms later. The header claims that the slowest read so far
 * took a second; with `slow` 10 ms; with `new` there was no read. Some words make the segment invalid: another `token` or
 * `version`, more `slots` than there are, `unsealed`. At the end the counts are written to COUNTS.RANK. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../observers/pmpi/src/segment.h"

enum { SLOTS = 128 };

static struct segment segment;
static const char *how;
static int file;

static int variable(const char *one, const char *other) {
    const char *value = getenv(one) ? getenv(one) : getenv(other);
    return value ? atoi(value) : 0;
}

static uint64_t version(const struct stat *status) {
    return segment_version((uint64_t)status->st_size, status->st_mtim.tv_sec * INT64_C(1000000000) + status->st_mtim.tv_nsec,
                           status->st_ctim.tv_sec * INT64_C(1000000000) + status->st_ctim.tv_nsec);
}

static int is(const char *word) { return strstr(how, word) != NULL; }

/* True if the file has been unchanged for longer than the granularity of time stamps. */
static int is_settled(void) {
    struct stat status;
    struct timespec now;
    fstat(file, &status);
    clock_gettime(CLOCK_REALTIME, &now);
    return (now.tv_sec - status.st_ctim.tv_sec) * INT64_C(1000000000) + now.tv_nsec - status.st_ctim.tv_nsec > 20000000;
}

/* Marks all parts of a slot as being filled, if none of them is present or on its way. */
static int claim(uint32_t number) {
    struct segment_slot *slot = &segment.slots[number];
    atomic_fetch_add(&segment.header->claimed, 1);
    atomic_thread_fence(memory_order_seq_cst);
    uint64_t word = atomic_load(&slot->word);
    return (uint32_t)word == 0 && atomic_compare_exchange_strong(&slot->word, &word, word | 0xffff0000);
}

/* Fills a claimed slot with its page, by the rules of segment.h. */
static void fill(uint32_t number) {
    struct segment_slot *slot = &segment.slots[number];
    struct stat before, after;
    uint64_t word = atomic_load(&slot->word);
    atomic_thread_fence(memory_order_seq_cst);
    fstat(file, &before);
    atomic_store(&slot->version, version(&before));
    unsigned char *page = segment.pages + (uint64_t)number * SEGMENT_PAGE;
    ssize_t got = pread(file, page, SEGMENT_PAGE, (off_t)(atomic_load(&slot->page) * SEGMENT_PAGE));
    fstat(file, &after);
    for (ssize_t at = 0; is("marked") && at < got; at++)
        page[at] ^= 0xff;
    uint64_t parts = got <= 0 || version(&before) != version(&after) ? 0 : (UINT64_C(1) << (got / SEGMENT_PART)) - 1;
    uint32_t generation = segment_generation(word);
    for (word = atomic_load(&slot->word);;) {
        uint64_t next = (word & ~UINT64_C(0xffff0000)) | (segment_generation(word) == generation ? parts : 0);
        if (atomic_compare_exchange_weak(&slot->word, &word, next))
            break;
    }
    atomic_fetch_add(&segment.header->counts.filled, 1);
    if (atomic_load(&slot->waiters) > 0)
        syscall(SYS_futex, (uint32_t *)&slot->word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void put(uint64_t page, const struct stat *status) {
    struct segment_key key = {.dev = status->st_dev, .ino = status->st_ino, .page = page};
    uint64_t hash = segment_hash(&key);
    for (int which = 0; which < 2; which++)
        for (uint32_t way = 0, set = segment_set_of(hash, segment.set_count, which); way < SEGMENT_WAYS; way++) {
            uint32_t number = set * SEGMENT_WAYS + way;
            if (number >= segment.slot_count || atomic_load(&segment.sets[set].tag[way]) != 0)
                continue;
            struct segment_slot *slot = &segment.slots[number];
            atomic_store(&slot->dev, key.dev);
            atomic_store(&slot->ino, key.ino);
            atomic_store(&slot->page, page);
            atomic_store(&slot->word, UINT64_C(1) << 32);
            atomic_store(&segment.sets[set].tag[way], segment_tag(hash));
            claim(number);
            if (!is("stuck") && !is("waited"))
                fill(number);
            uint64_t logged = atomic_load(&segment.header->logged);
            atomic_store(&segment.log[logged % segment.slot_count], number);
            atomic_store(&segment.header->logged, logged + 1);
            return;
        }
}

int main(int argc, char **argv) {
    (void)argc;
    char name[4200];
    int rank = variable("PMI_RANK", "OMPI_COMM_WORLD_RANK"), ranks = variable("PMI_SIZE", "OMPI_COMM_WORLD_SIZE");
    uint64_t size = segment_size(SLOTS, NULL), token = 0x5eed000000000000 + (uint64_t)rank;
    how = argv[3];
    int memory = memfd_create("foreread-cache", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct segment_header *header = MAP_FAILED;
    if (memory >= 0 && ftruncate(memory, (off_t)size) == 0 &&
        (is("unsealed") || fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0))
        header = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (header == MAP_FAILED) {
        perror("seed: memory");
        return 99;
    }
    header->slots = SLOTS;
    header->version = SEGMENT_VERSION;
    header->token = token;
    header->magic = SEGMENT_MAGIC;
    header->mode = SEGMENT_COLLECTIVE;
    header->slowest = is("new") ? 0 : is("slow") ? 10000000 : 1000000000;
    struct stat status;
    file = open(argv[2], O_RDONLY | O_CLOEXEC);
    if (!segment_of(&segment, header, size, token) || fstat(file, &status) != 0) {
        perror("seed: file");
        return 99;
    }
    for (uint64_t page = 0; !is("none") && page * SEGMENT_PAGE < (uint64_t)status.st_size; page++)
        if (!is("parts") || page % (uint64_t)ranks == (uint64_t)rank)
            put(page, &status);
    if (is("slots"))
        header->slots = SEGMENT_SLOTS_MAX;
    if (is("version"))
        header->version = SEGMENT_VERSION + 1;
    if (is("token"))
        token++;
    snprintf(name, sizeof name, "%016llx/proc/%d/fd/%d", (unsigned long long)token, getpid(), memory);
    setenv(SEGMENT_ENV, name, 1);
    pid_t program = fork();
    if (program == 0) {
        setenv("LD_PRELOAD", argv[1], 1);
        execvp(argv[5], argv + 5);
        perror(argv[5]);
        _exit(99);
    }
    int ended;
    while (waitpid(program, &ended, is("kept") || is("waited") ? WNOHANG : 0) == 0) {
        for (uint32_t number = 0; number < SLOTS && is_settled(); number++)
            if ((is("waited") && atomic_load(&segment.slots[number].waiters) > 0) ||
                (is("kept") && atomic_load(&segment.slots[number].ino) != 0 && claim(number))) {
                if (is("slow"))
                    nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL);
                fill(number);
            }
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    snprintf(name, sizeof name, "%s.%d", argv[4], rank);
    FILE *counts = fopen(name, "w");
    if (counts) {
        const struct segment_counts *all = &header->counts;
        fprintf(counts, "bytes %lu\n", all->hit_bytes + all->host_bytes + all->remote_bytes);
        fprintf(counts, "hits %lu\nhost_hits %lu\nremote_hits %lu\nlate %lu\nmissed %lu\nvoided %lu\nchanged %lu\njoined %lu\nfiles %lu\npeers %u\n",
                all->hits, all->host_hits, all->remote_hits, all->late, all->missed, all->voided, all->changed, header->joined,
                header->file_count, header->peer_count);
        fclose(counts);
    }
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
}
