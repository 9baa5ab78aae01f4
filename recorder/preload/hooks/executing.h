/* SPDX-License-Identifier: MIT */
/**
 * Shared by the hooks that execute a program. The child of a vfork may run them, in its parent's
 * memory: all new data is on the stack.
 */
#ifndef RECORDER_PRELOAD_HOOKS_EXECUTING_H
#define RECORDER_PRELOAD_HOOKS_EXECUTING_H

#include <alloca.h>

#include "preload/process/program.h"
#include "preload/system/sys.h"
#include "preload/hooks/hooks.h"

/* A child of posix_spawn() has a stack of 32 kB; a started process does not run this on it. */
#ifdef TTD_ATTACHED
enum { VARIABLES_MAX = 1 << 10 };
#else
enum { VARIABLES_MAX = 1 << 16 };
#endif

/** Replaces `environment` by one that lives as long as the function that this is expanded in. */
#define ENVIRONMENT(environment, kind, lent)                                                       \
    do {                                                                                           \
        size_t count_ = environment_count(environment);                                            \
        if ((kind) == PROGRAM_RECORDED && environment_is_of_sanitizer(environment))                \
            kind = PROGRAM_REFUSES_US;                                                             \
        bool refuses_ = (kind) == PROGRAM_REFUSES_US ||                                            \
                        ((kind) == PROGRAM_UNRECORDED && environment_is_of_valgrind(environment)); \
        bool changes_ =                                                                            \
            refuses_ ? environment != NULL : lent >= 0 || !environment_is_ours(environment);       \
        if (changes_ && count_ < VARIABLES_MAX) {                                                  \
            char **copy_ = alloca((count_ + 3) * sizeof *copy_);                                   \
            char *joined_ = alloca(environment_joined_size(environment));                          \
            char *channel_ = alloca(ENVIRONMENT_CHANNEL_MAX);                                      \
            environment_name_channel(channel_, lent);                                              \
            if (refuses_)                                                                          \
                environment_strip(environment, copy_, joined_);                                    \
            else                                                                                   \
                environment_extend(environment, copy_, joined_, channel_);                         \
            environment = copy_;                                                                   \
        } else if (changes_ && !refuses_) {                                                        \
            kind = PROGRAM_UNRECORDED;                                                             \
        }                                                                                          \
    } while (0)

/** Gets the channel for a program that cannot reach it by itself; the program is a recorded one
 * then. Returns a descriptor, or -1. */
static inline int executing_lend(enum program_kind *kind)
{
    int lent = *kind == PROGRAM_CUT_OFF ? channel_lend() : -1;
    if (lent >= 0)
        *kind = PROGRAM_RECORDED;
    return lent;
}

static inline void executing_take_back(int lent)
{
    if (lent >= 0)
        sys_call3(SYS_close, lent, 0, 0);
}

/** A process that has a slot has a trace; the collector notes the following in it. */
static inline void executing_begins(enum program_kind kind)
{
    process_executes(true);
    if (!process_is_own())
        program_count(kind, 1);
}

static inline void executing_failed(enum program_kind kind)
{
    process_executes(false);
    if (!process_is_own())
        program_count(kind, -1);
}

#endif
