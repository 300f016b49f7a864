/*
 * What the kernel's side of the system-wide observer reports: the one definition. system.bpf.c fills it in, and bindgen makes
 * the Rust types of it (build.rs). Times are ns of CLOCK_MONOTONIC, offsets and lengths bytes.
 */
#ifndef FOREREAD_SYSTEM_H
#define FOREREAD_SYSTEM_H

enum system_what {
	/* A process was made: `parent` made it. */
	SYSTEM_FORK = 1,
	/* A process runs another program, which is the file. */
	SYSTEM_EXEC = 2,
	/* A process has ended. */
	SYSTEM_EXIT = 3,
	/* A process opens a regular file. */
	SYSTEM_OPEN = 4,
	/* Pages of a file were added to the page cache for a process: `offset` and `len`. */
	SYSTEM_FETCH = 5,
};

/* What may lose events, each with a count of its own. */
enum system_probe {
	SYSTEM_PROBE_PROCESSES,
	SYSTEM_PROBE_OPENS,
	SYSTEM_PROBE_FETCHES,
	/* Opens beyond the rate that one process, or one user, is observed at. */
	SYSTEM_PROBE_FLOODS,
	/* Names that are longer or deeper than is followed. */
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

/* What the kernel's side is told. */
struct system_told {
	/* The supervisor's own process, which is not observed. */
	unsigned int own;
	/* The system calls that open; those of 32-bit programs have numbers of another table. */
	unsigned int opens[4];
	unsigned int compat_opens[4];
};

struct system_event {
	unsigned char what;
	unsigned char flags;
	/* Bytes of `names`; 0 where the file's name was sent before, with the same device, inode and `name`. */
	unsigned short names_len;
	unsigned int pid;
	unsigned int parent;
	unsigned int uid;
	unsigned long long at;
	unsigned long long device;
	unsigned long long inode;
	/* Which name of the inode: a number made of its last part and the directory. */
	unsigned long long name;
	unsigned long long size;
	unsigned long long offset;
	unsigned long long len;
	/* Of the inode: another one when a deleted file's number is given again. */
	unsigned int generation;
	unsigned int reserved;
	/* The names that lead to the file, the last one first, each after a byte with its length. */
	unsigned char names[SYSTEM_PATH];
};

#endif
