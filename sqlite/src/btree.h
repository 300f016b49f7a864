/* SQLite's b-tree pages, as its file format document defines them.
 *
 * Purpose: to read what a page says about other pages: children, rowids, records.
 * Invariant: pure and total. A page may be torn, stale, damaged or no SQLite page at all; every
 * function here then answers "nothing" and reads no byte outside the page it was given.
 * Data flow: bytes of one page in, numbers out. No allocation, no input or output. */
#ifndef FOREREAD_BTREE_H
#define FOREREAD_BTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum btree_type {
    BTREE_INDEX_INTERIOR = 0x02,
    BTREE_TABLE_INTERIOR = 0x05,
    BTREE_INDEX_LEAF = 0x0a,
    BTREE_TABLE_LEAF = 0x0d,
};

enum {
    BTREE_HEADER_BYTES = 100, /* the database header, in front of page 1 */
    BTREE_MAX_PAGE = 65536,
    BTREE_MAX_DEPTH = 20, /* SQLite's own limit for a cursor (BTCURSOR_MAX_DEPTH) */
};

/* Whether a page that begins with this byte can be of a b-tree. Overflow pages begin with a page number,
 * whose first byte is 0 up to 2^24 pages. */
static inline bool btree_may_be(uint8_t type)
{
    return type == BTREE_INDEX_INTERIOR || type == BTREE_TABLE_INTERIOR ||
           type == BTREE_INDEX_LEAF || type == BTREE_TABLE_LEAF;
}

/* What the first 100 bytes of a database say. */
struct btree_header {
    uint32_t page_size; /* bytes */
    uint32_t usable;    /* bytes of a page that hold content: page_size less the reserved ones */
    uint32_t cookie;    /* changes whenever the schema does */
    bool wal;           /* the newest bytes of a page may be in the write-ahead log */
    bool utf16;         /* text is stored as UTF-16, not as UTF-8 */
};

/* One b-tree page, checked to be one. */
struct btree_page {
    const uint8_t *bytes;
    uint32_t usable;
    uint32_t start;  /* of the page's header: 100 on page 1, 0 elsewhere */
    uint16_t cells;
    uint8_t type; /* enum btree_type */
};

/* One column of a record. */
struct btree_column {
    uint64_t serial; /* serial type */
    uint32_t at;     /* where its value begins, in the record */
    uint32_t length; /* bytes */
};

/* False when these are not the first bytes of an SQLite 3 database. */
bool btree_header_parse(const uint8_t bytes[BTREE_HEADER_BYTES], struct btree_header *header);

/* False when the page is none of the four b-tree kinds or its cell array does not fit. `bytes` stays
 * the caller's and must outlive `page`. */
bool btree_page_parse(const uint8_t *bytes, uint32_t usable, uint32_t number,
                      struct btree_page *page);

bool btree_is_interior(const struct btree_page *page);

/* Puts page numbers into ascending order. */
void btree_sort(uint32_t *numbers, size_t n);

/* The page number of child `i`; the rightmost is child `cells`. 0 when damaged or no such child. */
uint32_t btree_child(const struct btree_page *page, unsigned i);

/* The rowid of cell `i` of a table page. */
bool btree_table_key(const struct btree_page *page, unsigned i, int64_t *rowid);

/* Which child of an interior table page leads to `rowid`: its place, 0 to `cells`. */
bool btree_child_for(const struct btree_page *page, int64_t rowid, unsigned *child);

/* The cell of a leaf of a table that holds `rowid`. */
bool btree_cell_of(const struct btree_page *page, int64_t rowid, unsigned *at);

/* The rowid an entry of an index refers to: the last column of its record. False when the entry
 * does not end in an integer (a WITHOUT ROWID table) or goes on in an overflow page. */
bool btree_index_rowid(const struct btree_page *page, unsigned i, int64_t *rowid);

/* The part of the payload of cell `i` that lies in this page, its whole length in `total`, and the
 * first overflow page (0: none). NULL when damaged. */
const uint8_t *btree_payload(const struct btree_page *page, unsigned i, uint32_t *local,
                             uint64_t *total, uint32_t *overflow);

/* The overflow page that follows the one with these bytes; 0: none. */
uint32_t btree_next_overflow(const uint8_t *bytes);

/* The first `wanted` columns of a record of which `length` bytes are at hand; how many were
 * described. A column may end past `length`. */
unsigned btree_columns(const uint8_t *record, uint32_t length, struct btree_column *columns,
                       unsigned wanted);

/* The integer that a column holds; false when it is of another type or not at hand. */
bool btree_integer(const uint8_t *record, uint32_t length, struct btree_column column,
                   int64_t *value);

/* Whether the text that a column holds is `ascii`, in whichever encoding the database has. */
bool btree_text_is(const uint8_t *record, uint32_t length, struct btree_column column,
                   const char *ascii);

#endif
