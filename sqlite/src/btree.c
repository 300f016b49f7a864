/* See btree.h. Quoted names are sections of SQLite's "Database File Format". */
#include "btree.h"

#include <stdlib.h>
#include <string.h>

static uint32_t big16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t big32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Reads a variable-length integer of 1 to 9 bytes. Returns its length, or 0 if it does not end before `end`. */
static unsigned varint(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < 9 && at + i < end; i++) {
        if (i == 8) {
            *value = sum << 8 | at[i];
            return 9;
        }
        sum = sum << 7 | (at[i] & 0x7f);
        if (!(at[i] & 0x80)) {
            *value = sum;
            return i + 1;
        }
    }
    return 0;
}

/* "The Database Header". */
bool btree_header_parse(const uint8_t bytes[BTREE_HEADER_BYTES], struct btree_header *header)
{
    if (memcmp(bytes, "SQLite format 3", 16) != 0)
        return false;
    uint32_t size = big16(bytes + 16);
    if (size == 1)
        size = BTREE_MAX_PAGE;
    if (size < 512 || (size & (size - 1)) != 0 || size - bytes[20] < 480)
        return false;
    /* The three payload fractions are constants of the format. */
    if (bytes[21] != 64 || bytes[22] != 32 || bytes[23] != 32)
        return false;
    header->page_size = size;
    header->usable = size - bytes[20];
    header->wal = bytes[19] == 2;
    header->cookie = big32(bytes + 40);
    header->utf16 = big32(bytes + 56) > 1;
    return true;
}

static uint32_t header_length(uint8_t type)
{
    return type == BTREE_INDEX_INTERIOR || type == BTREE_TABLE_INTERIOR ? 12 : 8;
}

/* "B-tree Pages". */
bool btree_page_parse(const uint8_t *bytes, uint32_t usable, uint32_t number,
                      struct btree_page *page)
{
    uint32_t start = number == 1 ? BTREE_HEADER_BYTES : 0;
    uint8_t type = bytes[start];
    if (!btree_may_be(type))
        return false;
    uint32_t cells = big16(bytes + start + 3);
    if (start + header_length(type) + 2 * cells > usable)
        return false;
    *page = (struct btree_page){bytes, usable, start, (uint16_t)cells, type};
    return true;
}

bool btree_is_interior(const struct btree_page *page)
{
    return page->type == BTREE_INDEX_INTERIOR || page->type == BTREE_TABLE_INTERIOR;
}

/* The beginning of cell `i`; NULL if it is not inside the page and behind the cell array. */
static const uint8_t *cell(const struct btree_page *page, unsigned i)
{
    if (i >= page->cells)
        return NULL;
    uint32_t array = page->start + header_length(page->type);
    uint32_t at = big16(page->bytes + array + 2 * i);
    /* No cell is shorter than 4 bytes. */
    if (at < array + 2u * page->cells || at + 4 > page->usable)
        return NULL;
    return page->bytes + at;
}

uint32_t btree_child(const struct btree_page *page, unsigned i)
{
    if (!btree_is_interior(page) || i > page->cells)
        return 0;
    const uint8_t *at = i == page->cells ? page->bytes + page->start + 8 : cell(page, i);
    return at ? big32(at) : 0;
}

bool btree_table_key(const struct btree_page *page, unsigned i, int64_t *rowid)
{
    const uint8_t *at = cell(page, i);
    const uint8_t *end = page->bytes + page->usable;
    uint64_t value;
    if (!at)
        return false;
    if (page->type == BTREE_TABLE_INTERIOR) {
        at += 4;
    } else if (page->type == BTREE_TABLE_LEAF) {
        unsigned length = varint(at, end, &value);
        if (length == 0)
            return false;
        at += length;
    } else {
        return false;
    }
    if (varint(at, end, &value) == 0)
        return false;
    *rowid = (int64_t)value;
    return true;
}

/* Finds the first cell of a table page whose key is not below `rowid`; `cells` if there is none. */
static bool search(const struct btree_page *page, int64_t rowid, unsigned *at)
{
    unsigned low = 0, high = page->cells;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        int64_t key;
        if (!btree_table_key(page, middle, &key))
            return false;
        if (rowid <= key)
            high = middle;
        else
            low = middle + 1;
    }
    *at = low;
    return true;
}

bool btree_child_for(const struct btree_page *page, int64_t rowid, unsigned *child)
{
    /* Child i holds the rowids up to and including the key of cell i. */
    return page->type == BTREE_TABLE_INTERIOR && search(page, rowid, child);
}

bool btree_cell_of(const struct btree_page *page, int64_t rowid, unsigned *at)
{
    int64_t key;
    return page->type == BTREE_TABLE_LEAF && search(page, rowid, at) && *at < page->cells &&
           btree_table_key(page, *at, &key) && key == rowid;
}

