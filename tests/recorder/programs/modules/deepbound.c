/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

static void *at_start;

__attribute__((constructor)) static void start(void)
{
    at_start = strdup("allocated in a constructor");
}

void *first(void)
{
    return at_start;
}

void *make(size_t size)
{
    return realloc(calloc(1, size / 2), size);
}

void lose(void *block)
{
    free(block);
}
