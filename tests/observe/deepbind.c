/* Reads by a library loaded with RTLD_DEEPBIND, which finds the C library's functions before those of any other library. The same
 * source built with LIBRARY is that library, which lies beside the program. */
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
