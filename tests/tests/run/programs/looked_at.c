/* looked_at FILE: ends when another process has opened the file and closed it again, as foreread does with the program of a process
 * that it cannot observe. So that process lives until the reason is known, however late foreread looks. */
#include <stdint.h>
#include <sys/inotify.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    _Alignas(struct inotify_event) char events[4096];
    int queue = inotify_init(), opened = 0;

    if (count != 2 || inotify_add_watch(queue, arguments[1], IN_OPEN | IN_CLOSE_NOWRITE) < 0)
        return 1;
    for (;;) {
        ssize_t got = read(queue, events, sizeof events);
        if (got <= 0)
            return 1;
        for (char *at = events; at < events + got;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            if (event->mask & IN_OPEN)
                opened = 1;
            else if (opened && event->mask & IN_CLOSE_NOWRITE)
                return 0;
            at += sizeof *event + event->len;
        }
    }
}
