/* SPDX-License-Identifier: MIT */
/** Shapes of hostile traces, and what they are written with. */
#ifndef SUPPORT_HOSTILE_H
#define SUPPORT_HOSTILE_H

#include <ttdtrace/writer.h>

#define HOSTILE_STEP       16   /* bytes from one block to the next */
#define HOSTILE_TAIL_DEPTH 4000 /* frames of a deep stack */
#define HOSTILE_MODULE     1    /* the only module */

/** A kind of trace; the last one of each table has no name. */
struct hostile_shape {
    const char *name;
    void (*write)(uint64_t count);
};

extern const struct hostile_shape hostile_stack_shapes[];
extern const struct hostile_shape hostile_list_shapes[];
extern const struct hostile_shape hostile_snapshot_shapes[];

extern struct ttd_writer *writer;

/** Address of the next block. */
extern uint64_t next_address;

/** Ends the program with a message unless the writer has succeeded. */
void check(enum ttd_status status);

/** Returns the next position. */
struct ttd_position tick(void);

/** Write a string or a stack of the module, and return its id. */
ttd_id string(const char *data, size_t size);
ttd_id text(const char *data);
ttd_id stack(ttd_id parent, uint64_t offset);

/** Writes a call, at the next positions. */
void put(struct ttd_event event);
uint64_t allocate(ttd_id stack_id);
void release(uint64_t address, ttd_id stack_id);

/** Write names of an address: inlined frames, or one function. */
void symbol(uint64_t offset, const struct ttd_symbol_frame *frames, uint32_t count);
void name(uint64_t offset, const char *function);

#endif
