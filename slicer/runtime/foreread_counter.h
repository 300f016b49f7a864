/*
 * foreread_counter.h - by what the threads of a translated program count their calls: the part of foreread_preexec.h that its inline
 * functions are made of. No header of the system is needed.
 */
#ifndef FOREREAD_COUNTER_H
#define FOREREAD_COUNTER_H

#ifdef __cplusplus
extern "C" {
#endif

/* What a thread counts its calls in; the library's. */
struct foreread_counter {
    /* Written by one thread and read by another process, on its own: that the compiler leaves it alone is enough. */
    volatile __UINT64_TYPE__ calls;
    /* At this many calls the library is rung. */
    volatile __UINT64_TYPE__ wake_at;
};

/* Characters a thread reads before it counts them. */
#define FOREREAD_CHARACTERS 64u

#pragma GCC visibility push(default)
/* The calling thread's, and how many characters it may still read. In the program itself, so no table is looked up. */
extern __thread struct foreread_counter *foreread_counter __attribute__((tls_model("local-exec")));
extern __thread unsigned foreread_left __attribute__((tls_model("local-exec")));
/* Reads that are counted and still to come, for FOREREAD_PREEXEC_TRACE. */
extern __thread unsigned foreread_owed __attribute__((tls_model("local-exec")));
/* Of n calls that are counted: the last is where the library is rung. */
void foreread_ring(unsigned n);
/* Counts the characters that have been read. */
void foreread_characters(void);
/* The calling thread counts for nobody until it gives back what it was given. */
struct foreread_counter *foreread_pause(void);
void foreread_resume(struct foreread_counter **__counter);
/* Which thread the one will be that the calling thread makes next, by means of a library: 0 if it is not to count. To be told at
 * its beginning; and its end. Of both sides. */
__UINT64_TYPE__ foreread_thread_path(void);
void foreread_thread_begin(__UINT64_TYPE__ __path);
void foreread_thread_end(void);
/* The end of what such a thread counts, where it goes on: to hand over what it has computed. */
void foreread_thread_leave(void);
#pragma GCC visibility pop

/* Synchronization points. */
#define FOREREAD_POINTS 4096

#ifdef __cplusplus
}
#endif

#endif
