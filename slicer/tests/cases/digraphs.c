// Braces and brackets by their other names.
//: STATUS main sliced
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
<%
	unsigned char b<:8:>;
	int fd = open("data", O_RDONLY);
	for (int i = 0; i < 20; i++) <%
		pread(fd, b, 8, i * 1000);
	%>
	printf("%d\n", b<:0:>);
	usleep(200000);
	return 0;
%>
