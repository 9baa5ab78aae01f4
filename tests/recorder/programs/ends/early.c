/* SPDX-License-Identifier: MIT */
/* A library that is initialized before the recorder's. If EARLY is set, it registers a handler that
 * runs after all others, and looks as if there were none: its argument is NULL. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

void early_use(void);

static void at_exit(int status, void *unused)
{
    (void)unused;
    printf("the very last handler: %d\n", status);
}

__attribute__((constructor)) static void start(void)
{
    if (getenv("EARLY"))
        on_exit(at_exit, NULL);
}

void early_use(void)
{
}