/* "B-tree Cell Format" and "Cell Payload Overflow Pages". */
const uint8_t *btree_payload(const struct btree_page *page, unsigned i, uint32_t *local,
                             uint64_t *total, uint32_t *overflow)
{
    const uint8_t *at = cell(page, i);
    const uint8_t *end = page->bytes + page->usable;
    if (!at || page->type == BTREE_TABLE_INTERIOR)
        return NULL;
    if (page->type == BTREE_INDEX_INTERIOR)
        at += 4;
    unsigned length = varint(at, end, total);
    if (length == 0)
        return NULL;
    at += length;
    uint32_t most = (page->usable - 12) * 64 / 255 - 23;
    if (page->type == BTREE_TABLE_LEAF) {
        uint64_t rowid;
        if ((length = varint(at, end, &rowid)) == 0)
            return NULL;
        at += length;
        most = page->usable - 35;
    }
    uint32_t available = (uint32_t)(end - at);
    *overflow = 0;
    if (*total <= most) {
        *local = (uint32_t)*total;
        return *local <= available ? at : NULL;
    }
    uint32_t least = (page->usable - 12) * 32 / 255 - 23;
    uint32_t kept = least + (uint32_t)((*total - least) % (page->usable - 4));
    *local = kept <= most ? kept : least;
    if (*local + 4 > available)
        return NULL;
    *overflow = big32(at + *local);
    return at;
}

uint32_t btree_next_overflow(const uint8_t *bytes)
{
    return big32(bytes);
}

/* "Record Format": the length of a value by its serial type, in bytes. Types 10 and 11 are reserved. */
static uint64_t serial_length(uint64_t serial)
{
    static const uint8_t small[12] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
    return serial < 12 ? small[serial] : (serial - 12) / 2;
}

/* A position in a record's header. */
struct record_walk {
    const uint8_t *at;  /* the next serial type */
    const uint8_t *end; /* the end of the record's header */
    uint64_t body;      /* offset of the next column's value in the record */
};

static bool record_begin(const uint8_t *record, uint32_t length, struct record_walk *walk)
{
    uint64_t header;
    unsigned taken = varint(record, record + length, &header);
    if (taken == 0 || header < taken || header > length)
        return false;
    *walk = (struct record_walk){record + taken, record + header, header};
    return true;
}

static bool record_next(struct record_walk *walk, struct btree_column *column)
{
    uint64_t serial;
    unsigned taken = walk->at < walk->end ? varint(walk->at, walk->end, &serial) : 0;
    if (taken == 0)
        return false;
    uint64_t length = serial_length(serial);
    if (walk->body > UINT32_MAX || length > UINT32_MAX)
        return false;
    *column = (struct btree_column){serial, (uint32_t)walk->body, (uint32_t)length};
    walk->at += taken;
    walk->body += length;
    return true;
}

unsigned btree_columns(const uint8_t *record, uint32_t length, struct btree_column *columns,
                       unsigned wanted)
{
    struct record_walk walk;
    unsigned found = 0;
    if (!record_begin(record, length, &walk))
        return 0;
    while (found < wanted && record_next(&walk, &columns[found]))
        found++;
    return found;
}

bool btree_integer(const uint8_t *record, uint32_t length, struct btree_column column,
                   int64_t *value)
{
    if (column.serial == 8 || column.serial == 9) {
        *value = (int64_t)(column.serial - 8);
        return true;
    }
    if (column.serial < 1 || column.serial > 6 || column.length > length ||
        column.at > length - column.length)
        return false;
    const uint8_t *at = record + column.at;
    /* Big-endian, in two's complement. */
    uint64_t sum = at[0] & 0x80 ? UINT64_MAX : 0;
    for (uint32_t i = 0; i < column.length; i++)
        sum = sum << 8 | at[i];
    *value = (int64_t)sum;
    return true;
}

bool btree_index_rowid(const struct btree_page *page, unsigned i, int64_t *rowid)
{
    uint32_t local, overflow;
    uint64_t total;
    struct record_walk walk;
    struct btree_column last;
    unsigned columns = 0;
    if (page->type != BTREE_INDEX_LEAF && page->type != BTREE_INDEX_INTERIOR)
        return false;
    const uint8_t *record = btree_payload(page, i, &local, &total, &overflow);
    if (!record || overflow != 0 || !record_begin(record, local, &walk))
        return false;
    while (record_next(&walk, &last))
        columns++;
    /* At least one column, then the rowid, which ends the record. */
    return columns >= 2 && walk.at == walk.end && walk.body == total &&
           btree_integer(record, local, last, rowid);
}

bool btree_text_is(const uint8_t *record, uint32_t length, struct btree_column column,
                   const char *ascii)
{
    uint32_t letters = (uint32_t)strlen(ascii), found = 0;
    if (column.at > length || column.length > length - column.at)
        return false;
    for (uint32_t i = 0; i < column.length; i++) {
        uint8_t byte = record[column.at + i];
        if (byte == 0)
            continue; /* the other half of a UTF-16 unit */
        if (found >= letters || byte != (uint8_t)ascii[found])
            return false;
        found++;
    }
    return found == letters;
}

static int by_number(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

void btree_sort(uint32_t *numbers, size_t n)
{
    qsort(numbers, n, sizeof *numbers, by_number);
}
