/* The open files of this process, their views, and the reports of accesses. */
#ifndef FOREREAD_PMPI_FILES_H
#define FOREREAD_PMPI_FILES_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "flatten.h"
#include "report.h"

/* The pointer that determines the place of an access. */
enum pointer { POINTER_EXPLICIT, POINTER_INDIVIDUAL, POINTER_SHARED };

/* An access that has begun. */
struct access {
    MPI_File file;
    enum kind kind;
    enum pointer pointer;
    /* Its place in the view, in elementary types. For the shared pointer it is known only after the access. */
    MPI_Offset at;
    /* The request. */
    MPI_Count count;
    MPI_Datatype type;
    /* True if another call ends it. Its count is in bytes then, because its type may not exist any more. */
    bool split;
    uint64_t start;
};

struct file;

/* The path in a file's name, without a prefix for the kind of file system, as in "ufs:/data/x". */
const char *foreread_path_in(const char *name);

/* A file was opened by this name. */
void foreread_opened(MPI_File file, const char *name, int mode);
/* A file is about to be closed. */
void foreread_closing(MPI_File file);
/* A file's view has changed. */
void foreread_viewed(MPI_File file);

/* Begins an access of `count` elements; false if it need not be reported. The program's count and type are not used before the MPI
 * library has accepted them. */
bool foreread_begin(struct access *access, MPI_File file, enum kind kind, enum pointer pointer, MPI_Offset at, MPI_Count count,
                    MPI_Datatype type);
/* The access has ended: reports it. `status` may be null. */
void foreread_end(const struct access *access, const MPI_Status *status);

/* Stores an access that another call will end, and returns it: MPI permits one for each file. */
void foreread_begin_split(const struct access *access);
bool foreread_end_split(struct access *access, MPI_File file);

#endif
