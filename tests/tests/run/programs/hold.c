/* hold FILE...: brings files into memory and keeps them there until its input ends. Pages of a mapping are not dropped when
 * somebody empties the page cache. Says "held" when they are there. */
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
        /* What was dropped between being read and being mapped. */
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
