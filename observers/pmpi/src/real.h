/* The MPI library's own functions, found when they are first needed.
 *
 * This library is loaded into every process of a program, most of which have nothing to do with MPI, and into programs that
 * load MPI late and apart from all else (mpi4py). So it links to no MPI: a function is looked for behind this library first,
 * where a second tool may have put one of its own, and then in the MPI library that the process has loaded. */
#ifndef FOREREAD_PMPI_REAL_H
#define FOREREAD_PMPI_REAL_H

#include <mpi.h>

/* The function of this name, kept in `known`; null if there is none. */
void *foreread_real(void *_Atomic *known, const char *name);

/* Calls the MPI library's PMPI_NAME. */
#define REAL(name)                                                                                                               \
    ((__typeof__(&PMPI_##name))({                                                                                                \
        static void *_Atomic known;                                                                                              \
        foreread_real(&known, "PMPI_" #name);                                                                                    \
    }))

/* Predefined handles, which are objects of the library in some MPIs; no world (0) where MPI has none. */
MPI_Datatype foreread_byte(void);
MPI_Comm foreread_world(void);
MPI_Info foreread_info_null(void);
MPI_Errhandler foreread_errors_return(void);

#endif
