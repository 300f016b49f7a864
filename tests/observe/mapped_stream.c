/* Streams that ask glibc to map their file: opened, reopened, and made of a descriptor. */
#include "observe.h"
static void whole(FILE *file) {
    char line[100];
    while (fgets(line, sizeof line, file))
        ;
}
int main(int argc, char **argv) {
    const char *data = argv[argc - 1];
    FILE *file = need(fopen(data, "rm"));
    whole(file);
    file = need(freopen(data, "rbm", file));
    whole(file);
    fclose(file);
    file = need(fdopen(check(open(data, O_RDONLY)), "rem"));
    whole(file);
    return fclose(file);
}
