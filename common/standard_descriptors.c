/* SPDX-License-Identifier: MIT */
#include "standard_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

void standard_descriptors_open(void)
{
    for (int descriptor = 0; descriptor <= STDERR_FILENO; descriptor++) {
        int contrary = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        /* open() takes the lowest free number: this one, since those below it are open. */
        if (fcntl(descriptor, F_GETFD) < 0)
            (void)!open("/dev/null", contrary | O_CLOEXEC);
    }
}
