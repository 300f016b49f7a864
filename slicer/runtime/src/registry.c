/* registry.c - the files used so far, and their numbers. */
#include "registry.h"

#include <stdlib.h>

struct file {
    struct file *next;
    uint64_t dev, ino;
    size_t number;
};

static struct file *files;
static size_t known;

size_t file_number(const struct file *file) {
    return file->number;
}

void file_identity(const struct file *file, uint64_t *dev, uint64_t *ino) {
    *dev = file->dev;
    *ino = file->ino;
}

size_t files_known(void) {
    return known;
}

struct file *file_of(const struct stat *facts) {
    for (struct file *file = files; file != NULL; file = file->next)
        if (file->dev == facts->st_dev && file->ino == facts->st_ino)
            return file;
    struct file *file = malloc(sizeof *file);
    if (file == NULL)
        return NULL;
    *file = (struct file){files, facts->st_dev, facts->st_ino, known++};
    files = file;
    return file;
}
