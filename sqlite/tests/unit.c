/* The parts that need neither SQLite nor libforeread, against databases that SQLite wrote.
 *
 * What a page holds is known from dbstat and from queries; damaged pages are made by chance, with a
 * fixed seed, and the sanitizers watch. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chain.h"
#include "opening.h"
#include "trail.h"

static const char *what; /* the database under test */

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: not so: %s\n", __FILE__, __LINE__, what, #condition);      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { ROWS = 3000, DAMAGED = 400 };

/* A database in memory. */
struct image {
    uint8_t *bytes;
    uint32_t count; /* pages */
    struct btree_header header;
    struct pages pages;
    uint64_t read, fetched; /* pages */
    uint32_t absent;        /* a page that is not resident; 0: all are */
};

static bool image_read(void *context, uint32_t page, uint8_t *into)
{
    struct image *image = context;
    if (page == 0 || page > image->count)
        return false;
    image->read++;
    memcpy(into, image->bytes + (size_t)(page - 1) * image->header.page_size,
           image->header.page_size);
    return true;
}

static bool image_resident(void *context, uint32_t page)
{
    struct image *image = context;
    return page != 0 && page <= image->count && page != image->absent;
}

static void image_fetch(void *context, uint32_t *pages, size_t n)
{
    (void)pages;
    ((struct image *)context)->fetched += n;
}

static bool image_stopped(void *context)
{
    (void)context;
    return false;
}

static void load(struct image *image, const char *path)
{
    FILE *file = fopen(path, "rb");
    CHECK(file);
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    rewind(file);
    image->bytes = malloc((size_t)length);
    CHECK(fread(image->bytes, 1, (size_t)length, file) == (size_t)length);
    fclose(file);
    CHECK(btree_header_parse(image->bytes, &image->header));
    image->count = (uint32_t)(length / image->header.page_size);
    image->absent = 0;
    image->pages = (struct pages){image_read, image_resident, image_fetch, image_stopped,
                                  image, image->header.page_size, image->header.usable};
}

static void run(sqlite3 *db, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) {
        fprintf(stderr, "%s: %s: %s\n", what, sql, message);
        exit(1);
    }
}

/* The numbers that a query yields, `columns` of them a row; the caller frees them. */
static int64_t *numbers(sqlite3 *db, const char *sql, size_t *n)
{
    sqlite3_stmt *statement;
    int64_t *found = NULL;
    size_t room = 0;
    *n = 0;
    CHECK(sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(statement); i++) {
            if (*n == room)
                found = realloc(found, (room = 2 * room + 64) * sizeof *found);
            found[(*n)++] = sqlite3_column_int64(statement, i);
        }
    }
    CHECK(sqlite3_finalize(statement) == SQLITE_OK);
    return found;
}

static int64_t number(sqlite3 *db, const char *sql)
{
    size_t n;
    int64_t *found = numbers(db, sql, &n);
    CHECK(n == 1);
    int64_t value = found[0];
    free(found);
    return value;
}

static sqlite3 *make(const char *path, int page_size, int reserved, const char *pragma)
{
    sqlite3 *db;
    char sql[256];
    unlink(path);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
    snprintf(sql, sizeof sql, "pragma page_size=%d; pragma journal_mode=off; %s", page_size, pragma);
    run(db, sql);
    run(db, "create table t(id integer primary key, key int, name text, body text);"
            "create table without(key int primary key, body text) without rowid;"
            "create view v as select * from t;"
            "create trigger g after delete on t begin select 1; end;"
            "create virtual table f using fts5(body)");
    /* Negative and far apart rowids, rows of many lengths, some with overflow pages. */
    snprintf(sql, sizeof sql,
             "with recursive n(i) as (select 1 union all select i + 1 from n where i < %d)"
             "insert into t select (i * 1237 %% 3000 - 1000) * 7919, (i * 7919) %% 100003, 'name ' || i,"
             "  hex(zeroblob(i %% 97 + iif(i %% 501 = 0, 70000, 0))) from n",
             ROWS);
    run(db, sql);
    run(db, "insert into without select key, body from t where length(body) < 300;"
            "create index by_key on t(key); create index by_name on t(name desc, key);"
            "create index without_body on without(body, key); analyze");
    return db;
}

/* ---- */

