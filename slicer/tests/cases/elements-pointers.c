// A pointer into an array may lead to each element. A loop that writes beyond its constant bounds,
// or is left early, may write any element.
//: KEEPS shift(&places[1])
//: KEEPS places[0] = 7
//: KEEPS late[k] = 70 * k
//: KEEPS names[1] = "data"
//: DROPS names[0]
//: DATA data 70000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static off_t places[3], late[8];

static void shift(off_t *pointer)
{
	pointer[-1] = 900;
	pointer[0] = 1000;
}

int main(void)
{
	char c;
	unsigned sum = 0;
	const char *names[2];
	int k;
	names[0] = "nothing";
	names[1] = "data";
	int fd = open(names[1], O_RDONLY);
	places[0] = 7;
	shift(&places[1]);
	for (k = 0; k < 4; k++)
		late[k] = 70 * k;
	late[k] = 3000;
	for (int i = 0; i < 40; i++) {
		pread(fd, &c, 1, places[0] * i + late[4] + late[2]);
		sum = sum * 3 + c;
	}
	printf("%s %u\n", names[0], sum);
	usleep(200000);
	return 0;
}
