/* SPDX-License-Identifier: MIT */
/* A tree of talloc's contexts: one is freed with what is within it, a block is moved, one is lost.
 */
#include <stdlib.h>

#include <talloc.h>

static void *make(const void *parent, int blocks, size_t size)
{
    void *context = talloc_new(parent);
    for (int i = 0; i < blocks; i++)
        if (!talloc_size(context, size))
            abort();
    return context;
}

static void free_some(void)
{
    void *outer = make(NULL, 5, 1001);
    void *inner = make(outer, 3, 1002);
    make(inner, 2, 1003);
    char *block = talloc_size(inner, 1004); /* a block with two within */
    talloc_strdup(block, "four");
    make(block, 1, 1005);
    talloc_free(block);
    block = talloc_realloc(inner, NULL, char, 1006);
    block = talloc_realloc(inner, block, char, 10007);
    talloc_asprintf(block, "%s", "moves");
    talloc_steal(outer, block);
    talloc_free(inner);
    talloc_free(outer);
}

__attribute__((noinline)) static void lose_one(void)
{
    make(make(NULL, 1, 1008), 10, 1009);
}

int main(void)
{
    free_some();
    lose_one();
    talloc_free(talloc_size(NULL, 1010));
    return 0;
}
