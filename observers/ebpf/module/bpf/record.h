/*
 * What the kernel's side reports, and what it is told: the one definition of both. observe.bpf.c fills it in, and bindgen
 * makes the Rust types of it (build.rs).
 *
 * Every event begins with a struct record; a struct named or a struct fault goes on from there. Times are ns of
 * CLOCK_MONOTONIC, offsets and lengths bytes.
 */
#ifndef FOREREAD_RECORD_H
#define FOREREAD_RECORD_H

enum what {
	/* A process was started: `handle` is its parent. */
	WHAT_FORK = 1,
	/* A process has become the program that is named: `handle` is its parent. */
	WHAT_EXEC = 2,
	/* A process has ended. */
	WHAT_EXIT = 3,
	/* `handle` stands for the regular file that is named, which was not met by its opening. */
	WHAT_FILE = 4,
	/* What is named was opened; `handle` stands for it, from now on if it was not met before, or is 0 where it is no regular
	 * file. */
	WHAT_OPEN = 5,
	/* The inode of what is named was looked at. */
	WHAT_LOOK = 6,
	/* The directory that is named was read. */
	WHAT_LIST = 7,
	/* Bytes of a file were read. */
	WHAT_READ = 8,
	/* A page of a mapped file was touched that was not in the process's page table. */
	WHAT_FAULT = 9,
	/* Of a system call: it hands over reads that may end later. It is reported as those. */
	WHAT_SUBMIT = 10,
};

/* What may lose events, each with a count of its own. */
enum probe {
	PROBE_PROCESSES,
	PROBE_FILES,
	PROBE_OPENS,
	PROBE_LOOKS,
	PROBE_LISTS,
	PROBE_READS,
	PROBE_FAULTS,
	PROBES,
};

/* How a process is followed. */
enum followed {
	/* It is not, but what it starts is. */
	FOLLOWED_PARENT = 1,
	/* It was started by one of those, and is about to become the program. */
	FOLLOWED_STARTING = 2,
	FOLLOWED = 3,
};

/* `call`: the system call's number, with a mark for that of the table for 32-bit programs. */
enum {
	CALL_NUMBER = 0x1ff,
	CALL_COMPAT = 0x200,
	CALLS = 0x400,
	/* By io_uring. */
	CALL_URING = 0x8000,
};

/* Where a call says at which place of the file it reads. */
enum at {
	/* Nowhere: where the descriptor stands. */
	AT_CURSOR,
	/* In an argument; -1 stands for the cursor. */
	AT_ARGUMENT,
	/* In two, the lower half first. */
	AT_HALVES,
	/* Where an argument points to; a null pointer stands for the cursor. */
	AT_POINTER,
	/* The same, and 32 bits are there. */
	AT_POINTER32,
};

/* Where a call has flags. */
enum flags {
	FLAGS_NONE,
	FLAGS_ARGUMENT,
	FLAGS_POINTER,
	/* They are these. */
	FLAGS_FIXED,
};

/* The number of no argument. */
enum { NO_ARGUMENT = 7 };

/* What to see in a system call: arguments by their numbers. */
struct call {
	/* An enum what; 0 for nothing. */
	unsigned char what;
	/* The descriptor that is read, or that a path begins at. */
	unsigned char fd;
	unsigned char path;
	unsigned char at;
	unsigned char place;
	unsigned char flags;
	/* The argument, or what the flags are. */
	unsigned short flags_value;
};

struct record {
	unsigned char what;
	unsigned char reserved;
	unsigned short call;
	unsigned int pid;
	unsigned int tid;
	unsigned int handle;
	unsigned long long start;
	unsigned long long took;
	unsigned long long offset;
	unsigned long long len;
};

/* Of a read only the first two are used, and where they say nothing it ends with its record. */
struct fault {
	struct record record;
	/* The pages [first, end) that the kernel added to the page cache for it, if any. */
	unsigned long long added_first;
	unsigned long long added_end;
	/* The pages around it that were mapped along as far as they were in memory, if any. */
	unsigned long long along_first;
	unsigned long long along_end;
	/* Whether the mapping may be executed. */
	unsigned int is_program;
	unsigned int reserved;
};

enum {
	NAMED_DIRECTORY = 1,
	NAMED_REGULAR = 2,
	/* It has no name any more. */
	NAMED_DELETED = 4,
	/* The path is deeper or longer than is followed: its beginning is missing. */
	NAMED_CUT = 8,
	/* The path is not one of the supervisor's: another root directory, or other mounts. */
	NAMED_APART = 16,
};

enum {
	PATH_DEPTH = 64,
	PATH_BYTES = 4096,
};

struct named {
	struct record record;
	/* As the call has them. */
	unsigned long long flags_given;
	unsigned int flags;
	/* The bytes of `path` that are names, and those that are what the program gave, with its final zero. */
	unsigned int names;
	unsigned int given;
	unsigned int reserved;
	/* The names that lead to it, last one first, each after a byte with its length; then what was given from there on. */
	unsigned char path[2 * PATH_BYTES];
};

#endif
