/* Built without shared libraries: nothing of it is seen, and nothing of it changes. */
#include "observe.h"
int main(int argc, char **argv) {
    char line[9];
    FILE *file = need(fopen(argv[argc - 1], "r"));
    need(fgets(line, 9, file));
    printf("%s", line);
    return 6;
}
