/* credentials.h - detects that the program no longer has the rights that the prefetch process was born with. */
#ifndef CREDENTIALS_H
#define CREDENTIALS_H

#include <stdbool.h>

/* To be called in the prefetch process before it gives up any of its own rights: they are still the program's. */
void credentials_remember(void);
/* True if the program's rights have changed. False if that is unknown. */
bool credentials_differ(void);

#endif
