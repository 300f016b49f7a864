/* fseek, rewind, fsetpos and ungetc: a move within the buffer reads nothing. */
#include "observe.h"
int main(int argc, char **argv) {
    char line[9];
    fpos_t where;
    FILE *file = need(fopen(argv[argc - 1], "r"));
    need(fgets(line, 9, file));
    check(fseek(file, 800, SEEK_SET)); /* in the buffer */
    check(fgetpos(file, &where));
    need(fgets(line, 9, file));
    check(fseek(file, 12288, SEEK_SET)); /* out of it */
    int c = check(fgetc(file));
    check(ungetc(c, file));
    if (fgetc(file) != c)
        return 1;
    check(fsetpos(file, &where));
    need(fgets(line, 9, file));
    if (strcmp(line, "0000100\n") != 0)
        return 2;
    check(fseek(file, -8, SEEK_END));
    need(fgets(line, 9, file));
    if (strcmp(line, "0002499\n") != 0)
        return 3;
    rewind(file);
    check(fgetc(file));
    return fclose(file);
}
