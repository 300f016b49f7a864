/* freopen and fdopen: a stream on another file, a stream on a descriptor read before. */
#include "observe.h"
int main(int argc, char **argv) {
    char line[100];
    const char *data = argv[argc - 2], *other = argv[argc - 1];
    FILE *file = need(fopen(data, "r"));
    need(fgets(line, sizeof line, file));
    file = need(freopen(other, "r", file));
    need(fgets(line, sizeof line, file));
    file = need(freopen64(data, "r", file));
    need(fgets(line, sizeof line, file));
    fclose(file);
    int fd = check(open(data, O_RDONLY));
    check(read(fd, line, 80));
    file = need(fdopen(fd, "r"));
    need(fgets(line, sizeof line, file));
    fclose(file);
    fd = check(open(other, O_RDONLY));
    check(read(fd, line, 80));
    return 0;
}
