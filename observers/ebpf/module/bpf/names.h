/*
 * The names of files: from the names on the way up to the root, and from the path that the program gave.
 *
 * Invariant: a file's name is in the ring before any event with its handle, or in the first such event.
 */
#ifndef FOREREAD_NAMES_H
#define FOREREAD_NAMES_H

#include "thread.h"

#define MODE_DIRECTORY 0040000
#define AT_FDCWD (-100)

/* Writes the names on the way from this place up to the root into the thread's event. */
static __noinline int put_names(struct thread *thread, struct vfsmount *mnt, struct dentry *dentry)
{
	struct named *out;
	struct way way;

	if (!thread)
		return 0;
	out = &thread->out;
	way = go_up(out, mnt, dentry);
	if (!way.is_whole)
		out->flags |= NAMED_CUT;
	else if ((__u64)way.mount != top_mount)
		out->flags |= NAMED_APART;
	out->names = way.at;
	out->given = 0;
	return 0;
}

/* Sends an event with its names and given path. False if it is lost. */
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

/* Writes the names of an open file into the thread's event. */
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

static __always_inline struct inode_key key_of(struct inode *inode)
{
	return (struct inode_key){
		.ino = BPF_CORE_READ(inode, i_ino),
		.dev = BPF_CORE_READ(inode, i_sb, s_dev),
		.generation = BPF_CORE_READ(inode, i_generation),
	};
}

/* The handle of a file whose name is in the ring; 0 if its name is not there. */
static __always_inline __u32 known_as(struct thread *thread, struct inode_key *key)
{
	struct inode_key *last = &thread->last;
	__u32 *found;

	if (last->ino == key->ino && last->dev == key->dev && last->generation == key->generation)
		return thread->last_handle;
	found = bpf_map_lookup_elem(&known, key);
	if (!found)
		return 0;
	thread->last = *key;
	thread->last_handle = *found;
	return *found;
}

static __always_inline __u32 next_handle(void)
{
	return __sync_fetch_and_add(&handles, 1) + 1;
}

/* Notes that the name of this file is in the ring. */
static __always_inline void make_known(struct thread *thread, struct inode_key *key, __u32 handle)
{
	bpf_map_update_elem(&known, key, &handle, BPF_ANY);
	thread->last = *key;
	thread->last_handle = handle;
}

/* A regular file's handle. Sends its name first, if it is new. 0 for other files, or if the name is lost. */
static __noinline int handle_of(struct thread *thread, struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct inode_key key = key_of(inode);
	__u32 handle;

	if (!thread)
		return 0;
	handle = known_as(thread, &key);
	if (handle || type_of(inode) != NAMED_REGULAR)
		return handle;
	handle = next_handle();
	put_file(thread, file);
	fill(&thread->out.record, WHAT_FILE, 0, bpf_ktime_get_ns());
	thread->out.record.handle = handle;
	if (!send_named(&thread->out, PROBE_FILES))
		return 0;
	make_known(thread, &key, handle);
	return handle;
}

/* The open file behind a descriptor; a null pointer if there is none. */
static __always_inline struct file *file_at(__u64 descriptor)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files = BPF_CORE_READ(table, fd), *file = 0;
	__u32 fd = descriptor;

	if (fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof file, files + fd);
	return file;
}

/* Writes the path that the program gave into the thread's event, after the names of the directory at which it begins. Returns 0 if
 * the path is empty or cannot be read. */
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
	thread->base = 0;
	given = thread->args[call->path & 7];
	if (bpf_probe_read_user(&first, 1, (void *)given) || !first)
		return 0;
	if (first != '/') {
		struct vfsmount *mnt = BPF_CORE_READ(fs, pwd.mnt);
		struct dentry *base = BPF_CORE_READ(fs, pwd.dentry);

		if (call->fd != NO_ARGUMENT && (int)thread->args[call->fd & 7] != AT_FDCWD) {
			struct file *file = file_at(thread->args[call->fd & 7]);

			if (!file)
				return 0;
			mnt = BPF_CORE_READ(file, f_path.mnt);
			base = BPF_CORE_READ(file, f_path.dentry);
		}
		put_names(thread, mnt, base);
		thread->base = (__u64)base;
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

/* True if the path in the thread's event surely leads the supervisor to the same file: it has the same root, and does not begin in
 * /proc or /dev, where each process may have a view of its own. */
static __always_inline bool is_everybodys(struct thread *thread)
{
	struct named *out = &thread->out;
	struct dentry *base = (void *)thread->base;
	__u64 magic = base ? BPF_CORE_READ(base, d_sb, s_magic) : 0;
	__u32 at = out->names;
	unsigned char *name;

	if (out->flags & (NAMED_APART | NAMED_CUT) || magic == PROC_MAGIC || magic == TMPFS_MAGIC || at > PATH_BYTES)
		return 0;
	name = &out->path[at];
	if (name[0] == '/')
		name++;
	return name[0] != '/' && name[0] != '.' && !(name[0] == 'p' && name[1] == 'r' && name[2] == 'o' && name[3] == 'c') &&
	       !(name[0] == 'd' && name[1] == 'e' && name[2] == 'v');
}

#endif
