/* Reads by a library that was loaded apart (RTLD_DEEPBIND): it finds the C library's functions before anybody else's. Built
 * with LIBRARY as the library, which lies beside the program. */
#include "observe.h"
#ifdef LIBRARY
void reads(const char *path) {
    char buffer[8192];
    int fd = check(open(path, O_RDONLY));
    check(read(fd, buffer, 1000));
    check(pread(fd, buffer, 50, 5000));
    check(read(fd, buffer, 8192));
    check(close(fd));
}
#else
#include <dlfcn.h>
int main(int argc, char **argv) {
    void *library = need(dlopen("./deepbind.so", RTLD_NOW | RTLD_DEEPBIND));
    void (*reads)(const char *) = (void (*)(const char *))need(dlsym(library, "reads"));
    reads(argv[argc - 1]);
    return 0;
}
#endif
