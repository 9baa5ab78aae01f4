/* SPDX-License-Identifier: MIT */
/**
 * Importing: makes a trace of a text that another recorder has written. A reader of each format
 * passes definitions and calls to one builder, which writes the trace.
 *
 * No source proves that it has all calls, so each imported trace has a loss from its start to its
 * end: no answer about it is certain.
 */
#ifndef ANALYZER_IMPORT_IMPORT_H
#define ANALYZER_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <ttdtrace/definitions.h>
#include <ttdtrace/io.h>
#include <ttdtrace/status.h>
#include <ttdtrace/writer.h>

#include "base/hash_map.h"

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

/* Reading a text line by line, and the numbers in a line. Input is untrusted. */

/** Longest line, in bytes. */
#define IMPORT_LINE_MAX 65536

/** A text that is read once, from its start to its end. */
struct import_text {
    const struct ttd_input *input;
    /** Bytes of the input at [buffer + begin, buffer + end). */
    char *buffer;
    size_t begin;
    size_t end;
    /** Offset in the input of the byte after those in the buffer. */
    uint64_t offset;
    bool is_at_end;
    /** Number of the line that was returned last, from 1, and its offset. */
    uint64_t line;
    uint64_t line_offset;
    struct import_result *result;
    struct ttd_error *error;
};

/** Prepares reading. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status import_text_open(struct import_text *text, const struct ttd_input *input,
                                 struct import_result *result, struct ttd_error *error);

void import_text_close(struct import_text *text);

/**
 * Returns the next line without its end, CR LF or LF, in `line`: valid until the next call. A text
 * that is UTF-16 or compressed is refused.
 *
 * @return TTD_OK, TTD_END, TTD_ERROR_IO, TTD_ERROR_CORRUPT, TTD_ERROR_UNSUPPORTED.
 */
enum ttd_status import_text_line(struct import_text *text, struct ttd_string *line);

/** Sets the reason of a failure at the current line; returns `status`. */
__attribute__((format(printf, 3, 4))) enum ttd_status
import_text_fail(struct import_text *text, enum ttd_status status, const char *format, ...);

/* A part of a line that is still to be read: taken from its front. Functions that return false
 * leave it unchanged. Those that compare are inline, since nearly all texts are constants. */

static inline void import_drop(struct ttd_string *rest, size_t size)
{
    rest->data += size;
    rest->size -= size;
}

/** Takes hexadecimal digits, 1 to 16 significant ones, without a prefix. */
bool import_take_hex(struct ttd_string *rest, uint64_t *number);

/** Takes a decimal number. */
bool import_take_decimal(struct ttd_string *rest, uint64_t *number);

/** Takes a number in C's notation: 0x and hexadecimal digits, or decimal ones. */
bool import_take_number(struct ttd_string *rest, uint64_t *number);

/** Takes `text`. */
static inline bool import_take(struct ttd_string *rest, const char *text)
{
    size_t size = strlen(text);
    if (rest->size < size || memcmp(rest->data, text, size) != 0)
        return false;
    import_drop(rest, size);
    return true;
}

/** Takes blanks and tabs; there may be none. */
static inline void import_take_blanks(struct ttd_string *rest)
{
    while (rest->size && (*rest->data == ' ' || *rest->data == '\t'))
        import_drop(rest, 1);
}

/** Returns a part without the blanks and tabs around it. */
static inline struct ttd_string import_trim(struct ttd_string part)
{
    import_take_blanks(&part);
    while (part.size && (part.data[part.size - 1] == ' ' || part.data[part.size - 1] == '\t'))
        part.size--;
    return part;
}

/** Takes everything up to `end`, and `end` itself, without blanks around it. */
static inline bool import_take_until(struct ttd_string *rest, const char *end,
                                     struct ttd_string *taken)
{
    size_t size = strlen(end);
    for (size_t i = 0; size <= rest->size && i <= rest->size - size; i++) {
        if (memcmp(rest->data + i, end, size) != 0)
            continue;
        *taken = import_trim((struct ttd_string){rest->data, i});
        import_drop(rest, i + size);
        return true;
    }
    return false;
}

