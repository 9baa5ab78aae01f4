/* SPDX-License-Identifier: MIT */
#include "cli/options/command.h"

#include <ctype.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ttdtrace/version.h>

#include "base/numbers.h"
#include "cli/process/limits.h"
#include "cli/process/message.h"
#include "cli/process/output.h"
#include "cli/traces/source.h"
#include "report/sections/sections.h"

enum { NAME_MAX_SIZE = 32 };

static size_t command_least(size_t a, size_t b, size_t c)
{
    size_t smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

/* Returns the edit distance: letters to change, add, remove or swap with the next one, to make one
 * name of the other. Only the last three rows of the table of all prefixes are kept. */
static size_t command_suggest_distance(const char *word, const char *other_word)
{
    size_t rows[3][NAME_MAX_SIZE + 1], right_size = strlen(other_word);
    for (size_t k = 0; k <= right_size; k++)
        rows[0][k] = k;
    for (size_t i = 1; word[i - 1]; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= right_size; k++) {
            size_t change = above[k - 1] + (word[i - 1] != other_word[k - 1]);
            row[k] = command_least(above[k] + 1, row[k - 1] + 1, change);
            if (i > 1 && k > 1 && word[i - 1] == other_word[k - 2] &&
                word[i - 2] == other_word[k - 1] && before[k - 2] + 1 < row[k])
                row[k] = before[k - 2] + 1;
        }
    }
    return rows[strlen(word) % 3][right_size];
}

void suggest(struct suggestion *best, const char *name)
{
    size_t size = strlen(best->typed);
    if (size > NAME_MAX_SIZE || strlen(name) > NAME_MAX_SIZE || size == 0)
        return;
    size_t apart = command_suggest_distance(best->typed, name);
    /* A third of the letters may be wrong, or the rest may be missing. */
    if (size >= 3 && strncmp(name, best->typed, size) == 0)
        apart = 1;
    if (apart > size / 3 + (size < 3) || (best->name && apart >= best->distance))
        return;
    best->name = name;
    best->distance = apart;
}

#define OWN_MAX    32
#define SHARED_MAX 16

/* Values of a command's own options, in the order of its table: above the values of all letters. */
#define OPTION_FIRST 256

enum {
    OPTION_NO_PAGER = 1000,
    OPTION_NO_INDEX,
    OPTION_FULL_STACKS,
    OPTION_MAX_MEMORY,
    OPTION_THREADS
};

/* The first ones are those that COMMAND_PAGE takes away. */
enum { TEXT_OPTIONS = 3 };

static const struct option common_long_options[] = {
    {"format", required_argument, NULL, 'f'},
    {"no-pager", no_argument, NULL, OPTION_NO_PAGER},
    {"full-stacks", no_argument, NULL, OPTION_FULL_STACKS},
    {"output", required_argument, NULL, 'o'},
    {"no-index", no_argument, NULL, OPTION_NO_INDEX},
    {"max-memory", required_argument, NULL, OPTION_MAX_MEMORY},
    {"threads", required_argument, NULL, OPTION_THREADS},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0}};

_Static_assert(OWN_MAX + SHARED_MAX + sizeof common_long_options / sizeof *common_long_options <=
                   COMMAND_OPTIONS_MAX,
               "room for all options");

