/* SPDX-License-Identifier: MIT */
#include "cli/process/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/process/limits.h"
#include "report/sections/say.h"
#include "report/writers/out.h"

/* Prints an error text in a way that is safe for terminals: it may quote a file name, and this can
 * contain any bytes. */
static void message_print_safe(const char *text)
{
    struct text_output output;
    out_init(&output, STDERR_FILENO, false);
    say(&output, "ttdanalyze: ", escape_string(text), "\n");
    out_flush(&output);
}

void message(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    message_print_safe(text);
}

/* Prints the limit that was reached, and how to raise it. */
static void message_print_limit(const char *prefix, const char *path, const char *resource)
{
    char limit[LIMITS_TEXT];
    const char *option = limits_format(limit);
    message("%s%s: needs more %s%s; %s allows more", prefix, path, resource, limit, option);
}

int message_status(const char *path, enum ttd_status status)
{
    if (status == TTD_ERROR_NO_MEMORY) {
        message_print_limit("", path, "memory than ");
        return STATUS_INTERNAL;
    }
    /* The library's limits come from the format; --max-memory does not raise them. */
    if (status == TTD_ERROR_LIMIT) {
        message_print_limit("", path, "steps through stacks than go with memory of ");
        return STATUS_INTERNAL;
    }
    message("%s: %s", path, ttd_status_text(status));
    return exit_for(status);
}

int message_output(const char *path)
{
    message_print_limit("", path, "room than goes with memory of ");
    return STATUS_INTERNAL;
}

int message_files(const char *path)
{
    message_print_limit("", path, "room in temporary files than goes with memory of ");
    return STATUS_INTERNAL;
}

void message_error(const char *prefix, const char *path, const struct ttd_error *error)
{
    char location[96] = "";
    if (error->status == TTD_ERROR_NO_MEMORY) {
        message_print_limit(prefix, path, "memory than ");
        return;
    }
    size_t used = 0;
    if (error->offset != TTD_NOWHERE)
        used = (size_t)snprintf(location, sizeof location, "offset 0x%llx",
                                (unsigned long long)error->offset);
    if (error->chunk != TTD_NOWHERE)
        used += (size_t)snprintf(location + used, sizeof location - used, "%schunk %llu",
                                 used ? ", " : "", (unsigned long long)error->chunk);
    const char *description = error->what ? error->what : "";
    const char *separator = *description ? ": " : "";
    /* The name of a system call stands before its reason, a part of a trace behind it. */
    if (error->system_error)
        message("%s%s: %s%s%s%s%s", prefix, path, location, used ? ": " : "", description,
                separator, strerror(error->system_error));
    else
        message("%s%s: %s%s%s%s%s", prefix, path, location, used ? ": " : "",
                ttd_status_text(error->status), separator, description);
}

int message_unjudged(const char *path, const char *command, const char *reason)
{
    message("%s: no answer to '%s': %s", path, command, reason);
    return STATUS_UNJUDGED;
}

int message_usage(const char *command, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    message("%s%s%s", command ? command : "", command ? ": " : "", text);
    return message_help(command);
}

int message_help(const char *command)
{
    message("try 'ttdanalyze %s%s--help'", command ? command : "", command ? " " : "");
    return STATUS_USAGE;
}

int exit_for(enum ttd_status status)
{
    switch (status) {
    case TTD_OK:
    case TTD_END:
        return STATUS_OK;
    case TTD_ERROR_NOT_A_TRACE:
    case TTD_ERROR_UNSUPPORTED:
    case TTD_ERROR_IO:
        return STATUS_OPEN;
    case TTD_ERROR_CORRUPT:
    case TTD_ERROR_TRUNCATED:
    case TTD_ERROR_LIMIT:
        return STATUS_DAMAGED;
    case TTD_ERROR_NO_MEMORY:
    case TTD_ERROR_ARGUMENT:
    case TTD_ERROR_MISUSE:
    case TTD_ERROR_CANCELLED:
        break;
    }
    return STATUS_INTERNAL;
}
