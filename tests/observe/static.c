/* Linked statically: the library sees none of its calls and changes none of its behaviour. */
#include "observe.h"
int main(int argc, char **argv) {
    char line[9];
    FILE *file = need(fopen(argv[argc - 1], "r"));
    need(fgets(line, 9, file));
    printf("%s", line);
    return 6;
}
