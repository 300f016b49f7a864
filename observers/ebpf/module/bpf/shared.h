/*
 * The common parts of both kernel's sides: collecting the names of a path, and counting lost events.
 *
 * Must be defined before: OUT, the event's structure; NAMES, its member for names, with NAMES_BYTES bytes; DEPTH, the limit of steps up
 * to the root; LOSSES, the number of counts of lost events.
 */
#ifndef FOREREAD_SHARED_H
#define FOREREAD_SHARED_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define PAGE_SHIFT 12
#define MODE_TYPE 0170000
#define MODE_REGULAR 0100000
#define PROC_MAGIC 0x9fa0
#define TMPFS_MAGIC 0x01021994
/* Limit of bytes of a name, including the byte for its length: a power of two. */
#define NAME_BYTES 256

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOSSES);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

static __always_inline void lose(__u32 probe)
{
	__u64 *count = bpf_map_lookup_elem(&lost, &probe);

	if (count)
		*count += 1;
}

/* The state on the way up from a place to the root. */
struct way {
	struct OUT *out;
	struct mount *mount;
	/* The root directory of the mount. */
	struct dentry *root;
	struct dentry *dentry;
	__u32 at;
	__u32 is_whole;
};

/* A field of a dentry, in a copy of the dentry from `d_parent` on. The distance is computed separately, because the verifier does not
 * permit subtraction from a pointer to the stack. */
#define LINKED(type, links, field)                                                                     \
	({                                                                                             \
		__u64 distance = bpf_core_field_offset(struct dentry, field) -                         \
				 bpf_core_field_offset(struct dentry, d_parent);                       \
		barrier_var(distance);                                                                 \
		*(type *)((char *)(links) + distance);                                                 \
	})

/* Goes one step up. Returns 1 at the end. */
static long step_up(__u64 step, struct way *way)
{
	struct dentry *dentry = way->dentry, *parent;
	struct mount *mount = way->mount, *above;
	__u64 links[3] = {};
	__u32 at = way->at, len;

	/* Parent and name are adjacent: one read in place of three. */
	if (bpf_probe_read_kernel(links, sizeof links, (void *)dentry + bpf_core_field_offset(struct dentry, d_parent)))
		return 1;
	parent = LINKED(struct dentry *, links, d_parent);
	if (dentry == way->root || dentry == parent) {
		above = BPF_CORE_READ(mount, mnt_parent);
		if (above == mount || !above) {
			way->is_whole = 1;
			return 1;
		}
		way->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		way->mount = above;
		way->root = BPF_CORE_READ(above, mnt.mnt_root);
		return 0;
	}
	len = LINKED(__u32, links, d_name.len);
	if (len >= NAME_BYTES || at > NAMES_BYTES - NAME_BYTES)
		return 1;
	way->out->NAMES[at] = len;
	if (bpf_probe_read_kernel(&way->out->NAMES[at + 1], len & (NAME_BYTES - 1),
				  LINKED(const void *, links, d_name.name)))
		return 1;
	way->at = at + 1 + (len & (NAME_BYTES - 1));
	way->dentry = parent;
	return 0;
}

/* Writes the names on the way from this place up to the root into an event. `is_whole` in the result is 1 if it has reached the root. */
static __always_inline struct way go_up(struct OUT *out, struct vfsmount *mnt, struct dentry *dentry)
{
	struct way way = {
		.out = out,
		.mount = (void *)mnt - bpf_core_field_offset(struct mount, mnt),
		.root = BPF_CORE_READ(mnt, mnt_root),
		.dentry = dentry,
	};

	bpf_loop(DEPTH, step_up, &way, 0);
	return way;
}

#endif
