/* fgetc, getc, and the unlocked variants that are expanded inline. */
#include "observe.h"
int main(int argc, char **argv) {
    FILE *file = need(fopen(argv[argc - 1], "r"));
    for (int i = 0; i < 5000; i++)
        if (fgetc(file) == EOF)
            return 1;
    for (int i = 0; i < 5000; i++)
        if (getc(file) == EOF)
            return 2;
    while (getc_unlocked(file) != EOF)
        ;
    return fclose(file);
}
