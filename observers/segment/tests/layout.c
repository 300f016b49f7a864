/* Prints what segment.h says, a line a fact, for src/tests.rs; with a segment named in the environment, reads it. */
#include "segment.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SIZE(type) printf("size %s %zu\n", #type, sizeof(struct segment_##type))
#define AT(type, field) printf("at %s.%s %zu\n", #type, #field, offsetof(struct segment_##type, field))

static void facts(void)
{
    SIZE(header), SIZE(counts), SIZE(peer), SIZE(file), SIZE(set), SIZE(slot), SIZE(place);
    AT(header, magic), AT(header, version), AT(header, slots), AT(header, token), AT(header, mode), AT(header, peer_count);
    AT(header, clock), AT(header, logged), AT(header, joined), AT(header, file_count), AT(header, claimed), AT(header, slowest), AT(header, reading);
    AT(header, counts);
    AT(header, peers), AT(header, files);
    AT(counts, hits), AT(counts, hit_bytes), AT(counts, host_hits), AT(counts, host_bytes), AT(counts, remote_hits);
    AT(counts, remote_bytes), AT(counts, late), AT(counts, missed), AT(counts, voided), AT(counts, changed), AT(counts, filled), AT(counts, filled_bytes);
    AT(counts, left_bytes), AT(counts, beside_bytes), AT(counts, lost);
    AT(counts, evicted), AT(counts, unread);
    AT(peer, token), AT(peer, pid), AT(peer, fd), AT(file, dev), AT(file, ino), AT(file, direct);
    AT(file, version);
    AT(slot, word), AT(slot, dev), AT(slot, ino), AT(slot, page), AT(slot, version), AT(slot, used), AT(slot, expected);
    AT(slot, fresh), AT(slot, waiters), AT(slot, wanted), AT(place, tag), AT(place, place);
    const uint32_t counts[] = {1, 7, 8, 9, 512, 12345};
    for (int i = 0; i < 6; i++) {
        uint64_t at[5], size = segment_size(counts[i], at);
        printf("places %u %lu %lu %lu %lu %lu %lu\n", counts[i], at[0], at[1], at[2], at[3], at[4], size);
    }
    const uint64_t reads[][2] = {{0, 65535}, {0, 65536}, {1, 131071}, {1, 131070}, {65536 * 9 + 4096, 1 << 30}, {UINT64_C(1) << 50, 1 << 20}, {0, UINT64_C(1) << 41}};
    for (int i = 0; i < 7; i++)
        printf("reading %lu\n", segment_reading(63, reads[i][0], reads[i][1]));
    for (uint64_t n = 0; n < 20; n++) {
        struct segment_key key = {n * 77, n << 33, n * n};
        uint64_t hash = segment_hash(&key);
        printf("hash %lu %lu %lu %u %u\n", n, hash, segment_tag(hash), segment_set_of(hash, 64, 0), segment_set_of(hash, 64, 1));
        printf("version %lu %lu\n", n, segment_version(n * 3, (int64_t)n * 1000, -(int64_t)n));
    }
}

/* Reads pages 0 to 63 of the file (1, 2) again and again, until the memory is marked with mode 1, and makes some void. A part's words
 * all hold page * 16 + part: says which did not. */
static int readers(const char *value)
{
    char *path;
    uint64_t token = strtoull(value, &path, 16);
    struct stat status;
    struct segment segment;
    int fd = open(value + 16, O_RDWR);
    if (fd < 0 || fstat(fd, &status) != 0)
        return 3;
    void *memory = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED || !segment_of(&segment, memory, (uint64_t)status.st_size, token))
        return 4;
    unsigned long good = 0;
    static uint64_t words[SEGMENT_PART / 8];
    while (atomic_load(&segment.header->mode) != SEGMENT_PLAIN)
        for (uint64_t page = 0; page < 64; page++) {
            struct segment_key key = {1, 2, page};
            uint32_t number, part = (uint32_t)(good % SEGMENT_PARTS);
            uint64_t word;
            if (!segment_find(&segment, &key, 1, UINT32_C(1) << part, &number, &word))
                continue;
            memcpy(words, segment.pages + (uint64_t)number * SEGMENT_PAGE + part * SEGMENT_PART, sizeof words);
            if (!segment_still(&segment, number, word))
                continue;
            for (size_t at = 0; at < SEGMENT_PART / 8; at++)
                if (words[at] != page * SEGMENT_PARTS + part) {
                    printf("page %lu part %u holds %lu\n", page, part, words[at]);
                    return 5;
                }
            segment_used(&segment, number, UINT32_C(1) << part, true);
            atomic_fetch_add(&segment.header->counts.hits, 1);
            if (++good % 97 == 0)
                segment_void(&segment.slots[number]);
        }
    return good > 0 ? 0 : 6;
}

int main(void)
{
    const char *value = getenv(SEGMENT_ENV);
    if (value)
        return readers(value);
    facts();
    return 0;
}
