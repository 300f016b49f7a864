/* See files.h.
 *
 * Every call of the MPI library made here is local, and queries a file that the program has just used with success. So none fails
 * and reaches the program's error handler. No call that may wait is made while the lock is held. */
#include "files.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"

/* Limit of ranges reported for one access. The last of them is extended to the end of the access, over the gaps between later
 * ranges. */
enum { RANGES_MAX = 4096 };
/* The longest range in one report, in bytes: a report has 32 bits for the length. */
static const uint64_t RANGE_MAX = 1 << 30;

/* A file's view: the bytes of the file that the program sees, in order. */
struct view {
    bool known;
    MPI_Offset displacement;
    /* Size of its elementary type, in bytes. */
    MPI_Count elementary;
    /* Ranges of its file type, if `flat`. */
    struct runs runs;
    MPI_Count extent;
    bool flat;
};

struct file {
    struct file *next;
    MPI_File handle;
    char *path;
    /* Its number in reports; 0 for none yet. */
    uint32_t number;
    /* True if it has no individual pointer. */
    bool sequential;
    struct view view;
    bool split;
    struct access pending;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file *files;

static struct file **place_of(MPI_File handle) {
    struct file **place = &files;
    while (*place && (*place)->handle != handle)
        place = &(*place)->next;
    return place;
}

const char *foreread_path_in(const char *name) {
    const char *colon = strchr(name, ':'), *slash = strchr(name, '/');
    return colon && colon - name >= 2 && (!slash || colon < slash) ? colon + 1 : name;
}

void foreread_opened(MPI_File handle, const char *name, int mode) {
    struct file *file = calloc(1, sizeof *file);
    char *path = strdup(foreread_path_in(name));
    if (!file || !path) {
        free(file);
        free(path);
        return;
    }
    file->handle = handle;
    file->path = path;
    file->sequential = mode & MPI_MODE_SEQUENTIAL;
    pthread_mutex_lock(&lock);
    file->next = files;
    files = file;
    pthread_mutex_unlock(&lock);
}

void foreread_closing(MPI_File handle) {
    pthread_mutex_lock(&lock);
    struct file **place = place_of(handle), *file = *place;
    if (file)
        *place = file->next;
    pthread_mutex_unlock(&lock);
    if (file) {
        foreread_release(&file->view.runs);
        free(file->path);
        free(file);
    }
}

void foreread_viewed(MPI_File handle) {
    pthread_mutex_lock(&lock);
    struct file *file = *place_of(handle);
    if (file)
        file->view.known = false;
    pthread_mutex_unlock(&lock);
}

/* Queries the view, if it is not known. False if that fails. */
static bool look(struct file *file) {
    struct view *view = &file->view;
    if (view->known)
        return true;
    MPI_Datatype elementary, type;
    char representation[MPI_MAX_DATAREP_STRING + 1];
    MPI_Count bound;
    if (REAL(File_get_view)(file->handle, &view->displacement, &elementary, &type, representation) != MPI_SUCCESS)
        return false;
    foreread_release(&view->runs);
    view->known = REAL(Type_size_x)(elementary, &view->elementary) == MPI_SUCCESS &&
                  REAL(Type_get_extent_x)(type, &bound, &view->extent) == MPI_SUCCESS && view->elementary > 0;
    view->flat = view->known && foreread_flatten(type, &view->runs) && view->runs.size > 0;
    foreread_free_type(elementary);
    foreread_free_type(type);
    return view->known;
}

static bool is_contiguous(const struct view *view) {
    const struct run *only = view->runs.used == 1 ? view->runs.all : NULL;
    return view->flat && only && only->count == 1 && (MPI_Count)only->len == view->extent;
}

/* The report of one access. */
struct report {
    struct file *file;
    enum kind kind;
    uint64_t start, took, bytes;
    /* Bytes from here on are not reported: the end of the file for a read without a status. */
    uint64_t limit;
    /* The last range, to which the next one may be joined. */
    uint64_t offset, len;
    unsigned ranges;
};

static void say(struct report *report) {
    while (report->len > 0) {
        uint64_t len = report->len < RANGE_MAX ? report->len : RANGE_MAX;
        /* Each range gets a share of the call's time by its length. */
        uint64_t took = (uint64_t)((double)report->took * (double)len / (double)report->bytes);
        foreread_called_extent(report->file->number, (uint8_t)report->kind, report->start, took, report->offset, len);
        report->start += took;
        report->offset += len;
        report->len -= len;
    }
}

static void range(struct report *report, int64_t offset, uint64_t len) {
    if (offset < 0 || len == 0 || (uint64_t)offset >= report->limit)
        return;
    len = len < report->limit - (uint64_t)offset ? len : report->limit - (uint64_t)offset;
    uint64_t from = (uint64_t)offset, end = report->offset + report->len;
    bool full = report->ranges == RANGES_MAX;
    if (report->len > 0 && (from == end || (full && from > end))) {
        report->len = from + len - report->offset;
        return;
    }
    say(report);
    report->offset = from;
    report->len = len;
    if (!full)
        report->ranges++;
}

/* Reports `bytes` from byte `at` of the view on, by the runs of its file type. */
static void walk(struct report *report, const struct view *view, uint64_t at, uint64_t bytes) {
    if (is_contiguous(view)) {
        range(report, view->displacement + view->runs.all->offset + (int64_t)at, bytes);
        return;
    }
    const struct runs *runs = &view->runs;
    int64_t tile = view->displacement + (int64_t)(at / runs->size) * view->extent;
    at %= runs->size;
    size_t low = 0, high = runs->used;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (runs->all[middle].before <= at)
            low = middle;
        else
            high = middle;
    }
    at -= runs->all[low].before;
    while (bytes > 0) {
        const struct run *run = &runs->all[low];
        uint64_t block = at / run->len, into = at % run->len;
        for (; bytes > 0 && block < run->count; block++, into = 0) {
            uint64_t len = run->len - into < bytes ? run->len - into : bytes;
            range(report, tile + run->offset + run->stride * (int64_t)block + (int64_t)into, len);
            bytes -= len;
        }
        at = 0;
        if (++low == runs->used) {
            low = 0;
            tile += view->extent;
        }
    }
}

