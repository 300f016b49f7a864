/* report.h - the file with the reports of prefetch processes. */
#ifndef REPORT_H
#define REPORT_H

#include <sys/types.h>

/* The path in FOREREAD_PREEXEC_REPORT; NULL if no report is wanted. */
const char *report_wanted(void);
/* Opens that file, before the filter is installed; -1 if no report is wanted. */
int report_open(void);
/* Appends a text in one write: several programs may append to one file. */
void report_append(int fd, const char *text, int length);
/* Appends that there was no prefetch thread, with the reason. */
void report_failure(int fd, pid_t program, const char *why);

#endif