static void schema_names_every_index_and_its_table(struct image *image, sqlite3 *db)
{
    struct schema schema = {0};
    size_t n;
    CHECK(schema_load(&schema, &image->pages));
    int64_t *roots = numbers(db,
                             "select i.rootpage, t.rootpage from sqlite_schema i, sqlite_schema t "
                             "where i.type in ('index', 'table') and t.type = 'table' "
                             "and t.name = i.tbl_name and i.rootpage > 0", &n);
    CHECK(n > 6 && schema.n == n / 2);
    for (size_t i = 0; i < n; i += 2) {
        const struct schema_index *index = schema_find(&schema, (uint32_t)roots[i]);
        CHECK(index && index->table == (uint32_t)roots[i + 1]);
    }
    CHECK(!schema_find(&schema, 0));
    free(roots);
    schema_free(&schema);
}

static void rowids_resolve_to_the_pages_that_hold_them(struct image *image, sqlite3 *db)
{
    size_t rowid_count, leaf_count, row = 0;
    struct rows rows;
    uint32_t root = (uint32_t)number(db, "select rootpage from sqlite_schema where name = 't'");
    int64_t *rowids = numbers(db, "select id from t order by id", &rowid_count);
    int64_t *leaves = numbers(db, "select pageno, ncell from dbstat where name = 't' "
                                  "and pagetype = 'leaf' order by path", &leaf_count);
    struct item *items = calloc(rowid_count, sizeof *items);
    for (size_t i = 0; i < rowid_count; i++)
        items[i] = (struct item){.rowid = rowids[(i * 1237) % rowid_count], .row = true};
    CHECK(rows_open(&rows, &image->pages, root, rowids[0], false));
    for (size_t from = 0; from < rowid_count; from += ROWS_BATCH)
        rows_resolve(&rows, items + from,
                     rowid_count - from < ROWS_BATCH ? rowid_count - from : ROWS_BATCH);
    rows_close(&rows);
    for (size_t leaf = 0; leaf < leaf_count; leaf += 2)
        for (int64_t cell = 0; cell < leaves[leaf + 1]; cell++, row++)
            for (size_t i = 0; i < rowid_count; i++)
                if (items[i].rowid == rowids[row]) {
                    CHECK(items[i].page == leaves[leaf]);
                    break;
                }
    CHECK(row == rowid_count && rowid_count == ROWS);
    uint32_t without =
        (uint32_t)number(db, "select rootpage from sqlite_schema where name = 'without'");
    CHECK(!rows_open(&rows, &image->pages, without, 1, false));
    free(items);
    free(leaves);
    free(rowids);
}

/* Every chain consists of overflow pages of its table, each naming the next, and is as long as is asked. */
static void chains_lead_along_the_overflow_pages(struct image *image, sqlite3 *db)
{
    static struct chain chains[CHAIN_BATCH];
    static struct rows rows;
    struct item items[CHAIN_BATCH];
    size_t n, known;
    uint32_t root = (uint32_t)number(db, "select rootpage from sqlite_schema where name = 't'");
    int64_t *ids = numbers(db, "select id, length(body) from t order by length(body) desc limit 20", &n);
    int64_t *pages = numbers(db, "select pageno from dbstat where name = 't' "
                                 "and pagetype = 'overflow'", &known);
    bool *overflow = calloc(image->count + 1, sizeof *overflow);
    for (size_t i = 0; i < known; i++)
        overflow[pages[i]] = true;
    for (size_t i = 0; i < n / 2; i++)
        items[i] = (struct item){.rowid = ids[2 * i], .row = true};
    CHECK(rows_open(&rows, &image->pages, root, ids[0], false));
    rows_resolve(&rows, items, n / 2);
    rows_close(&rows);
    for (unsigned most = 0; most <= CHAIN_MOST; most++) {
        CHECK(chains_follow(&image->pages, items, n / 2, most, chains));
        for (size_t i = 0; i < n / 2; i++) {
            uint64_t least = (uint64_t)ids[2 * i + 1] / image->header.usable;
            CHECK(chains[i].n <= most && (chains[i].n == most || chains[i].n >= least));
            for (unsigned at = 0; at < chains[i].n; at++) {
                CHECK(overflow[chains[i].pages[at]]);
                CHECK(at == 0 || btree_next_overflow(image->bytes + (size_t)(chains[i].pages[at - 1] - 1) *
                                                     image->header.page_size) == chains[i].pages[at]);
            }
        }
    }
    free(overflow);
    free(pages);
    free(ids);
}

