/* Connections on two threads that load the extension at once: unit_load EXTENSION DATABASE
 *
 * They are given SQLite's functions with one of them slow, so that both are under way together. */
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sqlite3ext.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The program calls the library itself. */
#undef sqlite3_auto_extension
#undef sqlite3_close
#undef sqlite3_exec
#undef sqlite3_open
#undef sqlite3_vfs_find

typedef int (*entry)(sqlite3 *db, char **message, const sqlite3_api_routines *api);

static sqlite3_api_routines slow;
static entry load;

static sqlite3_vfs *find_slowly(const char *name)
{
    sqlite3_vfs *found = sqlite3_vfs_find(name);
    if (name)
        usleep(100000);
    return found;
}

static int capture(sqlite3 *db, char **message, const sqlite3_api_routines *api)
{
    (void)db, (void)message;
    slow = *api;
    slow.vfs_find = find_slowly;
    return SQLITE_OK;
}

static void *connection(void *path)
{
    sqlite3 *db = NULL;
    char *message = NULL;
    assert(sqlite3_open(path, &db) == SQLITE_OK);
    assert(load(db, &message, &slow) == SQLITE_OK_LOAD_PERMANENTLY);
    sqlite3_close(db);
    return NULL;
}

int main(int argc, char **argv)
{
    sqlite3 *db = NULL;
    pthread_t threads[2];
    assert(argc == 3);
    void *extension = dlopen(argv[1], RTLD_NOW);
    assert(extension);
    void *found = dlsym(extension, "sqlite3_foreread_init");
    memcpy(&load, &found, sizeof load);
    assert(load);
    assert(sqlite3_auto_extension((void (*)(void))capture) == SQLITE_OK);
    assert(sqlite3_open(argv[2], &db) == SQLITE_OK);
    sqlite3_close(db);
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, connection, argv[2]) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(sqlite3_open(argv[2], &db) == SQLITE_OK);
    assert(sqlite3_exec(db, "create table if not exists t(x); select * from t", NULL, NULL, NULL) ==
           SQLITE_OK);
    sqlite3_close(db);
    puts("connections on two threads load the extension: ok");
    return 0;
}
