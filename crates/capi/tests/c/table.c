/* The program's own table of descriptors is the program's: no call of the library opens, closes or copies a descriptor in
 * it, not even for a moment. Another thread's open() would get another number than it must, a close() would drop the
 * program's POSIX locks, and a daemon's loop that closes all would close the library's.
 *
 * A second process is asked by the kernel about every system call that changes a table (seccomp's user notification), and
 * compares the table of whoever makes it with that of the program's first thread (kcmp). */
#include "check.h"
#include "foreread.h"

#include <linux/filter.h>
#include <linux/kcmp.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Descriptors that the program closes to mark that it enters and leaves the library. */
#define ENTERS (-1001)
#define LEAVES (-1002)
/* CLOSE_RANGE_UNSHARE: into a table of the thread's own. */
#define UNSHARE 2

static const int calls[] = {
	SYS_openat, SYS_close,	 SYS_close_range, SYS_dup,	   SYS_dup3,   SYS_fcntl,  SYS_socket,
	SYS_pipe2,  SYS_accept4, SYS_eventfd2,	  SYS_memfd_create, SYS_openat2, SYS_pidfd_open,
#ifdef __x86_64__
	SYS_open,   SYS_dup2,	 SYS_pipe,	  SYS_creat,
#endif
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

/* Makes the kernel ask about these calls. Returns the descriptor for its questions, or -1. */
static int ask(void)
{
	struct sock_filter code[CALLS + 3];
	struct sock_fprog filter = {CALLS + 3, code};
	size_t i;

	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					       offsetof(struct seccomp_data, nr));
	for (i = 0; i < CALLS; i++)
		code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i],
							    (unsigned char)(CALLS - i), 0);
	code[CALLS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[CALLS + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    &filter);
}

static void pass_on(int by, int fd)
{
	char room[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = room,
				 .msg_controllen = sizeof(room)};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(int));
	CHECK(sendmsg(by, &message, 0) == 1);
}

/* Receives a descriptor; -1 if the sender has none. */
static int passed(int by)
{
	char room[CMSG_SPACE(sizeof(int))], byte;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = room,
				 .msg_controllen = sizeof(room)};
	int fd = -1;

	if (recvmsg(by, &message, 0) == 1 && CMSG_FIRSTHDR(&message) != NULL)
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return fd;
}

/* Permits every call, and counts those that change the program's table while the program is in the library. */
static int watch(int by, pid_t program)
{
	struct seccomp_notif question;
	struct seccomp_notif_resp answer;
	int inside = 0, wrong = 0, entered = 0, seen_apart = 0;

	for (;;) {
		const struct seccomp_data *call = &question.data;
		int first;

		memset(&question, 0, sizeof(question));
		if (ioctl(by, SECCOMP_IOCTL_NOTIF_RECV, &question) != 0) {
			if (errno == EINTR || (errno == ENOENT && kill(program, 0) == 0))
				continue;
			break;
		}
		first = call->nr == SYS_close ? (int)call->args[0] : 0;
		if (first == ENTERS || first == LEAVES) {
			inside = first == ENTERS;
			entered += inside;
		} else if (inside &&
			   syscall(SYS_kcmp, program, (pid_t)question.pid, KCMP_FILES, 0, 0) != 0) {
			seen_apart++;
		} else if (inside && !(call->nr == SYS_close_range && call->args[2] == UNSHARE) &&
			   !(call->nr == SYS_fcntl && call->args[1] != F_DUPFD &&
			     call->args[1] != F_DUPFD_CLOEXEC)) {
			fprintf(stderr, "call %d (%lld, %lld) in the program's table, stage %d\n",
				call->nr, (long long)call->args[0], (long long)call->args[1], entered);
			wrong++;
		}
		memset(&answer, 0, sizeof(answer));
		answer.id = question.id;
		answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		ioctl(by, SECCOMP_IOCTL_NOTIF_SEND, &answer);
		if (first == LEAVES && entered == 3)
			break;
	}
	/* The library's threads were seen to open files. So the same in the program's table would have been seen. */
	CHECK(entered == 3 && seen_apart > 0);
	return wrong == 0;
}

/* All uses for which the library opens or looks up a file. */
static void use(const char *folder)
{
	char path[PATH_MAX], report[PATH_MAX], bytes[4096];
	foreread_options options = {.struct_size = sizeof(options)};
	foreread_client *c = NULL;
	foreread_entry entries[64];
	foreread_stats stats = {.struct_size = sizeof(stats)};
	int fd, file, i;

	make_path(path, folder, "file", 1 << 20);
	snprintf(report, sizeof(report), "%s/report", folder);
	evict(path);
	fd = open(path, O_RDONLY);
	options.check = report;
	close(ENTERS);
	SAME(foreread_register_client(&c, &options, NULL, NULL), 0);
	CHECK(foreread_register_region(c, fd, 0, UINT64_MAX) >= 0);
	file = foreread_register_file(c, path);
	CHECK(file >= FOREREAD_FIRST_FILE);
	CHECK(foreread_register_region(c, file, 0, 4096) >= 0);
	memset(entries, 0, sizeof(entries));
	close(LEAVES);
	close(ENTERS);
	/* First from front to back, for which the library examines the kernel's read-ahead, then in no order. */
	for (i = 0; i < 64; i++) {
		entries[i].fd = fd;
		entries[i].offset = (uint64_t)i * 16384;
		entries[i].length = 16384;
	}
	SAME(foreread_request_prefetching(c, entries, 64, FOREREAD_SET), 64);
	for (i = 0; i < 64; i++)
		CHECK(pread(fd, bytes, sizeof(bytes), (off_t)entries[i].offset) > 0);
	for (i = 0; i < 64; i++)
		entries[i].offset = (uint64_t)(i * 37 % 64) * 16384;
	SAME(foreread_request_prefetching(c, entries, 64, FOREREAD_SET | FOREREAD_DONE), 64);
	for (i = 0; i < 64; i++)
		CHECK(pread(fd, bytes, sizeof(bytes), (off_t)entries[i].offset) > 0);
	usleep(20000);
	close(LEAVES);
	close(ENTERS);
	SAME(foreread_get_stats(c, &stats), 0);
	SAME(foreread_finish_client(c, &stats), 0);
	close(LEAVES);
	CHECK(access(report, F_OK) == 0);
}

int main(int argc, char **argv)
{
	int pair[2], status = 0, by, clean;
	pid_t program;

	CHECK(argc > 1);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	program = fork();
	CHECK(program >= 0);
	if (program == 0) {
		char byte;

		close(pair[0]);
		by = ask();
		if (by < 0)
			_exit(77);
		pass_on(pair[1], by);
		CHECK(recv(pair[1], &byte, 1, 0) == 1);
		close(by);
		use(argv[1]);
		_exit(0);
	}
	close(pair[1]);
	by = passed(pair[0]);
	if (by < 0 || syscall(SYS_kcmp, program, getpid(), KCMP_FILES, 0, 0) < 0) {
		fprintf(stderr, "no user notification, or no kcmp, here\n");
		kill(program, SIGKILL);
		waitpid(program, &status, 0);
		return 77;
	}
	CHECK(send(pair[0], "", 1, 0) == 1);
	clean = watch(by, program);
	close(by);
	CHECK(waitpid(program, &status, 0) == program);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(clean);
	return 0;
}
