// The example of the long paper's Figure 3: the descriptor and the value in a configuration file are shared
// through channels. Here the program reads and sends: no input is lost if the prefetch thread has died.
//: ARGS --open=send --config=send
//: PROGRAM fp = open("mydata.dat", O_RDONLY); foreread_send_fd(1, fp);
//: PROGRAM fseek(config_fp, 10, SEEK_SET); fscanf(config_fp, "%d", &index); foreread_send(2, &index, sizeof(index));
//: PROGRAM read(fp, &data, 4); foreread_call();
//: KEEPS int fp; int index; fp = inform_open(foreread_receive_fd(1)); foreread_receive(2, &index, sizeof(index));
//: KEEPS prefetch_lseek(fp, index * 4, SEEK_SET); prefetch_read(fp, 4); inform_close(fp);
//: DROPS config_fp
//: DROPS data
//: FILE config.dat configuration
//: FILE mydata.dat data
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
