// The example of the long paper's Figure 2, with its synchronization: the prefetch thread opens the
// file after the program.
//: ARGS --open=wait
//: PROGRAM { if (foreread_may_wait(0, 0, "mydata.dat\0" "")) foreread_create_prefetch_thread(pf_main, 0, 0);
//: PROGRAM fp = open("mydata.dat", O_RDONLY); foreread_synchronize(1, FOREREAD_SIGNAL);
//: PROGRAM read(fp, &data[99-i], 4); foreread_call();
//: PROGRAM data[99-i] = data[99-i]*i;
//: KEEPS int i; foreread_synchronize(1, FOREREAD_WAIT); fp = prefetch_open("mydata.dat", O_RDONLY);
//: KEEPS for (i = 99; i >= 0; i--) { prefetch_lseek(fp, i * 4, SEEK_SET); prefetch_read(fp, 4); }
//: KEEPS prefetch_close(fp);
//: DROPS data[
//: STATUS main sliced
//: FILE mydata.dat data
//: DATA mydata.dat 400
//: RUN
#include <fcntl.h>
#include <unistd.h>

int fp;

int main(void)
{
	int i; int data[100];
	/* open data file */
	fp = open("mydata.dat", O_RDONLY);
	for (i=99; i>=0; i--){
		/* I/O */
		lseek(fp, i*4, SEEK_SET);
		read(fp, &data[99-i], 4);
		/* Computation */
		data[99-i] = data[99-i]*i;
	}
	/* close data file */
	close(fp);
	return 0;
}
