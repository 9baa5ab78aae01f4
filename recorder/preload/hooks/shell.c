/* SPDX-License-Identifier: MIT */
/*
 * Hooks of the functions that execute a shell with the environment as it is. Where no path leads to
 * the channel any more, that names a descriptor by which this process got it; the shell is given
 * one of the same number, or counted.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/process/program.h"
#include "preload/system/sys.h"
#include "preload/hooks/hooks.h"

typedef int system_function(const char *);
typedef FILE *popen_function(const char *, const char *);

REAL(system_function, system, system)
REAL(popen_function, popen, popen)

/* Returns the number of the descriptor in the environment, or -1. */
static int shell_number(void)
{
    const char *value = getenv(CHANNEL_ENV);
    const char *number = value ? strchr(value, '=') : NULL;
    return number ? atoi(number + 1) : -1;
}

/* Returns a descriptor for a shell that cannot reach the channel by itself; -1 if it needs none. */
static int shell_lend(void)
{
    if (!process_preload() || process_is_confined || channel_is_reachable())
        return -1;
    int number = shell_number();
    int lent = number >= 0 ? channel_lend() : -1;
    if (lent >= 0 && lent != number) {
        long moved = sys_call3(SYS_fcntl, lent, F_DUPFD, number);
        sys_call3(SYS_close, lent, 0, 0);
        lent = (int)moved;
    }
    if (lent >= 0 && lent != number) /* the program uses that number */
        sys_call3(SYS_close, lent, 0, 0);
    if (lent >= 0 && lent == number)
        return lent;
    program_count(PROGRAM_CUT_OFF, 1);
    return -1;
}

EXPORT int system(const char *command)
{
    int lent = command ? shell_lend() : -1;
    int result = find_system()(command);
    if (lent >= 0)
        sys_call3(SYS_close, lent, 0, 0);
    return result;
}

EXPORT FILE *popen(const char *command, const char *type)
{
    int lent = shell_lend();
    FILE *result = find_popen()(command, type);
    if (lent >= 0)
        sys_call3(SYS_close, lent, 0, 0);
    return result;
}
