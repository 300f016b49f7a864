/*
 * The kernel's side of the system-wide observer: reports the files that the processes of the machine open, and the pages that were not
 * in memory.
 *
 * An open costs its process a few lookups in maps and one record of 80 bytes; a name is collected once a minute. Besides opens, only the
 * start and end of processes, and pages that come from a device, are observed.
 *
 * Invariants: events that do not fit into the ring are counted in `lost`. In each tenth of a second, a limited number of opens of each
 * process and each user is reported. Opens beyond it cost only their own process a few lookups.
 *
 * The supervisor may sleep in the meantime. A process that is about to wait for a device wakes it (`alarms`).
 *
 * Data flow: the supervisor sets `told`; probes -> ring, alarms.
 */
#include "system.h"
#define OUT system_event
#define NAMES names
#define NAMES_BYTES SYSTEM_PATH
#define DEPTH SYSTEM_DEPTH
#define LOSSES SYSTEM_PROBES
#include "shared.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define MODE_BLOCK 0060000
#define O_ACCMODE 3
#define O_PATH 010000000
#define FMODE_EXEC 0x20
/* A flag in thread_info.status: the thread is in a system call of a 32-bit program. */
#define TS_COMPAT 2
/* File systems whose files are not on a device. */
#define SYSFS_MAGIC 0x62656572
#define CGROUP2_MAGIC 0x63677270
#define RAMFS_MAGIC 0x858458f6
/* A name is sent again after this time, in ns, because directories are renamed, and the supervisor forgets names. */
#define KNOWN_NS 60000000000ULL
/*
 * Limits of reported opens of one process, and of one user, in each window of WINDOW_NS. From a cold disk no process opens 500 files in a
 * tenth of a second; a compilation in memory opens 100 headers in 20 ms. The daemon needs 3 % of a core for 10,000 events a second.
 */
#define WINDOW_NS 100000000ULL
#define PROCESS_OPENS 500
#define USER_OPENS 1000
/*
 * The first opens of each process in a window are counted separately, so that a process that opens few files is reported beside other
 * processes of its user that open many. A compiler in memory, or the start of a Python program, opens up to 100 files in a window, from a
 * cold disk 20. The sum of such opens of all processes of a user has a limit, too.
 */
#define FIRST_OPENS 100
#define USER_FIRST_OPENS 2000
/*
 * The shortest time between two alarms, in ns. Each costs the supervisor 40 to 100 us, which is 2 % of a core at 250 alarms a second. A
 * read of a disk takes longer than this time.
 */
#define ALARM_NS 4000000ULL

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block___system {
	__u32 s_dev;
	unsigned long s_magic;
};

struct inode___system {
	unsigned short i_mode;
	long long i_size;
	struct {
		int counter;
	} i_writecount;
};

struct qstr___system {
	__u32 hash;
};

struct dentry___system {
	struct qstr___system d_name;
};

struct file___system {
	unsigned int f_flags;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs___system {
	unsigned long orig_ax;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs___system {
	int syscallno;
};
#endif

#pragma clang attribute pop

struct name_key {
	__u64 inode;
	__u64 name;
	__u32 device;
	__u32 reserved;
};

struct rate {
	__u64 window;
	__u64 count;
};

/* The state of a thread: the pages that were added for it last, and its next event. */
struct thread {
	__u64 device, inode;
	__u64 first, end;
	__u64 at;
	struct system_event out;
};

/* Set by the supervisor. */
volatile const struct system_told told = {};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} alarms SEC(".maps");

struct {
	__uint(type, 9 /* BPF_MAP_TYPE_LRU_HASH */);
	__uint(max_entries, 1 << 16);
	__type(key, struct name_key);
	__type(value, __u64);
} known SEC(".maps");

struct {
	__uint(type, 9);
	__uint(max_entries, 1 << 12);
	__type(key, __u64);
	__type(value, struct rate);
} rates SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

static __always_inline __u32 process(void)
{
	return bpf_get_current_pid_tgid() >> 32;
}

static __always_inline struct thread *this_thread(__u64 flags)
{
	return bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, flags);
}

