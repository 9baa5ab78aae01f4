/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ttdtrace/snapshot.h>
#include <ttdtrace/version.h>

#include "messages.h"
#include "launch.h"

static const char help[] =
    "Usage: ttdrecord [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
    "Run PROGRAM and record every heap call that it makes into a trace.\n"
    "  or:  ttdrecord attach [OPTION]... PID\n"
    "Record a process that runs, until it ends, or ^C, or 'ttdrecord detach PID'.\n"
    "  or:  ttdrecord suspend [--] PROGRAM [ARGUMENT]...\n"
    "Start PROGRAM stopped before its first instruction, for 'attach'; 'resume' then.\n"
    "  or:  ttdrecord status|snapshot|pause|resume PID\n"
    "  or:  ttdrecord mark PID TEXT\n"
    "  or:  ttdrecord snapshots PID --every SECONDS|off\n"
    "Print how far the recording of process PID is, take a snapshot, pause or resume,\n"
    "mark the present moment, or change how often snapshots are taken.\n"
    "  or:  ttdrecord session start|update|status|snapshot|pause|resume|stop NAME ...\n"
    "Record a set of processes: see 'ttdrecord session --help'.\n"
    "  or:  ttdrecord enable|disable|query [--name PROGRAM] [OPTION]...\n"
    "Record every process that executes PROGRAM from now on.\n"
    "  or:  ttdrecord symbolize [-q] [-o FILE] [--debug-path=DIRS] TRACE\n"
    "Add names to a trace that was recorded without them.\n"
    "\n"
    "  -o, --output=FILE   write the trace to FILE instead of trace.bin; an existing\n"
    "                      file is replaced. Child processes that allocate get\n"
    "                      files of their own beside it: FILE.PID.NAME\n"
    "      --no-children   record PROGRAM itself only\n"
    "      --children      attach: also record the children that PID has already\n"
    "      --no-stacks     record calls without their stacks\n"
    "      --stacks=KINDS  record stacks of these calls only: alloc,realloc,free\n"
    "      --stack-depth=N record the innermost N frames of a stack\n"
    "      --blocks-only   record only blocks that live at a snapshot or at the end\n"
    "      --only-above=SIZE\n"
    "                      record no blocks below SIZE bytes\n"
    "      --sample=SIZE   record a sample: one block for every SIZE bytes on average\n"
    "      --keep=SIZE|TIME\n"
    "                      keep only the last part of a trace, such as 64M or 10min,\n"
    "                      and the blocks that were live when it begins\n"
    "      --max-size=SIZE end the recording when a trace has SIZE bytes, such as 64M\n"
    "      --when-full=wait|lose\n"
    "                      calls that find no room wait (the default), or are\n"
    "                      lost and counted\n"
    "      --snapshot-at-exit=KIND\n"
    "                      take a snapshot when a process ends: references (which\n"
    "                      words point to which block; the default), blocks, memory\n"
    "                      (also the contents) or none\n"
    "      --no-snapshot   the same as --snapshot-at-exit=none\n"
    "      --snapshot-every=SECONDS\n"
    "                      take a snapshot of each process so often\n"
    "      --snapshot=KIND the contents of such a snapshot: references (default),\n"
    "                      blocks or memory\n"
    "      --fail-on=KINDS ask the analyzer for leaks,errors at the end; findings\n"
    "                      make the exit status 116, if PROGRAM succeeds\n"
    "  -q, --quiet         no summary at the end\n"
    "  -h, --help          print this and exit\n"
    "  -V, --version       print the version and exit\n"
    "\n"
    "The exit status is that of PROGRAM; if it is killed by a signal, ttdrecord dies\n"
    "by the same. Statuses of ttdrecord itself:\n"
    "  116  --fail-on has found something     121  PROGRAM has a sanitizer's runtime\n"
    "  122  the trace cannot be written       125  wrong usage, failure, or no answer\n"
    "  123  PROGRAM is setuid or alike        126  PROGRAM cannot be executed\n"
    "  124  static without symbols, or musl   127  PROGRAM is not found\n"
    "\n"
    "Then ask the trace:  ttdanalyze trace.bin\n";