/* Reports `bytes` from element `at` of the view on, by a query for each element: for file types that could not be flattened. */
static void ask(struct report *report, const struct view *view, MPI_Offset at, uint64_t bytes) {
    uint64_t size = (uint64_t)view->elementary;
    MPI_Offset count = (MPI_Offset)((bytes + size - 1) / size), place;
    for (MPI_Offset one = 0; one < count; one++) {
        if (one == RANGES_MAX)
            one = count - 1;
        if (REAL(File_get_byte_offset)(report->file->handle, at + one, &place) != MPI_SUCCESS)
            return;
        uint64_t left = bytes - (uint64_t)one * size;
        range(report, place, left < size ? left : size);
    }
}

static void say_rank(void) {
    static bool said;
    int rank, of;
    MPI_Comm world = foreread_world();
    if (!said && world && REAL(Comm_rank)(world, &rank) == MPI_SUCCESS && REAL(Comm_size)(world, &of) == MPI_SUCCESS) {
        said = true;
        foreread_called_rank((uint32_t)rank, (uint32_t)of);
    }
}

bool foreread_begin(struct access *access, MPI_File handle, enum kind kind, enum pointer pointer, MPI_Offset at, MPI_Count count,
                    MPI_Datatype type) {
    if (!foreread_called_wanted || !foreread_called_wanted())
        return false;
    pthread_mutex_lock(&lock);
    struct file *file = *place_of(handle);
    bool known = file && !(pointer == POINTER_INDIVIDUAL && file->sequential);
    pthread_mutex_unlock(&lock);
    *access = (struct access){.file = handle, .kind = kind, .pointer = pointer, .at = at, .count = count, .type = type};
    if (!known)
        return false;
    if (pointer == POINTER_INDIVIDUAL && REAL(File_get_position)(handle, &access->at) != MPI_SUCCESS)
        return false;
    access->start = foreread_called_stamp();
    return true;
}

/* The number of bytes that an access requests; 0 if it is unknown. */
static MPI_Count asked(const struct access *access) {
    MPI_Count size = 1;
    /* The count of a split access is in bytes. */
    bool known = access->split || REAL(Type_size_x)(access->type, &size) == MPI_SUCCESS;
    return known ? access->count * size : 0;
}

void foreread_end(const struct access *access, const MPI_Status *status) {
    uint64_t ended = foreread_called_stamp();
    MPI_Count moved = MPI_UNDEFINED;
    MPI_Datatype byte = foreread_byte();
    if (status && byte && REAL(Get_elements_x)((MPI_Status *)status, byte, &moved) != MPI_SUCCESS)
        return;
    if (moved == MPI_UNDEFINED)
        moved = asked(access);
    if (moved <= 0)
        return;
    /* Asked first: the reports below change the answer. */
    uint64_t last_end = 0, last_len = 0;
    bool direct = access->pointer == POINTER_SHARED && access->kind == KIND_READ && status &&
                  foreread_called_last(&last_end, &last_len) && last_len == (uint64_t)moved;
    pthread_mutex_lock(&lock);
    struct file *file = *place_of(access->file);
    bool known = file && look(file);
    if (known && file->number == 0) {
        say_rank();
        file->number = foreread_called_open(file->path);
    }
    if (known && file->number != 0) {
        struct report report = {.file = file,
                                .kind = access->kind,
                                .start = access->start,
                                .took = ended - access->start,
                                .bytes = (uint64_t)moved,
                                .limit = UINT64_MAX};
        MPI_Offset size;
        if (!status && access->kind == KIND_READ && REAL(File_get_size)(access->file, &size) == MPI_SUCCESS)
            report.limit = (uint64_t)size;
        const struct view *view = &file->view;
        MPI_Offset at = access->at;
        bool placed = true;
        /* Other ranks move the shared pointer, too. If the bytes are contiguous in the file, the MPI library's own read, which the
         * preload library has seen, shows their place. */
        direct &= is_contiguous(view);
        if (access->pointer == POINTER_SHARED && !direct) {
            placed = REAL(File_get_position_shared)(access->file, &at) == MPI_SUCCESS;
            at -= moved / view->elementary;
            placed &= at >= 0;
        }
        if (direct)
            range(&report, (int64_t)(last_end - last_len), last_len);
        else if (placed && view->flat)
            walk(&report, view, (uint64_t)at * (uint64_t)view->elementary, (uint64_t)moved);
        else if (placed)
            ask(&report, view, at, (uint64_t)moved);
        say(&report);
    }
    pthread_mutex_unlock(&lock);
}

void foreread_begin_split(const struct access *access) {
    MPI_Count count = asked(access);
    pthread_mutex_lock(&lock);
    struct file *file = *place_of(access->file);
    if (file) {
        file->pending = *access;
        file->pending.count = count;
        file->pending.split = true;
        file->split = true;
    }
    pthread_mutex_unlock(&lock);
}

bool foreread_end_split(struct access *access, MPI_File handle) {
    pthread_mutex_lock(&lock);
    struct file *file = *place_of(handle);
    bool split = file && file->split;
    if (split) {
        *access = file->pending;
        file->split = false;
    }
    pthread_mutex_unlock(&lock);
    return split;
}
