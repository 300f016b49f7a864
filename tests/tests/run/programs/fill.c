/* Allocates memory in pieces of 16 KiB until none is left, and prints their number. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
    char text[32];
    int pieces = 0;
    while (mmap(NULL, 16 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        pieces++;
    snprintf(text, sizeof text, "%d\n", pieces);
    return write(1, text, strlen(text)) < 0;
}
