/* The MPI library's own functions, looked up at their first use.
 *
 * This library is loaded into every process of a program, also into those that do not use MPI, and into programs that load MPI late
 * and with local symbols (mpi4py). So it is not linked to MPI. A function is searched behind this library first, where a second tool
 * may have defined it, and then in the MPI library that the process has loaded. */
#ifndef FOREREAD_PMPI_REAL_H
#define FOREREAD_PMPI_REAL_H

#include <mpi.h>

/* The function of this name, stored in `known`; null if there is none. */
void *foreread_real(void *_Atomic *known, const char *name);

/* Calls the MPI library's PMPI_NAME. */
#define REAL(name)                                                                                                               \
    ((__typeof__(&PMPI_##name))({                                                                                                \
        static void *_Atomic known;                                                                                              \
        foreread_real(&known, "PMPI_" #name);                                                                                    \
    }))

/* Predefined handles, which are objects of the MPI library in some MPIs. The world is 0 before MPI_Init, and without it. */
MPI_Datatype foreread_byte(void);
MPI_Comm foreread_world(void);
MPI_Info foreread_info_null(void);
MPI_Errhandler foreread_errors_return(void);

#endif