size_t command_list_options(struct option long_options[COMMAND_OPTIONS_MAX],
                            const struct command *command)
{
    const struct own_option *own_option = command->own.table;
    unsigned shares = command->shares;
    size_t count = 0;
    for (; own_option && own_option[count].name && count < OWN_MAX; count++)
        long_options[count] = (struct option){
            own_option[count].name,
            own_option[count].parse == option_flag ? no_argument : required_argument, NULL,
            OPTION_FIRST + (int)count};
    for (size_t i = 0; shares & COMMAND_KNOWN_FINDINGS && known_findings_long_options[i].name; i++)
        long_options[count++] = known_findings_long_options[i];
    for (size_t i = 0; shares & COMMAND_KEYS && key_long_options[i].name; i++)
        long_options[count++] = key_long_options[i];
    for (size_t i = 0; shares & COMMAND_GROUPS && view_long_options[i].name; i++)
        long_options[count++] = view_long_options[i];
    for (size_t i = 0; shares & COMMAND_FILTERS && filter_long_options[i].name; i++)
        long_options[count++] = filter_long_options[i];
    size_t left_out = shares & COMMAND_PAGE ? TEXT_OPTIONS : 0;
    memcpy(long_options + count, common_long_options + left_out,
           sizeof common_long_options - left_out * sizeof *common_long_options);
    return count + sizeof common_long_options / sizeof *common_long_options - 1 - left_out;
}

const char *command_form_name(enum report_form form)
{
    static const char *const names[] = {"text",  "json",  "csv",   "folded",
                                        "sarif", "junit", "github"};
    return names[form];
}

static int command_take_format(struct common_options *result, const char *name)
{
    for (int form = 0; form <= REPORT_GITHUB; form++) {
        result->form = (enum report_form)form;
        if (strcmp(command_form_name(result->form), name) == 0)
            return -1;
    }
    unsigned shares = result->command->shares;
    return message_usage(result->command->name, "unknown format '%s' (text, json, csv%s%s)", name,
                         shares & COMMAND_GROUPS ? ", folded" : "",
                         shares & COMMAND_KNOWN_FINDINGS ? ", sarif, junit, github" : "");
}

/* Finds the lines of a help text about an option: the line that begins with it, and those indented
 * more. */
static const char *command_find_help(const char *help, const char *name, size_t *size)
{
    size_t length = strlen(name);
    size_t indent = 0;
    *size = 0;
    for (const char *line = help; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t spaces = strspn(line, " ");
        if (*size && spaces <= indent)
            break;
        const char *option =
            line + spaces + (line[spaces] == '-' && line[spaces + 1] != '-' ? 4 : 0);
        if (strncmp(option, "--", 2) == 0 && strncmp(option + 2, name, length) == 0 &&
            strcspn(option + 2, " ") == length) {
            help = line;
            indent = spaces;
        } else if (!*size) {
            continue;
        }
        *size = (size_t)(line - help) + strcspn(line, "\n") + 1;
    }
    return help;
}

static int command_refuse_argument(const struct command *command, const char *name)
{
    size_t size;
    const char *text = command_find_help(command->help, name, &size);
    message("%s: invalid argument '%s' of --%s", command->name, optarg ? optarg : "", name);
    (void)fwrite(text, 1, size, stderr);
    /* The help of an option names only the word; its forms stand at the end of the whole help. */
    if (memmem(text, size, " POSITION", strlen(" POSITION"))) {
        fputs(POSITION_SPEC_FORMS, stderr);
        /* Positions are found without a replay, but the peak is not. */
        if (optarg && strcmp(optarg, "peak") == 0)
            fputs("The position of the peak is in the first line of 'ttdanalyze peak'.\n", stderr);
    }
    return message_help(command->name);
}

/* Parses an option that all commands have. Returns -1 to go on, or the exit status. */
static int command_take_common(struct common_options *result, int option)
{
    switch (option) {
    case 'f':
        return command_take_format(result, optarg);
    case 'o':
        result->output = optarg;
        return -1;
    case OPTION_NO_PAGER:
        result->has_pager = false;
        return -1;
    case OPTION_NO_INDEX:
        result->has_index = false;
        return -1;
    case OPTION_FULL_STACKS:
        result->has_full_stacks = true;
        return -1;
    case OPTION_MAX_MEMORY:
        return limits_parse(optarg, &result->max_memory)
                   ? -1
                   : command_refuse_argument(result->command, "max-memory");
    case OPTION_THREADS:
        return number_parse(optarg, &result->threads) && result->threads
                   ? -1
                   : command_refuse_argument(result->command, "threads");
    case 'h':
        fputs(result->command->help, stdout);
        return output_end_standard();
    default:
        printf("ttdanalyze %s\n", ttd_version());
        return output_end_standard();
    }
}

