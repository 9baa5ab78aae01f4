/* SPDX-License-Identifier: MIT */
/* Commands about contents of memory: memory, find. */
#include <ctype.h>
#include <string.h>

#include "cli/process/message.h"
#include "base/numbers.h"
#include "cli/session/session.h"
#include "cli/session/sidecar.h"
#include "report/memory/memory_reports.h"

static const char memory_help[] =
    "Usage: ttdanalyze memory --address A [OPTIONS] [TRACE]\n"
    "\n"
    "Shows the contents of memory at a position, by snapshots of memory: each page\n"
    "comes from the newest snapshot at the position or before. Between that snapshot\n"
    "and the position the program may have written to it. [ and ] are the edges of\n"
    "the blocks that are live at the position.\n"
    "\n"
    "      --at POSITION  that position; the end if not given\n"
    "      --address A    from the address A on\n"
    "      --length N     N bytes (256), with a suffix K, M, G or T\n"
    "      --raw          write the bytes themselves, to the file named by --output;\n"
    "                     those that are not known are zeros\n" COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

struct memory_options {
    struct position_spec at;
    struct given_number address;
    uint64_t length;
    bool is_raw;
};

static const struct own_option memory_own[] = {
    OWN_OPTION("at", option_position, struct memory_options, at),
    OWN_OPTION("address", option_given, struct memory_options, address),
    OWN_NUMBER("length", option_size, struct memory_options, length, 1, UINT64_MAX),
    OWN_OPTION("raw", option_flag, struct memory_options, is_raw), OWN_OPTIONS_END};

static void memory_write_zeros(struct text_output *output, uint64_t count)
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
static void memory_write_raw(struct session *session, struct report_memory *data)
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
            memory_write_zeros(&session->output.text, size);
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
        memory_write_raw(session, &data);
        session->has_reasons = false;
    } else {
        report_memory(&session->report, &data);
    }
    return data.status == TTD_OK ? STATUS_OK
                                 : source_fail(&session->source, data.status, &data.error);
}

static int memory_check_options(const struct session *session, const struct memory_options *options)
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
    int status = memory_check_options(session, options);
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

static const struct memory_options memory_defaults = {.at = {.kind = POSITION_SPEC_END},
                                                      .length = 256};

const struct command command_memory = {
    .name = "memory",
    .summary = "contents of memory, by snapshots",
    .help = memory_help,
    .own = {memory_own, &memory_defaults, sizeof memory_defaults},
    .execute = memory_execute,
};

/* ttdanalyze find */

/* Words of a snapshot of references that are shown, at most. */
#define POINTERS_MAX 1024

static const char find_help[] =
    "Usage: ttdanalyze find --bytes|--string|--address|--pointer-to X [OPTIONS]\n"
    "                       [TRACE]\n"
    "\n"
    "Finds a value in memory at a position, by snapshots of memory: each page comes\n"
    "from the newest snapshot at the position or before.\n"
    "\n"
    "      --bytes HEX     these bytes, such as 'de ad be ef'\n"
    "      --string TEXT   this text\n"
    "      --address A     words that hold the address A\n"
    "      --pointer-to A  words that hold an address in the block that A lies in;\n"
    "                      also by the newest snapshot of references, which needs no\n"
    "                      contents\n"
    "      --at POSITION   at that position; the end if not given\n"
    "      --limit N       show at most N places (50; 0 for all); all are "
    "counted\n" COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

struct find_options {
    struct position_spec at;
    enum heap_search_kind kind;
    /** A target is given: bytes, a text or an address; more than one. */
    bool has_target;
    bool has_more;
    uint8_t pattern[HEAP_PATTERN_MAX];
    size_t size;
    uint64_t address;
    size_t limit;
};

static int find_digit(char c)
{
    const char *digits = "0123456789abcdef";
    const char *digit = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return digit ? (int)(digit - digits) : -1;
}

