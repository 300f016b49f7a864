// Single loads from a mapped file. Loads of a loop at even distances are announced at once, before
// the loop; the iterations of a loop with enough work are counted.
//: KEEPS for (int r = 0; r < 400; r++) { prefetch_call(); const struct record *record = &records[order[r]]; prefetch_loads(&record->values[(0)], &record->values[(0 + 1)], sizeof(unsigned char), 200); }
//: PROGRAM for (int r = 0; r < 400; r++) { foreread_call(); const struct record *record
//: PROGRAM for (int k = 0; k < 200; k++) sum
//: DROPS sum
//: DATA data 204800
//: UNSEEN a mapped file is looked at by loads
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct record {
	unsigned char values[512];
};

static int order[400];

int main(void)
{
	struct stat status;
	unsigned sum = 0;
	int fd = open("data", O_RDONLY);
	if (fstat(fd, &status) < 0)
		return 1;
	const struct record *records = mmap(0, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (records == MAP_FAILED)
		return 1;
	for (int r = 0; r < 400; r++)
		order[r] = r * 177 % 400;
	for (int r = 0; r < 400; r++) {
		const struct record *record = &records[order[r]];
		for (int k = 0; k < 200; k++)
			sum = sum * 3 + record->values[k];
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
