/* SPDX-License-Identifier: MIT */
#include "standard.h"

#include <fcntl.h>
#include <unistd.h>

void standard_open(void)
{
    for (int descriptor = 0; descriptor <= STDERR_FILENO; descriptor++) {
        int contrary = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        /* The lowest one that is free is taken: it is this one, since those below are not. */
        if (fcntl(descriptor, F_GETFD) < 0)
            (void)!open("/dev/null", contrary | O_CLOEXEC);
    }
}
