/* SPDX-License-Identifier: MIT */
/*
 * An argument of a command line either has the meaning that a second, independent parser finds in
 * it, or is refused; an accepted one leaves no field undefined. The first byte of an input chooses
 * the parser.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../capture.h"
#include "../target.h"
#include "cli/options/command.h"
#include "cli/options/filter.h"
#include "cli/process/limits.h"
#include "cli/process/message.h"
#include "cli/traces/source.h"
#include "well_formed.h"

enum { TEXT_MAX = 256, ARGUMENTS_MAX = 24 };

/* ---- Numbers, by a second reader ---- */

static int digit_of(char c, unsigned base)
{
    static const char digits[] = "0123456789abcdef";
    char lower = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
    const char *at = lower ? strchr(digits, lower) : NULL;
    return at && at - digits < (int)base ? (int)(at - digits) : -1;
}

/* Reads all digits. Returns false if there are none, or the number is too large. */
static bool read_digits(const char **typed, uint64_t *number)
{
    bool is_hex = (*typed)[0] == '0' && ((*typed)[1] | 0x20) == 'x';
    unsigned base = is_hex ? 16 : 10;
    *typed += is_hex ? 2 : 0;
    const char *begin = *typed;
    for (*number = 0; digit_of(**typed, base) >= 0; ++*typed) {
        if (__builtin_mul_overflow(*number, base, number) ||
            __builtin_add_overflow(*number, (unsigned)digit_of(**typed, base), number))
            return false;
    }
    return *typed > begin;
}

static bool read_size(const char **typed, uint64_t *number)
{
    if (!read_digits(typed, number))
        return false;
    const char *unit = **typed ? strchr("KkMmGgTt", **typed) : NULL;
    if (!unit)
        return true;
    ++*typed;
    for (long i = 0; i <= (unit - strchr("KkMmGgTt", 'K')) / 2; i++)
        if (__builtin_mul_overflow(*number, 1024, number))
            return false;
    return true;
}

static bool read_range(const char *typed, uint64_t *first, uint64_t *last)
{
    if (!read_size(&typed, first))
        return false;
    *last = *first;
    char kind = *typed;
    if (!kind)
        return true;
    typed++;
    if (kind == '-' && !*typed) {
        *last = UINT64_MAX;
        return true;
    }
    if ((kind != '-' && kind != '+') || !read_size(&typed, last) || *typed)
        return false;
    if (kind == '-')
        return *last >= *first;
    uint64_t count = *last;
    return count > 0 && !__builtin_add_overflow(*first, count - 1, last);
}

static void try_numbers(const char *typed)
{
    uint64_t number = 7;
    struct number_range range = {7, 7};
    uint64_t first, last;
    const char *end = typed;
    bool is_number = read_digits(&end, &first) && !*end;
    target_require(number_parse(typed, &number) == is_number, "a number");
    target_require(number == (is_number ? first : 7), "its value");
    end = typed;
    number = 7;
    bool is_size = read_size(&end, &first) && !*end;
    target_require(number_parse_size(typed, &number) == is_size, "a size");
    target_require(number == (is_size ? first : 7), "its value");
    bool is_range = read_range(typed, &first, &last);
    target_require(number_parse_range(typed, &range) == is_range, "a range");
    target_require(range.first == (is_range ? first : 7), "where it begins");
    target_require(range.last == (is_range ? last : 7), "where it ends");
}

/* ---- Positions ---- */

/* Writes a position spec in another form. Returns false if that cannot be exact. */
static bool write_position_spec(const struct position_spec *spec, char typed[TEXT_MAX])
{
    switch (spec->kind) {
    case POSITION_SPEC_START:
        return snprintf(typed, TEXT_MAX, "start") > 0;
    case POSITION_SPEC_END:
        return snprintf(typed, TEXT_MAX, "end") > 0;
    case POSITION_SPEC_POSITION:
        typed[ttd_position_format(spec->position, typed)] = '\0';
        return true;
    case POSITION_SPEC_EVENT:
        return snprintf(typed, TEXT_MAX, "#0x%" PRIx64, spec->event) > 0;
    case POSITION_SPEC_PERCENT:
        return snprintf(typed, TEXT_MAX, "%.17g%%", spec->percent) > 0;
    case POSITION_SPEC_MARK:
        snprintf(typed, TEXT_MAX, "mark:%s", spec->mark);
        return true;
    case POSITION_SPEC_TIME:
    default:
        snprintf(typed, TEXT_MAX, "+%" PRIu64 "ns", spec->time);
        return spec->time < UINT64_C(1) << 53;
    }
}

static void try_position_spec(const char *typed)
{
    struct position_spec spec = {.kind = POSITION_SPEC_EVENT, .event = 7}, again;
    char other[TEXT_MAX];
    if (!position_spec_parse(typed, &spec)) {
        target_require(spec.kind == POSITION_SPEC_EVENT && spec.event == 7,
                       "what is refused is left");
        return;
    }
    target_require(spec.kind != POSITION_SPEC_PERCENT || (spec.percent >= 0 && spec.percent <= 100),
                   "a percentage");
    target_require(spec.kind != POSITION_SPEC_POSITION || ttd_position_is_valid(spec.position),
                   "a position");
    if (!write_position_spec(&spec, other))
        return;
    target_require(position_spec_parse(other, &again), "what is written can be read");
    target_require(again.kind == spec.kind && again.event == spec.event &&
                       again.percent == spec.percent && again.time == spec.time &&
                       ttd_position_compare(again.position, spec.position) == 0 &&
                       (spec.kind != POSITION_SPEC_MARK || strcmp(again.mark, spec.mark) == 0),
                   "the same moment");
}