/* Sends an event with `names` bytes of names. */
static __always_inline void send(struct system_event *event, __u32 names, __u32 probe)
{
	if (names > SYSTEM_PATH)
		names = SYSTEM_PATH;
	event->names_len = names;
	if (bpf_ringbuf_output(&ring, event, __builtin_offsetof(struct system_event, names) + names, 0))
		lose(probe);
}

static __always_inline void fill(struct system_event *event, __u8 what, __u64 at)
{
	event->what = what;
	event->flags = 0;
	event->pid = process();
	event->parent = 0;
	event->uid = bpf_get_current_uid_gid();
	event->at = at;
	event->device = event->inode = event->name = event->size = 0;
	event->offset = event->len = 0;
	event->generation = event->reserved = 0;
}

/* Counts one more open of a process or user with this number. Returns the number of its opens in this window. */
static __always_inline __u64 opens_of(__u64 whose, __u64 now)
{
	struct rate *rate = bpf_map_lookup_elem(&rates, &whose);
	__u64 window = now / WINDOW_NS;

	if (!rate) {
		struct rate first = { .window = window, .count = 1 };

		bpf_map_update_elem(&rates, &whose, &first, BPF_ANY);
		return 1;
	}
	if (rate->window != window) {
		rate->window = window;
		rate->count = 0;
	}
	/* Not atomic: two processors may count one too few. */
	rate->count += 1;
	return rate->count;
}

/* Counts one more open of this process. True if it is to be reported. */
static __always_inline bool is_within(__u32 pid, __u64 now)
{
	__u64 user = (__u32)bpf_get_current_uid_gid() | 1ULL << 63, own = opens_of(pid, now);

	if (own <= FIRST_OPENS)
		return opens_of(user | 1ULL << 62, now) <= USER_FIRST_OPENS;
	return own <= PROCESS_OPENS && opens_of(user, now) <= USER_OPENS;
}

/* Time of the last alarm. */
__u64 alarmed;

/* Called when a process is about to wait for a device. Sends an alarm, which is the time. */
static __noinline int alarm(void)
{
	__u64 now = bpf_ktime_get_ns();

	/* Not atomic: two processors may send one too many. */
	if (now - alarmed < ALARM_NS)
		return 0;
	alarmed = now;
	/* If the ring is full, the supervisor has many alarms to read already. */
	bpf_ringbuf_output(&alarms, &now, sizeof now, BPF_RB_FORCE_WAKEUP);
	return 0;
}

static __always_inline bool is_on_device(struct inode *inode)
{
	struct super_block___system *super = (void *)BPF_CORE_READ(inode, i_sb);
	unsigned long magic = BPF_CORE_READ(super, s_magic);

	return (BPF_CORE_READ(inode, i_mode) & MODE_TYPE) == MODE_REGULAR && magic != PROC_MAGIC && magic != SYSFS_MAGIC &&
	       magic != TMPFS_MAGIC && magic != CGROUP2_MAGIC && magic != RAMFS_MAGIC;
}

/* Writes the names on the way from a file up to the root into the thread's event. Returns their bytes; 0 if they are too many. */
static __noinline int put_names(struct thread *thread, struct file *file)
{
	struct way way;

	if (!thread)
		return 0;
	way = go_up(&thread->out, BPF_CORE_READ(file, f_path.mnt), BPF_CORE_READ(file, f_path.dentry));
	return way.is_whole ? way.at : 0;
}

/* Reports the pages that were added for a thread. */
static __noinline int flush(struct thread *thread)
{
	struct system_event *out;

	if (!thread || !thread->end)
		return 0;
	out = &thread->out;
	fill(out, SYSTEM_FETCH, thread->at);
	out->device = thread->device;
	out->inode = thread->inode;
	out->offset = thread->first << PAGE_SHIFT;
	out->len = (thread->end - thread->first) << PAGE_SHIFT;
	thread->end = 0;
	send(out, 0, SYSTEM_PROBE_FETCHES);
	return 0;
}

