/* process.h - what all parts of the prefetch process know of it, and its end. */
#ifndef PROCESS_H
#define PROCESS_H

#include <sys/types.h>

#include "shared.h"

/* This is the prefetch process of a program. */
void process_begin(struct shared *shared, pid_t program);
/* The descriptor that is to be reported to, or -1. */
void process_set_report(int fd);

/* Whether this is the prefetch process. */
bool process_is_prefetch(void);

/* In the prefetch process only. */
struct shared *process_shared(void);
pid_t process_program(void);
int process_report(void);
/* Whether the program has ended, or has parted with this process. */
bool process_is_over(void);
/* Has the watcher look now. */
void process_ring(void);

/* Ends the process. */
_Noreturn void process_leave(void);
/* Ends the process, which is of no use; reported. */
_Noreturn void process_fail(const char *why);

#endif
