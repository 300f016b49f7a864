/* process.h - state of the prefetch process that all its parts use, and its end. */
#ifndef PROCESS_H
#define PROCESS_H

#include <sys/types.h>

#include "shared.h"

/* Declares this process the prefetch process of a program. */
void process_begin(struct shared *shared, pid_t program);
/* Sets the descriptor of the report; -1 for none. */
void process_set_report(int fd);

/* True in the prefetch process. */
bool process_is_prefetch(void);

/* In the prefetch process only. */
struct shared *process_shared(void);
pid_t process_program(void);
int process_report(void);
/* True if the program has ended, or has ended this process. */
bool process_is_over(void);
/* Wakes the watcher. */
void process_ring(void);

/* Ends the process. */
_Noreturn void process_leave(void);
/* Ends the process, which cannot be used, and reports why. */
_Noreturn void process_fail(const char *why);

#endif
