/* SPDX-License-Identifier: MIT */
/* Leaks of all sorts: plain, by overwriting, in a cycle, behind a pointer, after realloc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *next;
    char payload[40];
};

static void *reachable;
static void *volatile forgotten; /* keeps the compiler from knowing that it is */

__attribute__((noinline)) static void leak_plain(void)
{
    for (int i = 0; i < 10; i++)
        if (!malloc(100))
            abort();
}

__attribute__((noinline)) static void leak_cycle(void)
{
    struct node *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
    a->next = b;
    b->next = a;
    forgotten = a;
    forgotten = NULL;
}

__attribute__((noinline)) static void leak_list(void)
{
    struct node *head = NULL;
    for (int i = 0; i < 25; i++) {
        struct node *node = malloc(sizeof *node);
        node->next = head;
        head = node;
    }
    forgotten = head;
    forgotten = NULL;
}

__attribute__((noinline)) static void leak_grown(void)
{
    char *block = malloc(10);
    for (size_t size = 20; size < 200000; size *= 2)
        block = realloc(block, size);
    block[0] = 'x';
}

int main(void)
{
    leak_plain();
    leak_cycle();
    leak_list();
    leak_grown();
    reachable = strdup("still reachable");
    char *line = NULL;
    size_t size = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (file && getline(&line, &size, file) > 0)
        printf("%s", line);
    free(line);
    if (file)
        fclose(file);
    return 0;
}