/* What SQLite reads with the schema: the statistics, where page 1 has the whole schema; else its pages. */
static void what_is_read_at_the_opening_is_named(struct image *image, sqlite3 *db)
{
    size_t n, leaves;
    uint32_t pages[OPENING_PAGES];
    int64_t *expected = numbers(db, "select pageno from dbstat where name = 'sqlite_schema' and pageno > 1 "
                                    "and path like '/%/' order by pageno", &leaves);
    size_t found = opening_pages(image->bytes, &image->header, pages);
    if (leaves > 0) {
        CHECK(found == leaves);
        for (size_t i = 0; i < leaves; i++)
            CHECK(pages[i] == (uint32_t)expected[i]);
    } else {
        int64_t *roots = numbers(db, "select rootpage from sqlite_schema where name = 'sqlite_stat1'", &n);
        CHECK(found == n);
        CHECK(n == 0 || pages[0] == (uint32_t)roots[0]);
        free(roots);
    }
    free(expected);
}

static void overflow_pages_are_counted_by_row(void)
{
    struct trail trail = {0};
    what = "overflow";
    trail_note_overflow(&trail, 7, 8); /* of nothing */
    trail_note(&trail, BTREE_INDEX_LEAF, 2);
    trail_note_overflow(&trail, 7, 8); /* of an index entry */
    CHECK(trail.reach == 0 && !trail_spills(&trail));
    trail_note(&trail, BTREE_TABLE_LEAF, 3);
    trail_note_overflow(&trail, 7, 8);
    trail_note_overflow(&trail, 8, 0);
    CHECK(trail.reach == 2 && trail_spills(&trail));
    /* Another row of the same leaf. */
    trail_note_overflow(&trail, 20, 21);
    CHECK(trail.run == 1 && trail.reach == 2);
    for (uint32_t page = 30; page < 60; page++)
        trail_note(&trail, BTREE_TABLE_LEAF, page);
    CHECK(!trail_spills(&trail)); /* next to no row does */
    trail_end(&trail);
    CHECK(trail.reach == 0);
}

/* The path to the first or last leaf of an index. */
static struct path edge(struct image *image, uint32_t root, bool last)
{
    struct path path = {.backward = last};
    uint8_t *bytes = malloc(image->header.page_size);
    struct btree_page page;
    for (uint32_t next = root; next != 0;) {
        path.pages[path.depth++] = next;
        CHECK(pages_parse(&image->pages, next, bytes, &page));
        next = btree_child(&page, last ? page.cells : 0);
    }
    path.at = last ? page.cells - 1u : 0;
    free(bytes);
    return path;
}

static void cursors_see_the_entries_in_the_order_of_the_index(struct image *image, sqlite3 *db)
{
    uint32_t root = (uint32_t)number(db, "select rootpage from sqlite_schema where name = 'by_key'");
    for (int backward = 0; backward < 2; backward++) {
        size_t n, row = 1, pages = 0;
        struct item item;
        struct cursor cursor;
        int64_t *rowids = numbers(db, backward ? "select id from t order by key desc, id desc"
                                               : "select id from t order by key, id", &n);
        struct path path = edge(image, root, backward);
        CHECK(cursor_open(&cursor, &image->pages, &path));
        cursor.ahead = 7;
        for (; cursor_next(&cursor, &item); pages += !item.row)
            if (item.row) {
                CHECK(row < n && item.rowid == rowids[row]);
                row++;
            }
        CHECK(row == n);
        int64_t all = number(db, "select count(*) from dbstat where name = 'by_key'") - path.depth;
        CHECK((int64_t)pages == all);
        cursor_close(&cursor);
        /* The same pages are named when the leaves are not read. */
        CHECK(cursor_open(&cursor, &image->pages, &path));
        cursor.skim = true;
        uint64_t before = image->read;
        int64_t leaves = 0;
        for (; cursor_next(&cursor, &item); all -= !item.row, leaves += item.leaf)
            ;
        CHECK(all == 0 && (leaves == 0 || image->read - before < (uint64_t)leaves));
        cursor_close(&cursor);
        free(rowids);
    }
}

