/* SPDX-License-Identifier: MIT */
/* ttdanalyze memory */

#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "report/memory/memory_reports.h"

static const char help[] =
    "Usage: ttdanalyze memory --address A [OPTIONS] [TRACE]\n"
    "\n"
    "Shows the contents of memory at a position, by snapshots of memory: each page comes\n"
    "from the newest snapshot at the position or before. Between that snapshot and the position\n"
    "the program may have written to it. [ and ] are the edges of the blocks that are live\n"
    "at the position.\n"
    "\n"
    "      --at POSITION  that position; the end if not given\n"
    "      --address A    from the address A on\n"
    "      --length N     N bytes (256), with a suffix K, M, G or T\n"
    "      --raw          write the bytes themselves, to the file named by --output; those\n"
    "                     that are not known are zeros\n" COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

struct memory_options {
    struct position_spec at;
    struct given_number address;
    uint64_t length;
    bool is_raw;
};

static const struct own_option own_options[] = {
    OWN_OPTION("at", option_position, struct memory_options, at),
    OWN_OPTION("address", option_given, struct memory_options, address),
    OWN_NUMBER("length", option_size, struct memory_options, length, 1, UINT64_MAX),
    OWN_OPTION("raw", option_flag, struct memory_options, is_raw), OWN_OPTIONS_END};

static void write_zeros(struct text_output *output, uint64_t count)
{
    static const char zeros[4096];
    while (count && !output->error) {
        size_t size = count < sizeof zeros ? (size_t)count : sizeof zeros;
        out_write(output, zeros, size);
        count -= size;
    }
}

/* Writes the bytes of the whole range as they are. An offset in the output is one in the range, so
 * bytes that are not known must be written too, as zeros; a message says how many they are. */
static void write_raw(struct session *session, struct report_memory *data)
{
    const struct heap_memory_options *options = &data->memory->options;
    struct contents_cursor cursor = contents_cursor_begin(
        &data->memory->extents, &data->memory->pages, options->first, options->last);
    struct contents_part part;
    uint64_t unknown = 0;
    while (!session->output.text.error && data->status == TTD_OK) {
        data->status = contents_cursor_next(&cursor, &part, &data->error);
        if (data->status != TTD_OK)
            break;
        uint64_t size = part.last - part.first + 1;
        if (part.data)
            out_write(&session->output.text, (const char *)part.data, (size_t)size);
        else
            write_zeros(&session->output.text, size);
        if (part.state != CONTENTS_ZERO && !part.data)
            unknown += size;
    }
    if (data->status == TTD_END)
        data->status = TTD_OK;
    uint64_t range_size = options->last - options->first + 1;
    if (unknown)
        message("warning: %s: %llu of %llu bytes are not known, and are written as zeros",
                session->source.path, (unsigned long long)unknown, (unsigned long long)range_size);
}

static int memory_print(struct session *session, const struct memory_options *options,
                        struct heap_memory *memory)
{
    struct report_memory data = {.memory = memory};
    int status = session_begin_report(session, !options->is_raw);
    if (status != STATUS_OK)
        return status;
    /* The user has chosen the length: no limit on output. */
    session->output.text.room = UINT64_MAX;
    if (options->is_raw) {
        write_raw(session, &data);
        session->has_reasons = false;
    } else {
        report_memory(&session->report, &data);
    }
    return data.status == TTD_OK ? STATUS_OK
                                 : source_fail(&session->source, data.status, &data.error);
}

static int check_options(const struct session *session, const struct memory_options *options)
{
    if (!options->address.is_given)
        return message_usage("memory", "no address is given: use --address");
    if (options->length - 1 > UINT64_MAX - options->address.value)
        return message_usage("memory", "the range ends beyond the last address");
    if (options->is_raw && !session->options.output)
        return message_usage("memory", "--raw needs a file to write to: use -o");
    return STATUS_OK;
}

static int memory_execute(struct session *session, const void *context)
{
    const struct memory_options *options = context;
    struct question question;
    int status = check_options(session, options);
    if (status == STATUS_OK)
        status = session_ask(session, &options->at, &question);
    if (status != STATUS_OK)
        return status;
    struct heap_memory_options query = {.at = question.at,
                                        .first = options->address.value,
                                        .last = options->address.value + (options->length - 1)};
    struct heap_memory memory;
    enum ttd_status result = heap_memory_find(&question.trace, &query, &memory, &question.error);
    status = session_answer(session, &question, result, &memory.outcome);
    if (status != STATUS_OK)
        return status;
    report_judge_contents(&session->report.certainty, &memory);
    status = memory_print(session, options, &memory);
    heap_memory_free(&memory);
    return status;
}

static const struct memory_options defaults = {.at = {.kind = POSITION_SPEC_END}, .length = 256};

const struct command command_memory = {
    .name = "memory",
    .summary = "contents of memory, by snapshots",
    .help = help,
    .own = {own_options, &defaults, sizeof defaults},
    .execute = memory_execute,
};
