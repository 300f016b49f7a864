/*
 * streams.c - the calls on streams.
 *
 * A prefetch thread's stream is a real one whose position is kept separately: a call that only skips data moves the
 * position and reads nothing. A call that needs data moves the real stream there first.
 *
 * Invariant: the real stream of a struct place is at `real`, if that is not negative; for the slice it is at `at`. A
 * stream that is `given` to code of the program is where that code has left it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../foreread_preexec.h"
#include "files.h"
#include "lane.h"
#include "raw.h"

struct place {
    struct place *next;
    FILE *stream;
    int64_t at;
    int64_t real;
    bool given;
    /* The thread that used it last. */
    pthread_t user;
    /* Its file and size when last checked: reads below that size need no check. */
    int fd;
    struct file *file;
    int64_t size;
    bool ended;
    bool failed;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct place *places;
/* The last place used by this thread, which is mostly the next one, too. */
static _Thread_local struct place *last;
/* Number of closed streams, so that no thread uses one that is gone. */
static _Atomic unsigned closings;
static _Thread_local unsigned seen_closings;

/* Takes over the state of the real stream. */
static void look(struct place *place) {
    place->at = place->real = ftello(place->stream);
    place->ended = feof(place->stream);
    place->failed = ferror(place->stream);
}

/* The place of a new stream; NULL without memory. */
static struct place *new_place(FILE *stream) {
    struct place *place = calloc(1, sizeof *place);
    if (place == NULL)
        return NULL;
    *place = (struct place){.next = places, .stream = stream, .real = -1, .fd = fileno(stream)};
    struct opening *opening = files_lock(place->fd);
    bool own = opening != NULL && opening->own >= 0;
    if (opening != NULL) {
        place->at = opening->offset;
        files_unlock();
    }
    /* Code of the program that opened it may have read, and its buffer may be ahead of the stream's position. */
    if (own)
        look(place);
    places = place;
    return place;
}

/* A stream's place, created if the stream is new. Ends the thread if there is no memory. */
static struct place *place_of(FILE *stream) {
    unsigned now = atomic_load(&closings);
    if (last != NULL && now == seen_closings && last->stream == stream)
        return last;
    pthread_mutex_lock(&lock);
    struct place *place = places;
    while (place != NULL && place->stream != stream)
        place = place->next;
    if (place == NULL)
        place = new_place(stream);
    if (place != NULL) {
        if (place->given)
            look(place);
        place->given = false;
        place->user = pthread_self();
    }
    pthread_mutex_unlock(&lock);
    if (place == NULL)
        lane_end("no memory");
    last = place;
    seen_closings = now;
    return place;
}

/* Forgets a stream that is closed, or that code of the program closed, so that its descriptor is another's now. */
static void forget(FILE *stream) {
    int fd = fileno(stream);
    pthread_mutex_lock(&lock);
    for (struct place **link = &places; *link != NULL;) {
        struct place *place = *link;
        if (place->stream == stream || place->fd == fd) {
            *link = place->next;
            free(place);
        } else {
            link = &place->next;
        }
    }
    atomic_fetch_add(&closings, 1);
    pthread_mutex_unlock(&lock);
}

/* The flags of a mode (fopen(3)); -1 and EINVAL for an invalid mode. */
static int flags_of(const char *mode) {
    bool both = strchr(mode, '+') != NULL;
    switch (mode[0]) {
    case 'r':
        return both ? O_RDWR : O_RDONLY;
    case 'w':
        return (both ? O_RDWR : O_WRONLY) | O_CREAT | O_TRUNC;
    case 'a':
        return (both ? O_RDWR : O_WRONLY) | O_CREAT | O_APPEND;
    default:
        errno = EINVAL;
        return -1;
    }
}

FILE *prefetch_fdopen(int fd, const char *mode) {
    if (flags_of(mode) < 0)
        return NULL;
    FILE *stream = fdopen(fd, "r");
    if (stream != NULL) {
        forget(stream);
        place_of(stream);
    }
    return stream;
}

FILE *prefetch_fopen(const char *path, const char *mode) {
    int flags = flags_of(mode);
    int fd = flags < 0 ? -1 : files_open(AT_FDCWD, path, flags);
    if (fd < 0)
        return NULL;
    FILE *stream = prefetch_fdopen(fd, mode);
    if (stream == NULL)
        files_close(fd);
    return stream;
}

