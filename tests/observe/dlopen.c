/* Loads an object, uses it, and opens a file, at which the object is noticed. */
#include "observe.h"
#include <dlfcn.h>
int main(int argc, char **argv) {
    void *math = need(dlopen("libm.so.6", RTLD_NOW));
    double (*cosine)(double) = (double (*)(double))need(dlsym(math, "cos"));
    int fd = check(open(argv[argc - 1], O_RDONLY));
    return fd >= 0 && cosine(0) == 1.0 ? 0 : 1;
}
