/* account.h - the account of the prefetch process, in a line of JSON. */
#ifndef ACCOUNT_H
#define ACCOUNT_H

/* Appends the account to the report. `born_ns` is the start of the process by CLOCK_MONOTONIC. */
void account_write(int fd, long long born_ns);

#endif
