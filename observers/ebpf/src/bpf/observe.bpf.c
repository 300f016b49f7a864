/*
 * The kernel's side of the observer: what the processes of one program do with files.
 *
 * It looks at system calls and at the page cache's own tracepoints, so it does not matter how a program comes there: by whose
 * library, with 32 or 64 bits, by io_uring. There are no probes of functions: some kernels refuse those, and they come and
 * go with versions.
 *
 * Invariants: a thread that is not followed costs one look-up, which comes before anything else; what does not fit into the
 * ring is counted in `lost`; a file's name is in the ring before any event with its handle.
 *
 * Data flow: tracepoints -> ring. `is_wanted`, `calls` and the first of `processes` come from the supervisor; fork and exit
 * keep `processes`.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "record.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define PAGE_SHIFT 12
#define PAGE_SIZE (1ULL << PAGE_SHIFT)
#define MODE_TYPE 0170000
#define MODE_REGULAR 0100000
#define MODE_DIRECTORY 0040000
#define AT_FDCWD (-100)
#define VM_EXEC 4
/* thread_info.status: in a system call of a 32-bit program. */
#define TS_COMPAT 2
/* The requests of io_uring that read. */
#define IORING_OP_READV 1
#define IORING_OP_READ_FIXED 4
#define IORING_OP_READ 22

/* A page that was touched, until the thread does something else: only then is it known how long that took. */
struct touch {
	__u64 mapping;
	__u64 index;
	/* When it was first touched, when it was fetched for that, if it was, and when it was there. */
	__u64 start, fetched, there;
	struct fault event;
};

struct thread {
	/* The system call that the thread is in; `what` is 0 for none of interest. */
	struct call call;
	__u64 args[8];
	__u64 start;
	/* What it reads, and whether at the cursor though it has an argument for a place. */
	__u64 file, mapping;
	__u32 number;
	__u32 is_at_cursor;
	/* The pages [first, end) that were added to the page cache for it. */
	__u64 added_first, added_end;
	/* The last page fault. */
	__u64 fault_address, fault_start;
	struct touch touch;
	/* What is being put together. */
	struct named out;
};

struct inode_key {
	__u64 ino;
	__u32 dev;
	__u32 generation;
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

/* The handles of files whose names are in the ring. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, struct inode_key);
	__type(value, __u32);
} known SEC(".maps");

/* The reads that io_uring was asked for. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u64);
	__type(value, struct request);
} requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PROBES);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

/* The thread that runs, if its process is followed. */
static __always_inline struct thread *followed(void)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32;
	__u32 *how = bpf_map_lookup_elem(&processes, &pid);

