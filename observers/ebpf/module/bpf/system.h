/*
 * The reports of the kernel's side of the system-wide observer. system.bpf.c uses these definitions, and bindgen generates the Rust types
 * from them (build.rs). Times are in ns of CLOCK_MONOTONIC, offsets and lengths in bytes.
 */
#ifndef FOREREAD_SYSTEM_H
#define FOREREAD_SYSTEM_H

enum system_what {
	/* A process was started by `parent`. */
	SYSTEM_FORK = 1,
	/* A process executes a program: the file. */
	SYSTEM_EXEC = 2,
	/* A process has ended. */
	SYSTEM_EXIT = 3,
	/* A process opens a regular file. */
	SYSTEM_OPEN = 4,
	/* Pages of a file were added to the page cache for a process: `offset` and `len`. */
	SYSTEM_FETCH = 5,
};

/* Kinds of events that may be lost, each with a count of its own. */
enum system_probe {
	SYSTEM_PROBE_PROCESSES,
	SYSTEM_PROBE_OPENS,
	SYSTEM_PROBE_FETCHES,
	/* Opens beyond the limit of a process or a user. */
	SYSTEM_PROBE_FLOODS,
	/* Files whose names exceed SYSTEM_PATH or SYSTEM_DEPTH. */
	SYSTEM_PROBE_NAMES,
	SYSTEM_PROBES,
};

enum {
	SYSTEM_WRITES = 1,
};

enum {
	SYSTEM_DEPTH = 48,
	SYSTEM_PATH = 2048,
};

/* Settings of the kernel's side. */
struct system_told {
	/* The process number of the supervisor, which is not observed. */
	unsigned int own;
	/* The numbers of system calls that open files, in the table for 64-bit programs, and in the one for 32-bit programs. */
	unsigned int opens[4];
	unsigned int compat_opens[4];
};

struct system_event {
	unsigned char what;
	unsigned char flags;
	/* Bytes of `names`; 0 if the file's names were sent before, with the same device, inode and `name`. */
	unsigned short names_len;
	unsigned int pid;
	unsigned int parent;
	unsigned int uid;
	unsigned long long at;
	unsigned long long device;
	unsigned long long inode;
	/* Identifies one of the inode's names: a hash of its last part and its directory. */
	unsigned long long name;
	unsigned long long size;
	unsigned long long offset;
	unsigned long long len;
	/* The inode's generation, which changes when the number of a deleted file is used again. */
	unsigned int generation;
	unsigned int reserved;
	/* The names on the way from the file up to the root, the last one first, each after a byte with its length. */
	unsigned char names[SYSTEM_PATH];
};

#endif
