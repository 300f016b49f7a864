/* library.h - libforeread, loaded when there is something to fetch that is not in memory. A program also runs
 * without it. */
#ifndef LIBRARY_H
#define LIBRARY_H

#include <foreread.h>
#include <stdbool.h>

struct library {
    __typeof__(foreread_register_client) *register_client;
    __typeof__(foreread_register_file) *register_file;
    __typeof__(foreread_register_region) *register_region;
    __typeof__(foreread_request_prefetching) *request_prefetching;
    __typeof__(foreread_at) *at;
    __typeof__(foreread_finish_client) *finish_client;
    __typeof__(foreread_version) *version;
};

extern struct library library;

/* Loads it the first time; true if all functions were found. */
bool library_get(void);

#endif