/* The reads of a query that looks up `count` rows from the `from`-th on, in index order. */
static void replay(struct trail *trail, struct image *image, const struct path *path, uint32_t root,
                   size_t count, unsigned foreign)
{
    struct cursor cursor;
    struct rows rows;
    struct item item;
    uint32_t previous = 0;
    memset(trail, 0, sizeof *trail);
    for (unsigned i = 0; i + 1 < path->depth; i++)
        trail_note(trail, BTREE_INDEX_INTERIOR, path->pages[i]);
    trail_note(trail, BTREE_INDEX_LEAF, path->pages[path->depth - 1]);
    CHECK(cursor_open(&cursor, &image->pages, path));
    CHECK(cursor_next(&cursor, &item) && item.row);
    CHECK(rows_open(&rows, &image->pages, root, item.rowid, false));
    for (size_t row = 0; row < count; row++) {
        if (item.row) {
            rows_resolve(&rows, &item, 1);
            if (item.page != previous)
                trail_note(trail, BTREE_TABLE_LEAF, previous = item.page);
            for (unsigned i = 0; i < foreign; i++)
                trail_note(trail, BTREE_TABLE_LEAF, 1000000 + (uint32_t)row);
        } else {
            trail_note(trail, item.leaf ? BTREE_INDEX_LEAF : BTREE_INDEX_INTERIOR, item.page);
        }
        if (!cursor_next(&cursor, &item))
            break;
    }
    rows_close(&rows);
    cursor_close(&cursor);
}

static void walks_are_found_and_other_reads_are_not(struct image *image, sqlite3 *db)
{
    struct schema schema = {0};
    struct trail trail;
    struct walk_found found;
    size_t n;
    uint32_t index = (uint32_t)number(db, "select rootpage from sqlite_schema where name = 'by_key'");
    uint32_t table = (uint32_t)number(db, "select rootpage from sqlite_schema where name = 't'");
    CHECK(schema_load(&schema, &image->pages));
    for (int backward = 0; backward < 2; backward++)
        for (unsigned foreign = 0; foreign < 2; foreign++) {
            struct path path = edge(image, index, backward);
            replay(&trail, image, &path, table, 18, foreign);
            uint64_t before = image->read;
            CHECK(trail_walk(&trail, &schema, &image->pages, &found));
            CHECK(found.table == table && found.path.backward == (backward == 1));
            CHECK(found.path.pages[0] == index);
            /* The rest of the walk is what SQLite would read. */
            int64_t *rowids = numbers(db, backward ? "select id from t order by key desc, id desc"
                                                   : "select id from t order by key, id", &n);
            size_t at = 0;
            while (at < n && rowids[at] != found.rowid)
                at++;
            CHECK(at >= 4 && at <= 18);
            free(rowids);
            /* Nothing that is not in memory is waited for. */
            image->absent = index;
            CHECK(!trail_walk(&trail, &schema, &image->pages, &found));
            image->absent = 0;
            CHECK(image->read > before);
        }
    /* Lookups in random order: each index leaf is followed by one table page, or one leaf by many. */
    uint32_t state = 12345;
    size_t leaf_count;
    int64_t *leaves = numbers(db, "select pageno from dbstat where name = 't' and pagetype = 'leaf'",
                              &leaf_count);
    unsigned mistakes = 0;
    for (int trial = 0; trial < 200; trial++) {
        struct path path = edge(image, index, false);
        replay(&trail, image, &path, table, 1, 0);
        trail.noted = 0;
        trail_note(&trail, BTREE_INDEX_LEAF, path.pages[path.depth - 1]);
        for (int i = 0; i < 17; i++) {
            state = state * 1103515245 + 12345;
            trail_note(&trail, BTREE_TABLE_LEAF,
                       (uint32_t)leaves[(state >> 8) % leaf_count]);
        }
        mistakes += trail_walk(&trail, &schema, &image->pages, &found);
    }
    CHECK(mistakes <= 4);
    free(leaves);
    schema_free(&schema);
}

