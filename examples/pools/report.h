/* SPDX-License-Identifier: MIT */
/* Common to the examples: a client of the recorder, and REAL(), the function behind each wrapper. */
#ifndef EXAMPLES_POOLS_REPORT_H
#define EXAMPLES_POOLS_REPORT_H

#include <dlfcn.h>

#include <ttdtrace/live_heap.h>

/* NULL while the program is not being recorded: then every report returns at once. */
static struct ttd_live *client;

__attribute__((constructor)) static void open_client(void)
{
    static const struct ttd_live_guid guid = {{0x3d, 0x1f, 0x27, 0x90, 0x6a, 0x44, 0x4b, 0x0e, 0x9c,
                                               0x51, 0x77, 0x0c, 0xe8, 0x12, 0x5a, 0xd3}};
    client = ttd_live_open(&guid, NULL, 0);
}

/* Defines `real` as the next function of this name. */
#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    if (!real)                                                                              \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

#endif