int prefetch_fclose(FILE *stream) {
    forget(stream);
    /* fclose() closes the real descriptor; the table's entry is removed before. */
    int fd = fileno(stream), kept = files_dup(fd, -1);
    files_close(fd);
    if (kept >= 0) {
        dup3(kept, fd, O_CLOEXEC);
        files_close(kept);
    }
    return fclose(stream);
}

FILE *prefetch_freopen(const char *path, const char *mode, FILE *stream) {
    int flags = flags_of(mode);
    if (path == NULL || flags < 0)
        return flags < 0 ? NULL : stream;
    forget(stream);
    int fd = files_open(AT_FDCWD, path, flags);
    int error = errno;
    FILE *again = freopen("/dev/null", "r", stream);
    if (fd < 0 || again == NULL) {
        if (fd >= 0)
            files_close(fd);
        if (again != NULL)
            fclose(again);
        errno = error;
        return NULL;
    }
    files_dup(fd, fileno(again));
    files_close(fd);
    place_of(again);
    return again;
}

/* Number of bytes at the stream's position, at most the requested ones. */
static uint64_t bytes_there(struct place *place, uint64_t bytes) {
    if (place->file != NULL && place->at < place->size &&
        bytes <= (uint64_t)(place->size - place->at))
        return bytes;
    place->fd = fileno(place->stream);
    struct opening *opening = files_lock(place->fd);
    if (opening == NULL)
        return bytes;
    /* Possibly more than one read(2): only the end of the file limits it. */
    uint64_t there = 0, step;
    while (there < bytes && (step = opening_bytes(opening, place->fd, place->at + (int64_t)there,
                                                  bytes - there)) > 0)
        there += step;
    place->file = opening->file;
    place->size = opening->size;
    files_unlock();
    return there;
}

/* Moves the position, and counts and announces the read. */
static uint64_t skip(struct place *place, uint64_t bytes) {
    uint64_t there = bytes_there(place, bytes);
    lane_read(place->file, place->fd, (uint64_t)place->at, there);
    place->at += (int64_t)there;
    place->ended |= there < bytes;
    return there;
}

static uint64_t bytes_of(size_t size, size_t count) {
    size_t bytes;
    return __builtin_mul_overflow(size, count, &bytes) ? SIZE_MAX / 2 : bytes;
}

size_t prefetch_fread(FILE *stream, size_t size, size_t count) {
    uint64_t there = skip(place_of(stream), bytes_of(size, count));
    return size == 0 ? 0 : there / size;
}

int prefetch_getc(FILE *stream) {
    return skip(place_of(stream), 1) == 1 ? 0 : EOF;
}

int prefetch_fseeko(FILE *stream, off_t offset, int whence) {
    struct place *place = place_of(stream);
    int fd = fileno(stream);
    off_t from = whence == SEEK_CUR ? place->at : 0;
    struct opening *opening = whence == SEEK_END ? files_lock(fd) : NULL;
    if (opening != NULL) {
        from = opening_size(opening, fd);
        files_unlock();
    }
    off_t to;
    if (whence < SEEK_SET || whence > SEEK_END || __builtin_add_overflow(from, offset, &to) ||
        to < 0) {
        errno = EINVAL;
        return -1;
    }
    place->at = to;
    place->ended = false;
    return 0;
}

int prefetch_fseek(FILE *stream, long offset, int whence) {
    return prefetch_fseeko(stream, offset, whence);
}

off_t prefetch_ftello(FILE *stream) {
    return place_of(stream)->at;
}

long prefetch_ftell(FILE *stream) {
    return place_of(stream)->at;
}

void prefetch_rewind(FILE *stream) {
    prefetch_fseeko(stream, 0, SEEK_SET);
    place_of(stream)->failed = false;
}

int prefetch_fgetpos(FILE *stream, fpos_t *position) {
    off_t at = prefetch_ftello(stream);
    _Static_assert(sizeof *position >= sizeof at, "an offset fits");
    memcpy(position, &at, sizeof at);
    return 0;
}

int prefetch_fsetpos(FILE *stream, const fpos_t *position) {
    off_t at;
    memcpy(&at, position, sizeof at);
    return prefetch_fseeko(stream, at, SEEK_SET);
}

