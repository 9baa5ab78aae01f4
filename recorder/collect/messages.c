/* SPDX-License-Identifier: MIT */
#include "messages.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void message(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    flockfile(stderr);
    fputs("ttdrecord: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    funlockfile(stderr);
    va_end(arguments);
}

void message_error(const char *path, const ttd_error *error)
{
    const char *what = error->what != NULL ? error->what : ttd_status_text(error->status);
    if (error->system_error != 0)
        message("%s: %s: %s", path, what, strerror(error->system_error));
    else
        message("%s: %s", path, what);
}
