/*
 * libprefetch.h - the calls of foreread.h under the names of libprefetch (VanDeBogart, Frost,
 * Kohler: Reducing Seek Overhead with Application-Directed Prefetching, USENIX 2009), as its talk
 * shows them:
 *
 *     c = register_client(callback, NULL);
 *     r1 = register_region(c, A, 75, 350);
 *     struct access_entry list[] = { {A, 100, 1}, {B, 150, 0}, {A, 200, 1} };
 *     n = request_prefetching(c, list, 3, PF_SET | PF_DONE);
 *
 * These functions only call foreread.h's, which describes threads, fork and signals. Functions that
 * return a number return negative errno values on failure; register_client() returns null and sets
 * errno.
 */
#ifndef LIBPREFETCH_H
#define LIBPREFETCH_H

#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>

#include "foreread.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Replace the list. */
#define PF_SET FOREREAD_SET
/* Add at the end. */
#define PF_APPEND FOREREAD_APPEND
/* Empty the list first. */
#define PF_CLEAR FOREREAD_CLEAR
/* The list is complete for now: the callback is called when it runs out. */
#define PF_DONE FOREREAD_DONE

/* A client. */
typedef foreread_client *prefetch_client;

/* One coming access: the page that holds the offset. */
struct access_entry {
	/* Descriptor. */
	int fd;
	/* First byte. */
	int64_t offset;
	/* True if the callback is given this access as the most recent marked one. */
	int marked;
};

/* Called when a read in a region is not on the list, or the list has run out. The talk's type of
 * offsets is loff_t. */
typedef void (*prefetch_callback)(void *arg, int marked_fd, int64_t marked_offset,
				  int requested_fd, int64_t requested_offset);

/* Registers a client. Returns null and sets errno on failure. */
static __inline__ prefetch_client register_client(prefetch_callback callback, void *arg)
{
	foreread_client *client = NULL;
	int error = foreread_register_client(&client, NULL, callback, arg);

	if (error < 0) {
		errno = -error;
		return NULL;
	}
	return client;
}

/* Ends a client. Returns 0 or a negative errno. */
static __inline__ int unregister_client(prefetch_client client)
{
	return foreread_unregister_client(client);
}

/* Registers the bytes from start up to end. Returns the region's number or a negative errno. */
static __inline__ int register_region(prefetch_client client, int fd, int64_t start, int64_t end)
{
	if (start < 0 || end < 0)
		return -EINVAL;
	return foreread_register_region(client, fd, (uint64_t)start, (uint64_t)end);
}

/* Removes a region. Returns 0 or a negative errno. */
static __inline__ int unregister_region(prefetch_client client, int region)
{
	return foreread_unregister_region(client, region);
}

/* Passes on a list. Returns the number of accepted entries, less than n if the list is full, or a
 * negative errno. */
static __inline__ int64_t request_prefetching(prefetch_client client,
					      const struct access_entry *list, size_t n,
					      unsigned int flags)
{
	foreread_entry *entries;
	int64_t accepted;
	size_t i;

	if (list == NULL || n == 0)
		return foreread_request_prefetching(client, NULL, n, flags);
	entries = (foreread_entry *)calloc(n, sizeof(*entries));
	if (entries == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		entries[i].fd = list[i].fd;
		entries[i].flags = list[i].marked ? FOREREAD_MARKED : 0;
		entries[i].offset = (uint64_t)list[i].offset;
	}
	accepted = foreread_request_prefetching(client, entries, n, flags);
	free(entries);
	return accepted;
}

#ifdef __cplusplus
}
#endif

#endif /* LIBPREFETCH_H */
