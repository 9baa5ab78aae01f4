/* SPDX-License-Identifier: MIT */
/**
 * Adding names to an existing trace.
 *
 * A trace is a file with all calls that allocate and release memory in one process. Its stacks are
 * addresses; a program that finds out later which functions these are, for example with debug
 * information that has turned up, writes a copy with their names.
 *
 *     static enum ttd_status add(void *context, struct ttd_writer *writer)
 *     {
 *         struct ttd_symbol_frame frame = {.line = 7};
 *         struct ttd_symbol symbol = {1, 0x1000, &frame, 1};
 *         enum ttd_status status = ttd_writer_string(writer, context, 5, &frame.function);
 *         return status == TTD_OK ? ttd_writer_symbol(writer, &symbol) : status;
 *     }
 *     int main(void)
 *     {
 *         struct ttd_amendment names = {add, "parse"};
 *         struct ttd_input input;
 *         struct ttd_output output;
 *         struct ttd_verdict verdict;
 *         if (ttd_input_file("trace.bin", NULL, &input, NULL) != TTD_OK ||
 *             ttd_output_file("amended.bin", NULL, &output, NULL) != TTD_OK ||
 *             ttd_amend(&input, &output, NULL, &names, &verdict, NULL) != TTD_OK)
 *             return 1;
 *         printf("named a place among %llu events\n", (unsigned long long)verdict.events);
 *         return 0;
 *     }
 *
 * Threads: any number of calls may run at a time, with different inputs and outputs. The thread
 * that calls ttd_amend() calls the amendment's function.
 */
#ifndef TTDTRACE_AMEND_H
#define TTDTRACE_AMEND_H

#include <ttdtrace/verify.h>
#include <ttdtrace/writer.h>

TTD_BEGIN_DECLS

/**
 * Adds names through a writer that continues after the last chunk of the trace and is valid during
 * the call. It may write strings, symbols and variables, itself or through a ttd_names; it must
 * close that before it returns; anything else fails with TTD_ERROR_MISUSE at the next flush. Ids of
 * modules come from the trace.
 *
 * @return TTD_OK; any other status ends ttd_amend() and is returned.
 */
typedef enum ttd_status (*ttd_amend_function)(void *context, struct ttd_writer *writer);

/** The names to be added. */
struct ttd_amendment {
    ttd_amend_function function;
    /** Passed to the function. */
    void *context;
};

/**
 * Copies a trace and adds names; they replace earlier ones of the same address (spec, "Symbols").
 * Everything else is copied unchanged. If the trace is damaged or was not closed, the names are
 * added to the result of ttd_recover().
 *
 * @param input      copied; read twice, and closed by this call in any case
 * @param output     closed by this call in any case
 * @param allocator  NULL for the default
 * @param verdict    set on TTD_OK, as by ttd_verify() on the input
 * @param error      detail on failure; may be NULL
 * @return TTD_OK; statuses of ttd_recover(); TTD_ERROR_ARGUMENT also for a derived file: it has no
 * names of its own; TTD_ERROR_CORRUPT also if an intact input changed during the call;
 *         the status of the function.
 */
TTD_EXPORT enum ttd_status ttd_amend(const struct ttd_input *input, const struct ttd_output *output,
                                     const struct ttd_allocator *allocator,
                                     const struct ttd_amendment *amendment,
                                     struct ttd_verdict *verdict, struct ttd_error *error);

TTD_END_DECLS

#endif
