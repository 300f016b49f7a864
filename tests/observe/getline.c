/* getline, to the end. */
#include "observe.h"
int main(int argc, char **argv) {
    char *line = NULL;
    size_t room = 0;
    FILE *file = need(fopen(argv[argc - 1], "r"));
    while (getline(&line, &room, file) >= 0)
        ;
    free(line);
    return fclose(file);
}
