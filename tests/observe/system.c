/* system, popen and wordexp: the shell moves the cursor that it inherited. */
#include "observe.h"
#include <wordexp.h>
int main(int argc, char **argv) {
    char buffer[100];
    int fd = check(open(argv[argc - 1], O_RDONLY));
    if (fd != 3)
        return 1;
    check(read(fd, buffer, 10));
    if (system("head -c 20 <&3 > /dev/null") != 0)
        return 2;
    check(read(fd, buffer, 30));
    FILE *out = need(popen("head -c 40 <&3 > /dev/null", "r"));
    if (pclose(out) != 0)
        return 3;
    check(read(fd, buffer, 50));
    wordexp_t words;
    if (wordexp("$(head -c 60 <&3 > /dev/null)", &words, 0) != 0)
        return 4;
    wordfree(&words);
    check(read(fd, buffer, 70));
    return 0;
}
