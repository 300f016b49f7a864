/* A stand-in for libforeread that writes down what it is asked, for the tests.
 *
 * Every list goes to the file that FOREREAD_STANDIN names, one line an entry ("+ file offset length"),
 * with "file number path", "clear" and "read file offset" between. Nothing is fetched. Matching is
 * simple: an entry is found among those ahead. The log is kept in memory until the client ends: the planner, which ends it, and
 * the threads that read have different descriptor tables. */
#include "foreread.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { FILES = 64 };

struct foreread_client {
    pthread_mutex_t lock;
    FILE *log;
    char *text;
    size_t length;
    struct place {
        int file;
        uint64_t offset;
    } *places;
    ino_t inodes[FILES];
    int files;
    uint64_t n, room, at;
    foreread_stats stats;
};

int foreread_register_client(foreread_client **client, const foreread_options *options,
                             foreread_callback callback, void *arg)
{
    (void)options, (void)callback, (void)arg;
    *client = calloc(1, sizeof **client);
    pthread_mutex_init(&(*client)->lock, NULL);
    (*client)->log = open_memstream(&(*client)->text, &(*client)->length);
    return 0;
}

int foreread_unregister_client(foreread_client *client)
{
    const char *path = getenv("FOREREAD_STANDIN");
    FILE *file = path ? fopen(path, "ae") : NULL;
    fclose(client->log);
    if (file) {
        fwrite(client->text, 1, client->length, file);
        fclose(file);
    }
    free(client->text);
    free(client->places);
    free(client);
    return 0;
}

int foreread_register_file(foreread_client *client, const char *path)
{
    struct stat facts;
    if (stat(path, &facts) != 0)
        return -errno;
    int known = 0;
    while (known < client->files && client->inodes[known] != facts.st_ino)
        known++;
    if (known == FILES)
        return -ENOMEM;
    if (known == client->files)
        client->inodes[client->files++] = facts.st_ino;
    fprintf(client->log, "file %d %s\n", FOREREAD_FIRST_FILE + known, path);
    return FOREREAD_FIRST_FILE + known;
}

int foreread_register_region(foreread_client *client, int fd, uint64_t start, uint64_t end)
{
    (void)client, (void)fd, (void)start, (void)end;
    return 0;
}

int64_t foreread_request_prefetching(foreread_client *client, const foreread_entry *entries,
                                     size_t n, unsigned flags)
{
    pthread_mutex_lock(&client->lock);
    if (flags & FOREREAD_CLEAR)
        fprintf(client->log, "clear\n");
    if (!(flags & FOREREAD_APPEND))
        client->n = client->at = 0;
    for (size_t i = 0; i < n; i++) {
        if (client->n == client->room) {
            client->room = client->room ? 2 * client->room : 1024;
            client->places = realloc(client->places, client->room * sizeof *client->places);
        }
        client->places[client->n++] = (struct place){entries[i].fd, entries[i].offset};
        fprintf(client->log, "+ %d %llu %llu\n", entries[i].fd,
                (unsigned long long)entries[i].offset, (unsigned long long)entries[i].length);
    }
    client->stats.accepted += n;
    pthread_mutex_unlock(&client->lock);
    return (int64_t)n;
}

int foreread_reading(foreread_client *client, int fd, uint64_t offset, uint64_t length)
{
    uint64_t at;
    (void)length;
    pthread_mutex_lock(&client->lock);
    for (at = client->at; at < client->n; at++)
        if (client->places[at].file == fd && client->places[at].offset == offset)
            break;
    if (at < client->n) {
        client->at = at + 1;
        client->stats.listed++;
    } else {
        client->stats.unlisted++;
    }
    fprintf(client->log, "read %d %llu %s\n", fd, (unsigned long long)offset,
            at < client->n ? "listed" : "unlisted");
    pthread_mutex_unlock(&client->lock);
    return 0;
}

int foreread_read_done(foreread_client *client, int fd, uint64_t offset, uint64_t length,
                       uint64_t nanoseconds)
{
    (void)client, (void)fd, (void)offset, (void)length, (void)nanoseconds;
    return 0;
}

int foreread_get_stats(foreread_client *client, foreread_stats *stats)
{
    pthread_mutex_lock(&client->lock);
    *stats = client->stats;
    stats->ahead = client->n - client->at;
    pthread_mutex_unlock(&client->lock);
    return 0;
}

int foreread_unregister_region(foreread_client *client, int region)
{
    (void)client, (void)region;
    return 0;
}
