/* SPDX-License-Identifier: MIT */
#include "messages.h"

#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common/visible.h"

/* Prints with one write, since several processes may print at a time. A message may have names of
 * files and programs (any bytes) in it, and all of it is escaped. Blocks SIGTTOU: by it the
 * terminal would stop a background process group, the recorded program included. */
void message(const char *format, ...)
{
    static const char prefix[] = "ttdrecord: ";
    enum { PREFIX = sizeof prefix - 1 };
    char raw[2 * PATH_MAX], text[3 * PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    memcpy(text, prefix, PREFIX);
    visible_escape(raw, strlen(raw), text + PREFIX, sizeof text - PREFIX - 1);
    strcat(text, "\n");
    sigset_t stop, before;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTTOU);
    sigprocmask(SIG_BLOCK, &stop, &before);
    fputs(text, stderr);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

enum { REASONS = 256, OTHER_REASONS = 200 };

struct counts {
    _Atomic unsigned by_kind[MESSAGE_KINDS];
    _Atomic unsigned by_reason[MESSAGE_KINDS][REASONS];
};

static struct counts own_counts;
static struct counts *counts = &own_counts;

void messages_share(void)
{
    void *shared =
        mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared != MAP_FAILED)
        counts = shared;
}

bool message_is_first(enum message_kind kind, int reason)
{
    atomic_fetch_add(&counts->by_kind[kind], 1);
    return atomic_fetch_add(&counts->by_reason[kind][(unsigned)reason % REASONS], 1) == 0;
}

unsigned message_count(enum message_kind kind)
{
    return atomic_load(&counts->by_kind[kind]);
}

int message_reason(const struct ttd_error *error)
{
    return error->system_error != 0 ? error->system_error : OTHER_REASONS + (int)error->status;
}

void message_error(const char *path, const struct ttd_error *error)
{
    const char *reason =
        error->system_error != 0 ? strerror(error->system_error) : ttd_status_text(error->status);
    if (error->what)
        message("%s: %s: %s", path, error->what, reason);
    else
        message("%s: %s", path, reason);
}
