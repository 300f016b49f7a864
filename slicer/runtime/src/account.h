/* account.h - what the prefetch process did, in a line of JSON. */
#ifndef ACCOUNT_H
#define ACCOUNT_H

/* Appends it to the report. `born_ns` is when the process began, by CLOCK_MONOTONIC. */
void account_write(int fd, long long born_ns);

#endif
