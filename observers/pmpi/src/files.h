/* The open files of this process, their views, and where in a file an access lies. */
#ifndef FOREREAD_PMPI_FILES_H
#define FOREREAD_PMPI_FILES_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "flatten.h"
#include "report.h"

/* How an access finds its place. */
enum pointer { POINTER_EXPLICIT, POINTER_INDIVIDUAL, POINTER_SHARED };

/* An access that has begun. */
struct access {
    MPI_File file;
    enum kind kind;
    enum pointer pointer;
    /* Its place in the view, in elementary types; of the shared pointer it is known afterwards. */
    MPI_Offset at;
    /* What was asked for. */
    MPI_Count count;
    MPI_Datatype type;
    /* Whether it ends by another call: then its count is in bytes, and its type may be gone. */
    bool split;
    uint64_t start;
};

struct file;

/* The path in a file's name, which may begin with the kind of its file system: "ufs:/data/x". */
const char *foreread_path_in(const char *name);

/* A file was opened by this name. */
void foreread_opened(MPI_File file, const char *name, int mode);
/* A file is about to be closed. */
void foreread_closing(MPI_File file);
/* Its view has changed. */
void foreread_viewed(MPI_File file);

/* Begins an access of `count` elements; false if it is not to be reported. Nothing that the program gives is looked at before
 * the MPI library has accepted it. */
bool foreread_begin(struct access *access, MPI_File file, enum kind kind, enum pointer pointer, MPI_Offset at, MPI_Count count,
                    MPI_Datatype type);
/* The access has ended, with this status if it is not null. */
void foreread_end(const struct access *access, const MPI_Status *status);

/* The same in two parts: an access that ends by another call is kept with its file, of which it is the only one. */
void foreread_begin_split(const struct access *access);
bool foreread_end_split(struct access *access, MPI_File file);

#endif
