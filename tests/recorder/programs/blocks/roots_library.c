/* SPDX-License-Identifier: MIT */
/* A library of roots.c with roots of its own. */
#include <stdlib.h>

static void *volatile library_roots[20];
static __thread void *volatile library_thread_root;

void *keep(size_t size, size_t thread_size)
{
    library_thread_root = malloc(thread_size);
    return library_roots[11] = malloc(size);
}
