// NULL and nullptr as destinations: nothing is sent for such arguments.
//: STATUS main sliced
//: DROPS __null
//: PROGRAM time(NULL); foreread_send(
//: DATA data 200000
//: RUN
//: COUNTS
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

int main()
{
	int fd = open("data", O_RDONLY);
	time_t now = time(NULL);
	timeval tv;
	gettimeofday(&tv, nullptr);
	unsigned char c = 0;
	for (int n = 0; n < 20; n++)
		if (pread(fd, &c, 1, (now + tv.tv_sec + n * 7001) % 200000) != 1)
			return 1;
	usleep(200000);
	return 0;
}
