/*
 * The parts of the kernel's types that are used. The loader finds the places of fields in the running kernel's own description (BTF),
 * by their names. Their order here does not matter.
 */
#ifndef FOREREAD_KERNEL_H
#define FOREREAD_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

/* From include/uapi/linux/bpf.h. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
	BPF_ANY = 0,
	BPF_F_NO_PREALLOC = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

/* From include/uapi/linux/bpf.h, with the same layout. */
struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

/* From include/uapi/linux/aio_abi.h and uio.h, with the same layout, for little-endian machines. */
enum {
	IOCB_CMD_PREAD = 0,
	IOCB_CMD_PREADV = 7,
};
struct iocb {
	__u64 aio_data;
	__u32 aio_key, aio_rw_flags;
	__u16 aio_lio_opcode;
	__s16 aio_reqprio;
	__u32 aio_fildes;
	__u64 aio_buf, aio_nbytes;
	__s64 aio_offset;
	__u64 aio_reserved2;
	__u32 aio_flags, aio_resfd;
};
struct iovec {
	__u64 iov_base, iov_len;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct qstr {
	__u32 len;
	const unsigned char *name;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct super_block *d_sb;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct inode {
	unsigned short i_mode;
	long long i_size;
	struct super_block *i_sb;
	unsigned long i_ino;
	__u32 i_generation;
};

struct address_space {
	struct inode *host;
};

struct file {
	struct inode *f_inode;
	struct address_space *f_mapping;
	struct path f_path;
	long long f_pos;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fs_struct {
	struct path root;
	struct path pwd;
};

struct memdesc_flags {
	unsigned long f;
};

struct folio {
	/* Since Linux 6.18; an unsigned long before. */
	struct memdesc_flags flags;
	unsigned long index;
	struct address_space *mapping;
	unsigned long _flags_1;
};

struct folio___before {
	unsigned long flags;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_pgoff;
	unsigned long vm_flags;
	struct file *vm_file;
};

struct thread_info {
	__u32 status;
};

struct signal_struct {
	struct {
		int counter;
	} live;
};

struct task_struct {
	struct thread_info thread_info;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct signal_struct *signal;
	unsigned long nvcsw;
	struct files_struct *files;
	struct fs_struct *fs;
};

struct linux_binprm {
	struct file *file;
};

/* The beginning of io_uring's request for a read. */
struct kiocb {
	struct file *ki_filp;
	long long ki_pos;
};

struct io_rw {
	struct kiocb kiocb;
};

struct io_cqe {
	int res;
};

struct io_kiocb {
	__u8 opcode;
	struct io_cqe cqe;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long bp, bx, r10, r9, r8, cx, dx, si, di;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	unsigned long regs[31];
};
struct pt_regs {
	unsigned long regs[31];
	unsigned long orig_x0;
};
#endif

enum pageflags {
	PG_head = 6,
};

/* Functions of the kernel that programs may call. */
enum bpf_func_id {
	BPF_FUNC_loop = 181,
};

#pragma clang attribute pop

#endif
