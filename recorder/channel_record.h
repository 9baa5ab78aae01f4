/* SPDX-License-Identifier: MIT */
/** Records: the parts of a chunk's data. */
#ifndef RECORDER_CHANNEL_RECORD_H
#define RECORDER_CHANNEL_RECORD_H

#include <stdint.h>

#include <ttdtrace/model.h>

/**
 * Records are whole words. The first one is
 *
 *     bits  0..7   operation: an enum ttd_api or one of enum operation
 *     bits  8..15  enum record_flags
 *     bits 16..31  frames kept of the thread's last stack, counted from the outermost
 *     bits 32..47  frames added
 *     bits 48..63  words of the record, this one included
 *
 * then, in this order: the new sequence if RECORD_SEQUENCE, the clock if RECORD_CLOCK, the
 * operation's arguments and results (see enum operation), the added frames, outermost first.
 */
enum record_flags {
    RECORD_SEQUENCE = 1, /* the synchronised end of the call began a new fragment */
    RECORD_CLOCK = 2,    /* the clock moved since the thread's last record */
};

/**
 * Calls of the C library and of C++ are recorded under their enum ttd_api, arguments as they
 * were passed, then the result (none for releases; posix_memalign: its status, then the address):
 * see call_shapes. Those about custom heaps have the handle in front. Reallocations are recorded
 * without a result when they begin, and then:
 */
enum operation {
    OP_REALLOC_END = 0xe0, /* result */
    /** Likewise, where it is known how the block was moved: enum ttd_realloc_flags. */
    OP_REALLOC_COPIED = 0xe4,
    OP_REALLOC_REMAPPED = 0xe5,
    /** An event of a client of the live API: enum event_operand. There is no stack; the number of
     * added frames counts the words of its data. */
    OP_EVENT = 0xe3,
    /** In a process's log; there is no stack: */
    OP_MODULE_LOAD = 0xe1,   /* sequence, steps, bias, begin, end, size of build-id, size of path,
                                enum module_file_fact; build-id and path, padded to words */
    OP_MODULE_UNLOAD = 0xe2, /* sequence, steps, begin */
};

enum { MODULE_PATH_MAX = 4096 };

/** The known facts about a module's file when it is logged: its state, its first mapping, and its
 * identity. Of a file that is gone, device and inode are those in the memory map, and the rest is
 * 0. */
enum module_file_fact {
    MODULE_FILE_STATE, /* enum module_file_state */
    MODULE_FILE_BEGIN,
    MODULE_FILE_END,
    MODULE_FILE_DEVICE,
    MODULE_FILE_INODE,
    MODULE_FILE_SIZE,
    MODULE_FILE_MODIFIED, /* nanoseconds */
    MODULE_FILE_CHANGED,
    MODULE_FILE_FACTS
};

enum module_file_state {
    MODULE_FILE_UNKNOWN, /* the memory map could not be read */
    MODULE_FILE_THERE,   /* at its path */
    MODULE_FILE_GONE     /* removed, replaced, or never had a path */
};

/** The operands of OP_EVENT. The client takes two words. */
enum event_operand { EVENT_CLIENT = 0, EVENT_FLAGS = 2, EVENT_SIZE = 3, EVENT_OPERANDS = 4 };

/** A flag in EVENT_FLAGS, beside TTD_EVENT_KEYFRAME: the event is of its thread, not global. */
#define EVENT_OF_THREAD 2u

/** Another flag there: no event, but the definition of a custom heap. Its client is the handle, and
 * the parent's, 0 for malloc's or UINT64_MAX for none; its data is the name. */
#define EVENT_OF_HEAP 4u

/** Likewise: no event, but a dump that the thread asks for. Its client is [begin, end), or an
 * address of a module; its data are enum dump_field. */
#define EVENT_OF_DUMP 8u

enum dump_kind { DUMP_HEAPS, DUMP_RANGE, DUMP_MODULE, DUMP_MODULE_WRITABLE, DUMP_NAME };

/** The serial belongs to the answer in the slot of the thread that waits for it; 0 if it does not.
 */
enum dump_field { DUMP_KIND, DUMP_SERIAL, DUMP_FIELDS };

static inline uint64_t record_head(unsigned operation, unsigned flags, unsigned kept,
                                   unsigned added, unsigned words)
{
    return (uint64_t)operation | (uint64_t)flags << 8 | (uint64_t)kept << 16 |
           (uint64_t)added << 32 | (uint64_t)words << 48;
}

static inline unsigned record_operation(uint64_t head)
{
    return head & 0xff;
}

static inline unsigned record_flags(uint64_t head)
{
    return head >> 8 & 0xff;
}

/** Returns the words of the sequence and the clock, where they changed. */
static inline unsigned record_changes(uint64_t head)
{
    unsigned flags = record_flags(head);
    return (flags & RECORD_SEQUENCE ? 1 : 0) + (flags & RECORD_CLOCK ? 1 : 0);
}

static inline unsigned record_kept(uint64_t head)
{
    return head >> 16 & 0xffff;
}

static inline unsigned record_added(uint64_t head)
{
    return head >> 32 & 0xffff;
}

static inline unsigned record_words(uint64_t head)
{
    return (unsigned)(head >> 48);
}

#endif
