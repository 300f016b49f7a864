/* Threads that look up the same names in parallel, each relative to the working directory: lookers THREADS TIMES. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static int times;

static void *look(void *unused)
{
	struct stat stat;

	(void)unused;
	for (int n = 0; n < times; n++) {
		char name[16];

		snprintf(name, sizeof(name), "f%d", n % 10);
		if (lstat(name, &stat) != 0)
			abort();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	int count = argc > 2 ? atoi(argv[1]) : 0;

	times = argc > 2 ? atoi(argv[2]) : 0;
	if (count > 64)
		return 2;
	for (int n = 0; n < count; n++)
		if (pthread_create(&threads[n], NULL, look, NULL) != 0)
			return 2;
	for (int n = 0; n < count; n++)
		pthread_join(threads[n], NULL);
	return 0;
}
