/* fread: small reads through the buffer, large ones past it. */
#include "observe.h"
int main(int argc, char **argv) {
    static char buffer[8192];
    FILE *file = need(fopen(argv[argc - 1], "r"));
    if (fread(buffer, 1, 100, file) != 100 || fread(buffer, 1, 8192, file) != 8192)
        return 1;
    while (fread(buffer, 1, 1, file) == 1)
        ;
    return fclose(file);
}
