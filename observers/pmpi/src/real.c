/* See real.h. */
#define _GNU_SOURCE
#include "real.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

/* The MPI libraries that have the binary interface this library is built for. */
#ifdef OPEN_MPI
static const char *const LIBRARIES[] = {"libmpi.so.40", NULL};
#else
static const char *const LIBRARIES[] = {"libmpich.so.12", "libmpi.so.12", "libmpi_cray.so.12", NULL};
#endif

static void *find(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    for (size_t at = 0; !found && LIBRARIES[at]; at++) {
        /* One that is loaded already stays loaded: MPI is not to be unloaded before it has ended. */
        void *library = dlopen(LIBRARIES[at], RTLD_LAZY | RTLD_NOLOAD);
        if (library)
            found = dlsym(library, name);
    }
    return found;
}

void *foreread_real(void *_Atomic *known, const char *name) {
    void *found = atomic_load_explicit(known, memory_order_relaxed);
    if (!found) {
        found = find(name);
        atomic_store_explicit(known, found, memory_order_relaxed);
    }
    return found;
}

#ifdef OPEN_MPI
MPI_Datatype foreread_byte(void) {
    static void *_Atomic known;
    return (MPI_Datatype)foreread_real(&known, "ompi_mpi_byte");
}

MPI_Comm foreread_world(void) {
    static void *_Atomic known;
    return (MPI_Comm)foreread_real(&known, "ompi_mpi_comm_world");
}
#else
MPI_Datatype foreread_byte(void) { return MPI_BYTE; }

MPI_Comm foreread_world(void) { return MPI_COMM_WORLD; }
#endif
