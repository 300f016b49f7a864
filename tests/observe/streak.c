/* Reads a file in pieces of one length, hundreds in a row, and between them does anything
 * that can happen between reads, in an order that one number determines. Prints offset and
 * length of each intended read of the file, in order.
 *
 *   streak FILE OTHER NUMBER */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 20000, MOST = 40000 };
static struct { int at, len; } made[MOST];
static int count, at, file, other;
static char buffer[64], *volatile nowhere;

static void die(const char *what) { perror(what); exit(1); }

static void seen(ssize_t got, size_t asked, int from)
{
	int left = from < SIZE ? SIZE - from : 0;
	if (got != (ssize_t)(asked < (size_t)left ? asked : (size_t)left)) die("a read");
	if (got > 0 && count < MOST) {
		made[count].at = from;
		made[count++].len = (int)got;
	}
}

static void piece(size_t len)
{
	errno = 77;
	ssize_t got = read(file, buffer, len);
	if (errno != 77) die("errno of a good read");
	seen(got, len, at);
	at += (int)got;
}

/* Reads the other file, whatever it interrupts; at that file's end it returns to the start. */
static void handler(int signal)
{
	(void)signal;
	char byte[3];
	if (read(other, byte, sizeof byte) == 0) lseek(other, 0, SEEK_SET);
}

static void between(unsigned what)
{
	int copy;
	struct iovec parts[2] = {{buffer, 2}, {buffer + 2, 3}};
	ssize_t got;
	switch (what) {
	case 0:
		at = (at * 7 + 11) % SIZE;
		if (lseek(file, at, SEEK_SET) != at) die("lseek");
		break;
	case 1:
		copy = dup(file);
		got = read(copy, buffer, 4);
		seen(got, 4, at);
		at += (int)got;
		close(copy);
		break;
	case 2:
		seen(pread(file, buffer, 4, at / 2), 4, at / 2);
		break;
	case 3:
		got = readv(file, parts, 2);
		seen(got, 5, at);
		at += (int)got;
		break;
	case 4:
		if (read(-1, buffer, 4) != -1 || errno != EBADF) die("a bad descriptor");
		break;
	case 5:
		if (read(file, nowhere, 4) != -1 || errno != EFAULT) die("a bad address");
		break;
	case 6:
		raise(SIGUSR1);
		break;
	case 7:
		/* The same number and length, another file. */
		copy = dup(file);
		if (dup2(other, file) != file) die("dup2");
		for (int i = 0; i < 100; i++) read(file, buffer, 4);
		if (dup2(copy, file) != file) die("dup2");
		close(copy);
		break;
	case 8:
		piece(9);
		break;
	case 9:
		for (int i = 0; i < 3 && at < SIZE - 4; i++) {
			seen(syscall(SYS_read, file, buffer, 4L), 4, at);
			at += 4;
		}
		break;
	case 10:
		/* A child moves the cursor that it shares with this process. */
		copy = fork();
		if (copy == 0) _exit(at < SIZE - 12 && read(file, buffer, 4) + read(file, buffer, 4) == 8);
		while (waitpid(copy, &copy, 0) < 0) if (errno != EINTR) die("waitpid");
		if (WEXITSTATUS(copy)) at += 8;
		break;
	default:
		read(other, buffer, 4);
	}
}

int main(int argc, char **argv)
{
	if (argc != 4) return 2;
	file = open(argv[1], O_RDONLY);
	other = open(argv[2], O_RDONLY);
	if (file < 0 || other < 0) die("open");
	signal(SIGUSR1, handler);
	signal(SIGALRM, handler);
	struct itimerval often = {{0, 300}, {0, 300}};
	setitimer(ITIMER_REAL, &often, NULL);
	uint32_t state = (uint32_t)atoi(argv[3]);
	while (count < MOST - 600) {
		state = state * 1664525 + 1013904223;
		size_t len = 4 - (state >> 10) % 2;
		for (unsigned n = (state >> 12) % 300; n > 0; n--) {
			if (at >= SIZE) at = lseek(file, 0, SEEK_SET);
			piece(len);
		}
		between(state >> 24 & 15);
	}
	signal(SIGALRM, SIG_IGN);
	for (int i = 0; i < count; i++) printf("%d %d\n", made[i].at, made[i].len);
	return 0;
}
