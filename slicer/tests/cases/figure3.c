// The same with the defaults: the prefetch thread itself reads a file that the program only reads.
//: PROGRAM fscanf(config_fp, "%d", &index); foreread_call();
//: KEEPS config_fp = prefetch_fopen("config.dat", "r"); prefetch_fseek(config_fp, 10, SEEK_SET);
//: KEEPS fetch_fscanf(config_fp, "%d", &index);
//: KEEPS prefetch_lseek(fp, index * 4, SEEK_SET); prefetch_read(fp, 4);
//: DROPS foreread_receive
//: DATA mydata.dat 400
//: TEXT config.dat 0123456789 42\n
//: RUN
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	int fp; int data; int index;
	FILE *config_fp;
	fp = open("mydata.dat", O_RDONLY);
	config_fp = fopen("config.dat", "r");
	/* I/O */
	fseek(config_fp, 10, SEEK_SET);
	fscanf(config_fp, "%d", &index);
	lseek(fp, index*4, SEEK_SET);
	read(fp, &data, 4);
	data = data + 10;
	printf("%d\n", data);
	close(fp);
	return 0;
}
