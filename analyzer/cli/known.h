/* SPDX-License-Identifier: MIT */
/** What is known and need not be reported: suppressions, and a baseline. */
#ifndef ANALYZER_CLI_KNOWN_H
#define ANALYZER_CLI_KNOWN_H

#include <getopt.h>

#include "report/format.h"
#include "view/baseline.h"

#define KNOWN_FILES 64

/** Values of the options are from here to OPTION_KNOWN_END, which is none of them. */
#define OPTION_KNOWN 950

enum {
    OPTION_SUPPRESSIONS = OPTION_KNOWN,
    OPTION_BASELINE,
    OPTION_WRITE_BASELINE,
    OPTION_FAIL_ON_GROWTH,
    OPTION_KNOWN_END
};

/** Ended by an entry of zeros. */
extern const struct option known_options[];

/** Names of files; NULL for none. */
struct known_files {
    const char *suppressions[KNOWN_FILES];
    size_t count;
    const char *baseline;
    const char *written;
    bool fails_on_growth;
};

/** Takes one of the options; false if its argument is invalid. */
bool known_take(struct known_files *files, int option, const char *argument);

/** Checks the options together. Returns a description of what is wrong, or NULL. */
const char *known_check(const struct known_files *files);

/** For help texts. */
#define KNOWN_HELP                                                                                 \
    "      --suppressions FILE    do not report what the rules in FILE match, which are\n"         \
    "                             those of LeakSanitizer or valgrind; may be repeated\n"           \
    "      --baseline FILE        report only what is not in a baseline, by the functions\n"       \
    "                             on the stack; --error-exitcode counts only that\n"               \
    "      --write-baseline FILE  write a baseline of all that is not suppressed\n"                \
    "      --fail-on-growth       exit with the status of --error-exitcode, or 1, as well if\n"    \
    "                             there is more of what is in the baseline than there was\n"

/** A finding: calls of the first stack, and of those that it is in conflict with. */
struct known_finding {
    /** A heap_error_kind, or SUPPRESS_LEAK. */
    unsigned kind;
    /** The ttd_api_function that the finding is about. */
    uint8_t api;
    ttd_id stacks[BASELINE_STACKS];
    /** What it counts for: findings or blocks, and calls or bytes. */
    uint64_t count;
    uint64_t amount;
};

struct known {
    const struct known_files *files;
    struct suppressions rules;
    struct baseline old;
    /** The findings of this run. */
    struct baseline found;
    struct fingerprinter work;
    /** What the report says of it. */
    struct report_known summary;
    struct report_growth *growths;
    size_t growth_capacity;
};

/** Reads the files. Returns an exit status; on failure a message was printed. */
int known_open(struct known *known, const struct known_files *files);
void known_close(struct known *known);

/** Whether any of the options is given. */
bool known_has_work(const struct known *known);

/** Sets `is_new` to whether a finding is to be reported. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status known_judge(struct known *known, struct definitions *definitions,
                            const struct known_finding *finding, bool *is_new);

/** Finds what the baseline has fewer of. Called once all findings were judged.
 * @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status known_find_growth(struct known *known);

/** The exit status that findings give: `status` is that of --error-exitcode, 0 if not given. */
int known_exit(const struct known *known, bool has_findings, uint64_t status);

/**
 * Writes the baseline, if it is asked for.
 *
 * @param trace  its file, which must not be overwritten
 * @return an exit status; on failure a message was printed
 */
int known_write(struct known *known, struct definitions *definitions, const char *trace);

#endif
