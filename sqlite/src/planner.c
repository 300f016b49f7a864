/* See planner.h. */
#include "planner.h"

#include <errno.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "walk.h"

enum { STACK_BYTES = 512 << 10 };

static struct {
    pthread_mutex_t lock; /* guards `first` and `state`, and each watch's `next`, `gone` and `more` */
    pthread_cond_t served;
    struct watch *first;
    enum { ASLEEP, RUNNING, BROKEN } state;
    sem_t wake;
    atomic_bool started; /* true if `state` is not ASLEEP */
} planner = {.lock = PTHREAD_MUTEX_INITIALIZER, .served = PTHREAD_COND_INITIALIZER};

static struct watch **find(const struct watch *watch)
{
    struct watch **link = &planner.first;
    while (*link && *link != watch)
        link = &(*link)->next;
    return link;
}

static void append(struct watch *watch)
{
    watch->next = NULL;
    *find(NULL) = watch;
}

/* Serves one watch that is due, and moves it to the end of the list. False if none is due. */
static bool serve_next(void)
{
    struct watch *watch;
    pthread_mutex_lock(&planner.lock);
    for (watch = planner.first; watch && (watch->gone || !walk_due(watch)); watch = watch->next)
        ;
    if (watch) {
        bool closing = atomic_load(&watch->closing);
        *find(watch) = watch->next;
        append(watch);
        pthread_mutex_unlock(&planner.lock);
        bool more = walk_serve(watch);
        pthread_mutex_lock(&planner.lock);
        watch->more = more;
        watch->gone = closing;
        pthread_cond_broadcast(&planner.served);
    }
    pthread_mutex_unlock(&planner.lock);
    return watch != NULL;
}

/* No watch will be served: ends all waits for it. */
static void give_up(void)
{
    pthread_mutex_lock(&planner.lock);
    planner.state = BROKEN;
    for (struct watch *watch = planner.first; watch; watch = watch->next)
        watch->gone = true;
    pthread_cond_broadcast(&planner.served);
    pthread_mutex_unlock(&planner.lock);
}

static void *run(void *unused)
{
    /* Before anything else: if libforeread or the observer of `foreread run` is preloaded, it recognises this thread by its
     * name, and does not take the thread's descriptors for the program's. */
    pthread_setname_np(pthread_self(), "foreread-hint-s");
    /* An empty descriptor table of its own: files that are opened and closed here do not affect the
     * program's descriptors, nor its locks. */
    if (syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE) != 0) {
        give_up();
        return unused;
    }
    for (;;) {
        while (sem_wait(&planner.wake) != 0)
            ; /* EINTR */
        while (serve_next())
            ;
    }
}

/* A child has no planner. Its inherited watches are not served. For databases that it opens itself it starts a planner. */
static void forked(void)
{
    pthread_mutex_init(&planner.lock, NULL);
    pthread_cond_init(&planner.served, NULL);
    planner.first = NULL;
    planner.state = ASLEEP;
    atomic_store(&planner.started, false);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forked);
}

static void start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&planner.lock);
    if (planner.state == ASLEEP) {
        sem_init(&planner.wake, 0, 0);
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        planner.state =
            pthread_create(&thread, &attributes, run, NULL) == 0 ? RUNNING : BROKEN;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
        atomic_store(&planner.started, true);
    }
    pthread_mutex_unlock(&planner.lock);
}

/* ---- the interface ---------------------------------------------------------------------------- */

void planner_add(struct watch *watch)
{
    walk_init(watch);
    pthread_mutex_lock(&planner.lock);
    append(watch);
    pthread_mutex_unlock(&planner.lock);
}

void planner_wake(void)
{
    if (!atomic_load(&planner.started))
        start();
    sem_post(&planner.wake);
}

void planner_remove(struct watch *watch)
{
    pthread_mutex_lock(&planner.lock);
    bool ours = *find(watch) != NULL;
    if (ours && planner.state == RUNNING) {
        atomic_store(&watch->closing, true);
        sem_post(&planner.wake);
        while (!watch->gone)
            pthread_cond_wait(&planner.served, &planner.lock);
    }
    if (ours)
        *find(watch) = watch->next;
    pthread_mutex_unlock(&planner.lock);
}
