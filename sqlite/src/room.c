/* See room.h. A line of /proc/self/cgroup is "number:controllers:path"; version 2 has no controllers. */
#include "room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number in a file; UINT64_MAX if there is none ("max"). */
static uint64_t read_limit(const char *path)
{
    unsigned long long bytes = UINT64_MAX;
    FILE *file = fopen(path, "re");
    if (!file)
        return UINT64_MAX;
    if (fscanf(file, "%llu", &bytes) != 1)
        bytes = UINT64_MAX;
    fclose(file);
    return bytes;
}

/* The lowest limit in files of this name, from the group up to the root of its hierarchy. Changes `group`. */
static uint64_t lowest(const char *root, char *group, const char *name)
{
    uint64_t limit = UINT64_MAX;
    for (;;) {
        char path[4096 + 128];
        snprintf(path, sizeof path, "%s%s/%s", root, group, name);
        uint64_t here = read_limit(path);
        limit = here < limit ? here : limit;
        char *last = strrchr(group, '/');
        if (!last)
            return limit;
        *last = '\0';
    }
}

uint64_t room_limit(void)
{
    uint64_t limit = UINT64_MAX;
    char line[4096];
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        uint64_t here = UINT64_MAX;
        if (!group)
            continue;
        *group++ = '\0';
        controllers++;
        if (*controllers == '\0')
            here = lowest("/sys/fs/cgroup", group, "memory.max");
        else if (strcmp(controllers, "memory") == 0)
            here = lowest("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
        limit = here < limit ? here : limit;
    }
    if (file)
        fclose(file);
    return limit;
}
