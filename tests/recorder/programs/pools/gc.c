/* SPDX-License-Identifier: MIT */
/* Blocks of Boehm's collector: some are kept, one is freed, and one made larger; others are
 * forgotten, and collected. */
#include <stdlib.h>

#include <gc.h>

enum { KEPT = 10, FORGOTTEN = 1000 };

static void *kept[KEPT];

__attribute__((noinline)) static void forget(void)
{
    for (int i = 0; i < FORGOTTEN; i++)
        if (!GC_malloc(1001))
            abort();
}

int main(void)
{
    GC_init();
    for (int i = 0; i < KEPT; i++)
        kept[i] = GC_malloc(1002);
    kept[0] = GC_realloc(kept[0], 50003);
    GC_free(kept[1]);
    kept[1] = GC_malloc_atomic(1004);
    forget();
    for (int i = 0; i < 3; i++) {
        GC_gcollect();
        GC_invoke_finalizers();
    }
    return !kept[KEPT - 1];
}
