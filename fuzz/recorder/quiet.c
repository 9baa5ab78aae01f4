/* SPDX-License-Identifier: MIT */
/* Replacements for messages.c, and for what closers.c does outside of the fuzzed process: targets
 * say nothing, and look up no names. */
#include "collect/trace/closers.h"
#include "messages.h"

void message(const char *format, ...)
{
    (void)format;
}

void messages_share(void)
{
}

bool message_is_first(enum message_kind kind, int reason)
{
    (void)kind;
    (void)reason;
    return false;
}

void message_error(const char *path, const struct ttd_error *error)
{
    (void)path;
    (void)error;
}

void trace_closers_init(struct trace_closers *closers)
{
    *closers = (struct trace_closers){.names = NULL};
}

void trace_closers_free(struct trace_closers *closers)
{
    (void)closers;
}

void trace_closers_prepare(struct trace_closers *closers, struct trace *trace)
{
    (void)closers;
    (void)trace;
}

bool trace_closers_have_room(struct trace_closers *closers)
{
    (void)closers;
    return true;
}

void trace_closers_wait(struct trace_closers *closers, const volatile sig_atomic_t *interrupts)
{
    (void)closers;
    (void)interrupts;
}
