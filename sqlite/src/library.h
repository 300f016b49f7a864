/* libforeread, loaded when a walk has begun.
 *
 * Purpose: a process that loads the extension and never walks an index does not pay for it: mapping and
 * relocating it takes longer than all else the extension does when it is loaded.
 * Invariant: loaded once, on the planner's thread, and not unloaded; its functions are called only for clients, of
 * which there are none before.
 * Data flow: a shared library beside the extension, or where such libraries are; its functions out. */
#ifndef FOREREAD_LIBRARY_H
#define FOREREAD_LIBRARY_H

#include <stdbool.h>

#include "foreread.h"

/* The functions used, by their names without the prefix. */
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

/* Loads it, the first time; false when it cannot be had. */
bool library_load(void);

/* Whether it is "loaded", "missing" or "not needed yet". */
const char *library_state(void);

#endif
