/* SQLite's b-tree pages, as its "Database File Format" defines them.
 *
 * Purpose: to find other pages by the content of a page: children, rowids, records.
 * Invariant: pure and total. A page may be torn, stale, damaged or no SQLite page at all. For such a
 * page every function returns "nothing", and reads no byte outside the page.
 * Data flow: bytes of one page in, numbers out. No input or output. */
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

/* True if a page that begins with this byte can be a b-tree page. An overflow page begins with the number of the next
 * page, whose first byte is 0 in databases of less than 2^24 pages. */
static inline bool btree_may_be(uint8_t type)
{
    return type == BTREE_INDEX_INTERIOR || type == BTREE_TABLE_INTERIOR ||
           type == BTREE_INDEX_LEAF || type == BTREE_TABLE_LEAF;
}

/* Facts from the first 100 bytes of a database. */
struct btree_header {
    uint32_t page_size; /* bytes */
    uint32_t usable;    /* bytes of a page with content: page_size minus the reserved ones */
    uint32_t cookie;    /* changes with the schema */
    bool wal;           /* WAL mode: the newest version of a page may be in the write-ahead log */
    bool utf16;         /* the encoding of text: UTF-16 or UTF-8 */
};

/* A b-tree page whose header was checked. */
struct btree_page {
    const uint8_t *bytes;
    uint32_t usable;
    uint32_t start;  /* offset of the page's header: 100 on page 1, 0 elsewhere */
    uint16_t cells;
    uint8_t type; /* enum btree_type */
};

/* One column of a record. */
struct btree_column {
    uint64_t serial; /* serial type */
    uint32_t at;     /* offset of its value in the record, in bytes */
    uint32_t length; /* in bytes */
};

/* False if these are not the first bytes of an SQLite 3 database. */
bool btree_header_parse(const uint8_t bytes[BTREE_HEADER_BYTES], struct btree_header *header);

/* False if the page is none of the four b-tree kinds, or if its cell array does not fit. `page` refers to
 * `bytes`, which must outlive it. */
bool btree_page_parse(const uint8_t *bytes, uint32_t usable, uint32_t number,
                      struct btree_page *page);

bool btree_is_interior(const struct btree_page *page);

/* Sorts page numbers in ascending order. */
void btree_sort(uint32_t *numbers, size_t n);

/* The page number of child `i`; the rightmost is child `cells`. 0 if the page is damaged or has no such child. */
uint32_t btree_child(const struct btree_page *page, unsigned i);

/* The rowid of cell `i` of a table page. False if the page is damaged or of another kind; so for the next two. */
bool btree_table_key(const struct btree_page *page, unsigned i, int64_t *rowid);

/* The child of an interior table page that leads to `rowid`: 0 to `cells`. */
bool btree_child_for(const struct btree_page *page, int64_t rowid, unsigned *child);

/* The cell with `rowid` in a leaf of a table. False also if the leaf does not have it. */
bool btree_cell_of(const struct btree_page *page, int64_t rowid, unsigned *at);

/* The rowid that an index entry refers to: the last column of its record. False if the entry
 * does not end in an integer (a WITHOUT ROWID table), or continues in an overflow page. */
bool btree_index_rowid(const struct btree_page *page, unsigned i, int64_t *rowid);

/* The part of the payload of cell `i` that is in this page. `local` is its length, `total` the length of the
 * whole payload, `overflow` the first overflow page (0 for none). NULL if the page is damaged. */
const uint8_t *btree_payload(const struct btree_page *page, unsigned i, uint32_t *local,
                             uint64_t *total, uint32_t *overflow);

/* The overflow page that follows the one with these bytes; 0 for none. */
uint32_t btree_next_overflow(const uint8_t *bytes);

/* Describes the first `wanted` columns of a record, of which only `length` bytes are given. Returns the
 * number of described columns. A column may end past `length`. */
unsigned btree_columns(const uint8_t *record, uint32_t length, struct btree_column *columns,
                       unsigned wanted);

/* The integer in a column; false if the column has another type, or ends past `length`. */
bool btree_integer(const uint8_t *record, uint32_t length, struct btree_column column,
                   int64_t *value);

/* True if the text in a column is `ascii`, in any encoding of a database. */
bool btree_text_is(const uint8_t *record, uint32_t length, struct btree_column column,
                   const char *ascii);

#endif
