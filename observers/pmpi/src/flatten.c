/* See flatten.h. MPI_Type_get_envelope and MPI_Type_get_contents return the parts of a type. Each inner type is flattened once, and
 * its ranges are added as often as the outer type repeats them. */
#include "flatten.h"

#include <stdlib.h>
#include <string.h>

#include "real.h"

/* The parts of a datatype. */
struct parts {
    int combiner;
    int integers, addresses, types;
    int *integer;
    MPI_Aint *address;
    MPI_Datatype *type;
};

static bool envelope(MPI_Datatype type, struct parts *parts) {
#if MPI_VERSION >= 4
    MPI_Count integers, addresses, counts, types;
    if (REAL(Type_get_envelope_c)(type, &integers, &addresses, &counts, &types, &parts->combiner) != MPI_SUCCESS)
        return false;
    if (counts > 0)
        return false;
    parts->integers = (int)integers;
    parts->addresses = (int)addresses;
    parts->types = (int)types;
    return true;
#else
    return REAL(Type_get_envelope)(type, &parts->integers, &parts->addresses, &parts->types, &parts->combiner) == MPI_SUCCESS;
#endif
}

void foreread_free_type(MPI_Datatype type) {
    struct parts parts;
    if (envelope(type, &parts)) {
        bool predefined = parts.combiner == MPI_COMBINER_NAMED || parts.combiner == MPI_COMBINER_F90_INTEGER ||
                          parts.combiner == MPI_COMBINER_F90_REAL || parts.combiner == MPI_COMBINER_F90_COMPLEX;
        if (!predefined)
            REAL(Type_free)(&type);
    }
}

static void part_with(struct parts *parts) {
    for (int at = 0; parts->type && at < parts->types; at++)
        foreread_free_type(parts->type[at]);
    free(parts->integer);
    free(parts->address);
    free(parts->type);
}

static bool take_apart(MPI_Datatype type, struct parts *parts) {
    parts->integer = calloc((size_t)parts->integers + 1, sizeof *parts->integer);
    parts->address = calloc((size_t)parts->addresses + 1, sizeof *parts->address);
    parts->type = calloc((size_t)parts->types + 1, sizeof *parts->type);
    if (parts->integer && parts->address && parts->type &&
        REAL(Type_get_contents)(type, parts->integers, parts->addresses, parts->types, parts->integer, parts->address,
                                parts->type) == MPI_SUCCESS)
        return true;
    /* No datatypes were returned, so none are freed. */
    parts->types = 0;
    part_with(parts);
    return false;
}

/* Adds the pending block to the runs. */
static bool settle(struct runs *runs) {
    if (runs->len == 0)
        return true;
    struct run *last = runs->used ? &runs->all[runs->used - 1] : NULL;
    if (last && last->len == runs->len) {
        int64_t next = last->offset + last->stride * (int64_t)last->count;
        if (last->count == 1)
            last->stride = runs->offset - last->offset;
        if (last->count == 1 || next == runs->offset) {
            last->count++;
            runs->len = 0;
            return true;
        }
    }
    if (runs->used == runs->room) {
        size_t room = runs->room ? 2 * runs->room : 4;
        struct run *all = room > RUNS_MAX ? NULL : realloc(runs->all, room * sizeof *all);
        if (!all)
            return false;
        runs->all = all;
        runs->room = room;
    }
    runs->all[runs->used++] = (struct run){.offset = runs->offset, .len = runs->len, .count = 1, .before = runs->size - runs->len};
    runs->len = 0;
    return true;
}

static bool add(struct runs *runs, int64_t offset, uint64_t len) {
    if (len == 0)
        return true;
    if (++runs->steps > STEPS_MAX)
        return false;
    if (runs->len > 0 && runs->offset + (int64_t)runs->len == offset) {
        runs->len += len;
    } else {
        if (!settle(runs))
            return false;
        runs->offset = offset;
        runs->len = len;
    }
    runs->size += len;
    return true;
}

/* An inner datatype, flattened. */
struct inner {
    struct runs runs;
    MPI_Count extent;
};

/* Adds `count` copies of an inner type, one after the other. */
static bool lay_out(struct runs *runs, const struct inner *inner, int64_t at, int64_t count) {
    const struct run *only = inner->runs.used == 1 ? inner->runs.all : NULL;
    if (only && only->count == 1 && (MPI_Count)only->len == inner->extent)
        return add(runs, at + only->offset, only->len * (uint64_t)count);
    for (int64_t number = 0; number < count; number++, at += inner->extent)
        for (size_t one = 0; one < inner->runs.used; one++) {
            const struct run *run = &inner->runs.all[one];
            for (uint64_t block = 0; block < run->count; block++)
                if (!add(runs, at + run->offset + run->stride * (int64_t)block, run->len))
                    return false;
        }
    return true;
}

