/* library.c - finding libforeread and its functions by name. */
#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

/* Null unless the program defines it. */
extern const char *foreread_library_path __attribute__((weak, visibility("default")));

struct library library;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loads;

static bool load(void) {
    void *loaded = dlopen("libforeread.so.1", RTLD_NOW | RTLD_LOCAL);
    if (loaded == NULL && &foreread_library_path != NULL && foreread_library_path != NULL)
        loaded = dlopen(foreread_library_path, RTLD_NOW | RTLD_LOCAL);
    if (loaded == NULL)
        return false;
    const struct {
        const char *name;
        void *place;
    } wanted[] = {
        {"foreread_register_client", &library.register_client},
        {"foreread_register_file", &library.register_file},
        {"foreread_register_region", &library.register_region},
        {"foreread_request_prefetching", &library.request_prefetching},
        {"foreread_at", &library.at},
        {"foreread_finish_client", &library.finish_client},
        {"foreread_version", &library.version},
    };
    for (size_t n = 0; n < sizeof wanted / sizeof wanted[0]; n++) {
        void *found = dlsym(loaded, wanted[n].name);
        if (found == NULL)
            return false;
        /* POSIX allows storing a function's address in this way. */
        *(void **)wanted[n].place = found;
    }
    return true;
}

static void load_once(void) {
    loads = load();
}

bool library_get(void) {
    pthread_once(&once, load_once);
    return loads;
}