	if (!how || *how != FOLLOWED || !is_wanted)
		return 0;
	return bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline void lose(__u32 probe)
{
	__u64 *count = bpf_map_lookup_elem(&lost, &probe);

	if (count)
		*count += 1;
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

/* On the way up from a place to the root. */
struct way {
	struct named *out;
	struct mount *mount;
	struct dentry *dentry;
	__u32 at;
	__u32 is_whole;
};

/* Goes one step up; 1 at the end. */
static long step_up(__u64 step, struct way *way)
{
	struct dentry *dentry = way->dentry, *parent = BPF_CORE_READ(dentry, d_parent);
	struct mount *mount = way->mount, *above;
	__u32 at = way->at, len;

	if (dentry == BPF_CORE_READ(mount, mnt.mnt_root) || dentry == parent) {
		above = BPF_CORE_READ(mount, mnt_parent);
		if (above == mount || !above) {
			way->is_whole = 1;
			return 1;
		}
		way->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		way->mount = above;
		return 0;
	}
	len = BPF_CORE_READ(dentry, d_name.len);
	if (len >= NAME_BYTES || at > PATH_BYTES - NAME_BYTES)
		return 1;
	way->out->path[at] = len;
	if (bpf_probe_read_kernel(&way->out->path[at + 1], len & (NAME_BYTES - 1), BPF_CORE_READ(dentry, d_name.name)))
		return 1;
	way->at = at + 1 + (len & (NAME_BYTES - 1));
	way->dentry = parent;
	return 0;
}

/* Puts the names on the way from the root to this place into the thread's event. */
static __noinline int put_names(struct thread *thread, struct vfsmount *mnt, struct dentry *dentry)
{
	struct way way = {
		.mount = (void *)mnt - bpf_core_field_offset(struct mount, mnt),
		.dentry = dentry,
	};
	struct named *out;

	if (!thread)
		return 0;
	out = &thread->out;
	way.out = out;
	bpf_loop(PATH_DEPTH, step_up, &way, 0);
	if (!way.is_whole)
		out->flags |= NAMED_CUT;
	else if ((__u64)way.mount != top_mount)
		out->flags |= NAMED_APART;
	out->names = way.at;
	out->given = 0;
	return 0;
}

/* Sends what was put together. */
static __always_inline bool send_named(struct named *out, enum probe probe)
{
	__u32 size = out->names + out->given;

	if (size > sizeof out->path)
		size = sizeof out->path;
	return send(out, __builtin_offsetof(struct named, path) + size, probe);
}

static __always_inline __u32 type_of(struct inode *inode)
{
	__u32 type = BPF_CORE_READ(inode, i_mode) & MODE_TYPE;

	return type == MODE_REGULAR ? NAMED_REGULAR : type == MODE_DIRECTORY ? NAMED_DIRECTORY : 0;
}

/* Names an open file. */
static __noinline int put_file(struct thread *thread, struct file *file)
{
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	struct named *out;

	if (!thread)
		return 0;
	out = &thread->out;
	out->flags_given = 0;
	out->flags = type_of(BPF_CORE_READ(file, f_inode));
	if (!BPF_CORE_READ(dentry, d_hash.pprev) && dentry != BPF_CORE_READ(dentry, d_parent))
		out->flags |= NAMED_DELETED;
	put_names(thread, BPF_CORE_READ(file, f_path.mnt), dentry);
	return 0;
}

/* A regular file's handle, its name being sent before; 0 if there is none. */
static __always_inline __u32 handle_of(struct thread *thread, struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct inode_key key = {
		.ino = BPF_CORE_READ(inode, i_ino),
		.dev = BPF_CORE_READ(inode, i_sb, s_dev),
		.generation = BPF_CORE_READ(inode, i_generation),
	};
	__u32 *found = bpf_map_lookup_elem(&known, &key);
	__u32 handle;

	if (found)
		return *found;
	if (type_of(inode) != NAMED_REGULAR)
		return 0;
	handle = __sync_fetch_and_add(&handles, 1) + 1;
	put_file(thread, file);
	fill(&thread->out.record, WHAT_FILE, 0, bpf_ktime_get_ns());
	thread->out.record.handle = handle;
	if (!send_named(&thread->out, PROBE_FILES) || bpf_map_update_elem(&known, &key, &handle, BPF_ANY))
		return 0;
	return handle;
}

/* The open file behind a descriptor; a null pointer if there is none. */
static __always_inline struct file *file_at(__u64 descriptor)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files = BPF_CORE_READ(table, fd);
	struct file *file = 0;
	__u32 fd = descriptor;

	if (fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof file, files + fd);
	return file;
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

#if defined(__TARGET_ARCH_x86)
static __always_inline bool put_args(struct thread *thread, struct pt_regs *regs)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	bool is_compat = BPF_CORE_READ(task, thread_info.status) & TS_COMPAT;

	if (is_compat) {
		thread->args[0] = (__u32)BPF_CORE_READ(regs, bx);
		thread->args[1] = (__u32)BPF_CORE_READ(regs, cx);
		thread->args[2] = (__u32)BPF_CORE_READ(regs, dx);
		thread->args[3] = (__u32)BPF_CORE_READ(regs, si);
		thread->args[4] = (__u32)BPF_CORE_READ(regs, di);
		thread->args[5] = (__u32)BPF_CORE_READ(regs, bp);
	} else {
		thread->args[0] = BPF_CORE_READ(regs, di);
		thread->args[1] = BPF_CORE_READ(regs, si);
		thread->args[2] = BPF_CORE_READ(regs, dx);
		thread->args[3] = BPF_CORE_READ(regs, r10);
		thread->args[4] = BPF_CORE_READ(regs, r8);
		thread->args[5] = BPF_CORE_READ(regs, r9);
	}
	return is_compat;
}
static __always_inline bool is_compat(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, thread_info.status) & TS_COMPAT;
}
#elif defined(__TARGET_ARCH_arm64)
static __always_inline bool put_args(struct thread *thread, struct pt_regs *regs)
{
	unsigned long values[6] = {};

	bpf_core_read(values, sizeof values, &regs->regs);
	thread->args[0] = BPF_CORE_READ(regs, orig_x0);
	for (int number = 1; number < 6; number++)
		thread->args[number] = values[number];
	return 0;
}
static __always_inline bool is_compat(void)
{
	return 0;
}
#endif

