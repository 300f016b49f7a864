/* Wide streams have a separate table of functions. */
#include "observe.h"
#include <locale.h>
#include <wchar.h>
int main(int argc, char **argv) {
    setlocale(LC_ALL, "C.UTF-8");
    FILE *file = need(fopen(argv[argc - 1], "r"));
    long count = 0;
    while (fgetwc(file) != WEOF)
        count++;
    fclose(file);
    return count == 20000 ? 0 : 1;
}
