// The example of section 4.1: of two variables with the same name, the related set of one does not
// contain the definitions of the other.
//: KEEPS i = 5; prefetch_lseek(fp, i, SEEK_SET);
//: DROPS i = 6
//: DATA mydata.dat 400
//: RUN
#include <fcntl.h>
#include <unistd.h>

int main(void)
{
	int fp = open("mydata.dat", O_RDONLY);
	char data[8];
	int i;
	i = 5;
	{ int i;
		i = 6;
	}
	lseek(fp,i,SEEK_SET);
	read(fp, data, sizeof data);
	return data[0];
}
