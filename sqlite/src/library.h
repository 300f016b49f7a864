/* libforeread, loaded at the first walk that needs help.
 *
 * Purpose: a process that loads the extension and never walks an index does not load libforeread. Mapping and
 * relocating that takes longer than the whole loading of the extension.
 * Invariant: loaded once, on the planner's thread, and not unloaded. Its functions are called only for clients,
 * which do not exist before.
 * Data flow: a shared library beside the extension, or in the library path, in; its functions out. */
#ifndef FOREREAD_LIBRARY_H
#define FOREREAD_LIBRARY_H

#include <stdbool.h>

#include "foreread.h"

/* The functions in use, by their names without the prefix. */
struct library {
    __typeof__(foreread_register_client) *register_client;
    __typeof__(foreread_unregister_client) *unregister_client;
    __typeof__(foreread_register_file) *register_file;
    __typeof__(foreread_register_region) *register_region;
    __typeof__(foreread_unregister_region) *unregister_region;
    __typeof__(foreread_request_prefetching) *request_prefetching;
    __typeof__(foreread_reading) *reading;
    __typeof__(foreread_read_done) *read_done;
    __typeof__(foreread_get_stats) *get_stats;
};

extern struct library libforeread;

/* Loads the library, the first time. False if it cannot be loaded. */
bool library_load(void);

/* "loaded", "missing" or "not needed yet". */
const char *library_state(void);

#endif
