/* looker LIST [AGAIN [PAUSE]]
 *
 * Looks up the names in LIST. Each line is "stat PATH", "at PATH" (without following a link), "list PATH", "open PATH",
 * "make PATH" (a new file) or "makedir PATH", and is preceded by a pause of PAUSE us. The list is repeated AGAIN times. Names
 * that do not exist are skipped. Prints the number of bytes and entries found, and of missing names. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static long found, entries, missing;

static void look(const char *how, const char *path)
{
    struct stat stat_;
    DIR *directory;
    int file;

    if (!strcmp(how, "list")) {
        if (!(directory = opendir(path))) {
            missing++;
            return;
        }
        while (readdir(directory))
            entries++;
        closedir(directory);
    } else if (!strcmp(how, "makedir")) {
        mkdir(path, 0700);
    } else if (!strcmp(how, "open") || !strcmp(how, "make")) {
        /* A pipe without a writer is not waited for. */
        file = open(path, strcmp(how, "make") ? O_RDONLY | O_NONBLOCK : O_RDWR | O_CREAT, 0600);
        if (file < 0)
            missing++;
        else
            close(file);
    } else if (strcmp(how, "at") ? stat(path, &stat_) : lstat(path, &stat_)) {
        missing++;
    } else {
        found += S_ISREG(stat_.st_mode) ? stat_.st_size : 1;
    }
}

int main(int count, char **arguments)
{
    static char how[16], path[4097];
    FILE *list;

    if (count < 2 || !(list = fopen(arguments[1], "r")))
        return 2;
    for (int again = count > 2 ? atoi(arguments[2]) : 0; again >= 0; again--) {
        rewind(list);
        while (fscanf(list, "%15s %4096s", how, path) == 2) {
            if (count > 3)
                usleep(atoi(arguments[3]));
            look(how, path);
        }
    }
    printf("%ld bytes, %ld entries, %ld missing\n", found, entries, missing);
    return 0;
}
