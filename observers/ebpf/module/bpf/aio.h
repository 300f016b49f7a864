/*
 * Reads by io_submit, which libaio calls. They are reported when the call ends, from the program's requests.
 *
 * A read through the page cache is over by then. A read that bypasses it may not be over, and counts as if it got all requested bytes.
 */
#ifndef FOREREAD_AIO_H
#define FOREREAD_AIO_H

#include "names.h"

/* The kernel's limit for the parts of a vector (UIO_MAXIOV). */
enum { AIO_PARTS = 1024 };

struct submission {
	struct thread *thread;
	/* The time of each request that the kernel has accepted, in ns. */
	__u64 each;
};

struct vector {
	/* The address of its parts in the program, and their sum so far. */
	__u64 at, bytes;
};

static long part_added(__u32 number, struct vector *vector)
{
	struct iovec part;

	if (bpf_probe_read_user(&part, sizeof part, (void *)(vector->at + number * sizeof part)))
		return 1;
	vector->bytes += part.iov_len;
	return 0;
}

/* The number of bytes that a request asks for. */
static __always_inline __u64 bytes_of(struct iocb *request)
{
	struct vector vector = {.at = request->aio_buf};

	if (request->aio_lio_opcode == IOCB_CMD_PREAD)
		return request->aio_nbytes;
	/* The program may have changed the number since the kernel accepted it. */
	if (request->aio_nbytes <= AIO_PARTS)
		bpf_loop(request->aio_nbytes, part_added, &vector, 0);
	return vector.bytes;
}

static long request_submitted(__u64 number, struct submission *submission)
{
	struct thread *thread = submission->thread;
	struct record event;
	struct iocb request;
	__u64 at = 0, size, bytes;
	struct file *file;

	if (bpf_probe_read_user(&at, sizeof at, (void *)(thread->args[2] + number * sizeof at)))
		return 1;
	if (bpf_probe_read_user(&request, sizeof request, (void *)at))
		return 0;
	if (request.aio_lio_opcode != IOCB_CMD_PREAD && request.aio_lio_opcode != IOCB_CMD_PREADV)
		return 0;
	file = file_at(request.aio_fildes);
	if (!file || type_of(BPF_CORE_READ(file, f_inode)) != NAMED_REGULAR)
		return 0;
	size = BPF_CORE_READ(file, f_inode, i_size);
	bytes = bytes_of(&request);
	if (request.aio_offset >= size || !bytes)
		return 0;
	if (bytes > size - request.aio_offset)
		bytes = size - request.aio_offset;
	fill(&event, WHAT_READ, thread->number, thread->start + number * submission->each);
	event.took = submission->each;
	event.handle = handle_of(thread, file);
	event.offset = request.aio_offset;
	event.len = bytes;
	if (event.handle)
		send(&event, sizeof event, PROBE_READS);
	return 0;
}

static __always_inline int submit_ends(struct thread *thread, long taken)
{
	struct submission submission = {.thread = thread};

	/* Linux before 5.17 has no bpf_loop, and these reads are not reported. */
	if (taken <= 0 || !bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop))
		return 0;
	submission.each = (bpf_ktime_get_ns() - thread->start) / (__u64)taken;
	bpf_loop(taken, request_submitted, &submission, 0);
	return 0;
}

#endif
