/* SPDX-License-Identifier: MIT */
/**
 * Stacks with names, for who writes a trace without the recorder: an allocator, a JIT compiler, a
 * converter. Tell which modules the process has loaded, give stacks as return addresses, and names
 * as they are asked for; this writes the definitions that belong to them (spec, "Definitions"),
 * each once.
 *
 * Threads: one thread at a time may use a ttd_names and its writer; it calls the lookup. Different
 * ones are independent.
 */
#ifndef TTDTRACE_NAMES_H
#define TTDTRACE_NAMES_H

#include <stddef.h>

#include <ttdtrace/writer.h>

TTD_BEGIN_DECLS

/**
 * The names of one process as far as they are known. It writes through a writer that outlives it,
 * and which can be used beside it. Its memory grows with the number of different stacks, frames and
 * names. As with the writer one thread at a time may use it.
 */
struct ttd_names;

/** A module as it is loaded: a program, a library, or a region of generated code. */
struct ttd_loaded {
    /** Path or any other name, such as "[jit]". */
    struct ttd_string path;
    /** Run-time address minus address in the file; 0 makes offsets absolute. */
    uint64_t bias;
    /** The addresses that it occupies: [begin, end). */
    uint64_t begin;
    uint64_t end;
    /** At most TTD_BUILD_ID_MAX bytes; may be NULL with size 0. */
    const uint8_t *build_id;
    size_t build_id_size;
};

/** A source place. Strings of size 0, and line 0, are not known. */
struct ttd_name {
    /** The linker's name: C++ names are mangled. */
    struct ttd_string function;
    struct ttd_string file;
    uint32_t line;
};

/** Names that a ttd_names_lookup may give for one frame. */
#define TTD_NAMES_MAX 32

/**
 * Asks for the names of a frame, once, when the first stack with it is written.
 *
 * @param address  of the call instruction, or within it: the return address minus 1
 * @param names    to be filled in, innermost first: inlined functions before the one they are
 *                 inlined into. The strings are copied when the function has returned
 * @return how many there are, at most TTD_NAMES_MAX; 0 if none is known.
 */
typedef size_t (*ttd_names_lookup)(void *context, uint64_t address,
                                   struct ttd_name names[TTD_NAMES_MAX]);

/**
 * Begins with no modules.
 *
 * @param writer     not owned; used until ttd_names_close()
 * @param lookup     NULL if names are only given through ttd_names_symbol()
 * @param context    passed to lookup
 * @param allocator  NULL for the default; copied
 * @param names      set on success; owned by the caller
 * @return TTD_OK, TTD_ERROR_ARGUMENT, TTD_ERROR_NO_MEMORY.
 */
TTD_EXPORT enum ttd_status ttd_names_open(struct ttd_writer *writer, ttd_names_lookup lookup,
                                          void *context, const struct ttd_allocator *allocator,
                                          struct ttd_names **names);

/** Releases everything but the writer; NULL is allowed. Before or after the writer's close. */
TTD_EXPORT void ttd_names_close(struct ttd_names *names);

/*
 * Definitions. All return TTD_OK, TTD_ERROR_ARGUMENT, TTD_ERROR_LIMIT, TTD_ERROR_NO_MEMORY,
 * TTD_ERROR_IO, TTD_ERROR_MISUSE. If the writer failed, ttd_writer_error() has the detail.
 * After one of the allocator here a function may be called again.
 */

/**
 * Records that a module was loaded. Stacks that are given from now on know it.
 *
 * @param position  when
 * @param id        set on TTD_OK; may be NULL
 * @return as above; TTD_ERROR_ARGUMENT is also for a range that is empty, or overlaps that of a
 * module that is loaded.
 */
TTD_EXPORT enum ttd_status ttd_names_load(struct ttd_names *names, struct ttd_position position,
                                          const struct ttd_loaded *module, ttd_id *id);

/**
 * Records that the module with an address was unloaded. What is loaded there again is another
 * module, and its frames are other frames.
 *
 * @param address  any of the module's
 * @return as above; TTD_ERROR_ARGUMENT also says that there is no module at the address.
 */
TTD_EXPORT enum ttd_status ttd_names_unload(struct ttd_names *names, struct ttd_position position,
                                            uint64_t address);

/**
 * Finds or defines a stack, for ttd_event.stack.
 *
 * @param addresses  return addresses, innermost first, as backtrace() gives them. A frame that is
 *                   not in a module keeps its absolute address
 * @param count      at most 4096, the deepest stack of the format; 0 gives TTD_NONE
 * @param stack      set on TTD_OK
 * @return as above; TTD_ERROR_LIMIT is for more addresses, of which the outermost are to be left
 * out.
 */
TTD_EXPORT enum ttd_status ttd_names_stack(struct ttd_names *names, const uint64_t *addresses,
                                           size_t count, ttd_id *stack);

/**
 * Gives names of a frame that lookup has not, or better ones: the last ones given count.
 *
 * @param module  of ttd_names_load(), or TTD_NONE
 * @param offset  return address minus the module's bias
 * @param frames  innermost first, `count` of them, at most 1024
 */
TTD_EXPORT enum ttd_status ttd_names_symbol(struct ttd_names *names, ttd_id module, uint64_t offset,
                                            const struct ttd_name *frames, size_t count);

/**
 * Finds or defines a string, such as the name of a thread or of a heap.
 *
 * @param id  set on TTD_OK; TTD_NONE for a text of size 0
 */
TTD_EXPORT enum ttd_status ttd_names_string(struct ttd_names *names, struct ttd_string text,
                                            ttd_id *id);

TTD_END_DECLS

#endif