static const char *command_name_of(const struct option *long_options, int value)
{
    while (long_options->name && long_options->val != value)
        long_options++;
    return long_options->name ? long_options->name : "?";
}

/* Returns an operand that is an address, in place of a trace; NULL if there is none. */
static const char *command_find_address(size_t count, char *const *operands)
{
    size_t i = 0;
    while (i < count && (strncmp(operands[i], "0x", 2) != 0 || access(operands[i], F_OK) == 0))
        i++;
    return i < count ? operands[i] : NULL;
}

static int command_take_operands(struct common_options *result, int count, char **arguments)
{
    static char default_name[] = INPUT_DEFAULT;
    static char *const by_default[] = {default_name};
    size_t max_traces = result->command->traces_max ? result->command->traces_max : 1;
    size_t operand_count = (size_t)(count - optind);
    char *const *traces = operand_count ? arguments + optind : by_default;
    const char *name = result->command->name;
    if (!operand_count && access(INPUT_DEFAULT, F_OK) != 0)
        return message_usage(name, "no trace is named, and there is no "
                                   "'" INPUT_DEFAULT "' here");
    const char *address = command_find_address(operand_count, traces);
    if (address)
        return message_usage(name, "'%s' is no trace: an address is given by --address", address);
    if (operand_count > max_traces)
        return message_usage(name, "%zu %s at a time: '%s' is too much", max_traces,
                             max_traces == 1 ? "trace" : "traces", traces[max_traces]);
    result->trace = traces[0];
    result->others = traces + 1;
    result->other_count = operand_count ? operand_count - 1 : 0;
    /* Standard input has no file that an index could stand beside. */
    result->has_index = result->has_index && !input_is_standard(result->trace);
    limits_set(result->max_memory, traces, operand_count ? operand_count : 1);
    return -1;
}

/* Parses an option of the command's own, or one that it shares with others. */
static bool command_take_own(struct common_options *result, int option, void *own_values)
{
    if (option >= OPTION_VIEW && option < OPTION_VIEW_END)
        return view_options_parse(&result->view, option, optarg);
    if (option >= OPTION_KNOWN_FINDINGS && option < OPTION_KNOWN_FINDINGS_END)
        return known_findings_parse_option(&result->known_findings, option, optarg);
    return own_option_parse(&result->command->own.table[option - OPTION_FIRST], optarg, own_values);
}

/* Checks the options that depend on each other. */
static int command_check_options(struct common_options *result)
{
    const char *name = result->command->name;
    const char *problem = known_findings_check(&result->known_findings);
    if (problem)
        return message_usage(name, "%s", problem);
    if (report_form_lists_findings(result->form) &&
        !(result->command->shares & COMMAND_KNOWN_FINDINGS))
        return message_usage(name, "format '%s' works only with leaks and errors",
                             command_form_name(result->form));
    if (!(result->command->shares & COMMAND_GROUPS))
        return result->form == REPORT_FOLDED
                   ? message_usage(name, "format '%s' works only with commands that group by stack",
                                   command_form_name(result->form))
                   : -1;
    if (result->view.by == VIEW_BY_CLASS && !(result->command->shares & COMMAND_CLASSES))
        return message_usage(name, "--by class works only with leaks, state, diff and retained");
    problem = view_options_check(&result->view, result->form);
    return problem ? message_usage(name, "%s", problem) : -1;
}

static int command_refuse_unknown(const struct command *command, const char *argument,
                                  const struct option *long_options)
{
    char typed[64];
    /* Without the argument: "--limti=5" is to find --limit. */
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(argument + 2, "="), argument + 2);
    if (option_is_of_islands(typed))
        return message_usage(command->name,
                             "--%s does not apply: this command does not separate the calls "
                             "and blocks of islands",
                             typed);
    struct suggestion best = {.typed = typed};
    for (size_t i = 0; long_options[i].name; i++)
        suggest(&best, long_options[i].name);
    if (!best.name)
        return message_usage(command->name, "unknown or ambiguous option '%s'", argument);
    return message_usage(command->name, "unknown or ambiguous option '%s'; did you mean '--%s'?",
                         argument, best.name);
}

