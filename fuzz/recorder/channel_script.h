/* SPDX-License-Identifier: MIT */
/**
 * The fuzzed writer of a channel: interprets an input as a script of writes into the shared memory,
 * in rounds, as any recorded program could make them.
 */
#ifndef FUZZ_CHANNEL_SCRIPT_H
#define FUZZ_CHANNEL_SCRIPT_H

#include <stdint.h>
#include <sys/types.h>

#include "collect/collector.h"

/** Processes that run beside the launched one. */
enum { CHANNEL_SCRIPT_CHILDREN = 2 };

struct channel_script {
    /** The bytes of the script that are not executed yet. */
    const uint8_t *at;
    const uint8_t *end;
    /** The collector whose channel is written to. */
    struct collector *collector;
    /** The ids of the CHANNEL_SCRIPT_CHILDREN processes. */
    const pid_t *children;
};

/** Executes the script up to the end of the round, or of the launched process. */
void channel_script_write_round(struct channel_script *script);

#endif
