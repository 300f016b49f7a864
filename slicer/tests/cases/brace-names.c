// Braces that are macros: main begins with one, and iterations of a loop are counted at another.
//: STATUS main sliced
//: PROGRAM begin if (foreread_may_wait(0, 0, "data\0" "")) foreread_create_prefetch_thread(
//: PROGRAM i++) begin foreread_call();
//: DATA data 81920
//: UNSEEN a mapped file is looked at by loads
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define begin {
#define end }

int main(void)
begin
	int fd = open("data", O_RDONLY), sum = 0;
	unsigned char *map = mmap(0, 81920, PROT_READ, MAP_PRIVATE, fd, 0);
	for (int i = 0; i < 20; i++) begin
		int brick = i * 7 % 20;
		for (int k = 0; k < 4096; k++)
			sum += map[brick * 4096 + k];
	end
	printf("%d\n", sum);
	usleep(200000);
	return 0;
end