/* Help of the commands without a parser of options of their own, which "attach" and "symbolize"
 * have. */
static const struct command_help {
    const char *name;
    const char *usage;
    const char *text;
} command_helps[] = {
    {"status", "status PID",
     "Print the trace of process PID, how many events it has, and how many were lost.\n"},
    {"snapshot", "snapshot PID",
     "Take a snapshot of process PID, and print its number in the trace.\n"},
    {"snapshots", "snapshots PID --every SECONDS|off",
     "Take a snapshot of process PID so often from now on, or no more.\n"},
    {"mark", "mark PID TEXT",
     "Mark the present moment in the trace of process PID: position mark:TEXT.\n"},
    {"pause", "pause PID",
     "Stop recording calls of process PID. The trace says that they are missing.\n"},
    {"resume", "resume PID",
     "Go on recording process PID after 'pause'; or let a process go on that 'suspend'\n"
     "has started.\n"},
    {"detach", "detach PID",
     "End the recording of process PID, which goes on. The trace is complete when the\n"
     "command returns. What a killed recorder has left in the process is removed, too.\n"},
    {"suspend", "suspend [--] PROGRAM [ARGUMENT]...",
     "Become PROGRAM, stopped before its first instruction. 'ttdrecord attach PID', or\n"
     "a session, then records all of its calls; 'ttdrecord resume PID' lets it run.\n"},
    {"session", "session COMMAND [NAME] [OPTION]...",
     "Record a set of processes; each has a recorder and a trace of its own.\n"
     "\n"
     "  start NAME           begin: --pid PID and --name PROGRAM (both repeatable),\n"
     "                       -o FOLDER, and the options of 'ttdrecord --help'\n"
     "  update NAME          --pid PID, --remove-pid PID, --name PROGRAM,\n"
     "                       --remove-name PROGRAM, --snapshot-every SECONDS|off,\n"
     "                       --stacks KINDS, --stack-depth N|off\n"
     "  status NAME          a line for each process; --watch, --format json\n"
     "  snapshot|pause|resume NAME\n"
     "                       the same with each process\n"
     "  stop NAME            end all recordings; the processes go on\n"
     "  list                 the sessions of this user\n"},
    {"enable", "enable --name PROGRAM [OPTION]...",
     "Record every process that executes PROGRAM from now on, until 'disable'. Traces\n"
     "are in the folder by-name, or in -o FOLDER; also the options of\n"
     "'ttdrecord --help'.\n"},
    {"query", "query [--name PROGRAM] [--watch] [--format json]",
     "Print the programs that are enabled, and their processes.\n"},
    {"disable", "disable [--name PROGRAM]",
     "Record new processes of PROGRAM no more, or of any program.\n"},
};

static const struct command_help *options_find_command(const char *name)
{
    for (size_t i = 0; i < sizeof command_helps / sizeof *command_helps; i++)
        if (strcmp(name, command_helps[i].name) == 0)
            return &command_helps[i];
    return NULL;
}

const char *options_usage_of(const char *command)
{
    const struct command_help *help_of = options_find_command(command);
    return help_of ? help_of->usage : NULL;
}

static bool options_is_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

bool options_print_command_help(int argc, char **argv)
{
    const struct command_help *help_of = argc > 2 ? options_find_command(argv[1]) : NULL;
    if (!help_of)
        return false;
    bool is_asked = options_is_help(argv[2]) ||
                    (strcmp(argv[1], "session") == 0 && options_is_help(argv[argc - 1]));
    if (is_asked)
        printf("Usage: ttdrecord %s\n%s", help_of->usage, help_of->text);
    return is_asked;
}

enum {
    OPTION_NO_CHILDREN = 256,
    OPTION_CHILDREN,
    OPTION_NO_STACKS,
    OPTION_STACKS,
    OPTION_STACK_DEPTH,
    OPTION_WHEN_FULL,
    OPTION_MAX_SIZE,
    OPTION_KEEP,
    OPTION_BLOCKS_ONLY,
    OPTION_FAIL_ON,
    OPTION_ONLY_ABOVE,
    OPTION_SAMPLE,
    OPTION_SNAPSHOT,
    OPTION_SNAPSHOT_AT_EXIT,
    OPTION_SNAPSHOT_EVERY,
    OPTION_NO_SNAPSHOT
};