/* Reports an option that getopt_long() does not understand. If one argument has several letters,
 * optind does not show which one it is. */
static int refuse_option(const struct command *command, int problem, char *const *arguments,
                         const struct option *long_options)
{
    const char *argument = arguments[optind - 1];
    const char *name = command_name_of(long_options, optopt);
    bool is_long = strncmp(argument, "--", 2) == 0 && strcmp(name, "?") != 0;
    if (!optopt)
        return command_refuse_unknown(command, argument, long_options);
    if (problem == ':')
        return is_long || optopt > UCHAR_MAX
                   ? message_usage(command->name, "option '--%s' needs an argument", name)
                   : message_usage(command->name, "option '-%c' needs an argument", optopt);
    return is_long ? message_usage(command->name, "option '--%s' takes no argument", name)
                   : message_usage(command->name, "unknown option '-%c'", optopt);
}

/* Parses all options. Returns -1 to go on, or the exit status. */
static int take_options(struct common_options *result, int count, char **arguments,
                        void *own_values)
{
    const struct command *command = result->command;
    struct option long_options[COMMAND_OPTIONS_MAX];
    const char *short_options = command->shares & COMMAND_PAGE ? ":o:hV" : ":f:o:hV";
    command_list_options(long_options, command);
    opterr = 0;
    optind = 1;
    int option;
    while ((option = getopt_long(count, arguments, short_options, long_options, NULL)) != -1) {
        int status = -1;
        if (option == '?' || option == ':')
            status = refuse_option(command, option, arguments, long_options);
        else if (option < OPTION_FIRST || option >= OPTION_NO_PAGER)
            status = command_take_common(result, option);
        else if (!command_take_own(result, option, own_values))
            status = command_refuse_argument(command, command_name_of(long_options, option));
        if (status >= 0)
            return status;
    }
    return command_check_options(result);
}

int command_options(struct common_options *result, const struct command *command, int count,
                    char **arguments, void *own_values)
{
    *result = (struct common_options){.command = command, .has_pager = true, .has_index = true};
    view_options_init(&result->view);
    int status = take_options(result, count, arguments, own_values);
    return status >= 0 ? status : command_take_operands(result, count, arguments);
}

static int command_island_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *digit = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return digit ? (int)(digit - digits) : -1;
}

bool option_client(const char *argument, void *member)
{
    struct heap_island_filter *filter = member;
    size_t count = 0;
    for (; *argument; argument++) {
        int digit = command_island_digit(*argument);
        if (*argument == '-')
            continue;
        if (digit < 0 || count == 32)
            return false;
        filter->client[count / 2] = (uint8_t)(filter->client[count / 2] << 4 | digit);
        count++;
    }
    filter->has_client = count == 32;
    return filter->has_client;
}

bool option_activity(const char *argument, void *member)
{
    struct heap_island_filter *filter = member;
    filter->has_activity = number_parse(argument, &filter->activity);
    return filter->has_activity;
}

bool option_is_of_islands(const char *name)
{
    return strcmp(name, "client") == 0 || strcmp(name, "activity") == 0;
}

bool option_flag(const char *argument, void *flag)
{
    (void)argument;
    *(bool *)flag = true;
    return true;
}

bool option_position(const char *argument, void *spec)
{
    return position_spec_parse(argument, spec);
}

bool option_number(const char *argument, void *number)
{
    return number_parse(argument, number);
}

bool option_size(const char *argument, void *number)
{
    return number_parse_size(argument, number);
}

bool option_given(const char *argument, void *number)
{
    struct given_number *member = number;
    member->is_given = true;
    return number_parse(argument, &member->value);
}

