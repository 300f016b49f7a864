/* outlook.h - findings from before the birth of the prefetch process. */
#ifndef OUTLOOK_H
#define OUTLOOK_H

#include <stdbool.h>

/* Documented in foreread_preexec.h. */
__attribute__((visibility("default"))) int foreread_may_wait(int argc, char **argv, const char *paths);

/* True if foreread_may_wait() found a file that is not in memory. Also in the prefetch process. */
bool outlook_found_cold(void);

#endif