const struct option options_long[] = {
    {"output", required_argument, NULL, 'o'},
    {"no-children", no_argument, NULL, OPTION_NO_CHILDREN},
    {"children", no_argument, NULL, OPTION_CHILDREN},
    {"no-stacks", no_argument, NULL, OPTION_NO_STACKS},
    {"stacks", required_argument, NULL, OPTION_STACKS},
    {"stack-depth", required_argument, NULL, OPTION_STACK_DEPTH},
    {"when-full", required_argument, NULL, OPTION_WHEN_FULL},
    {"keep", required_argument, NULL, OPTION_KEEP},
    {"max-size", required_argument, NULL, OPTION_MAX_SIZE},
    {"blocks-only", no_argument, NULL, OPTION_BLOCKS_ONLY},
    {"fail-on", required_argument, NULL, OPTION_FAIL_ON},
    {"only-above", required_argument, NULL, OPTION_ONLY_ABOVE},
    {"sample", required_argument, NULL, OPTION_SAMPLE},
    {"snapshot", required_argument, NULL, OPTION_SNAPSHOT},
    {"snapshot-at-exit", required_argument, NULL, OPTION_SNAPSHOT_AT_EXIT},
    {"snapshot-every", required_argument, NULL, OPTION_SNAPSHOT_EVERY},
    {"no-snapshot", no_argument, NULL, OPTION_NO_SNAPSHOT},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {0},
};

/* Seconds between snapshots, at least and at most. */
#define EVERY_MIN 0.001
#define EVERY_MAX 1e9

static const struct snapshot_kind {
    const char *name;
    uint32_t contents;
} snapshot_kinds[] = {
    {"blocks", TTD_SNAPSHOT_BLOCKS},
    {"references", TTD_SNAPSHOT_REFERENCES},
    {"memory", TTD_SNAPSHOT_REFERENCES | TTD_SNAPSHOT_MEMORY},
    {"none", 0}, /* at the end only */
};

static void options_fail(void)
{
    fputs("Try 'ttdrecord --help'.\n", stderr);
    exit(EXIT_RECORDER);
}

void options_refuse(int option, const char *argument)
{
    if (option == ':')
        message("option '%s' needs an argument", argument);
    else if (strncmp(argument, "--", 2) == 0)
        message("option '%s' is unknown, or ambiguous, or takes no argument", argument);
    else
        message("option '-%c' is unknown", optopt);
}

static uint32_t options_parse_kind(const char *name, bool is_at_exit)
{
    size_t count = sizeof snapshot_kinds / sizeof *snapshot_kinds - !is_at_exit;
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, snapshot_kinds[i].name) == 0)
            return snapshot_kinds[i].contents;
    message("'%s' is no kind of snapshot: %s", name,
            is_at_exit ? "blocks, references, memory or none" : "blocks, references or memory");
    options_fail();
    return 0;
}

/* Returns bytes. `more` is the end of the message that refuses all else. */
static uint64_t options_parse_size(const char *text, const char *more)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    unsigned long long size = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
    if (size != 0 && errno == 0) {
        const char *unit = *end != '\0' ? strchr(units, toupper((unsigned char)*end)) : NULL;
        unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
        if (end[unit != NULL] == '\0' && size <= UINT64_MAX >> shift)
            return (uint64_t)size << shift;
    }
    message("'%s' is no size, such as 500K, 64M or 2G%s", text, more);
    options_fail();
    return 0;
}

