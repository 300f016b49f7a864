/*
 * Reads by io_uring: from their submission to their end, which may be on another thread.
 */
#ifndef FOREREAD_URING_H
#define FOREREAD_URING_H

#include "names.h"

/* Requests that read. */
#define IORING_OP_READV 1
#define IORING_OP_READ_FIXED 4
#define IORING_OP_READ 22

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

#endif