int prefetch_feof(FILE *stream) {
    return place_of(stream)->ended;
}

int prefetch_ferror(FILE *stream) {
    return place_of(stream)->failed;
}

void prefetch_clearerr(FILE *stream) {
    struct place *place = place_of(stream);
    place->ended = place->failed = false;
}

/* Moves the real stream to the position. */
static void catch_up(struct place *place) {
    if (place->real != place->at)
        fseeko(place->stream, place->at, SEEK_SET);
    else if (!place->ended)
        clearerr(place->stream);
}

void prefetch_whole(void) {
    pthread_mutex_lock(&lock);
    for (struct place *place = places; place != NULL; place = place->next) {
        /* Other threads may be using their streams. A stream that is closed already is gone. */
        if (place->given || !pthread_equal(place->user, pthread_self()) || raw_call(SYS_fcntl, place->fd, F_GETFD) < 0)
            continue;
        if (place->real != place->at)
            fseeko(place->stream, place->at, SEEK_SET);
        if (place->ended)
            ungetc(getc(place->stream), place->stream);
        place->given = true;
    }
    /* Threads must look their places up again. */
    atomic_fetch_add(&closings, 1);
    pthread_mutex_unlock(&lock);
    files_settle();
}

/* Called before a call that reads, of these bytes as far as is known. */
static int64_t before(struct place *place, uint64_t bytes) {
    struct opening *opening = files_lock(fileno(place->stream));
    bool blind = opening == NULL || opening->kind == BLIND;
    struct file *file = blind ? NULL : opening->file;
    place->file = file;
    if (opening != NULL)
        files_unlock();
    if (blind)
        lane_end("needs data of what is no regular file");
    int64_t since = lane_fetch(file, (uint64_t)place->at, bytes);
    catch_up(place);
    return since;
}

/* Called after it: takes over the position of the real stream. */
static void after(struct place *place, int64_t since) {
    lane_wait_end(WAIT_DATA, since);
    int64_t from = place->at;
    place->real = place->at = ftello(place->stream);
    lane_fetched(place->at - from);
    /* A call that reads nothing leaves the end-of-file mark unchanged. */
    place->ended |= feof(place->stream);
    place->failed |= ferror(place->stream);
}

/* Makes one call on the real stream. */
#define FETCH(stream, bytes, result, call)                                                         \
    struct place *place_ = place_of(stream);                                                       \
    int64_t since_ = before(place_, bytes);                                                        \
    result = (call);                                                                               \
    after(place_, since_)

size_t fetch_fread(void *data, size_t size, size_t count, FILE *stream) {
    size_t done;
    FETCH(stream, bytes_there(place_, bytes_of(size, count)), done, fread(data, size, count, stream));
    return done;
}

int fetch_getc(FILE *stream) {
    int character;
    struct place *near = place_of(stream);
    /* The C library's own test for a character in the buffer: there is nothing to wait for. */
    if (near->real == near->at && stream->_IO_read_ptr < stream->_IO_read_end) {
        lane_had(near->file, (uint64_t)near->at, 1);
        near->real = ++near->at;
        return getc_unlocked(stream);
    }
    FETCH(stream, 1, character, getc(stream));
    return character;
}

int fetch_ungetc(int character, FILE *stream) {
    struct place *place = place_of(stream);
    catch_up(place);
    int back = ungetc(character, stream);
    place->real = place->at = ftello(stream);
    place->ended = feof(stream);
    return back;
}

char *fetch_fgets(char *line, int bytes, FILE *stream) {
    char *got;
    FETCH(stream, 0, got, fgets(line, bytes, stream));
    return got;
}

ssize_t fetch_getdelim(char **line, size_t *bytes, int delimiter, FILE *stream) {
    ssize_t got;
    FETCH(stream, 0, got, getdelim(line, bytes, delimiter, stream));
    return got;
}

ssize_t fetch_getline(char **line, size_t *bytes, FILE *stream) {
    return fetch_getdelim(line, bytes, '\n', stream);
}

int fetch_vfscanf(FILE *stream, const char *format, va_list arguments) {
    int got;
    FETCH(stream, 0, got, vfscanf(stream, format, arguments));
    return got;
}

int fetch_fscanf(FILE *stream, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int got = fetch_vfscanf(stream, format, arguments);
    va_end(arguments);
    return got;
}
