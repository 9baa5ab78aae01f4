/* SPDX-License-Identifier: MIT */
/**
 * Stacks with names, for programs that write a trace without the recorder: an allocator, a JIT
 * compiler, a converter. The program reports the modules that the process loads, passes stacks as
 * return addresses, and supplies names on request; this interface writes the definitions (spec,
 * "Definitions"), each once.
 *
 * A trace is a file with all calls that allocate and release memory in one process. The stacks of
 * its calls are addresses and, where a program supplies them, names.
 *
 *     struct ttd_trace trace = {.trace_id = 4711, .time_unit = 1, .pointer_size = sizeof(void *)};
 *     struct ttd_loaded code = {.path = {"[jit]", 5}, .begin = 0x1000, .end = 0x2000};
 *     struct ttd_name name = {.function = {"generated_main", 14}};
 *     struct ttd_end end = {.reason = TTD_END_REASON_EXITED};
 *     struct ttd_output output;
 *     struct ttd_writer *writer;
 *     struct ttd_names *names;
 *     const uint64_t address = 0x1010;
 *     ttd_id module, stack;
 *     if (ttd_output_file("named.bin", NULL, &output, NULL) != TTD_OK ||
 *         ttd_writer_open(&output, &trace, NULL, NULL, &writer, NULL) != TTD_OK ||
 *         ttd_names_open(writer, NULL, NULL, NULL, &names) != TTD_OK ||
 *         ttd_names_load(names, ttd_position_min(), &code, &module) != TTD_OK ||
 *         ttd_names_symbol(names, module, 0x100f, &name, 1) != TTD_OK ||
 *         ttd_names_stack(names, &address, 1, &stack) != TTD_OK)
 *         return 1;
 *     ttd_names_close(names);
 *     printf("stack %u is %s\n", (unsigned)stack, name.function.data);
 *     if (ttd_writer_close(writer, &end, NULL) != TTD_OK)
 *         return 1;
 *
 * Threads: one thread at a time may use a ttd_names and its writer; that thread calls the lookup.
 * Different objects are independent.
 */
#ifndef TTDTRACE_NAMES_H
#define TTDTRACE_NAMES_H

#include <stddef.h>

#include <ttdtrace/writer.h>

TTD_BEGIN_DECLS

/**
 * The known names of one process. It writes through a writer that must outlive it and may also be
 * used directly. Its memory grows with the number of different stacks, frames and names.
 */
struct ttd_names;

/** A loaded module: a program, a library, or a region of generated code. */
struct ttd_loaded {
    /** Path or any other name, such as "[jit]". */
    struct ttd_string path;
    /** Run-time address minus address in the file; 0 makes offsets absolute. */
    uint64_t bias;
    /** Range of run-time addresses that it occupies: [begin, end). */
    uint64_t begin;
    uint64_t end;
    /** At most TTD_BUILD_ID_MAX bytes; may be NULL with size 0. */
    const uint8_t *build_id;
    size_t build_id_size;
};

/** A source location. A string of size 0 or a line of 0 is not known. */
struct ttd_name {
    /** The linker's name: C++ names are mangled. */
    struct ttd_string function;
    struct ttd_string file;
    uint32_t line;
};

/** Largest number of names that a ttd_names_lookup may return for one frame. */
#define TTD_NAMES_MAX 32

/**
 * Looks up the names of a frame. Called once, when the first stack that has the frame is written.
 *
 * @param address  of the call instruction, or within it: the return address minus 1
 * @param names    to be set, innermost first: inlined functions before the function that contains
 *                 them. The strings are copied after the function returns
 * @return number of names, at most TTD_NAMES_MAX; 0 if none is known.
 */
typedef size_t (*ttd_names_lookup)(void *context, uint64_t address,
                                   struct ttd_name names[TTD_NAMES_MAX]);

/**
 * Makes an object that knows no modules yet.
 *
 * @param writer     not owned; used until ttd_names_close()
 * @param lookup     NULL if names come only from ttd_names_symbol()
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
 * TTD_ERROR_IO, TTD_ERROR_MISUSE. If the writer failed, ttd_writer_error() has the detail. If only
 * the allocator of this object failed, the call may be repeated.
 */

/**
 * Records that a module was loaded. Stacks passed from now on refer to it.
 *
 * @param position  when
 * @param id        set on TTD_OK; may be NULL
 * @return as above; TTD_ERROR_ARGUMENT also if the range is empty or overlaps a loaded module.
 */
TTD_EXPORT enum ttd_status ttd_names_load(struct ttd_names *names, struct ttd_position position,
                                          const struct ttd_loaded *module, ttd_id *id);

/**
 * Records that the module at an address was unloaded. A later load at the same address is another
 * module with frames of its own.
 *
 * @param address  any address of the module
 * @return as above; TTD_ERROR_ARGUMENT also if no module is at the address.
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
 * @return as above; TTD_ERROR_LIMIT if there are more addresses: leave out the outermost ones.
 */
TTD_EXPORT enum ttd_status ttd_names_stack(struct ttd_names *names, const uint64_t *addresses,
                                           size_t count, ttd_id *stack);

/**
 * Sets the names of a frame, for one that lookup does not know or knows less well: the names set
 * last are used.
 *
 * @param module  id from ttd_names_load(), or TTD_NONE
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
