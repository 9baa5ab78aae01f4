/* SPDX-License-Identifier: MIT */
/* Waits for a line of input if the environment says so: a recorder may be attached meanwhile. */
#ifndef UNTIL_TOLD_H
#define UNTIL_TOLD_H

#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static inline void wait_until_told(void)
{
    char line[16];
    if (!getenv("UNTIL_TOLD"))
        return;
    prctl(PR_SET_PTRACER, -1UL, 0, 0, 0);
    if (write(1, "ready\n", 6) != 6 || read(0, line, sizeof line) <= 0)
        _exit(2);
}

#endif
