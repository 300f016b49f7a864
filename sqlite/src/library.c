/* See library.h. */
#include "library.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

/* The major version whose functions are used. */
#define NAME "libforeread.so.1"

enum { UNTRIED, LOADED, MISSING };

struct library libforeread;
static atomic_int state = UNTRIED;

/* Stores a function of the library in the function pointer at `into`. False if there is none. */
static bool find(void *handle, const char *name, void *into)
{
    void *found = dlsym(handle, name);
    memcpy(into, &found, sizeof found);
    return found != NULL;
}

static bool load(void)
{
    /* RTLD_LOCAL: the program's own reads are not intercepted. */
    void *handle = dlopen(NAME, RTLD_NOW | RTLD_LOCAL);
    return handle && find(handle, "foreread_register_client", &libforeread.register_client) &&
           find(handle, "foreread_unregister_client", &libforeread.unregister_client) &&
           find(handle, "foreread_register_file", &libforeread.register_file) &&
           find(handle, "foreread_register_region", &libforeread.register_region) &&
           find(handle, "foreread_unregister_region", &libforeread.unregister_region) &&
           find(handle, "foreread_request_prefetching", &libforeread.request_prefetching) &&
           find(handle, "foreread_reading", &libforeread.reading) &&
           find(handle, "foreread_read_done", &libforeread.read_done) &&
           find(handle, "foreread_get_stats", &libforeread.get_stats);
}

bool library_load(void)
{
    if (atomic_load(&state) == UNTRIED)
        atomic_store(&state, load() ? LOADED : MISSING);
    return atomic_load(&state) == LOADED;
}

const char *library_state(void)
{
    static const char *const words[] = {"not needed yet", "loaded", "missing"};
    return words[atomic_load(&state)];
}
