/* SPDX-License-Identifier: MIT */
/**
 * Importing: makes a trace of a text that another recorder has written. A reader of each format
 * passes definitions and calls to one builder (import/import_builder.h), which writes the trace.
 *
 * No source proves that it has all calls, so each imported trace has a loss from its start to its
 * end: no answer about it is certain.
 */
#ifndef ANALYZER_IMPORT_IMPORT_H
#define ANALYZER_IMPORT_IMPORT_H

#include <stddef.h>
#include <stdint.h>
#include <ttdtrace/io.h>
#include <ttdtrace/status.h>

struct import_text;
struct import_builder;

/** A format that can be read, one row of a table. */
struct import_format {
    /** Name on the command line. */
    const char *name;
    /** One line for people. */
    const char *summary;
    /** Reads all of the text into the builder. */
    enum ttd_status (*read)(struct import_text *text, struct import_builder *builder);
};

/** Formats in the order in which they are listed; ended by a NULL name. */
extern const struct import_format import_formats[];

/** Finds a format by its name; NULL if there is none. */
const struct import_format *import_find(const char *name);

/** Size of the text of a failure, with its NUL. */
#define IMPORT_REASON_SIZE 256

/** Facts about an import, and the reason of its failure. */
struct import_result {
    uint64_t events;
    uint64_t lines;
    /** Lines that mean nothing to the importer, such as messages of a debugger. */
    uint64_t ignored;
    /** Line and reason of a failure in the text; empty for any other. */
    char reason[IMPORT_REASON_SIZE];
};

/**
 * Makes a trace from a text.
 *
 * @param input   owned by the call, which closes it
 * @param output  as for `input`
 * @param result  facts; on failure the reason
 * @return TTD_OK; TTD_ERROR_CORRUPT or TTD_ERROR_UNSUPPORTED with a reason; TTD_ERROR_NO_MEMORY,
 * TTD_ERROR_LIMIT, TTD_ERROR_IO with the detail in `error`
 */
enum ttd_status import_trace(const struct import_format *format, const struct ttd_input *input,
                             const struct ttd_output *output, struct import_result *result,
                             struct ttd_error *error);

/* The readers. */

enum ttd_status import_heaptrack(struct import_text *text, struct import_builder *builder);
enum ttd_status import_windbg(struct import_text *text, struct import_builder *builder);
enum ttd_status import_mtrace(struct import_text *text, struct import_builder *builder);
enum ttd_status import_xperf(struct import_text *text, struct import_builder *builder);
enum ttd_status import_lttng(struct import_text *text, struct import_builder *builder);

#endif
