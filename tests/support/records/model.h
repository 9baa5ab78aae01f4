/* SPDX-License-Identifier: MIT */
/**
 * A stream of valid records of every kind, drawn from a seed or from the bytes of a fuzzer, that
 * is given to a writer and at the same time noted as text.
 */
#ifndef SUPPORT_MODEL_H
#define SUPPORT_MODEL_H

#include "support/entropy.h"
#include "support/records/record_text.h"

#define MODEL_THREADS 6
#define MODEL_BLOCKS  256

/** How calls follow each other. */
enum model_style {
    /** Like a recorded program: threads take turns, sequences at each turn, blocks live.
     */
    MODEL_REALISTIC,
    /** The same, and mostly from one place after the other, so that much can be predicted. */
    MODEL_LOOP,
    /** Whatever a trace may say. */
    MODEL_ANYTHING
};

struct model {
    struct entropy entropy;
    enum model_style style;
    uint64_t time_unit;
    uint64_t events;
    uint64_t lost;
    ttd_id strings;
    ttd_id stacks;
    ttd_id modules;
    ttd_id threads;
    ttd_id heaps;
    uint64_t pages;
    /** Number of the last list of blocks, memory map or snapshot; whether it is of a snapshot that
     * has no end yet, and of that its regions and last reference. */
    uint32_t lists;
    bool snapshot_is_open;
    uint32_t regions;
    uint64_t references;
    struct ttd_reference reference;
    /** Effect position and wall time of the last event. */
    struct ttd_position position;
    uint64_t wall_time;
    /** Which thread runs, and where the threads are. */
    ttd_id running;
    struct ttd_position at[MODEL_THREADS + 1];
    uint64_t blocks[MODEL_BLOCKS];
    size_t block_count;
    /** The records that a reader must find, by kind. */
    struct text_table expected;
};

/** A model that begins a trace: the trace to open a writer with. */
struct ttd_trace model_begin(struct model *model, struct entropy entropy, enum model_style style);

/** Writes one record. Returns what the writer said, and notes the record when that is TTD_OK. */
enum ttd_status model_step(struct model *model, struct ttd_writer *writer);

/** Writes an event whatever. */
enum ttd_status model_event(struct model *model, struct ttd_writer *writer);

/** Gives an event to the writer and notes it. */
enum ttd_status model_write_event(struct model *model, struct ttd_writer *writer,
                                  const struct ttd_event *event);

void model_free(struct model *model);

/**
 * Reads all there is and notes it by kind, the End chunk excepted. TTD_END at the end; else what
 * the reader said.
 */
enum ttd_status model_read(struct ttd_reader *reader, struct text_table *found);

#endif
