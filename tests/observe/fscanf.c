/* fscanf, to the end. */
#include "observe.h"
int main(int argc, char **argv) {
    int number, count = 0;
    FILE *file = need(fopen(argv[argc - 1], "r"));
    while (fscanf(file, "%d", &number) == 1)
        if (number != count++)
            return 1;
    fclose(file);
    return count == 2500 ? 0 : 2;
}
