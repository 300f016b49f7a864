/*
 * System calls that open, look up, list and read: noted when they begin, and reported when they end.
 *
 * The map `calls` has the calls of interest, with the places of their arguments: those of the table for 64-bit programs, and those of
 * the table for 32-bit programs.
 */
#ifndef FOREREAD_CALLS_H
#define FOREREAD_CALLS_H

#include "aio.h"

/* A flag in thread_info.status: the thread is in a system call of a 32-bit program. */
#define TS_COMPAT 2

#if defined(__TARGET_ARCH_x86)
static __always_inline bool is_compat(void)
{
	return bpf_get_current_task_btf()->thread_info.status & TS_COMPAT;
}
static __always_inline void put_args(struct thread *thread)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());

	if (is_compat()) {
		thread->args[0] = (__u32)regs->bx;
		thread->args[1] = (__u32)regs->cx;
		thread->args[2] = (__u32)regs->dx;
		thread->args[3] = (__u32)regs->si;
		thread->args[4] = (__u32)regs->di;
		thread->args[5] = (__u32)regs->bp;
	} else {
		thread->args[0] = regs->di;
		thread->args[1] = regs->si;
		thread->args[2] = regs->dx;
		thread->args[3] = regs->r10;
		thread->args[4] = regs->r8;
		thread->args[5] = regs->r9;
	}
}
#elif defined(__TARGET_ARCH_arm64)
static __always_inline void put_args(struct thread *thread)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	unsigned long values[6] = {};

	bpf_core_read(values, sizeof values, &regs->regs);
	thread->args[0] = regs->orig_x0;
	for (int number = 1; number < 6; number++)
		thread->args[number] = values[number];
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
	put_args(thread);
	thread->file = 0;
	if (call->what == WHAT_READ || call->what == WHAT_LIST) {
		struct file *file = file_at(thread->args[call->fd & 7]);

		if (!file)
			return 0;
		if (call->what == WHAT_READ && type_of(BPF_CORE_READ(file, f_inode)) != NAMED_REGULAR)
			return 0;
		/* A later part of a directory was mostly read together with its beginning. */
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
	thread->waits = waits_now();
	thread->call = *call;
	return 0;
}

/* The offset at which a call began that has read `got` bytes. */
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
	fill_call(&event.record, WHAT_READ, thread, got);
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

/* A new file gets its handle and name by the event of its opening, if the supervisor finds the file by the given path. */
static __always_inline int open_ends(struct thread *thread, long got)
{
	struct inode_key key;
	struct inode *inode;
	struct file *file;
	__u32 handle = 0, type;
	bool is_new = 0;

	if (got < 0)
		return 0;
	file = file_at(got);
	if (!file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	type = type_of(inode);
	if (!type)
		return 0;
	if (!put_given(thread))
		return 0;
	if (type == NAMED_REGULAR) {
		key = key_of(inode);
		handle = known_as(thread, &key);
		is_new = !handle && is_everybodys(thread);
		if (is_new) {
			handle = next_handle();
		} else if (!handle) {
			handle = handle_of(thread, file);
			if (!put_given(thread))
				return 0;
		}
	}
	fill_call(&thread->out.record, WHAT_OPEN, thread, 0);
	thread->out.flags |= type;
	thread->out.record.handle = handle;
	if (send_named(&thread->out, PROBE_OPENS) && is_new)
		make_known(thread, &key, handle);
	return 0;
}

SEC("raw_tp/sys_exit")
int call_ends(struct bpf_raw_tracepoint_args *ctx)
{
	struct thread *thread;
	long got = ctx->args[1];
	__u8 what;

	if (!is_wanted)
		return 0;
	thread = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	if (!thread || !thread->call.what)
		return 0;
	what = thread->call.what;
	thread->call.what = 0;
	if (what == WHAT_READ)
		return read_ends(thread, got);
	if (what == WHAT_OPEN)
		return open_ends(thread, got);
	if (what == WHAT_SUBMIT)
		return submit_ends(thread, got);
	if (what == WHAT_LOOK) {
		if (got < 0 || !put_given(thread))
			return 0;
		fill_call(&thread->out.record, WHAT_LOOK, thread, 0);
		send_named(&thread->out, PROBE_LOOKS);
	} else if (what == WHAT_LIST && got >= 0) {
		put_file(thread, (void *)thread->file);
		fill_call(&thread->out.record, WHAT_LIST, thread, 0);
		send_named(&thread->out, PROBE_LISTS);
	}
	return 0;
}

#endif