static bool open_inner(MPI_Datatype type, struct inner *inner) {
    MPI_Count bound;
    return foreread_flatten(type, &inner->runs) && REAL(Type_get_extent_x)(type, &bound, &inner->extent) == MPI_SUCCESS;
}

static bool subarray(struct runs *runs, const struct inner *inner, const int *integer) {
    int dimensions = integer[0];
    const int *size = integer + 1, *part = size + dimensions, *start = part + dimensions;
    bool fortran = start[dimensions] == MPI_ORDER_FORTRAN;
    int64_t index[16] = {0}, step[16];
    int order[16];
    if (dimensions > 16)
        return false;
    int64_t at = 0, elements = 1;
    /* The fastest dimension first. */
    for (int place = 0; place < dimensions; place++) {
        int one = fortran ? place : dimensions - 1 - place;
        order[place] = one;
        step[place] = elements * inner->extent;
        at += start[one] * step[place];
        elements *= size[one];
        if (part[one] == 0)
            return true;
    }
    for (;;) {
        if (!lay_out(runs, inner, at, part[order[0]]))
            return false;
        int place = 1;
        for (; place < dimensions; place++) {
            at += step[place];
            if (++index[place] < part[order[place]])
                break;
            at -= index[place] * step[place];
            index[place] = 0;
        }
        if (place >= dimensions)
            return true;
    }
}

/* Adds the ranges of a type that has one inner type. */
static bool combine(struct runs *runs, const struct parts *parts, const struct inner *inner) {
    const int *integer = parts->integer;
    const MPI_Aint *address = parts->address;
    int64_t count = parts->integers > 0 ? integer[0] : 1;
    bool fits = true;
    switch (parts->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        return lay_out(runs, inner, 0, 1);
    case MPI_COMBINER_CONTIGUOUS:
        return lay_out(runs, inner, 0, count);
    case MPI_COMBINER_VECTOR:
        for (int64_t one = 0; fits && one < count; one++)
            fits = lay_out(runs, inner, one * integer[2] * inner->extent, integer[1]);
        return fits;
    case MPI_COMBINER_HVECTOR:
        for (int64_t one = 0; fits && one < count; one++)
            fits = lay_out(runs, inner, one * address[0], integer[1]);
        return fits;
    case MPI_COMBINER_INDEXED:
        for (int64_t one = 0; fits && one < count; one++)
            fits = lay_out(runs, inner, integer[1 + count + one] * inner->extent, integer[1 + one]);
        return fits;
    case MPI_COMBINER_HINDEXED:
        for (int64_t one = 0; fits && one < count; one++)
            fits = lay_out(runs, inner, address[one], integer[1 + one]);
        return fits;
    case MPI_COMBINER_INDEXED_BLOCK:
        for (int64_t one = 0; fits && one < count; one++)
            fits = lay_out(runs, inner, integer[2 + one] * inner->extent, integer[1]);
        return fits;
    case MPI_COMBINER_HINDEXED_BLOCK:
        for (int64_t one = 0; fits && one < count; one++)
            fits = lay_out(runs, inner, address[one], integer[1]);
        return fits;
    case MPI_COMBINER_SUBARRAY:
        return subarray(runs, inner, integer);
    default:
        /* A distributed array, or an unknown kind of type. */
        return false;
    }
}

static bool structure(struct runs *runs, const struct parts *parts) {
    bool fits = true;
    for (int one = 0; fits && one < parts->integer[0]; one++) {
        struct inner inner = {0};
        fits = open_inner(parts->type[one], &inner) && lay_out(runs, &inner, parts->address[one], parts->integer[1 + one]);
        foreread_release(&inner.runs);
    }
    return fits;
}

bool foreread_flatten(MPI_Datatype type, struct runs *runs) {
    struct parts parts = {0};
    memset(runs, 0, sizeof *runs);
    if (!envelope(type, &parts))
        return false;
    if (parts.combiner == MPI_COMBINER_NAMED || parts.combiner == MPI_COMBINER_F90_INTEGER ||
        parts.combiner == MPI_COMBINER_F90_REAL || parts.combiner == MPI_COMBINER_F90_COMPLEX) {
        MPI_Count size;
        return REAL(Type_size_x)(type, &size) == MPI_SUCCESS && add(runs, 0, (uint64_t)size) && settle(runs);
    }
    if (!take_apart(type, &parts))
        return false;
    bool fits;
    if (parts.combiner == MPI_COMBINER_STRUCT) {
        fits = structure(runs, &parts);
    } else {
        struct inner inner = {0};
        fits = parts.types == 1 && open_inner(parts.type[0], &inner) && combine(runs, &parts, &inner);
        foreread_release(&inner.runs);
    }
    part_with(&parts);
    return fits && settle(runs);
}

void foreread_release(struct runs *runs) {
    free(runs->all);
    memset(runs, 0, sizeof *runs);
}
