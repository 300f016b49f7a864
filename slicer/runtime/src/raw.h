/*
 * raw.h - system calls made without the C library.
 *
 * A program may define syscall(), prctl() or fcntl() itself, and the runtime replaces some of these that the program
 * calls (ends/). The runtime's own calls must reach neither.
 */
#ifndef RAW_H
#define RAW_H

#include <errno.h>
#include <sys/syscall.h>

/* The kernel's result, or a negative errno value. */
static inline long raw_answer(long number, long a, long b, long c, long d, long e, long f) {
#if defined __x86_64__
    long answer;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return answer;
#elif defined __aarch64__
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#else
#error "how a system call is made is per architecture: add it here"
#endif
}

static inline long raw_result(long answer) {
    if (answer >= 0 || answer < -4095)
        return answer;
    errno = (int)-answer;
    return -1;
}

/* The same as syscall(2): a number and up to six arguments; -1 and errno on failure. */
#define raw_call(...) RAW_PADDED(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define RAW_PADDED(number, a, b, c, d, e, f, ...)                                                  \
    raw_result(raw_answer((long)(number), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)))

#endif
