/* outlook.h - what was found out before the prefetch process was born. */
#ifndef OUTLOOK_H
#define OUTLOOK_H

#include <stdbool.h>

/* As foreread_preexec.h has it. */
__attribute__((visibility("default"))) int foreread_may_wait(int argc, char **argv, const char *paths);

/* Whether foreread_may_wait() found a file that is not in memory. In the prefetch process, too. */
bool outlook_found_cold(void);

#endif
