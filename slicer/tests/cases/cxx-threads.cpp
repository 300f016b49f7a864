// Threads that read, and numbers and lines from standard input, by the C library's functions in C++.
//: STATUS work sliced
//: STATUS main sliced
//: KEEPS prefetch_pthread_create(&thread, nullptr, pf_work, &job)
//: PROGRAM foreread_spawn(&thread, nullptr, work, &job)
//: DATA data 70000
//: INPUT 50\n700\n
//: RUN
//: COUNTS
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

struct Job {
	int fd;
	long step;
	unsigned sum = 0;
};

static void *work(void *given)
{
	auto *job = static_cast<Job *>(given);
	unsigned char c;
	for (int i = 0; i < 40; i++)
		if (pread(job->fd, &c, 1, i * job->step) == 1)
			job->sum = job->sum * 3 + c;
	return nullptr;
}

int main()
{
	long step = 0;
	char *line = nullptr;
	size_t room = 0;
	if (scanf("%ld\n", &step) != 1 || getline(&line, &room, stdin) < 0)
		return 1;
	Job job{open("data", O_RDONLY), step};
	pthread_t thread;
	pthread_create(&thread, nullptr, work, &job);
	pthread_join(thread, nullptr);
	job.step = atol(line);
	work(&job);
	free(line);
	printf("%u\n", job.sum);
	usleep(200000);
	return 0;
}
