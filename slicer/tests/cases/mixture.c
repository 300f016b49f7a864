// A mixture: designators, bit-fields, lists, enumerations, compound literals, ranges in switch, streams.
//: DATA data 4096
//: RUN
//: RUN fast
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <stddef.h>
enum mode { FAST = 3, SLOW = 7 };
typedef struct { unsigned a:3, b:5; int *p; } bits;
static const long offs[] = { [2] = 30, [0] = 10, 20 };
static int depth;
#define SKIP(fd, n) do { lseek(fd, n, SEEK_CUR); depth++; } while (0)
struct node { struct node *next; long at; };
static struct node *push(struct node *head, long at) { struct node *n = malloc(sizeof *n); n->next = head; n->at = at; return n; }
int main(int argc, char *argv[], char *envp[]) {
    int fd = open("data", O_RDONLY);
    unsigned char c[4] = {0};
    struct { int x, y; } pt = { 3, 4 };
    struct local { long k; } loc[2] = { { 1 }, { .k = 2 } };
    bits bb = { .a = 5, .b = 9 };
    struct node *list = NULL, *n;
    enum mode m = argc > 1 ? FAST : SLOW;
    for (int i = 0; i < 5; i++) list = push(list, i * 100 + offs[i % 3] + m + bb.a);
    for (n = list; n; n = n->next) { pread(fd, c, 2, n->at + pt.x * loc[1].k); printf("%d\n", c[0]); }
    SKIP(fd, 100);
    if (depth > 0 ? read(fd, c, 1) == 1 : 0) printf("%d\n", c[0]);
    size_t o = offsetof(struct node, at);
    (void)(pread(fd, c, 1, o), pread(fd, c, 1, o + sizeof(bits)));
    char name[16]; snprintf(name, sizeof name, "%c%s", 'd', "ata");
    FILE *f = fopen(name, "rb"); int ch;
    while ((ch = fgetc(f)) != EOF && ch != 200) if (ch == '\n') depth += ch; 
    if (envp[0]) fseek(f, strlen("abc") * 10, SEEK_SET);
    ungetc('x', f); ch = getc(f);
    printf("%d %ld\n", ch, ftell(f));
    long *q = (long[]){ 5, 6, 7 };
    switch (q[1]) { case 5 ... 6: pread(fd, c, 1, q[2]); break; default: exit(0); }
    printf("%d\n", c[0]);
    while (list) { n = list->next; free(list); list = n; }
    fclose(f); close(fd);
    usleep(200000);
    return 0;
}
