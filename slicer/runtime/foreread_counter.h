/*
 * foreread_counter.h - counters of the calls of a translated program's threads: the part of foreread_preexec.h that
 * its inline functions need. It needs no system header.
 */
#ifndef FOREREAD_COUNTER_H
#define FOREREAD_COUNTER_H

#ifdef __cplusplus
extern "C" {
#endif

/* The counter of a thread's calls. It belongs to the library. */
struct foreread_counter {
    /* Written by one thread and read by another process, independently of other variables: volatile is enough. */
    volatile __UINT64_TYPE__ calls;
    /* foreread_ring() is called when the counter reaches this number. */
    volatile __UINT64_TYPE__ wake_at;
};

/* Characters a thread reads before it counts them. */
#define FOREREAD_CHARACTERS 64u

#pragma GCC visibility push(default)
/* The calling thread's counter, and how many characters it may still read before they are counted. Defined in the
 * program itself, so that no table is looked up. */
extern __thread struct foreread_counter *foreread_counter __attribute__((tls_model("local-exec")));
extern __thread unsigned foreread_left __attribute__((tls_model("local-exec")));
/* Calls that were counted before their reads are made, for FOREREAD_PREEXEC_TRACE. */
extern __thread unsigned foreread_owed __attribute__((tls_model("local-exec")));
/* Called by the counting of n calls when the counter reaches wake_at. */
void foreread_ring(unsigned n);
/* Counts the characters read since the last count. */
void foreread_characters(void);
/* Stops counting in the calling thread until foreread_resume() gets the returned counter. */
struct foreread_counter *foreread_pause(void);
void foreread_resume(struct foreread_counter **__counter);
/* The path of the thread that the calling thread makes next through a library, or 0 if that thread is not to count.
 * The new thread passes it to foreread_thread_begin(). Used by both sides. */
__UINT64_TYPE__ foreread_thread_path(void);
void foreread_thread_begin(__UINT64_TYPE__ __path);
void foreread_thread_end(void);
/* Ends the counting of such a thread where the thread itself continues, to return its result. */
void foreread_thread_leave(void);
#pragma GCC visibility pop

/* Synchronization points. */
#define FOREREAD_POINTS 4096

#ifdef __cplusplus
}
#endif

#endif
