// stdio: fopen, fseek, fread, fgets, getc, ftell, rewind, feof and fclose.
//: KEEPS prefetch_fread(f, 1, sizeof block)
//: KEEPS fetch_fgets(line, sizeof line, list)
//: KEEPS prefetch_fopen(line, "rb")
//: KEEPS prefetch_rewind(f)
//: KEEPS prefetch_getc(f)
//: PROGRAM getc(f); foreread_character();
//: DROPS printf
//: DATA one 3000
//: DATA two 5000
//: TEXT list one\ntwo\n
//: RUN list
//: COUNTS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char line[100], block[64];
	FILE *list = fopen(argv[1], "r");
	unsigned sum = 0;
	if (list == NULL) {
		perror(argv[1]);
		exit(1);
	}
	while (fgets(line, sizeof line, list)) {
		line[strcspn(line, "\n")] = 0;
		FILE *f = fopen(line, "rb");
		if (f == NULL)
			continue;
		fseek(f, 0, SEEK_END);
		long size = ftell(f);
		for (long at = size - 64; at >= 0; at -= 200) {
			fseek(f, at, SEEK_SET);
			size_t n = fread(block, 1, sizeof block, f);
			for (size_t i = 0; i < n; i++)
				sum = sum * 17 + (unsigned char)block[i];
		}
		rewind(f);
		for (int i = 0; i < 10; i++)
			sum += getc(f);
		printf("%s: %ld\n", line, size);
		fclose(f);
	}
	fclose(list);
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
