// Reads of an included file are counted in its text, which replaces its #include: lines and names stay the
// same. Files included once are still included once, and quoted names are searched in the same places.
//: STATUS main sliced
//: STATUS look sliced
//: STATUS more sliced
//: PROGRAM #line 1 "parts/look.h"
//: PROGRAM pread(fd, &c, 1, at * 1000); foreread_call();
//: DATA data 200000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include "parts-unrelated.h"
#include "parts/look.h" /* for
look() */
#include "parts/once.h"

int main(void)
{
	int fd = open("data", O_RDONLY), sum = 0;
	for (int i = 0; i < 20; i++)
		sum = sum * 3 + look(fd, i) + more(fd, i);
	printf("%d %d %s\n", sum, line_of_main + __LINE__, place);
	usleep(200000);
	return 0;
}
//: UNIT parts-unrelated.h
static const int line_of_main = 5;
//: UNIT parts/look.h
#include "once.h"
#ifndef LOOK_H
#define LOOK_H

static int look(int fd, int at)
{
	unsigned char c;
	pread(fd, &c, 1, at * 1000);
	return c + __LINE__;
}

static const char *place = __FILE__;
#include "once.h"
#endif
//: UNIT parts/once.h
#pragma once
#include <unistd.h>

static int more(int fd, int at)
{
	unsigned char c = 0;
	for (int n = 0; n < 2; n++)
		if (pread(fd, &c, 1, 100000 + at * 2000 + n) != 1)
			return -1;
	return c;
}