SEC("raw_tp/sys_enter")
int call_begins(struct bpf_raw_tracepoint_args *ctx)
{
	struct thread *thread = followed();
	struct call *call;
	__u32 number;

	if (!thread)
		return 0;
	flush(thread);
	thread->call.what = 0;
	if (ctx->args[1] > CALL_NUMBER)
		return 0;
	number = ctx->args[1] | (is_compat() ? CALL_COMPAT : 0);
	call = bpf_map_lookup_elem(&calls, &number);
	if (!call || !call->what)
		return 0;
	put_args(thread, (void *)ctx->args[0]);
	thread->file = 0;
	if (call->what == WHAT_READ || call->what == WHAT_LIST) {
		struct file *file = file_at(thread->args[call->fd & 7]);

		if (!file)
			return 0;
		if (call->what == WHAT_READ && type_of(BPF_CORE_READ(file, f_inode)) != NAMED_REGULAR)
			return 0;
		/* What follows the beginning of a directory has mostly come with it. */
		if (call->what == WHAT_LIST && BPF_CORE_READ(file, f_pos))
			return 0;
		thread->file = (__u64)file;
		thread->mapping = (__u64)BPF_CORE_READ(file, f_mapping);
		thread->added_end = 0;
		if (call->at == AT_POINTER || call->at == AT_POINTER32) {
			__u64 pointer = thread->args[call->place & 7], place = 0;
			__u32 size = call->at == AT_POINTER ? 8 : 4;

			thread->is_at_cursor = !pointer;
			if (pointer && bpf_probe_read_user(&place, size, (void *)pointer))
				return 0;
			thread->args[6] = place;
		}
	}
	thread->number = number;
	thread->start = bpf_ktime_get_ns();
	thread->call = *call;
	return 0;
}

/* Where in its file a call that has read `got` bytes began. */
static __always_inline __u64 place_of(struct thread *thread, __u64 got)
{
	struct file *file = (void *)thread->file;
	struct call *call = &thread->call;
	__u64 place = -1;

	if (call->at == AT_ARGUMENT)
		place = thread->args[call->place & 7];
	else if (call->at == AT_HALVES)
		place = (__u32)thread->args[call->place & 7] | thread->args[(call->place + 1) & 7] << 32;
	else if (call->at != AT_CURSOR && !thread->is_at_cursor)
		place = thread->args[6];
	if (place == -1ULL)
		place = BPF_CORE_READ(file, f_pos) - got;
	return place;
}

static __always_inline int read_ends(struct thread *thread, long got)
{
	struct fault event = {};
	__u32 handle, size = sizeof event.record;

	if (got <= 0)
		return 0;
	handle = handle_of(thread, (void *)thread->file);
	if (!handle)
		return 0;
	fill(&event.record, WHAT_READ, thread->number, thread->start);
	event.record.handle = handle;
	event.record.offset = place_of(thread, got);
	event.record.len = got;
	if (thread->added_end) {
		event.added_first = thread->added_first;
		event.added_end = thread->added_end;
		size = sizeof event;
	}
	send(&event, size, PROBE_READS);
	return 0;
}

/* Puts what the program gave as a path into the thread's event, and what comes before that. */
static __noinline int put_given(struct thread *thread)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fs_struct *fs = BPF_CORE_READ(task, fs);
	struct named *out;
	struct call *call;
	__u64 given;
	long len;
	__u8 first = 0;

	if (!thread)
		return 0;
	out = &thread->out;
	call = &thread->call;
	out->names = 0;
	out->flags = 0;
	given = thread->args[call->path & 7];
	if (bpf_probe_read_user(&first, 1, (void *)given) || !first)
		return 0;
	if (first != '/') {
		struct file *file = 0;

		if (call->fd != NO_ARGUMENT && (int)thread->args[call->fd & 7] != AT_FDCWD) {
			file = file_at(thread->args[call->fd & 7]);
			if (!file)
				return 0;
			put_names(thread, BPF_CORE_READ(file, f_path.mnt), BPF_CORE_READ(file, f_path.dentry));
		} else {
			put_names(thread, BPF_CORE_READ(fs, pwd.mnt), BPF_CORE_READ(fs, pwd.dentry));
		}
	} else if ((__u64)BPF_CORE_READ(fs, root.mnt) != root_mount ||
		   (__u64)BPF_CORE_READ(fs, root.dentry) != root_dentry) {
		out->flags |= NAMED_APART;
	}
	if (out->names > PATH_BYTES)
		return 0;
	len = bpf_probe_read_user_str(&out->path[out->names], PATH_BYTES, (void *)given);
	if (len <= 0)
		return 0;
	out->given = len;
	out->flags_given = 0;
	if (call->flags == FLAGS_ARGUMENT)
		out->flags_given = (__u32)thread->args[call->flags_value & 7];
	else if (call->flags == FLAGS_POINTER)
		bpf_probe_read_user(&out->flags_given, 8, (void *)thread->args[call->flags_value & 7]);
	else if (call->flags == FLAGS_FIXED)
		out->flags_given = call->flags_value;
	return 1;
}