/* Reports that a process opens or executes a file. */
static __noinline int send_file(struct thread *thread, struct file *file, __u8 what, __u32 parent)
{
	struct file___system *also = (void *)file;
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct inode___system *more = (void *)inode;
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	struct dentry *folder = BPF_CORE_READ(dentry, d_parent);
	struct dentry___system *last = (void *)dentry;
	__u64 now = bpf_ktime_get_ns(), *sent;
	__u32 probe = what == SYSTEM_EXEC ? SYSTEM_PROBE_PROCESSES : SYSTEM_PROBE_OPENS;
	struct name_key key = {};
	struct system_event *out;
	int names = 0;

	if (!thread)
		return 0;
	flush(thread);
	out = &thread->out;
	fill(out, what, now);
	out->parent = parent;
	if (BPF_CORE_READ(also, f_flags) & O_ACCMODE)
		out->flags = SYSTEM_WRITES;
	out->device = key.device = BPF_CORE_READ(inode, i_sb, s_dev);
	out->inode = key.inode = BPF_CORE_READ(inode, i_ino);
	out->name = key.name = (__u64)folder ^ (__u64)BPF_CORE_READ(last, d_name.hash) << 32;
	out->size = BPF_CORE_READ(more, i_size);
	out->generation = BPF_CORE_READ(inode, i_generation);
	sent = bpf_map_lookup_elem(&known, &key);
	if (!sent || now - *sent > KNOWN_NS) {
		names = put_names(thread, file);
		if (names <= 0) {
			lose(SYSTEM_PROBE_NAMES);
			return 0;
		}
		bpf_map_update_elem(&known, &key, &now, BPF_ANY);
	}
	send(out, names, probe);
	return 0;
}

/* A process opens a file: reports it, if the process and its user are within their limits. */
static __noinline int opened(struct file *file)
{
	struct file___system *also = (void *)file;
	__u32 pid = process();
	__u64 now;

	/* The file of a program is reported when it is executed. Nothing is read by a descriptor with O_PATH. */
	if (!file || BPF_CORE_READ(also, f_flags) & (FMODE_EXEC | O_PATH) || !is_on_device(BPF_CORE_READ(file, f_inode)))
		return 0;
	now = bpf_ktime_get_ns();
	if (!is_within(pid, now)) {
		lose(SYSTEM_PROBE_FLOODS);
		return 0;
	}
	send_file(this_thread(BPF_LOCAL_STORAGE_GET_F_CREATE), file, SYSTEM_OPEN, 0);
	return 0;
}

/* For kernels that permit probes of functions: reports the open early, and costs other system calls nothing. */
SEC("fentry/security_file_open")
int BPF_PROG(file_opens, struct file *file)
{
	if (process() != told.own)
		opened(file);
	return 0;
}

#if defined(__TARGET_ARCH_x86)
static __always_inline __u32 call_of(struct pt_regs___system *regs)
{
	return BPF_CORE_READ(regs, orig_ax);
}
static __always_inline bool is_compat(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, thread_info.status) & TS_COMPAT;
}
#elif defined(__TARGET_ARCH_arm64)
static __always_inline __u32 call_of(struct pt_regs___system *regs)
{
	return BPF_CORE_READ(regs, syscallno);
}
static __always_inline bool is_compat(void)
{
	return 0;
}
#endif

