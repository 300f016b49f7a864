// Units in C and in C++ that call each other, also through pointers.
//: STATUS next_block sliced
//: STATUS index::Table::at sliced
//: KEEPS extern "C" void pf_each(void (*what)(int), int fd);
//: KEEPS pf_odd_1_is((const void *)foreread_target)
//: KEEPS extern "C" long pf_index_Table_at(const index::Table *self, int n);
//: DATA data 70000
//: RUN
//: COUNTS
//: UNIT main.cpp
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
#include "table.hpp"
#include "block.h"

static void odd(int fd)
{
	char c;
	pread(fd, &c, 1, 33);
}

int main()
{
	int fd = open("data", O_RDONLY);
	index::Table table;
	table.fd = fd;
	for (int i = 0; i < 20; i++) {
		lseek(fd, table.at(i), SEEK_SET);
		next_block(fd);
		each(i % 2 ? odd : next_block, fd);
	}
	printf("%u\n", total);
	usleep(200000);
	return 0;
}
//: UNIT table.hpp
namespace index {
struct Table {
	int fd;
	long at(int n) const;
};
}
//: UNIT table.cpp
#include "table.hpp"
#include <unistd.h>
namespace index {
long Table::at(int n) const
{
	unsigned short place = 0;
	pread(fd, &place, sizeof place, n * 2);
	return place;
}
}
//: UNIT block.h
#ifdef __cplusplus
extern "C" {
#endif
extern unsigned total;
void next_block(int fd);
void each(void (*what)(int), int fd);
#ifdef __cplusplus
}
#endif
//: UNIT block.c
#include "block.h"
#include <unistd.h>
unsigned total;
void next_block(int fd)
{
	unsigned char block[16];
	total = total * 3 + (read(fd, block, sizeof block) > 0 ? block[0] : 0);
}
void each(void (*what)(int), int fd)
{
	what(fd);
}