bool option_limit(const char *argument, void *limit)
{
    uint64_t number;
    if (!number_parse(argument, &number))
        return false;
    /* "All" as the largest size: no place that compares with a limit needs a case for it. */
    *(size_t *)limit = number ? (size_t)number : SIZE_MAX;
    return true;
}

bool option_name(const char *argument, const char *const *names, size_t count, size_t *index)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(argument, names[i]) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

bool own_option_parse(const struct own_option *option, const char *argument, void *own_values)
{
    void *member = (char *)own_values + option->offset;
    if (!option->parse(argument, member))
        return false;
    if (!option->max)
        return true;
    uint64_t number = *(const uint64_t *)member;
    return number >= option->min && number <= option->max;
}

#define LIMIT 20

const struct option key_long_options[] = {{"by", required_argument, NULL, OPTION_BY},
                                          {"skip", required_argument, NULL, OPTION_SKIP},
                                          {NULL, 0, NULL, 0}};

const struct option view_long_options[] = {{"limit", required_argument, NULL, OPTION_VIEW_LIMIT},
                                           {"tree", required_argument, NULL, OPTION_TREE},
                                           {"depth", required_argument, NULL, OPTION_DEPTH},
                                           {NULL, 0, NULL, 0}};

const struct option filter_long_options[] = {{"include", required_argument, NULL, OPTION_INCLUDE},
                                             {"exclude", required_argument, NULL, OPTION_EXCLUDE},
                                             {NULL, 0, NULL, 0}};

void view_options_init(struct view_options *options)
{
    *options = (struct view_options){.limit = LIMIT};
}

static bool command_take_key(const char *name, enum view_key *key)
{
    for (enum view_key i = VIEW_BY_STACK; i <= VIEW_BY_CLASS; i++) {
        if (strcmp(view_key_name(i), name) == 0) {
            *key = i;
            return true;
        }
    }
    return false;
}

static bool command_take_shape(const char *name, enum view_shape *shape)
{
    if (strcmp(name, "top-down") == 0)
        *shape = VIEW_TOP_DOWN;
    else if (strcmp(name, "bottom-up") == 0)
        *shape = VIEW_BOTTOM_UP;
    else
        return false;
    return true;
}

static bool command_take_pattern(const char *text, struct view_patterns *patterns)
{
    if (!*text || patterns->count == VIEW_PATTERNS)
        return false;
    patterns->patterns[patterns->count++] = (struct ttd_string){text, strlen(text)};
    return true;
}

bool view_options_parse(struct view_options *options, int option, const char *argument)
{
    uint64_t limit;
    switch (option) {
    case OPTION_BY:
        options->is_by_given = true;
        return command_take_key(argument, &options->by);
    case OPTION_TREE:
        return command_take_shape(argument, &options->shape);
    case OPTION_DEPTH:
        return number_parse(argument, &options->depth) && options->depth;
    case OPTION_SKIP:
        return command_take_pattern(argument, &options->skip);
    case OPTION_INCLUDE:
        return command_take_pattern(argument, &options->include);
    case OPTION_EXCLUDE:
        return command_take_pattern(argument, &options->exclude);
    default:
        if (!number_parse(argument, &limit))
            return false;
        options->limit = limit ? (size_t)limit : SIZE_MAX;
        return true;
    }
}

const char *view_options_check(struct view_options *options, enum report_form form)
{
    /* Folded stacks are a tree; who asks for them need not say so. */
    if (form == REPORT_FOLDED && options->shape == VIEW_FLAT)
        options->shape = VIEW_TOP_DOWN;
    if (report_form_lists_findings(form) &&
        (options->shape != VIEW_FLAT || options->by != VIEW_BY_STACK))
        return "this format lists findings by stack: it takes neither --tree nor --by";
    if (options->depth && options->shape == VIEW_FLAT)
        return "--depth needs --tree";
    return NULL;
}
