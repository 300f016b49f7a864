/* The calls of MPI-IO that this library stands in front of.
 *
 * Each function makes the real call with the program's arguments and returns its result. If the program wants no status, a local
 * one is passed instead. No other collective call is made, except those of remote.h. Each call is defined under both of its names:
 * Fortran programs reach the MPI library by MPI_NAME (MPICH) or PMPI_NAME (Open MPI), and so do other tools. A call within a call,
 * as a second tool makes it, is only passed on.
 *
 * The number of bytes of an access comes from the status, if the call blocks or ends a split access. For a call that does not
 * block, it is the requested number, for reads up to the end of the file, because the program itself asks for the status later. */
#include <stdatomic.h>
#include <stdbool.h>

#include "cache.h"
#include "files.h"
#include "real.h"

#define OURS __attribute__((visibility("default")))

/* Number of nested calls of MPI-IO that this thread is in. */
static __thread unsigned depth __attribute__((tls_model("initial-exec")));

#define ENTRY(full, parameters, arguments, ...)                                                                                  \
    OURS int full parameters {                                                                                                   \
        static void *_Atomic known;                                                                                              \
        int(*real) parameters = (int(*) parameters)foreread_real(&known, #full);                                                 \
        if (!real)                                                                                                               \
            return MPI_ERR_INTERN;                                                                                               \
        if (depth > 0)                                                                                                           \
            return real arguments;                                                                                               \
        depth++;                                                                                                                 \
        int code;                                                                                                                \
        __VA_ARGS__;                                                                                                               \
        depth--;                                                                                                                 \
        return code;                                                                                                             \
    }

#define CALL(name, parameters, arguments, ...)                                                                                   \
    ENTRY(MPI_##name, parameters, arguments, __VA_ARGS__)                                                                        \
    ENTRY(PMPI_##name, parameters, arguments, __VA_ARGS__)

/* Makes the real call of an access, which the cache may serve. */
#define MAKE(kind, real_call)                                                                                                    \
    foreread_cache_enter(fh, kind);                                                                                              \
    code = real_call;                                                                                                            \
    foreread_cache_leave();

/* An access that is over when the call returns. `told` is the status that the real call fills in. */
#define WHOLE(kind, pointer, at, real_call)                                                                                      \
    {                                                                                                                            \
        struct access access;                                                                                                    \
        MPI_Status own, *told = status;                                                                                          \
        bool wanted = foreread_begin(&access, fh, kind, pointer, at, count, datatype);                                           \
        if (wanted && status == MPI_STATUS_IGNORE)                                                                               \
            told = &own;                                                                                                         \
        MAKE(kind, real_call)                                                                                                    \
        if (wanted && code == MPI_SUCCESS)                                                                                       \
            foreread_end(&access, told);                                                                                         \
    }

/* An access that continues after the call. */
#define STARTED(kind, pointer, at, real_call)                                                                                    \
    {                                                                                                                            \
        struct access access;                                                                                                    \
        bool wanted = foreread_begin(&access, fh, kind, pointer, at, count, datatype);                                           \
        MAKE(kind, real_call)                                                                                                    \
        if (wanted && code == MPI_SUCCESS)                                                                                       \
            foreread_end(&access, NULL);                                                                                         \
    }

/* An access that another call ends. */
#define BEGUN(kind, pointer, at, real_call)                                                                                      \
    {                                                                                                                            \
        struct access access;                                                                                                    \
        bool wanted = foreread_begin(&access, fh, kind, pointer, at, count, datatype);                                           \
        MAKE(kind, real_call)                                                                                                    \
        if (wanted && code == MPI_SUCCESS)                                                                                       \
            foreread_begin_split(&access);                                                                                       \
    }

#define ENDED(kind, real_call)                                                                                                   \
    {                                                                                                                            \
        struct access access;                                                                                                    \
        MPI_Status own, *told = status;                                                                                          \
        bool wanted = foreread_end_split(&access, fh);                                                                           \
        if (wanted && status == MPI_STATUS_IGNORE)                                                                               \
            told = &own;                                                                                                         \
        MAKE(kind, real_call)                                                                                                    \
        if (wanted && code == MPI_SUCCESS)                                                                                       \
            foreread_end(&access, told);                                                                                         \
    }

/* The families of calls, for reads and writes. `number` is the type of their counts, `large` the suffix of their names. */
#define BLOCKING_AT(name, kind, buffer, number)                                                                                  \
    CALL(name, (MPI_File fh, MPI_Offset at, buffer buf, number count, MPI_Datatype datatype, MPI_Status *status),                \
         (fh, at, buf, count, datatype, status), WHOLE(kind, POINTER_EXPLICIT, at, real(fh, at, buf, count, datatype, told)))
#define BLOCKING(name, kind, pointer, buffer, number)                                                                            \
    CALL(name, (MPI_File fh, buffer buf, number count, MPI_Datatype datatype, MPI_Status *status),                               \
         (fh, buf, count, datatype, status), WHOLE(kind, pointer, 0, real(fh, buf, count, datatype, told)))
#define STARTING_AT(name, kind, buffer, number)                                                                                  \
    CALL(name, (MPI_File fh, MPI_Offset at, buffer buf, number count, MPI_Datatype datatype, MPI_Request *request),              \
         (fh, at, buf, count, datatype, request),                                                                                \
         STARTED(kind, POINTER_EXPLICIT, at, real(fh, at, buf, count, datatype, request)))
#define STARTING(name, kind, pointer, buffer, number)                                                                            \
    CALL(name, (MPI_File fh, buffer buf, number count, MPI_Datatype datatype, MPI_Request *request),                             \
         (fh, buf, count, datatype, request), STARTED(kind, pointer, 0, real(fh, buf, count, datatype, request)))
#define BEGINNING_AT(name, kind, buffer, number)                                                                                 \
    CALL(name, (MPI_File fh, MPI_Offset at, buffer buf, number count, MPI_Datatype datatype),                                    \
         (fh, at, buf, count, datatype), BEGUN(kind, POINTER_EXPLICIT, at, real(fh, at, buf, count, datatype)))
#define BEGINNING(name, kind, pointer, buffer, number)                                                                           \
    CALL(name, (MPI_File fh, buffer buf, number count, MPI_Datatype datatype), (fh, buf, count, datatype),                       \
         BEGUN(kind, pointer, 0, real(fh, buf, count, datatype)))
#define ENDING(name, kind, buffer)                                                                                               \
    CALL(name, (MPI_File fh, buffer buf, MPI_Status *status), (fh, buf, status), ENDED(kind, real(fh, buf, told)))

#define FAMILY(what, kind, buffer, number, large)                                                                                \
    BLOCKING_AT(File_##what##_at##large, kind, buffer, number)                                                                   \
    BLOCKING_AT(File_##what##_at_all##large, kind, buffer, number)                                                               \
    STARTING_AT(File_i##what##_at##large, kind, buffer, number)                                                                  \
    STARTING_AT(File_i##what##_at_all##large, kind, buffer, number)                                                              \
    BEGINNING_AT(File_##what##_at_all_begin##large, kind, buffer, number)                                                        \
    BLOCKING(File_##what##large, kind, POINTER_INDIVIDUAL, buffer, number)                                                       \
    BLOCKING(File_##what##_all##large, kind, POINTER_INDIVIDUAL, buffer, number)                                                 \
    STARTING(File_i##what##large, kind, POINTER_INDIVIDUAL, buffer, number)                                                      \
    STARTING(File_i##what##_all##large, kind, POINTER_INDIVIDUAL, buffer, number)                                                \
    BEGINNING(File_##what##_all_begin##large, kind, POINTER_INDIVIDUAL, buffer, number)                                          \
    BLOCKING(File_##what##_shared##large, kind, POINTER_SHARED, buffer, number)                                                  \
    BLOCKING(File_##what##_ordered##large, kind, POINTER_SHARED, buffer, number)                                                 \
    STARTING(File_i##what##_shared##large, kind, POINTER_SHARED, buffer, number)                                                 \
    BEGINNING(File_##what##_ordered_begin##large, kind, POINTER_SHARED, buffer, number)

typedef void *room;
typedef const void *data;

FAMILY(read, KIND_READ, room, int, )
FAMILY(write, KIND_WRITE, data, int, )
#if MPI_VERSION >= 4
FAMILY(read, KIND_READ, room, MPI_Count, _c)
FAMILY(write, KIND_WRITE, data, MPI_Count, _c)
#endif

ENDING(File_read_at_all_end, KIND_READ, room)
ENDING(File_read_all_end, KIND_READ, room)
ENDING(File_read_ordered_end, KIND_READ, room)
ENDING(File_write_at_all_end, KIND_WRITE, data)
ENDING(File_write_all_end, KIND_WRITE, data)
ENDING(File_write_ordered_end, KIND_WRITE, data)

CALL(File_open, (MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh),
     (comm, filename, amode, info, fh), {
         foreread_cache_opening();
         code = real(comm, filename, amode, info, fh);
         if (code == MPI_SUCCESS) {
             foreread_opened(*fh, filename, amode);
             foreread_cache_opened(comm, *fh, foreread_path_in(filename), amode);
         }
     })

CALL(File_close, (MPI_File *fh), (fh), {
    if (fh) {
        foreread_closing(*fh);
        foreread_cache_closing(*fh);
    }
    code = real(fh);
})

CALL(File_sync, (MPI_File fh), (fh), {
    code = real(fh);
    if (code == MPI_SUCCESS)
        foreread_cache_synced(fh);
})

CALL(File_set_atomicity, (MPI_File fh, int flag), (fh, flag), {
    code = real(fh, flag);
    if (code == MPI_SUCCESS)
        foreread_cache_atomic(fh, flag);
})

CALL(File_set_view,
     (MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep, MPI_Info info),
     (fh, disp, etype, filetype, datarep, info), {
         code = real(fh, disp, etype, filetype, datarep, info);
         foreread_viewed(fh);
     })
