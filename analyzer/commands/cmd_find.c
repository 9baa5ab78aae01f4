/* SPDX-License-Identifier: MIT */
/* ttdanalyze find */
#include <ctype.h>
#include <string.h>

#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/process/numbers.h"
#include "cli/session/session.h"
#include "cli/session/sidecar.h"
#include "report/memory/memory_reports.h"

/* Words of a snapshot of references that are shown, at most. */
#define POINTERS_MAX 1024

static const char help[] =
    "Usage: ttdanalyze find (--bytes|--string|--address|--pointer-to) X [OPTIONS] [TRACE]\n"
    "\n"
    "Finds a value in memory at a position, by snapshots of memory: each page comes from\n"
    "the newest snapshot at the position or before.\n"
    "\n"
    "      --bytes HEX     these bytes, such as 'de ad be ef'\n"
    "      --string TEXT   this text\n"
    "      --address A     words that hold the address A\n"
    "      --pointer-to A  words that hold an address in the block that A lies in; also by\n"
    "                      the newest snapshot of references, which needs no contents\n"
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

static bool take_text(const char *text, struct find_options *options)
{
    options->size = strlen(text);
    if (options->size > sizeof options->pattern)
        return false;
    memcpy(options->pattern, text, options->size);
    return true;
}

/* Zeros alone would be found nearly everywhere. */
static bool has_pattern(const struct find_options *options)
{
    for (size_t i = 0; i < options->size; i++)
        if (options->pattern[i])
            return true;
    return false;
}

/* Notes that a target is given; of two the command would not know which. */
static struct find_options *begin_target(void *context, enum heap_search_kind kind)
{
    struct find_options *options = context;
    options->has_more |= options->has_target;
    options->has_target = true;
    options->kind = kind;
    return options;
}

static bool parse_bytes(const char *argument, void *context)
{
    struct find_options *options = begin_target(context, HEAP_SEARCH_PATTERN);
    return find_parse_bytes(argument, options) && has_pattern(options);
}

static bool parse_string(const char *argument, void *context)
{
    struct find_options *options = begin_target(context, HEAP_SEARCH_PATTERN);
    return take_text(argument, options) && has_pattern(options);
}

static bool parse_address(const char *argument, void *context)
{
    struct find_options *options = begin_target(context, HEAP_SEARCH_ADDRESS);
    return number_parse(argument, &options->address) && options->address;
}

static bool parse_pointer(const char *argument, void *context)
{
    struct find_options *options = begin_target(context, HEAP_SEARCH_POINTER);
    return number_parse(argument, &options->address) && options->address;
}

static const struct own_option own_options[] = {
    OWN_OPTION("at", option_position, struct find_options, at),
    OWN_CHOICE("bytes", parse_bytes),
    OWN_CHOICE("string", parse_string),
    OWN_CHOICE("address", parse_address),
    OWN_CHOICE("pointer-to", parse_pointer),
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
static bool tells_more(const struct heap_referrers *referrers, const struct heap_block *target)
{
    const struct heap_reach *reach = &referrers->reach;
    return referrers->target != GRAPH_NONE &&
           heap_nodes_get(&reach->nodes, referrers->target, HEAP_NODE_EVENT) == target->event;
}

/* Adds the words that point at the block by the newest snapshot of references. */
static int print_with_references(struct session *session, const struct heap_search_options *options,
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
                            tells_more(&referrers, search->target) ? &referrers : NULL);
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
    status = print_with_references(session, &query, &search);
    heap_search_free(&search);
    return status;
}

static const struct find_options defaults = {.at = {.kind = POSITION_SPEC_END}, .limit = 50};

const struct command command_find = {
    .name = "find",
    .summary = "places of a value in memory, by snapshots",
    .help = help,
    .own = {own_options, &defaults, sizeof defaults},
    .execute = find_execute,
};
