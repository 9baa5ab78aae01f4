/* SPDX-License-Identifier: MIT */
#include "close_channel.h"

#include <sys/mman.h>
#include <unistd.h>

void close_channel(struct host *host)
{
    for (size_t i = 0; i < CHANNEL_WINDOWS; i++) {
        char *window = atomic_load(&host->view.windows[i]);
        if (window)
            munmap(window, CHANNEL_WINDOW);
    }
    if (host->probe >= 0)
        close(host->probe);
    close(host->memfd);
}
