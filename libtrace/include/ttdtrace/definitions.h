/* SPDX-License-Identifier: MIT */
/**
 * Definitions that events refer to by identifier: strings, stacks, modules, threads, heaps, names
 * of addresses.
 *
 * A trace is a file with all calls that allocate and release memory in one process. An event names
 * its stack, thread and heap by numbers; their definitions come before it in the trace. The strings
 * of a trace, such as paths and names of functions:
 *
 *     struct ttd_input input;
 *     struct ttd_reader *reader;
 *     struct ttd_batch batch;
 *     if (ttd_input_file("trace.bin", NULL, &input, NULL) != TTD_OK ||
 *         ttd_reader_open(&input, NULL, NULL, &reader, NULL) != TTD_OK)
 *         return 1;
 *     while (ttd_reader_next(reader, &batch, NULL) == TTD_OK)
 *         for (size_t i = 0; batch.kind == TTD_KIND_STRINGS && i < batch.count; i++)
 *             printf("%.*s\n", (int)batch.u.strings[i].text.size, batch.u.strings[i].text.data);
 *     ttd_reader_close(reader);
 */
#ifndef TTDTRACE_DEFINITIONS_H
#define TTDTRACE_DEFINITIONS_H

#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/ids.h>
#include <ttdtrace/position.h>

TTD_BEGIN_DECLS

/** A string of `size` arbitrary bytes, not NUL-terminated: escape it before display. */
struct ttd_string {
    const char *data;
    size_t size;
};

/** Definition of a string. */
struct ttd_string_definition {
    ttd_id id;
    struct ttd_string text;
};

/**
 * A call stack: a frame and the stack it was called from. The frame is an address relative to a
 * module's load bias, or an absolute one when module is TTD_NONE. It is a *return* address: look
 * up names at offset - 1.
 */
struct ttd_stack {
    ttd_id id;
    /** The caller's stack, smaller than id; TTD_NONE for an outermost frame. */
    ttd_id parent;
    ttd_id module;
    uint64_t offset;
};

/** Offset of a frame without a module that stands for `count` frames (1 to UINT32_MAX) that were
 * not recorded. */
#define TTD_FRAMES_LEFT_OUT(count) (UINT64_MAX - ((uint64_t)(count)-1))

/** Number of frames that an offset without a module stands for; 0 if it is an address. */
#define TTD_FRAMES_LEFT_OUT_COUNT(offset)                                                          \
    ((offset) > UINT64_MAX - UINT32_MAX ? UINT64_MAX - (offset) + 1 : 0)

/** Longest build-id that is kept, in bytes. */
#define TTD_BUILD_ID_MAX 64

/** Kinds of module records. */
enum ttd_module_action { TTD_MODULE_LOAD = 1, TTD_MODULE_UNLOAD = 2 };

/** The load of a module (defines its id), or its unload. No other load has the same id. */
struct ttd_module {
    enum ttd_module_action action;
    ttd_id id;
    struct ttd_position position;
    /* The members below are set for a load only. */
    ttd_id path;
    /** Load bias: run-time address minus address in the file. */
    uint64_t bias;
    /** Range of run-time addresses that the module occupies: [begin, end). */
    uint64_t begin;
    uint64_t end;
    uint8_t build_id[TTD_BUILD_ID_MAX];
    uint32_t build_id_size;
};

/** Kinds of thread records. */
enum ttd_thread_action { TTD_THREAD_BEGIN = 1, TTD_THREAD_END = 2 };

/** The first sight of a thread (defines its id), or its end. */
struct ttd_thread {
    enum ttd_thread_action action;
    ttd_id id;
    struct ttd_position position;
    /** The operating system's id; the system may reuse it. Begin only. */
    uint64_t os_id;
    /** A string, or TTD_NONE. The record of an end has a name that was set after the begin. */
    ttd_id name;
};

/** A heap; events refer to it by `heap`. */
struct ttd_heap {
    ttd_id id;
    /** The handle as the program sees it; 0 for the C library's. */
    uint64_t handle;
    /** A string, such as "malloc". */
    ttd_id name;
};

/** A heap whose blocks lie in blocks of another heap, its parent. A heap without such a record
 * takes its memory from the system. */
struct ttd_heap_parent {
    ttd_id heap;
    /** Defined before `heap`. */
    ttd_id parent;
};

/** A source location. Frames of one address are listed innermost first: inlined functions before
 * the function that contains them. */
struct ttd_symbol_frame {
    /** Mangled name as the module has it; a string or TTD_NONE. */
    ttd_id function;
    ttd_id file;
    /** From 1; 0 if unknown. */
    uint32_t line;
};

/** Names for one address. */
struct ttd_symbol {
    ttd_id module;
    /** A return address, like ttd_stack.offset; the names belong to offset - 1. */
    uint64_t offset;
    const struct ttd_symbol_frame *frames;
    uint32_t frame_count;
};

TTD_END_DECLS

#endif
