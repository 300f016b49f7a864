/* Measures the cost of a hot read: preads of the first 4 KiB of a file, which are in the page cache after the first
 * pread. Every other batch issues the system call directly, which no preloaded library sees; the batches alternate so
 * that both kinds run at the machine's current speed. Prints medians over the batches, in ns per read: by system call,
 * by the library, and the library's batch minus the system calls' batch before it. Afterwards it reads every fourth page
 * from the end, without timing them: this gives a prefetcher work, so that it is active while the hot reads are timed.
 *
 *   hotpread FILE BATCHES */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 500, PAGE = 4096 };

static void die(const char *what) { perror(what); exit(1); }

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* An instruction and not libc's syscall(), which is a function that a preloaded library could replace. */
static long direct(int fd, char *buffer)
{
	long result;
#if defined __x86_64__
	register long offset __asm__("r10") = 0;
	__asm__ volatile("syscall"
		: "=a"(result)
		: "a"((long)SYS_pread64), "D"((long)fd), "S"(buffer), "d"((long)PAGE), "r"(offset)
		: "rcx", "r11", "memory");
#elif defined __aarch64__
	register long number __asm__("x8") = SYS_pread64;
	register long first __asm__("x0") = fd;
	register char *second __asm__("x1") = buffer;
	register long third __asm__("x2") = PAGE;
	register long fourth __asm__("x3") = 0;
	__asm__ volatile("svc 0"
		: "+r"(first)
		: "r"(number), "r"(second), "r"(third), "r"(fourth)
		: "memory");
	result = first;
#else
#error "no system call for this processor here yet"
#endif
	return result;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, ascending);
	return values[count / 2];
}

int main(int argc, char **argv)
{
	size_t batches = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	if (batches == 0) {
		fprintf(stderr, "usage: hotpread FILE BATCHES\n");
		return 2;
	}
	static char buffer[PAGE] __attribute__((aligned(PAGE)));
	int fd = open(argv[1], O_RDONLY);
	if (fd < 0) die(argv[1]);
	if (pread(fd, buffer, PAGE, 0) != PAGE) die("pread");
	double *by_call = calloc(batches, sizeof *by_call);
	double *by_library = calloc(batches, sizeof *by_library);
	double *added = calloc(batches, sizeof *added);
	if (!by_call || !by_library || !added) die("calloc");
	for (size_t i = 0; i < batches; i++) {
		double began = now_ns();
		for (int j = 0; j < BATCH; j++)
			if (direct(fd, buffer) != PAGE) die("pread");
		double between = now_ns();
		for (int j = 0; j < BATCH; j++)
			if (pread(fd, buffer, PAGE, 0) != PAGE) die("pread");
		by_call[i] = (between - began) / BATCH;
		by_library[i] = (now_ns() - between) / BATCH;
		added[i] = by_library[i] - by_call[i];
	}
	off_t size = lseek(fd, 0, SEEK_END);
	for (off_t at = size - PAGE; at > 0; at -= 4 * PAGE)
		if (pread(fd, buffer, PAGE, at) != PAGE) die("pread");
	printf("%.1f %.1f %.1f\n", median(by_call, batches), median(by_library, batches), median(added, batches));
	return 0;
}
