/* SPDX-License-Identifier: MIT */
/** Internals of the engine. */
#ifndef ANALYZER_ENGINE_ENGINE_PARTS_H
#define ANALYZER_ENGINE_ENGINE_PARTS_H

#include <ttdtrace/reader.h>

#include "analyses/chronicle/chronicle.h"
#include "engine/engine.h"

struct engine {
    uint8_t *trace;
    struct ttd_reader *reader;
    struct ttd_error error;
    struct chronicle chronicle;
    /** The values of the last answer. */
    uint64_t *values;
    size_t count;
    size_t capacity;
    bool is_short;
    /** Numbers of stacks as they were given; and by stack, from 0, whether its blocks count. */
    uint32_t *given;
    size_t given_count;
    bool *wanted;
    size_t wanted_count;
};

extern struct engine engine;

/** Begins an answer. */
void engine_answer(void);

/** Adds a value to the answer. */
void engine_add(uint64_t value);
void engine_add_position(struct ttd_position position);

/** Returns how many values the answer has; 0 if there was not enough memory. */
size_t engine_end(void);

#endif