/* Parses bytes as pairs of hexadecimal digits, with or without blanks between them. */
static bool find_parse_bytes(const char *text, struct find_options *options)
{
    for (options->size = 0; options->size < sizeof options->pattern;) {
        while (*text == ' ')
            text++;
        if (!*text)
            return true;
        int high = find_digit(text[0]);
        int low = high < 0 ? -1 : find_digit(text[1]);
        if (low < 0)
            return false;
        options->pattern[options->size++] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    return !*text;
}

static bool find_take_text(const char *text, struct find_options *options)
{
    options->size = strlen(text);
    if (options->size > sizeof options->pattern)
        return false;
    memcpy(options->pattern, text, options->size);
    return true;
}

/* Zeros alone would be found nearly everywhere. */
static bool find_has_pattern(const struct find_options *options)
{
    for (size_t i = 0; i < options->size; i++)
        if (options->pattern[i])
            return true;
    return false;
}

/* Notes that a target is given; of two the command would not know which. */
static struct find_options *find_begin_target(void *context, enum heap_search_kind kind)
{
    struct find_options *options = context;
    options->has_more |= options->has_target;
    options->has_target = true;
    options->kind = kind;
    return options;
}

static bool find_take_bytes(const char *argument, void *context)
{
    struct find_options *options = find_begin_target(context, HEAP_SEARCH_PATTERN);
    return find_parse_bytes(argument, options) && find_has_pattern(options);
}

static bool find_parse_string(const char *argument, void *context)
{
    struct find_options *options = find_begin_target(context, HEAP_SEARCH_PATTERN);
    return find_take_text(argument, options) && find_has_pattern(options);
}

static bool find_parse_address(const char *argument, void *context)
{
    struct find_options *options = find_begin_target(context, HEAP_SEARCH_ADDRESS);
    return number_parse(argument, &options->address) && options->address;
}

static bool find_parse_pointer(const char *argument, void *context)
{
    struct find_options *options = find_begin_target(context, HEAP_SEARCH_POINTER);
    return number_parse(argument, &options->address) && options->address;
}

static const struct own_option find_own[] = {
    OWN_OPTION("at", option_position, struct find_options, at),
    OWN_CHOICE("bytes", find_take_bytes),
    OWN_CHOICE("string", find_parse_string),
    OWN_CHOICE("address", find_parse_address),
    OWN_CHOICE("pointer-to", find_parse_pointer),
    OWN_OPTION("limit", option_limit, struct find_options, limit),
    OWN_OPTIONS_END};

static int find_print(struct session *session, const struct heap_search_options *options,
                      const struct heap_search *search, const struct heap_referrers *referrers)
{
    struct report_search data = {.search = search, .options = options, .referrers = referrers};
    if (referrers)
        certainty_add_snapshot(&session->report.certainty, &referrers->reach.snapshot,
                               referrers->reach.misplaced);
    if (!referrers || search->searched || search->unreadable)
        certainty_add_search(&session->report.certainty, search->searched, search->unreadable);
    int status = session_begin_report(session, true);
    if (status == STATUS_OK)
        report_matches(&session->report, &data);
    return status;
}

/* Whether a snapshot of references has the block that was found: it was there then. */
static bool find_tells_more(const struct heap_referrers *referrers, const struct heap_block *target)
{
    const struct heap_reach *reach = &referrers->reach;
    return referrers->target != GRAPH_NONE &&
           heap_nodes_get(&reach->nodes, referrers->target, HEAP_NODE_EVENT) == target->event;
}

/* Adds the words that point at the block by the newest snapshot of references. */
static int find_print_with_references(struct session *session,
                                      const struct heap_search_options *options,
                                      const struct heap_search *search)
{
    struct heap_referrers_options query = {.at = options->at,
                                           .address = options->address,
                                           .depth = 1,
                                           .width = options->limit < POINTERS_MAX ? options->limit
                                                                                  : POINTERS_MAX};
    struct heap_referrers referrers;
    struct ttd_error error = {.what = NULL};
    struct heap_trace trace = source_trace(&session->source);
    if (!search->target)
        return find_print(session, options, search, NULL);
    trace.keyframes = sidecar_use(session, options->at);
    enum ttd_status result = heap_referrers_find(&trace, &query, &referrers, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    int status = find_print(session, options, search,
                            find_tells_more(&referrers, search->target) ? &referrers : NULL);
    heap_referrers_free(&referrers);
    return status;
}

static int find_execute(struct session *session, const void *context)
{
    const struct find_options *options = context;
    struct question question;
    if (!options->has_target || options->has_more)
        return message_usage("find", "give one of --bytes, --string, --address and --pointer-to");
    int status = session_ask(session, &options->at, &question);
    if (status != STATUS_OK)
        return status;
    struct heap_search_options query = {.at = question.at,
                                        .kind = options->kind,
                                        .pattern = options->pattern,
                                        .pattern_size = options->size,
                                        .address = options->address,
                                        .limit = options->limit};
    struct heap_search search;
    enum ttd_status result = heap_search_find(&question.trace, &query, &search, &question.error);
    status = session_answer(session, &question, result, &search.outcome);
    if (status != STATUS_OK)
        return status;
    report_judge_contents(&session->report.certainty, &search.memory);
    status = find_print_with_references(session, &query, &search);
    heap_search_free(&search);
    return status;
}

static const struct find_options find_defaults = {.at = {.kind = POSITION_SPEC_END}, .limit = 50};

const struct command command_find = {
    .name = "find",
    .summary = "places of a value in memory, by snapshots",
    .help = find_help,
    .own = {find_own, &find_defaults, sizeof find_defaults},
    .execute = find_execute,
};
