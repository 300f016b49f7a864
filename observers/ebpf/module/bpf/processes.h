/*
 * The process tree: it begins with the process that the front process starts.
 */
#ifndef FOREREAD_PROCESSES_H
#define FOREREAD_PROCESSES_H

#include "names.h"

/* Notes the root of the supervisor's paths. The parent of the program is a process of foreread and has the same root. */
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
	/* The kernel has read the first page of the program's file. */
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

#endif
