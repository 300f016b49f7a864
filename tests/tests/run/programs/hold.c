/* hold FILE...: brings files into memory and keeps them there until its input ends, because pages of a mapping stay in memory when
 * the page cache is emptied. Prints "held" when all files are in memory. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    char byte;

    for (int i = 1; i < count; i++) {
        int fd = open(arguments[i], O_RDONLY);
        struct stat stat;
        void *map;

        if (fd < 0 || fstat(fd, &stat) != 0)
            return 1;
        map = mmap(NULL, stat.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
        if (map == MAP_FAILED)
            return 1;
        /* Reads pages again that were evicted between being read and being mapped. */
        for (long at = 0; at < stat.st_size; at += 4096)
            (void)((volatile char *)map)[at];
        close(fd);
    }
    puts("held");
    fflush(stdout);
    while (read(0, &byte, 1) > 0)
        ;
    return 0;
}