/** Whether a part is `text`. */
static inline bool import_is(struct ttd_string part, const char *text)
{
    size_t size = strlen(text);
    return part.size == size && memcmp(part.data, text, size) == 0;
}

/* The trace that an import makes: definitions, each written once, and calls in order of effect. */

/** The time_unit of a trace without wall times: coarser than any recording. */
#define IMPORT_NO_TIMES UINT64_MAX

/** An address range of a loaded module. */
struct import_module {
    ttd_id id;
    uint64_t bias;
    uint64_t begin;
    uint64_t end;
    /** Path, owned. */
    char *path;
    size_t path_size;
    /** The last list of modules did not have it. */
    bool is_absent;
};

struct import_builder {
    const struct ttd_output *output;
    struct import_text *text;
    /** Written with the first definition; a reader may change it before. */
    struct ttd_trace trace;
    struct ttd_writer *writer;
    /** Ids by a thread's system id, and by a heap's handle. */
    struct hash_map threads;
    struct hash_map heaps;
    /** Loaded modules, sorted by address. */
    struct import_module *modules;
    size_t module_count;
    size_t module_capacity;
    /** Modules known by their path only, with frames relative to it. */
    struct import_module *files;
    size_t file_count;
    size_t file_capacity;
    /** Position of the next call, for sources that have none: each call is a sequence. */
    uint64_t sequence;
    /** Wall time of the last call that has one. */
    uint64_t wall_time;
};

/* All functions return TTD_OK, or a failure of the writer, whose detail is in its error. */

/** Prepares a trace; takes over the output. */
void import_builder_open(struct import_builder *builder, const struct ttd_output *output,
                         struct import_text *text);

/** Completes the trace if `status` is TTD_OK, and releases the builder. Returns `status`, or the
 * failure of the output. */
enum ttd_status import_builder_close(struct import_builder *builder, enum ttd_status status);

/** Names the source, such as "heaptrack 1.4.0". The first call of a reader that has recognised its
 * text. */
enum ttd_status import_source(struct import_builder *builder, const char *source);

/** Writes a fact about the recording. */
enum ttd_status import_fact(struct import_builder *builder, const char *key,
                            struct ttd_string value);

/** Records that the source has no calls between two positions, such as rows that are not in it. */
enum ttd_status import_loss(struct import_builder *builder, struct ttd_position last_good,
                            struct ttd_position first_good, uint64_t count);

/** Finds or defines a thread by its system id. */
enum ttd_status import_thread(struct import_builder *builder, uint64_t os_id, ttd_id *id);

/** Finds or defines a heap by its handle; TTD_NONE for 0, an unknown heap. */
enum ttd_status import_heap(struct import_builder *builder, uint64_t handle, ttd_id *id);

/** Begins another list of the loaded modules; modules that are not listed again are unloaded. */
void import_modules_begin(struct import_builder *builder);

/** Lists a loaded module at [begin, end). A range that overlaps another one of the list is
 * ignored. */
enum ttd_status import_module_load(struct import_builder *builder, struct ttd_string path,
                                   uint64_t bias, uint64_t begin, uint64_t end);

/** Ends the list. */
enum ttd_status import_modules_end(struct import_builder *builder);

/** Defines the stack of a return address, called from `parent`. */
enum ttd_status import_frame(struct import_builder *builder, ttd_id parent, uint64_t address,
                             ttd_id *id);

/** Finds or defines a module that is known by its path only. */
enum ttd_status import_file(struct import_builder *builder, struct ttd_string path, ttd_id *id);

/** Names a frame by its function. */
enum ttd_status import_symbol(struct import_builder *builder, ttd_id module, uint64_t offset,
                              struct ttd_string function);

/** Sets time_start and time_end of a call of a source without positions. */
void import_place(struct import_builder *builder, struct ttd_event *event);

/** Appends a call; a source with positions appends its calls in order of effect. */
enum ttd_status import_event(struct import_builder *builder, const struct ttd_event *event);

#endif
