/* Loads the library in argv[1], which links MPI, into a scope of its own (as Python does), and calls its function. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    return ((int (*)(int, char **))dlsym(library, "begin"))(argc - 1, argv + 1);
}
