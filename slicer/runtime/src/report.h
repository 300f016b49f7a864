/* report.h - the file that a prefetch process reports to. */
#ifndef REPORT_H
#define REPORT_H

#include <sys/types.h>

/* The file that is to be reported to, as FOREREAD_PREEXEC_REPORT names it; NULL if none is wanted. */
const char *report_wanted(void);
/* Opens the file that FOREREAD_PREEXEC_REPORT names, before the filter is on; -1 if none is wanted. */
int report_open(void);
/* Appends a text in one piece: several programs may append to one file. */
void report_append(int fd, const char *text, int length);
/* Appends that there was no prefetch thread, and why. */
void report_failure(int fd, pid_t program, const char *why);

#endif
