/* account.c - the account of the prefetch process: the sum over its lanes. */
#include "account.h"

#include <inttypes.h>
#include <stdio.h>

#include "process.h"
#include "queue.h"
#include "registry.h"
#include "report.h"
#include "trace.h"

struct sums {
    unsigned lanes;
    uint64_t program_calls, calls, entries, expired, coalesced, left, resident, refused;
    int64_t cpu_ns, waited_ns[WAITS], first_ns;
    foreread_stats stats;
    const char *ended;
};

static void add_lane(struct sums *sums, struct lane *lane) {
    sums->lanes++;
    sums->calls += atomic_load(&lane->next_id);
    sums->entries += lane->pushed;
    sums->expired += lane->expired;
    sums->coalesced += lane->coalesced;
    sums->left += lane->hold.left;
    sums->resident += lane->resident;
    sums->refused += lane->refused;
    for (int n = 0; n < WAITS; n++)
        sums->waited_ns[n] += lane->waited_ns[n];
    if (lane->first_ns != 0 && (sums->first_ns == 0 || lane->first_ns < sums->first_ns))
        sums->first_ns = lane->first_ns;
    const struct trace_seen calls = {.offset = lane->shared != NULL ? shared_calls(lane->shared) : 0};
    trace_add(TRACE_END, lane->path, atomic_load(&lane->next_id), &calls);
    const char *ended = atomic_load(&lane->ended);
    clockid_t clock;
    if (ended != NULL)
        sums->cpu_ns += atomic_load(&lane->cpu_ns);
    else if (pthread_getcpuclockid(lane->thread, &clock) == 0)
        sums->cpu_ns += clock_ns(clock);
    if (lane->path == MAIN_PATH)
        sums->ended = ended;
    foreread_stats stats = lane->stats;
    stats.struct_size = sizeof stats;
    /* A library that has failed reports the figures that it had. */
    if (lane->client != NULL)
        library.finish_client(lane->client, &stats);
    sums->stats.issued += stats.issued;
    sums->stats.useful += stats.useful;
    sums->stats.late += stats.late;
    sums->stats.wasted += stats.wasted;
    sums->stats.evicted += stats.evicted;
    sums->stats.infill += stats.infill;
}

static double seconds(int64_t nanoseconds) {
    return (double)nanoseconds / 1e9;
}

static struct sums add_up(void) {
    struct sums sums = {0};
    for (struct lane *lane = lanes(); lane != NULL; lane = lane->next)
        add_lane(&sums, lane);
    for (size_t n = 0; n < LANES; n++)
        sums.program_calls += shared_calls(&process_shared()->lanes[n]);
    return sums;
}

void account_write(int fd, long long born_ns) {
    struct sums sums = add_up();
    char text[2048];
    int length = snprintf(
        text, sizeof text,
        "{\"pid\": %d, \"library\": \"%s\", \"ended\": \"%s\", \"threads\": %u, \"files\": %zu, "
        "\"program_calls\": %" PRIu64 ", \"calls\": %" PRIu64 ", \"entries\": %" PRIu64
        ", \"coalesced\": %" PRIu64 ", \"left_to_kernel\": %" PRIu64
        ", \"resident\": %" PRIu64 ", \"expired\": %" PRIu64 ", \"refused\": %" PRIu64
        ", \"issued\": %" PRIu64 ", \"useful\": %" PRIu64 ", \"late\": %" PRIu64
        ", \"wasted\": %" PRIu64 ", \"evicted\": %" PRIu64 ", \"infill\": %" PRIu64
        ", \"cpu_s\": %.6f, \"process_cpu_s\": %.6f, \"lived_s\": %.6f, \"first_s\": %.6f, "
        "\"waited_point_s\": %.6f, \"waited_message_s\": %.6f, \"waited_room_s\": %.6f, "
        "\"waited_data_s\": %.6f}\n",
        (int)process_program(), library.version != NULL ? library.version() : "not needed",
        sums.ended != NULL ? sums.ended : "with the program", sums.lanes, files_known(),
        sums.program_calls, sums.calls, sums.entries, sums.coalesced, sums.left, sums.resident,
        sums.expired, sums.refused, sums.stats.issued, sums.stats.useful, sums.stats.late, sums.stats.wasted,
        sums.stats.evicted, sums.stats.infill, seconds(sums.cpu_ns),
        seconds(clock_ns(CLOCK_PROCESS_CPUTIME_ID)), seconds(clock_ns(CLOCK_MONOTONIC) - born_ns),
        sums.first_ns != 0 ? seconds(sums.first_ns - born_ns) : 0.0,
        seconds(sums.waited_ns[WAIT_POINT]), seconds(sums.waited_ns[WAIT_MESSAGE]),
        seconds(sums.waited_ns[WAIT_ROOM]), seconds(sums.waited_ns[WAIT_DATA]));
    report_append(fd, text, length);
}
