/* SPDX-License-Identifier: MIT */
#include "own_limits.h"

#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>

enum { KEPT_MEMORY = 16 << 20 };

/* Keeps freed memory for the next trace: many processes end soon, and to give it back to the system
 * and get it again, page by page, is most of what recording such a process costs here. */
void limits_keep_memory(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TRIM_THRESHOLD, KEPT_MEMORY);
    mallopt(M_MMAP_THRESHOLD, KEPT_MEMORY);
}

void limits_raise(int resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(resource, &limit);
    }
}

/* Opens the channel. It is larger than some programs' limit of files, which they keep. */
int limits_open_channel(struct host *host, int memfd, uint32_t flags)
{
    struct rlimit limit;
    bool is_known = getrlimit(RLIMIT_FSIZE, &limit) == 0;
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    limits_raise(RLIMIT_FSIZE);
    int reason = memfd >= 0 ? host_adopt(host, memfd, flags) : host_open(host, flags);
    if (is_known)
        setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, before);
    return reason;
}
