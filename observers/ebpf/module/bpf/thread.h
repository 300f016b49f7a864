/*
 * The state of each followed thread, the maps that all parts of the kernel's side share, and sending events.
 *
 * Invariant: events that do not fit into the ring are counted in `lost`.
 */
#ifndef FOREREAD_THREAD_H
#define FOREREAD_THREAD_H

#include "record.h"
#define OUT named
#define NAMES path
#define NAMES_BYTES PATH_BYTES
#define DEPTH PATH_DEPTH
#define LOSSES PROBES
#include "shared.h"

#define PAGE_SIZE (1ULL << PAGE_SHIFT)
/* The longest reported duration of a call that has found all its data in memory, in ns, besides 1 ns for each copied byte. A read that
 * takes longer counts as one that has waited (`foreread_plan::waited`). */
#define AT_ONCE 5000
/* A call that took longer than this has waited, even if its thread was not switched out: some virtual disks answer before that. */
#define LONG 30000

/* A touched page. It is reported when the thread does something else, because only then its duration is known. */
struct touch {
	__u64 mapping;
	__u64 index;
	/* The times of the page fault, of the beginning of a fetch (0 if there is none), and of its arrival. */
	__u64 start, fetched, there;
	struct fault event;
};

struct inode_key {
	__u64 ino;
	__u32 dev;
	__u32 generation;
};

struct thread {
	/* The system call that the thread is in; `what` is 0 if it is of no interest. */
	struct call call;
	__u64 args[8];
	/* The time of its beginning, and the number of the thread's waits before. */
	__u64 start, waits;
	/* The file that it reads, and 1 if it reads at the cursor although it has an argument for the offset. */
	__u64 file, mapping;
	__u32 number;
	__u32 is_at_cursor;
	/* The pages [first, end) that were added to the page cache for it. */
	__u64 added_first, added_end;
	/* The last page fault. */
	__u64 fault_address, fault_start;
	struct touch touch;
	/* The file that the thread used last, which mostly is also the next one, and its handle. */
	struct inode_key last;
	__u32 last_handle;
	/* The next event with names, and the directory at which its given path begins; 0 for the root. */
	__u64 base;
	struct named out;
};

struct request {
	__u64 start;
	__u32 pid, tid;
};

/* Has a section of its own, because the supervisor writes the whole section. */
__u32 is_wanted SEC(".data.wanted");
__u32 handles;
/* The root of the supervisor's paths. */
__u64 root_mount, root_dentry, top_mount;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 23);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CALLS);
	__type(key, __u32);
	__type(value, struct call);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 15);
	__type(key, __u32);
	__type(value, __u32);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

/* The handles of files whose names are in the ring. Its buckets take 4 MiB and are created in 1 ms; a larger map would delay the start
 * more. Files without room here are named again at each use, unless they are the thread's last file. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 18);
	__type(key, struct inode_key);
	__type(value, __u32);
} known SEC(".maps");

/* Reads that were submitted to io_uring. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 14);
	__type(key, __u64);
	__type(value, struct request);
} requests SEC(".maps");

/* The state of the current thread, if its process is followed. */
static __always_inline struct thread *followed(void)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32, *how;

	/* Checked first: while foreread stands aside, no events are wanted. */
	if (!is_wanted)
		return 0;
	how = bpf_map_lookup_elem(&processes, &pid);
	if (!how || *how != FOLLOWED)
		return 0;
	return bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline bool send(void *event, __u32 size, enum probe probe)
{
	if (!bpf_ringbuf_output(&ring, event, size, BPF_RB_NO_WAKEUP))
		return 1;
	lose(probe);
	return 0;
}

static __always_inline void fill(struct record *record, enum what what, __u32 call, __u64 start)
{
	__u64 id = bpf_get_current_pid_tgid();

	record->what = what;
	record->reserved = 0;
	record->call = call;
	record->pid = id >> 32;
	record->tid = id;
	record->handle = 0;
	record->start = start;
	record->took = bpf_ktime_get_ns() - start;
	record->offset = 0;
	record->len = 0;
}

/* The number of times that the current thread has waited. */
static __always_inline __u64 waits_now(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return BPF_CORE_READ(task, nvcsw);
}

/*
 * Fills the record of the thread's call. If the thread has not waited in the call, the reported duration is at most that of a copy of
 * `len` bytes. Otherwise an interrupted call would count as one that has waited.
 */
static __always_inline void fill_call(struct record *record, enum what what, struct thread *thread, __u64 len)
{
	fill(record, what, thread->number, thread->start);
	if (waits_now() == thread->waits && record->took > AT_ONCE + len && record->took < LONG + len)
		record->took = AT_ONCE + len;
}

/* Reports the thread's last touch, which is over now. */
static __noinline int flush(struct thread *thread)
{
	struct touch *touch;

	if (!thread)
		return 0;
	touch = &thread->touch;
	if (!touch->mapping)
		return 0;
	if (touch->event.record.handle) {
		touch->event.record.took = touch->there > touch->fetched && touch->fetched ? touch->there - touch->fetched : 0;
		send(&touch->event, sizeof touch->event, PROBE_FAULTS);
	}
	touch->mapping = 0;
	return 0;
}

#endif
