/* SPDX-License-Identifier: MIT */
/**
 * A stream of valid records of every kind, drawn from a seed or from the bytes of a fuzzer, that
 * is given to a writer and at the same time noted as text.
 */
#ifndef SUPPORT_MODEL_H
#define SUPPORT_MODEL_H

#include "support/record_text.h"

#define MODEL_THREADS 6
#define MODEL_BLOCKS  256

/** Where decisions come from: `data` until it is used up, or without it a generator. */
typedef struct entropy {
    const uint8_t *data;
    size_t size;
    uint64_t state;
} entropy;

uint64_t entropy_next(entropy *from);
/** At least 0 and less than `limit`, which is not 0. */
uint64_t entropy_below(entropy *from, uint64_t limit);
/** Mostly small, at times anything, at times an extreme. */
uint64_t entropy_value(entropy *from);

/** How calls follow each other. */
typedef enum model_style {
    /** As a recorder sees a program: threads take turns, sequences at each turn, blocks live. */
    MODEL_REALISTIC,
    /** The same, and mostly from one place after the other, so that much can be predicted. */
    MODEL_LOOP,
    /** Whatever a trace may say. */
    MODEL_ANYTHING
} model_style;

typedef struct model {
    entropy from;
    model_style style;
    uint64_t time_unit;
    uint64_t events;
    uint64_t lost;
    ttd_id strings;
    ttd_id stacks;
    ttd_id modules;
    ttd_id threads;
    ttd_id heaps;
    uint64_t pages;
    uint32_t lists;
    /** Effect position and wall time of the last event. */
    ttd_position position;
    uint64_t wall_time;
    /** Which thread runs, and where the threads are. */
    ttd_id running;
    ttd_position at[MODEL_THREADS + 1];
    uint64_t blocks[MODEL_BLOCKS];
    size_t block_count;
    /** What a reader must find, by kind. */
    text_table expected;
} model;

/** A model that begins a trace: the trace to open a writer with. */
ttd_trace model_begin(model *m, entropy from, model_style style);

/** Writes one record. Returns what the writer said, and notes the record when that is TTD_OK. */
ttd_status model_step(model *m, ttd_writer *writer);

/** Writes an event whatever. */
ttd_status model_event(model *m, ttd_writer *writer);

/** Gives an event to the writer and notes it. */
ttd_status model_write_event(model *m, ttd_writer *writer, const ttd_event *event);

void model_free(model *m);

/**
 * Reads all there is and notes it by kind, the End chunk excepted. TTD_END at the end; else what
 * the reader said.
 */
ttd_status model_read(ttd_reader *reader, text_table *found);

#endif