/* For other kernels: reports the open when its system call returns. */
SEC("raw_tp/sys_exit")
int call_ended(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 number = call_of((void *)ctx->args[0]), fd;
	struct task_struct *task;
	struct fdtable *table;
	struct file **files, *file = 0;
	long got;
	bool is_open;

	is_open = number == told.opens[0] || number == told.opens[1] || number == told.opens[2] || number == told.opens[3];
	/* The two tables use the same numbers for different calls. */
	if (number == told.compat_opens[0] || number == told.compat_opens[1] || number == told.compat_opens[2] || number == told.compat_opens[3])
		is_open |= is_compat();
	if (!is_open)
		return 0;
	got = ctx->args[1];
	if (got < 0 || process() == told.own)
		return 0;
	task = (void *)bpf_get_current_task();
	table = BPF_CORE_READ(task, files, fdt);
	files = BPF_CORE_READ(table, fd);
	fd = got;
	if (fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof file, files + fd);
	opened(file);
	return 0;
}

SEC("raw_tp/mm_filemap_add_to_page_cache")
int page_added(struct bpf_raw_tracepoint_args *ctx)
{
	struct folio *folio = (void *)ctx->args[0];
	struct inode *inode = BPF_CORE_READ(folio, mapping, host);
	struct inode___system *more = (void *)inode;
	unsigned long flags = 0, index, pages = 1;
	struct thread *thread;
	__u64 number, device;

	if (process() == told.own)
		return 0;
	/* A page of the device itself: directories or inodes. */
	if ((BPF_CORE_READ(inode, i_mode) & MODE_TYPE) == MODE_BLOCK)
		return alarm();
	/* Pages of a file that is open for writing may be new, and not fetched. */
	if (BPF_CORE_READ(more, i_writecount.counter) > 0 || !is_on_device(inode))
		return 0;
	thread = this_thread(BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread)
		return 0;
	if (bpf_core_field_exists(struct folio___before, flags))
		flags = BPF_CORE_READ((struct folio___before *)folio, flags);
	else if (bpf_core_field_exists(struct folio, flags.f))
		flags = BPF_CORE_READ(folio, flags.f);
	if (flags & 1UL << bpf_core_enum_value(enum pageflags, PG_head) && bpf_core_field_exists(folio->_flags_1))
		pages = 1UL << (BPF_CORE_READ(folio, _flags_1) & 31);
	index = BPF_CORE_READ(folio, index);
	number = BPF_CORE_READ(inode, i_ino);
	device = BPF_CORE_READ(inode, i_sb, s_dev);
	if (thread->end == index && thread->end && thread->inode == number && thread->device == device) {
		thread->end += pages;
		return 0;
	}
	flush(thread);
	thread->device = device;
	thread->inode = number;
	thread->first = index;
	thread->end = index + pages;
	thread->at = bpf_ktime_get_ns();
	alarm();
	return 0;
}

SEC("raw_tp/sched_process_fork")
int process_forked(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *child = (void *)ctx->args[1];
	__u32 from = process(), pid = BPF_CORE_READ(child, tgid);
	struct thread *thread;

	if (from == told.own || from == pid)
		return 0;
	thread = this_thread(BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread)
		return 0;
	flush(thread);
	fill(&thread->out, SYSTEM_FORK, bpf_ktime_get_ns());
	thread->out.pid = pid;
	thread->out.parent = from;
	send(&thread->out, 0, SYSTEM_PROBE_PROCESSES);
	return 0;
}

SEC("raw_tp/sched_process_exec")
int process_became(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	struct linux_binprm *program = (void *)ctx->args[2];
	struct file *file = BPF_CORE_READ(program, file);

	if (process() == told.own || !is_on_device(BPF_CORE_READ(file, f_inode)))
		return 0;
	send_file(this_thread(BPF_LOCAL_STORAGE_GET_F_CREATE), file, SYSTEM_EXEC, BPF_CORE_READ(task, real_parent, tgid));
	return 0;
}

SEC("raw_tp/sched_process_exit")
int process_ended(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	struct thread *thread;

	if (process() == told.own)
		return 0;
	thread = this_thread(BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread)
		return 0;
	flush(thread);
	if (BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	fill(&thread->out, SYSTEM_EXIT, bpf_ktime_get_ns());
	send(&thread->out, 0, SYSTEM_PROBE_PROCESSES);
	return 0;
}
