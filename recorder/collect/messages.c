/* SPDX-License-Identifier: MIT */
#include "messages.h"

#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* At once: several processes may have something to say. And whatever the terminal thinks of it: the
 * signal by which it stops those in the background reaches the program as well. */
void message(const char *format, ...)
{
    static const char prefix[] = "ttdrecord: ";
    enum { PREFIX = sizeof prefix - 1 };
    char text[2 * PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    memcpy(text, prefix, PREFIX);
    vsnprintf(text + PREFIX, sizeof text - PREFIX - 1, format, arguments);
    va_end(arguments);
    strcat(text, "\n");
    sigset_t stop, before;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTTOU);
    sigprocmask(SIG_BLOCK, &stop, &before);
    fputs(text, stderr);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

void message_error(const char *path, const ttd_error *error)
{
    const char *reason =
        error->system_error != 0 ? strerror(error->system_error) : ttd_status_text(error->status);
    if (error->what != NULL)
        message("%s: %s: %s", path, error->what, reason);
    else
        message("%s: %s", path, reason);
}