static __always_inline int open_ends(struct thread *thread, long got)
{
	struct file *file;
	__u32 handle, type;

	if (got < 0)
		return 0;
	file = file_at(got);
	if (!file)
		return 0;
	type = type_of(BPF_CORE_READ(file, f_inode));
	if (!type)
		return 0;
	handle = handle_of(thread, file);
	if (!put_given(thread))
		return 0;
	fill(&thread->out.record, WHAT_OPEN, thread->number, thread->start);
	thread->out.flags |= type;
	thread->out.record.handle = handle;
	send_named(&thread->out, PROBE_OPENS);
	return 0;
}

SEC("raw_tp/sys_exit")
int call_ends(struct bpf_raw_tracepoint_args *ctx)
{
	struct thread *thread = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	long got = ctx->args[1];
	__u8 what;

	if (!thread || !thread->call.what || !is_wanted)
		return 0;
	what = thread->call.what;
	thread->call.what = 0;
	if (what == WHAT_READ)
		return read_ends(thread, got);
	if (what == WHAT_OPEN)
		return open_ends(thread, got);
	if (what == WHAT_LOOK) {
		if (got < 0 || !put_given(thread))
			return 0;
		fill(&thread->out.record, WHAT_LOOK, thread->number, thread->start);
		send_named(&thread->out, PROBE_LOOKS);
	} else if (what == WHAT_LIST && got >= 0) {
		put_file(thread, (void *)thread->file);
		fill(&thread->out.record, WHAT_LIST, thread->number, thread->start);
		send_named(&thread->out, PROBE_LISTS);
	}
	return 0;
}

