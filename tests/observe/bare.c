/* Issues system calls itself without any library, as a Go program does: a read, a read at an offset, and a read at the cursor. With
 * more arguments than a path it stops before its end, so that observers can look. */
#include <asm/signal.h>
#include <asm/unistd.h>
static long call(long number, long a, long b, long c, long d) {
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
#else
#error "not known here"
#endif
}
static char buffer[8192];
int main(int argc, char **argv) {
    long fd = call(__NR_openat, -100, (long)argv[argc - 1], 0, 0);
    int good = fd >= 0 && call(__NR_read, fd, (long)buffer, 1000, 0) == 1000 &&
               call(__NR_pread64, fd, (long)buffer, 50, 5000) == 50 && call(__NR_read, fd, (long)buffer, 8192, 0) == 8192;
    if (argc > 2)
        call(__NR_kill, call(__NR_getpid, 0, 0, 0, 0), SIGSTOP, 0, 0);
    return good ? 0 : 99;
}
#ifdef FREESTANDING
#if defined(__x86_64__)
__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start: mov x0, sp\n bl begin\n");
#endif
void begin(long *stack) {
    call(__NR_exit_group, main((int)stack[0], (char **)(stack + 1)), 0, 0, 0);
}
#endif
