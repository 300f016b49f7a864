/*
 * What is kept of each thread that is followed, the tables that all of the kernel's side shares, and how an event is sent.
 *
 * Invariant: what does not fit into the ring is counted in `lost`.
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
/* What a call that has found all in memory is said to have taken at most, in ns, and one for each byte that was copied: less than makes
 * a read count as one that has waited (`foreread_plan::waited`). */
#define AT_ONCE 5000
/* Unless it took longer than this: some virtual disks answer before the reader is switched out. */
#define LONG 30000

/* A page that was touched, until the thread does something else: only then is it known how long that took. */
struct touch {
	__u64 mapping;
	__u64 index;
	/* When it was first touched, when it was fetched for that, if it was, and when it was there. */
	__u64 start, fetched, there;
	struct fault event;
};

struct inode_key {
	__u64 ino;
	__u32 dev;
	__u32 generation;
};

struct thread {
	/* The system call that the thread is in; `what` is 0 for none of interest. */
	struct call call;
	__u64 args[8];
	/* When it began, and how often the thread had waited before. */
	__u64 start, waits;
	/* What it reads, and whether at the cursor though it has an argument for a place. */
	__u64 file, mapping;
	__u32 number;
	__u32 is_at_cursor;
	/* The pages [first, end) that were added to the page cache for it. */
	__u64 added_first, added_end;
	/* The last page fault. */
	__u64 fault_address, fault_start;
	struct touch touch;
	/* The file that it used last, which mostly is the next one too, and its handle. */
	struct inode_key last;
	__u32 last_handle;
	/* What is being put together, and the directory that its path begins at; 0 where that is the root. */
	__u64 base;
	struct named out;
};

struct request {
	__u64 start;
	__u32 pid, tid;
};

/* By itself: the supervisor writes all of its section. */
__u32 is_wanted SEC(".data.wanted");
__u32 handles;
/* Where the supervisor's paths begin. */
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

/* The handles of files whose names are in the ring. Its buckets take 4 MiB, and to make those takes 1 ms; with 1 << 20 entries
 * it took 5 ms. Files that have no room are named at each use, unless the thread used them last. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 18);
	__type(key, struct inode_key);
	__type(value, __u32);
} known SEC(".maps");

/* The reads that io_uring was asked for. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 14);
	__type(key, __u64);
	__type(value, struct request);
} requests SEC(".maps");

/* The thread that runs, if its process is followed. */
static __always_inline struct thread *followed(void)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32, *how;

	/* Before any look-up: while the program is left to itself nothing is wanted. */
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

/* How often the current thread has waited for something. */
static __always_inline __u64 waits_now(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return BPF_CORE_READ(task, nvcsw);
}

/*
 * Fills the record of the call that the thread is in. A call in which it has waited for nothing is said to have taken no longer than
 * a copy of `len` bytes: else it may count as one that has waited, if it was interrupted.
 */
static __always_inline void fill_call(struct record *record, enum what what, struct thread *thread, __u64 len)
{
	fill(record, what, thread->number, thread->start);
	if (waits_now() == thread->waits && record->took > AT_ONCE + len && record->took < LONG + len)
		record->took = AT_ONCE + len;
}

/* Sends the touch that has waited for the thread to go on. */
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