static __always_inline int fault_begins(__u64 address)
{
	struct thread *thread = followed();

	if (!thread)
		return 0;
	flush(thread);
	thread->fault_address = address;
	thread->fault_start = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp/page_fault_user")
int user_fault(struct bpf_raw_tracepoint_args *ctx)
{
	return fault_begins(ctx->args[0]);
}

/* The kernel itself touches a page for the program: what is written comes from a mapping. */
SEC("raw_tp/page_fault_kernel")
int kernel_fault(struct bpf_raw_tracepoint_args *ctx)
{
	return fault_begins(ctx->args[0]);
}

struct mapped {
	__u64 mapping;
	__u64 address;
	__u64 index;
	__u64 file;
	__u32 is_program;
};

static long find_mapped(struct task_struct *task, struct vm_area_struct *vma, struct mapped *mapped)
{
	struct file *file = vma->vm_file;

	if (!file || (__u64)BPF_CORE_READ(file, f_mapping) != mapped->mapping)
		return 0;
	mapped->file = (__u64)file;
	mapped->index = vma->vm_pgoff + ((mapped->address - vma->vm_start) >> PAGE_SHIFT);
	mapped->is_program = !!(vma->vm_flags & VM_EXEC);
	return 0;
}

/* The touch that the thread is in the middle of, of a page of this file; a null pointer where it cannot be told. */
static __always_inline struct touch *touch_of(struct thread *thread, __u64 mapping)
{
	struct mapped mapped = { .mapping = mapping, .address = thread->fault_address };
	struct touch *touch = &thread->touch;

	if (touch->mapping == mapping && touch->start == thread->fault_start)
		return touch;
	flush(thread);
	if (bpf_find_vma(bpf_get_current_task_btf(), mapped.address, find_mapped, &mapped, 0)) {
		/* Somebody changes the mappings. */
		lose(PROBE_FAULTS);
		return 0;
	}
	if (!mapped.file)
		return 0;
	touch->event.record.handle = handle_of(thread, (void *)mapped.file);
	__u32 handle = touch->event.record.handle;
	fill(&touch->event.record, WHAT_FAULT, 0, thread->fault_start);
	touch->event.record.handle = handle;
	touch->event.record.offset = mapped.index << PAGE_SHIFT;
	touch->event.record.len = PAGE_SIZE;
	touch->event.is_program = mapped.is_program;
	touch->event.added_end = touch->event.along_end = 0;
	touch->event.added_first = touch->event.along_first = 0;
	touch->event.reserved = 0;
	touch->start = thread->fault_start;
	touch->fetched = touch->there = 0;
	touch->index = mapped.index;
	touch->mapping = mapping;
	return touch;
}

SEC("raw_tp/mm_filemap_map_pages")
int mapped_along(struct bpf_raw_tracepoint_args *ctx)
{
	struct thread *thread = followed();
	struct touch *touch;

	if (!thread)
		return 0;
	touch = touch_of(thread, ctx->args[0]);
	if (!touch)
		return 0;
	touch->event.along_first = ctx->args[1];
	touch->event.along_end = ctx->args[2] + 1;
	touch->there = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp/mm_filemap_fault")
int page_wanted(struct bpf_raw_tracepoint_args *ctx)
{
	struct thread *thread = followed();
	struct touch *touch;
	__u64 now = bpf_ktime_get_ns();

	if (!thread)
		return 0;
	touch = touch_of(thread, ctx->args[0]);
	if (!touch)
		return 0;
	if (touch->fetched)
		touch->there = now;
	else
		touch->fetched = now;
	return 0;
}

/* How many pages a folio is. */
static __always_inline __u64 pages_of(struct folio *folio)
{
	unsigned long flags = 0;

	if (bpf_core_field_exists(struct folio___before, flags))
		flags = BPF_CORE_READ((struct folio___before *)folio, flags);
	else if (bpf_core_field_exists(struct folio, flags.f))
		flags = BPF_CORE_READ(folio, flags.f);
	if (!(flags & 1UL << bpf_core_enum_value(enum pageflags, PG_head)) || !bpf_core_field_exists(folio->_flags_1))
		return 1;
	return 1UL << (BPF_CORE_READ(folio, _flags_1) & 31);
}

static __always_inline void widen(__u64 *first, __u64 *end, struct folio *folio)
{
	__u64 index = BPF_CORE_READ(folio, index), after = index + pages_of(folio);

	if (!*end || index < *first)
		*first = index;
	if (after > *end)
		*end = after;
}

SEC("raw_tp/mm_filemap_add_to_page_cache")
int page_added(struct bpf_raw_tracepoint_args *ctx)
{
	struct thread *thread = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	struct folio *folio = (void *)ctx->args[0];
	__u64 mapping;

	if (!thread)
		return 0;
	mapping = (__u64)BPF_CORE_READ(folio, mapping);
	if (thread->touch.fetched && mapping == thread->touch.mapping)
		widen(&thread->touch.event.added_first, &thread->touch.event.added_end, folio);
	else if (thread->call.what == WHAT_READ && mapping == thread->mapping)
		widen(&thread->added_first, &thread->added_end, folio);
	return 0;
}

SEC("raw_tp/io_uring_submit_req")
int request_begins(struct bpf_raw_tracepoint_args *ctx)
{
	struct io_kiocb *request = (void *)ctx->args[0];
	__u64 key = (__u64)request, id;
	struct request begun;
	__u8 opcode;

	if (!followed())
		return 0;
	opcode = BPF_CORE_READ(request, opcode);
	if (opcode != IORING_OP_READ && opcode != IORING_OP_READV && opcode != IORING_OP_READ_FIXED)
		return 0;
	id = bpf_get_current_pid_tgid();
	begun.start = bpf_ktime_get_ns();
	begun.pid = id >> 32;
	begun.tid = id;
	if (bpf_map_update_elem(&requests, &key, &begun, BPF_ANY))
		lose(PROBE_READS);
	return 0;
}

SEC("raw_tp/io_uring_complete")
int request_ends(struct bpf_raw_tracepoint_args *ctx)
{
	struct io_kiocb *request = (void *)ctx->args[1];
	struct io_rw *read = (void *)request;
	__u64 key = (__u64)request;
	struct request *begun = bpf_map_lookup_elem(&requests, &key);
	struct record event;
	struct request copy;
	struct thread *thread;
	struct file *file;
	int got;

	if (!begun)
		return 0;
	copy = *begun;
	bpf_map_delete_elem(&requests, &key);
	thread = followed();
	got = BPF_CORE_READ(request, cqe.res);
	if (!thread || got <= 0)
		return 0;
	file = BPF_CORE_READ(read, kiocb.ki_filp);
	fill(&event, WHAT_READ, CALL_URING, copy.start);
	event.pid = copy.pid;
	event.tid = copy.tid;
	event.handle = handle_of(thread, file);
	event.offset = BPF_CORE_READ(read, kiocb.ki_pos) - got;
	event.len = got;
	if (event.handle)
		send(&event, sizeof event, PROBE_READS);
	return 0;
}

/* Notes where the supervisor's paths begin: the program is started by its like. */
static __always_inline void note_root(struct task_struct *task)
{
	struct vfsmount *root = BPF_CORE_READ(task, fs, root.mnt);
	struct mount *mount = (void *)root - bpf_core_field_offset(struct mount, mnt);

	root_mount = (__u64)root;
	root_dentry = (__u64)BPF_CORE_READ(task, fs, root.dentry);
	for (int step = 0; step < PATH_DEPTH; step++) {
		struct mount *above = BPF_CORE_READ(mount, mnt_parent);

		if (above == mount || !above)
			break;
		mount = above;
	}
	top_mount = (__u64)mount;
}

SEC("raw_tp/sched_process_fork")
int process_forked(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	__u32 from = bpf_get_current_pid_tgid() >> 32, pid, *how, now;
	struct record event = {};

	how = bpf_map_lookup_elem(&processes, &from);
	if (!how)
		return 0;
	pid = BPF_CORE_READ(child, tgid);
	if (from == pid)
		return 0;
	now = *how == FOLLOWED_PARENT ? FOLLOWED_STARTING : *how;
	if (*how == FOLLOWED_PARENT)
		note_root(parent);
	if (bpf_map_update_elem(&processes, &pid, &now, BPF_ANY)) {
		lose(PROBE_PROCESSES);
		return 0;
	}
	if (!is_wanted || now != FOLLOWED)
		return 0;
	event.what = WHAT_FORK;
	event.pid = event.tid = pid;
	event.handle = from;
	event.start = bpf_ktime_get_ns();
	send(&event, sizeof event, PROBE_PROCESSES);
	return 0;
}

SEC("raw_tp/sched_process_exec")
int process_became(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	struct linux_binprm *program = (void *)ctx->args[2];
	__u32 pid = bpf_get_current_pid_tgid() >> 32, now = FOLLOWED, *how;
	__u64 start = bpf_ktime_get_ns();
	struct fault head = {};
	struct thread *thread;
	struct file *file;

	how = bpf_map_lookup_elem(&processes, &pid);
	if (!how || *how == FOLLOWED_PARENT)
		return 0;
	if (*how != FOLLOWED)
		bpf_map_update_elem(&processes, &pid, &now, BPF_ANY);
	thread = followed();
	if (!thread)
		return 0;
	thread->touch.mapping = 0;
	file = BPF_CORE_READ(program, file);
	put_file(thread, file);
	fill(&thread->out.record, WHAT_EXEC, 0, start);
	thread->out.record.handle = BPF_CORE_READ(task, real_parent, tgid);
	send_named(&thread->out, PROBE_PROCESSES);
	/* Its head was read by the kernel. */
	now = handle_of(thread, file);
	if (!now)
		return 0;
	fill(&head.record, WHAT_FAULT, 0, start);
	head.record.handle = now;
	head.record.took = 0;
	head.record.len = PAGE_SIZE;
	head.is_program = 1;
	send(&head, sizeof head, PROBE_FAULTS);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int process_ended(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	__u32 pid = bpf_get_current_pid_tgid() >> 32, *how;
	struct record event = {};
	bool was_followed;

	how = bpf_map_lookup_elem(&processes, &pid);
	if (!how)
		return 0;
	was_followed = *how == FOLLOWED;
	if (was_followed && is_wanted)
		flush(bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0));
	if (BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	bpf_map_delete_elem(&processes, &pid);
	if (!is_wanted || !was_followed)
		return 0;
	event.what = WHAT_EXIT;
	event.pid = event.tid = pid;
	event.start = bpf_ktime_get_ns();
	send(&event, sizeof event, PROBE_PROCESSES);
	return 0;
}
