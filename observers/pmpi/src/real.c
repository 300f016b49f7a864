/* See real.h. */
#define _GNU_SOURCE
#include "real.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

/* MPI libraries with the binary interface that this library is built for. */
#ifdef OPEN_MPI
static const char *const LIBRARIES[] = {"libmpi.so.40", NULL};
#else
static const char *const LIBRARIES[] = {"libmpich.so.12", "libmpi.so.12", "libmpi_cray.so.12", NULL};
#endif

static void *find(void *first, const char *name) {
    void *found = dlsym(first, name);
    for (size_t at = 0; !found && LIBRARIES[at]; at++) {
        /* Never closed again: the MPI library stays loaded until the process ends. */
        void *library = dlopen(LIBRARIES[at], RTLD_LAZY | RTLD_NOLOAD);
        if (library)
            found = dlsym(library, name);
    }
    return found;
}

static void *known_or_found(void *_Atomic *known, void *first, const char *name) {
    void *found = atomic_load_explicit(known, memory_order_relaxed);
    if (!found) {
        found = find(first, name);
        atomic_store_explicit(known, found, memory_order_relaxed);
    }
    return found;
}

void *foreread_real(void *_Atomic *known, const char *name) { return known_or_found(known, RTLD_NEXT, name); }

#ifdef OPEN_MPI
/* The handles are addresses of objects: of the program's copies, if the linker has put copies into the program. */
#define HANDLE(type, name, object, constant)                                                                                     \
    type name(void) {                                                                                                            \
        static void *_Atomic known;                                                                                              \
        return (type)known_or_found(&known, RTLD_DEFAULT, object);                                                               \
    }
#else
#define HANDLE(type, name, object, constant)                                                                                     \
    type name(void) { return constant; }
#endif

HANDLE(MPI_Datatype, foreread_byte, "ompi_mpi_byte", MPI_BYTE)
static MPI_Comm the_world(void);
HANDLE(MPI_Comm, the_world, "ompi_mpi_comm_world", MPI_COMM_WORLD)
HANDLE(MPI_Info, foreread_info_null, "ompi_mpi_info_null", MPI_INFO_NULL)
HANDLE(MPI_Errhandler, foreread_errors_return, "ompi_mpi_errors_return", MPI_ERRORS_RETURN)

MPI_Comm foreread_world(void) {
    int begun;
    /* A program that uses only sessions has no such communicator. */
    return REAL(Initialized)(&begun) == MPI_SUCCESS && begun ? the_world() : (MPI_Comm)0;
}
