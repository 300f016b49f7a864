/*
 * Touches of mapped pages: from the page fault until the thread does something else.
 *
 * Data flow: page fault -> address; the page cache's tracepoints -> file, page, pages added and mapped along -> touch.
 */
#ifndef FOREREAD_MAPPED_H
#define FOREREAD_MAPPED_H

#include "names.h"

#define VM_EXEC 4

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

/* The kernel touches a page for the program, as in a write whose buffer is in a mapping. */
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

/* The touch of a page of this file that the thread is making; a null pointer if its mapping is unknown. */
static __always_inline struct touch *touch_of(struct thread *thread, __u64 mapping)
{
	struct mapped mapped = { .mapping = mapping, .address = thread->fault_address };
	struct touch *touch = &thread->touch;

	if (touch->mapping == mapping && touch->start == thread->fault_start)
		return touch;
	flush(thread);
	if (bpf_find_vma(bpf_get_current_task_btf(), mapped.address, find_mapped, &mapped, 0)) {
		/* Another thread is changing the mappings. */
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

/* The number of pages in a folio. */
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

#endif
