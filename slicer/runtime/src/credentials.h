/* credentials.h - whether the program still has the rights that the prefetch process was born with. */
#ifndef CREDENTIALS_H
#define CREDENTIALS_H

#include <stdbool.h>

/* In the prefetch process, before it gives up any of its own: those are the program's. */
void credentials_remember(void);
/* Whether the program's are others by now. False where it cannot be told. */
bool credentials_differ(void);

#endif