/* Everything there is, on pages that are not what they should be: it need only come back. */
static void damaged_pages_harm_nobody(struct image *image, sqlite3 *db)
{
    uint32_t index = (uint32_t)number(db, "select rootpage from sqlite_schema where name = 'by_key'");
    uint32_t table = (uint32_t)number(db, "select rootpage from sqlite_schema where name = 't'");
    size_t length = (size_t)image->count * image->header.page_size;
    uint8_t *whole = malloc(length);
    struct rows *rows = malloc(sizeof *rows);
    uint32_t opening[OPENING_PAGES];
    struct item *items = malloc(ROWS_BATCH * sizeof *items);
    struct chain *chains = malloc(CHAIN_BATCH * sizeof *chains);
    uint32_t state = 4711;
    memcpy(whole, image->bytes, length);
    for (int trial = 0; trial < DAMAGED; trial++) {
        struct schema schema = {0};
        struct trail trail;
        struct walk_found found;
        struct cursor cursor;
        struct path path = edge(image, index, trial & 1);
        replay(&trail, image, &path, table, 18, 0);
        for (int i = 0; i < 1 + trial % 64; i++) {
            state = state * 1103515245 + 12345;
            uint32_t page = trial % 3 == 0   ? path.pages[i % path.depth] - 1
                            : trial % 7 == 0 ? 0
                                             : (state >> 4) % image->count;
            state = state * 1103515245 + 12345;
            uint32_t at = trial % 2 ? (state >> 8) % image->header.page_size : (state >> 8) % 64;
            if (page == 0)
                at = at < 100 ? at + 100 : at;
            if (at < image->header.page_size)
                image->bytes[(size_t)page * image->header.page_size + at] = (uint8_t)(state >> 16);
        }
        CHECK(opening_pages(image->bytes, &image->header, opening) <= OPENING_PAGES);
        schema_load(&schema, &image->pages);
        trail_walk(&trail, &schema, &image->pages, &found);
        if (cursor_open(&cursor, &image->pages, &path)) {
            size_t n = 0;
            cursor.ahead = 300;
            while (n < ROWS_BATCH && cursor_next(&cursor, &items[n]))
                n++;
            if (n > 0 && rows_open(rows, &image->pages, table, items[0].rowid, false)) {
                rows_resolve(rows, items, n);
                rows_close(rows);
                CHECK(chains_follow(&image->pages, items, n < CHAIN_BATCH ? n : CHAIN_BATCH,
                                    CHAIN_MOST, chains));
            }
            cursor_close(&cursor);
        }
        schema_free(&schema);
        memcpy(image->bytes, whole, length);
    }
    free(chains);
    free(items);
    free(rows);
    free(whole);
}

static void headers_of_other_files_are_refused(void)
{
    uint8_t bytes[BTREE_HEADER_BYTES] = "SQLite format 3";
    struct btree_header header;
    what = "header";
    bytes[21] = 64, bytes[22] = bytes[23] = 32;
    CHECK(!btree_header_parse(bytes, &header)); /* page size 0 */
    bytes[16] = 16;
    CHECK(btree_header_parse(bytes, &header) && header.page_size == 4096);
    bytes[17] = 1;
    CHECK(!btree_header_parse(bytes, &header)); /* not a power of two */
    bytes[16] = 0;
    CHECK(btree_header_parse(bytes, &header) && header.page_size == 65536);
    bytes[16] = 2, bytes[17] = 0, bytes[20] = 33;
    CHECK(!btree_header_parse(bytes, &header)); /* fewer than 480 usable bytes */
    bytes[20] = 32;
    CHECK(btree_header_parse(bytes, &header) && header.usable == 480);
    bytes[0] = 's';
    CHECK(!btree_header_parse(bytes, &header));
}

int main(void)
{
    static const struct {
        const char *name, *pragma;
        int page_size, reserved;
    } kinds[] = {
        {"512 bytes a page", "", 512, 0},
        {"512 bytes, 32 reserved", "", 512, 32},
        {"1024 bytes, autovacuum", "pragma auto_vacuum=full", 1024, 0},
        {"4096 bytes", "", 4096, 0},
        {"4096 bytes, 16 reserved, UTF-16", "pragma encoding='UTF-16be'", 4096, 16},
        {"4096 bytes, incremental vacuum, UTF-16le",
         "pragma auto_vacuum=incremental; pragma encoding='UTF-16le'", 4096, 0},
        {"65536 bytes", "", 65536, 0},
        {"65536 bytes, 255 reserved", "", 65536, 255},
    };
    char path[] = "/tmp/foreread-unit-XXXXXX";
    CHECK(close(mkstemp(path)) == 0);
    headers_of_other_files_are_refused();
    overflow_pages_are_counted_by_row();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct image image = {0};
        what = kinds[i].name;
        sqlite3 *db = make(path, kinds[i].page_size, kinds[i].reserved, kinds[i].pragma);
        load(&image, path);
        CHECK(image.header.page_size == (uint32_t)kinds[i].page_size);
        CHECK(image.header.usable == (uint32_t)(kinds[i].page_size - kinds[i].reserved));
        schema_names_every_index_and_its_table(&image, db);
        rowids_resolve_to_the_pages_that_hold_them(&image, db);
        chains_lead_along_the_overflow_pages(&image, db);
        cursors_see_the_entries_in_the_order_of_the_index(&image, db);
        /* Where a table has few pages, any order of them looks like any other. */
        if (kinds[i].page_size < 65536)
            walks_are_found_and_other_reads_are_not(&image, db);
        what_is_read_at_the_opening_is_named(&image, db);
        damaged_pages_harm_nobody(&image, db);
        sqlite3_close(db);
        free(image.bytes);
        printf("ok: %s\n", what);
    }
    unlink(path);
    return 0;
}
