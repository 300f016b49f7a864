/*
 * The reports of the kernel's side, and its settings. observe.bpf.c uses these definitions, and bindgen generates the Rust types from
 * them (build.rs).
 *
 * Every event begins with a struct record; a struct named and a struct fault contain one. Times are in ns of CLOCK_MONOTONIC, offsets
 * and lengths in bytes.
 */
#ifndef FOREREAD_RECORD_H
#define FOREREAD_RECORD_H

enum what {
	/* A process was started. `handle` is its parent's number. */
	WHAT_FORK = 1,
	/* A process executes the named program. `handle` is its parent's number. */
	WHAT_EXEC = 2,
	/* A process has ended. */
	WHAT_EXIT = 3,
	/* From now on `handle` stands for the named regular file, whose opening has not given it a handle. */
	WHAT_FILE = 4,
	/* The named file was opened. `handle` stands for it, from now on if it is new; 0 for anything but a regular file. */
	WHAT_OPEN = 5,
	/* The given name was looked up (`stat`). */
	WHAT_LOOK = 6,
	/* The named directory was listed. */
	WHAT_LIST = 7,
	/* Bytes of a file were read. */
	WHAT_READ = 8,
	/* A page of a mapped file was touched for the first time: it was not in the process's page table. */
	WHAT_FAULT = 9,
	/* Only in struct call: a system call that submits reads. They are reported as WHAT_READ. */
	WHAT_SUBMIT = 10,
};

/* Kinds of events that may be lost, each with a count of its own. */
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

/* The state of a process in `processes`. */
enum followed {
	/* It is not followed, but the processes that it starts are. */
	FOLLOWED_PARENT = 1,
	/* It was started by such a process, and will execute the program. */
	FOLLOWED_STARTING = 2,
	FOLLOWED = 3,
};

/* `call`: the system call's number, with a flag for the table of 32-bit programs. */
enum {
	CALL_NUMBER = 0x1ff,
	CALL_COMPAT = 0x200,
	CALLS = 0x400,
	/* The number for a read by io_uring. */
	CALL_URING = 0x8000,
};

/* The source of a call's offset in the file. */
enum at {
	/* The descriptor's cursor. */
	AT_CURSOR,
	/* An argument; -1 stands for the cursor. */
	AT_ARGUMENT,
	/* Two arguments, the lower half first. */
	AT_HALVES,
	/* 64 bits that an argument points to; a null pointer stands for the cursor. */
	AT_POINTER,
	/* The same with 32 bits. */
	AT_POINTER32,
};

/* The source of a call's flags. */
enum flags {
	FLAGS_NONE,
	FLAGS_ARGUMENT,
	FLAGS_POINTER,
	/* The flags are `flags_value`. */
	FLAGS_FIXED,
};

/* The number that stands for no argument. */
enum { NO_ARGUMENT = 7 };

/* The arguments of interest of a system call, by their numbers. */
struct call {
	/* An enum what; 0 if the call is of no interest. */
	unsigned char what;
	/* The descriptor that is read, or at which a relative path begins. */
	unsigned char fd;
	unsigned char path;
	unsigned char at;
	unsigned char place;
	unsigned char flags;
	/* The number of the argument, or the flags themselves. */
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

/* For a read only `added_first` and `added_end` are used; if no pages were added, the event is only its record. */
struct fault {
	struct record record;
	/* The pages [first, end) that the kernel added to the page cache for it, if any (`end` is not 0). */
	unsigned long long added_first;
	unsigned long long added_end;
	/* The pages around it that were mapped along, as far as they were in memory, if any. */
	unsigned long long along_first;
	unsigned long long along_end;
	/* 1 if the mapping may be executed. */
	unsigned int is_program;
	unsigned int reserved;
};

enum {
	NAMED_DIRECTORY = 1,
	NAMED_REGULAR = 2,
	/* The file has no name any more. */
	NAMED_DELETED = 4,
	/* The path is deeper than PATH_DEPTH or longer than PATH_BYTES: its beginning is missing. */
	NAMED_CUT = 8,
	/* The path is not valid for the supervisor: it has another root directory, or other mounts. */
	NAMED_APART = 16,
};

enum {
	PATH_DEPTH = 64,
	PATH_BYTES = 4096,
};

struct named {
	struct record record;
	/* The call's flags. */
	unsigned long long flags_given;
	unsigned int flags;
	/* Bytes of `path` with names, and bytes with the program's path, including its final zero. */
	unsigned int names;
	unsigned int given;
	unsigned int reserved;
	/* The names on the way up to the root, the last one first, each after a byte with its length; then the program's path, which
	 * begins at that place. */
	unsigned char path[2 * PATH_BYTES];
};

#endif