/* A time has a unit that no size has. */
static void options_parse_keep(const char *text, struct ring_limit *limit)
{
    static const struct {
        const char *unit;
        uint32_t seconds;
    } units[] = {{"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}};
    char *end;
    double number = isdigit((unsigned char)*text) ? strtod(text, &end) : 0;
    *limit = (struct ring_limit){0};
    for (size_t i = 0; number > 0 && i < sizeof units / sizeof *units; i++) {
        double seconds = number * units[i].seconds;
        if (strcmp(end, units[i].unit) == 0 && seconds >= EVERY_MIN && seconds <= EVERY_MAX)
            limit->time = (uint64_t)(seconds * 1e9);
    }
    if (limit->time == 0)
        limit->bytes = options_parse_size(text, ", and no time, such as 30s, 10min, 12h or 7d");
}

/* A word of a list, and the bits that it stands for. */
struct list_word {
    const char *name;
    uint32_t bits;
};

/* Sets the bits of a list of words with commas between. Returns false if it has another word. */
static bool options_parse_list(const char *text, const struct list_word *words, size_t count,
                               uint32_t *bits)
{
    *bits = 0;
    for (const char *word = text;; word++) {
        size_t size = strcspn(word, ","), i = 0;
        while (i < count &&
               (strlen(words[i].name) != size || strncmp(words[i].name, word, size) != 0))
            i++;
        if (i == count)
            return false;
        *bits |= words[i].bits;
        word += size;
        if (*word == '\0')
            return true;
    }
}

uint32_t options_stackless(const char *text)
{
    static const struct list_word words[] = {{"alloc", CALLS_ACQUIRE | CALLS_OTHER},
                                             {"realloc", CALLS_REALLOCATE | CALLS_OTHER},
                                             {"free", CALLS_RELEASE | CALLS_OTHER},
                                             {"all", CALLS_ALL},
                                             {"none", 0}};
    uint32_t calls;
    if (!options_parse_list(text, words, sizeof words / sizeof *words, &calls)) {
        message("'%s' names no kinds of calls: alloc, realloc, free, separated by commas; all "
                "or none",
                text);
        options_fail();
    }
    return CALLS_ALL & ~calls;
}

static uint32_t options_parse_fail_on(const char *text)
{
    static const struct list_word words[] = {{"leaks", FAIL_ON_LEAKS}, {"errors", FAIL_ON_ERRORS}};
    uint32_t kinds;
    if (!options_parse_list(text, words, sizeof words / sizeof *words, &kinds)) {
        message("'%s' names no kinds of findings: leaks, errors, separated by commas", text);
        options_fail();
    }
    return kinds;
}

uint32_t options_stack_depth(const char *text)
{
    enum { DEPTH_MAX = 4096 };
    char *end;
    unsigned long depth = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;
    if (depth != 0 && depth <= DEPTH_MAX && *end == '\0')
        return (uint32_t)depth;
    message("'%s' is no number of frames from 1 to %d", text, DEPTH_MAX);
    options_fail();
    return 0;
}

uint64_t options_seconds(const char *text)
{
    char *end;
    double seconds = strtod(text, &end);
    if (end != text && *end == '\0' && seconds >= EVERY_MIN && seconds <= EVERY_MAX)
        return (uint64_t)(seconds * 1e9);
    message("'%s' is no number of seconds from %g to %g", text, EVERY_MIN, EVERY_MAX);
    options_fail();
    return 0;
}

static bool parse_snapshot_option(int option, struct snapshot_options *snapshots)
{
    switch (option) {
    case OPTION_SNAPSHOT:
        snapshots->contents = options_parse_kind(optarg, false);
        return true;
    case OPTION_SNAPSHOT_AT_EXIT:
        snapshots->at_exit = options_parse_kind(optarg, true);
        return true;
    case OPTION_SNAPSHOT_EVERY:
        snapshots->every = options_seconds(optarg);
        return true;
    case OPTION_NO_SNAPSHOT:
        snapshots->at_exit = 0;
        return true;
    default:
        return false;
    }
}

/* Whether a call without room waits or is lost. */
static void options_parse_when_full(const char *name, struct recording_options *recording)
{
    bool is_lost = strcmp(name, "lose") == 0;
    if (!is_lost && strcmp(name, "wait") != 0) {
        message("'%s' is nothing to do when memory is full: wait or lose", name);
        options_fail();
    }
    recording->flags &= ~(uint32_t)CHANNEL_LOSES;
    recording->flags |= is_lost ? CHANNEL_LOSES : 0;
}

static bool parse_recording_option(int option, struct recording_options *recording)
{
    switch (option) {
    case OPTION_NO_CHILDREN:
        recording->flags |= CHANNEL_NO_CHILDREN;
        return true;
    case OPTION_NO_STACKS:
        recording->flags |= CHANNEL_FEW_STACKS;
        recording->stackless = CALLS_ALL;
        return true;
    case OPTION_STACKS:
        recording->flags |= CHANNEL_FEW_STACKS;
        recording->stackless = options_stackless(optarg);
        return true;
    case OPTION_STACK_DEPTH:
        recording->flags |= CHANNEL_FEW_STACKS;
        recording->stack_depth = options_stack_depth(optarg);
        return true;
    case OPTION_WHEN_FULL:
        options_parse_when_full(optarg, recording);
        return true;
    case OPTION_MAX_SIZE:
        recording->max_size = options_parse_size(optarg, "");
        return true;
    case OPTION_KEEP:
        options_parse_keep(optarg, &recording->keep);
        return true;
    case OPTION_BLOCKS_ONLY:
        recording->blocks_only = true;
        return true;
    case OPTION_ONLY_ABOVE:
        recording->only_above = options_parse_size(optarg, "");
        recording->flags |= CHANNEL_CHOOSES;
        return true;
    case OPTION_SAMPLE:
        recording->sample = options_parse_size(optarg, "");
        if (recording->sample > UINT32_MAX) {
            message("'%s' is too much for a sample: less than 4G", optarg);
            options_fail();
        }
        recording->flags |= CHANNEL_CHOOSES;
        return true;
    default:
        return false;
    }
}

static void options_parse_one(int option, const char *argument, struct options *options)
{
    switch (option) {
    case 'o':
        options->output = optarg;
        break;
    case 'q':
        options->is_quiet = true;
        break;
    case OPTION_CHILDREN:
        options->has_descendants = true;
        break;
    case OPTION_FAIL_ON:
        options->fail_on = options_parse_fail_on(optarg);
        break;
    case 'h':
        fputs(help, stdout);
        exit(EXIT_SUCCESS);
    case 'V':
        puts("ttdrecord " TTD_VERSION_STRING);
        exit(EXIT_SUCCESS);
    default:
        if (!parse_snapshot_option(option, &options->snapshots) &&
            !parse_recording_option(option, &options->recording)) {
            options_refuse(option, argument);
            options_fail();
        }
    }
}

static void options_check_keep(const struct recording_options *recording)
{
    if ((recording->keep.bytes == 0 && recording->keep.time == 0) ||
        (recording->max_size == 0 && !recording->blocks_only))
        return;
    message("--keep and %s exclude each other: a trace has its end, or what is live",
            recording->max_size != 0 ? "--max-size" : "--blocks-only");
    options_fail();
}

void options_parse(int argc, char **argv, bool is_attach, struct options *options)
{
    *options = (struct options){
        .output = "trace.bin",
        .ready = -1,
        .snapshots = {.at_exit = TTD_SNAPSHOT_REFERENCES, .contents = TTD_SNAPSHOT_REFERENCES},
    };
    int option;
    opterr = 0; /* it would print an argument's bytes as they are */
    const char *letters = is_attach ? ":o:qhV" : "+:o:qhV";
    while ((option = getopt_long(argc, argv, letters, options_long, NULL)) != -1)
        options_parse_one(option, argv[optind - 1], options);
    if (options->recording.only_above != 0 && options->recording.sample != 0) {
        message("--sample and --only-above exclude each other: a sample has blocks of all sizes");
        options_fail();
    }
    options_check_keep(&options->recording);
    if (options->has_descendants && !is_attach) {
        message("--children is for 'attach': the children of a program are recorded anyway");
        options_fail();
    }
    if (optind < argc)
        return;
    message(is_attach ? "no process id given" : "no program given");
    options_fail();
}

void options_report_ready(const struct options *options)
{
    if (options->ready < 0)
        return;
    ssize_t written = write(options->ready, "", 1);
    (void)written; /* nobody may wait for it any more */
    close(options->ready);
}