/* ---- Filters ---- */

static const struct ttd_event events[] = {
    {.action = TTD_ACTION_ALLOC, .address = 0x1000, .size = 16, .result = 1},
    {.action = TTD_ACTION_FREE, .base_address = 0x1000, .thread = 1, .heap = 1, .stack = 1},
    {.action = TTD_ACTION_REALLOC, .address = UINT64_MAX, .size = UINT64_MAX, .thread = UINT32_MAX},
    {.action = TTD_ACTION_DESTROY, .heap = UINT32_MAX, .stack = UINT32_MAX},
};

/* Adds a line to a filter: its first letter chooses the option. */
static bool add_part(struct filter *filter, const char *typed)
{
    switch (*typed) {
    case 'a':
        return filter_add_actions(typed + 1, filter);
    case 't':
        return filter_set_thread(typed + 1, filter);
    case 'h':
        return filter_set_heap(typed + 1, filter);
    case 'p':
        return filter_add_address(typed + 1, filter);
    case 's':
        return filter_set_size(typed + 1, filter);
    case 'k':
        return filter_set_stack(typed + 1, filter);
    default:
        return false;
    }
}

static void try_filter(char *typed)
{
    struct filter filter = {.actions = 0};
    struct definitions names;
    definitions_init(&names);
    bool is_accepted = true;
    for (char *part = strtok(typed, "\n"); part && is_accepted; part = strtok(NULL, "\n"))
        is_accepted = add_part(&filter, part);
    for (size_t i = 0; is_accepted && i < sizeof events / sizeof *events; i++) {
        bool passes = filter_passes(&filter, &names, &events[i]);
        target_require(!passes || !filter.actions || filter.actions >> events[i].action & 1,
                       "actions are those that are wanted");
        target_require(!passes || !filter.has_size || number_in_range(events[i].size, filter.size),
                       "sizes are those that are wanted");
        target_require(passes == filter_passes(&filter, &names, &events[i]), "asked again");
    }
    for (enum filter_name part = 0; is_accepted && part < FILTER_NAMES; part++) {
        bool is_known;
        target_require(filter_knows(&filter, &names, part, &is_known) == TTD_OK, "a look-up");
    }
    filter_free(&filter);
    definitions_free(&names);
}

/* ---- Whole command lines ---- */

struct own {
    unsigned option_count;
    bool has_blocks;
};

static bool parse_position(const char *argument, void *context)
{
    struct own *own = context;
    struct position_spec spec;
    own->option_count++;
    return position_spec_parse(argument, &spec);
}

static const struct own_option own_options[] = {
    OWN_CHOICE("at", parse_position), OWN_OPTION("blocks", option_flag, struct own, has_blocks),
    OWN_OPTIONS_END};

static const char help[] = "Usage: ttdanalyze test [OPTIONS] TRACE\n"
                           "\n"
                           "      --at POSITION  where\n"
                           "      --blocks       which\n" COMMAND_COMMON_HELP;

static void check_messages(int status)
{
    size_t sizes[3];
    for (int i = STDOUT_FILENO; i <= STDERR_FILENO; i++) {
        char *output = capture_take(i, &sizes[i]);
        const char *wrong = well_formed_text(output, sizes[i]);
        target_require(!wrong, wrong);
        free(output);
    }
    target_require((status == STATUS_USAGE) == (sizes[STDERR_FILENO] > 0),
                   "a refusal has a reason");
    target_require((status == STATUS_OK) == (sizes[STDOUT_FILENO] > 0), "help and version");
}

static void try_line(char *typed)
{
    static const unsigned shares[] = {0, COMMAND_FILTERS, COMMAND_VIEWS,
                                      COMMAND_VIEWS | COMMAND_KNOWN_FINDINGS};
    char name[] = "test";
    char *arguments[ARGUMENTS_MAX + 2] = {name};
    struct command command = {.name = "test",
                              .help = help,
                              .shares = shares[*typed & 3],
                              .own = {.table = own_options},
                              .traces_max = 2};
    int count = 1;
    for (char *part = *typed ? strtok(typed + 1, "\n") : NULL; part && count <= ARGUMENTS_MAX;
         part = strtok(NULL, "\n"))
        arguments[count++] = part;
    struct common_options result;
    struct own own = {.option_count = 0};
    /* getopt() would otherwise remember letters of the previous command line. */
    optind = 0;
    (void)getopt(1, arguments, "");
    capture_begin();
    int status = command_options(&result, &command, count, arguments, &own);
    capture_end();
    limits_lift();
    target_require(status == -1 || status == STATUS_OK || status == STATUS_USAGE, "a status");
    target_require(status != -1 ||
                       (result.trace && result.form <= REPORT_FOLDED && result.view.limit),
                   "options");
    target_require((int)own.option_count + own.has_blocks < count, "as many options as there are");
    check_messages(status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char typed[TEXT_MAX] = "";
    size_t length = size > 1 ? size - 1 : 0;
    if (length > TEXT_MAX - 1)
        length = TEXT_MAX - 1;
    if (length)
        memcpy(typed, data + 1, length);
    /* In a block of exactly its size, so that sanitizers detect a read past the end. */
    char *exact = (char *)target_copy((const uint8_t *)typed, strlen(typed) + 1);
    switch (size ? data[0] & 3 : 0) {
    case 0:
        try_numbers(exact);
        break;
    case 1:
        try_position_spec(exact);
        break;
    case 2:
        try_filter(exact);
        break;
    default:
        try_line(exact);
        break;
    }
    free(exact);
    return 0;
}
