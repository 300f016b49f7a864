// A program of several threads: a prefetch thread for each thread that reads.
//: CFLAGS -pthread
//: PROGRAM foreread_pthread_create(&threads[i], 0, worker, &jobs[i])
//: KEEPS prefetch_pthread_create(&threads[i], 0, pf_worker, &jobs[i])
//: KEEPS static void *pf_worker(void *argument)
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct job { int fd; int first; unsigned sum; };

static void *worker(void *argument)
{
	struct job *job = argument;
	unsigned char c = 0;
	for (int i = 0; i < 50; i++) {
		pread(job->fd, &c, 1, job->first + i * 100);
		job->sum = job->sum * 3 + c;
	}
	return 0;
}

int main(void)
{
	pthread_t threads[4];
	struct job jobs[4];
	int fd = open("data", O_RDONLY);
	for (int i = 0; i < 4; i++) {
		jobs[i].fd = fd;
		jobs[i].first = i * 7000;
		jobs[i].sum = 0;
		pthread_create(&threads[i], 0, worker, &jobs[i]);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], 0);
		printf("%u\n", jobs[i].sum);
	}
	usleep(200000);
	return 0;
}
