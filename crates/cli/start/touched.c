/* Which functions of a program run, in the order in which they are first called.
 *
 *   touched ADDRESSES OUT COMMAND...
 *
 * ADDRESSES lists where functions of COMMAND's file begin, in hexadecimal, one a line; the file is linked to a fixed address.
 * OUT gets those that run, in COMMAND's process and those that it forks; programs that these start run unwatched. A line "exec" says
 * that one was started then.
 *
 * Data flow: a breakpoint is put at the beginning of each function; the first process to come to one takes its own away, and
 * says so. Forked processes have copies of all that are still there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 65536
#define BREAKPOINT 0xcc

struct function {
	uintptr_t at;
	uint8_t first_byte;
	uint8_t ran;
};

static struct function functions[MOST];
static size_t count;

static int by_address(const void *one, const void *other)
{
	uintptr_t a = ((const struct function *)one)->at, b = ((const struct function *)other)->at;

	return (a > b) - (a < b);
}

static struct function *function_at(uintptr_t at)
{
	struct function wanted = { .at = at };

	return bsearch(&wanted, functions, count, sizeof wanted, by_address);
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void read_addresses(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned long at;

	if (!file)
		die(path);
	while (count < MOST && fscanf(file, "%lx", &at) == 1)
		functions[count++].at = at;
	fclose(file);
	qsort(functions, count, sizeof *functions, by_address);
	/* Two names of one function are one breakpoint: the second would take the first for the function's own byte. */
	size_t kept = 0;
	for (size_t n = 0; n < count; n++)
		if (!kept || functions[n].at != functions[kept - 1].at)
			functions[kept++] = functions[n];
	count = kept;
}

static void put_breakpoints(pid_t pid)
{
	const uint8_t breakpoint = BREAKPOINT;
	char path[64];
	int memory;

	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	memory = open(path, O_RDWR);
	if (memory < 0)
		die(path);
	for (size_t n = 0; n < count; n++)
		if (pread(memory, &functions[n].first_byte, 1, functions[n].at) != 1 ||
		    pwrite(memory, &breakpoint, 1, functions[n].at) != 1)
			die("a function");
	close(memory);
}

/* A process has stopped behind a breakpoint of ours, or for another reason. */
static void pass(pid_t pid, FILE *out)
{
	struct user_regs_struct registers;
	struct function *function;
	long word;

	ptrace(PTRACE_GETREGS, pid, 0, &registers);
	function = function_at(registers.rip - 1);
	if (!function)
		return;
	if (!function->ran)
		fprintf(out, "%lx\n", (unsigned long)function->at);
	function->ran = 1;
	word = ptrace(PTRACE_PEEKTEXT, pid, function->at, 0);
	/* Another thread of the process may have taken it away. */
	if ((word & 0xff) == BREAKPOINT)
		ptrace(PTRACE_POKETEXT, pid, function->at, (word & ~0xffL) | function->first_byte);
	registers.rip--;
	ptrace(PTRACE_SETREGS, pid, 0, &registers);
}

int main(int argc, char **argv)
{
	FILE *out;
	pid_t first, pid;
	int status;

	if (argc < 4)
		return fputs("touched ADDRESSES OUT COMMAND...\n", stderr), 2;
	read_addresses(argv[1]);
	out = fopen(argv[2], "w");
	if (!out)
		die(argv[2]);
	first = fork();
	if (first == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execvp(argv[3], argv + 3);
		die(argv[3]);
	}
	if (waitpid(first, &status, 0) != first || !WIFSTOPPED(status))
		die(argv[3]);
	ptrace(PTRACE_SETOPTIONS, first, 0,
	       PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
	put_breakpoints(first);
	ptrace(PTRACE_CONT, first, 0, 0);
	while ((pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
		int signal = 0;

		if (pid < 0)
			continue;
		if (!WIFSTOPPED(status)) {
			if (pid == first)
				break;
			continue;
		}
		if (status >> 16 == PTRACE_EVENT_EXEC) {
			fputs("exec\n", out);
			ptrace(PTRACE_DETACH, pid, 0, 0);
			continue;
		}
		if (WSTOPSIG(status) == SIGTRAP && status >> 16 == 0)
			pass(pid, out);
		else if (status >> 16 == 0 && WSTOPSIG(status) != SIGSTOP)
			signal = WSTOPSIG(status);
		ptrace(PTRACE_CONT, pid, 0, signal);
	}
	return fclose(out) ? 1 : 0;
}
