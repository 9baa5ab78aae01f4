/* SPDX-License-Identifier: MIT */
/** Known findings; they are not reported: suppressed ones, and those in a baseline. */
#ifndef ANALYZER_CLI_KNOWN_FINDINGS_H
#define ANALYZER_CLI_KNOWN_FINDINGS_H

#include <getopt.h>

#include "report/sections/report.h"
#include "view/suppress.h"

#define KNOWN_FINDINGS_FILES_MAX 64

/** Range of the values of the options; OPTION_KNOWN_FINDINGS_END is none of them. */
#define OPTION_KNOWN_FINDINGS 950

enum {
    OPTION_SUPPRESSIONS = OPTION_KNOWN_FINDINGS,
    OPTION_BASELINE,
    OPTION_WRITE_BASELINE,
    OPTION_FAIL_ON_GROWTH,
    OPTION_KNOWN_FINDINGS_END
};

/** Ended by an option of zeros. */
extern const struct option known_findings_long_options[];

/** The options: names of files, NULL for none. */
struct known_findings_options {
    const char *suppressions[KNOWN_FINDINGS_FILES_MAX];
    size_t suppression_count;
    const char *baseline;
    const char *written_baseline;
    bool fails_on_growth;
};

/** Parses one of the options; false if its argument is invalid. */
bool known_findings_parse_option(struct known_findings_options *options, int option,
                                 const char *argument);

/** Checks the options together. Returns a description of the first fault, or NULL. */
const char *known_findings_check(const struct known_findings_options *options);

/** For help texts. */
#define KNOWN_FINDINGS_HELP                                                                        \
    "      --suppressions FILE leave out findings that match rules in FILE, in the\n"              \
    "                          form of LeakSanitizer or valgrind; may be repeated\n"               \
    "      --baseline FILE     report, and count for --error-exitcode, only findings\n"            \
    "                          whose stacks of functions are not in a baseline\n"                  \
    "      --write-baseline FILE\n"                                                                \
    "                          write a baseline of all that is not suppressed\n"                   \
    "      --fail-on-growth    exit with the status of --error-exitcode, or 1, also\n"             \
    "                          if only a finding of the baseline has grown\n"                      \
    "      --format FORMAT     also sarif, junit or github\n"

/** A finding: calls with the first stack, and the stacks that they conflict with. */
struct finding {
    /** A heap_error_kind, SUPPRESS_LEAK, or a leak of a kind such as SUPPRESS_DEFINITE. */
    unsigned kind;
    /** The enum ttd_api that the finding is about. */
    uint8_t api;
    ttd_id stacks[BASELINE_STACKS];
    /** Weight of the finding: findings or blocks, and calls or bytes. */
    uint64_t count;
    uint64_t amount;
};

struct known_findings {
    const struct known_findings_options *options;
    struct suppressions suppressions;
    struct baseline baseline;
    /** The findings of this run. */
    struct baseline current;
    struct fingerprinter fingerprinter;
    /** Totals for the report. */
    struct report_known_findings summary;
    struct report_growth *growths;
    size_t growth_capacity;
};

/** Reads the files. Returns an exit status; on failure a message was printed. */
int known_findings_open(struct known_findings *findings,
                        const struct known_findings_options *options);
void known_findings_close(struct known_findings *findings);

/** Whether any of the options is given. */
bool known_findings_are_needed(const struct known_findings *findings);

/** Sets `is_new` to whether a finding is to be reported. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status known_findings_judge(struct known_findings *findings,
                                     struct definitions *definitions, const struct finding *finding,
                                     bool *is_new);

/**
 * Finds the findings that occur more often than in the baseline. Called once all findings were
 * judged.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status known_findings_find_growth(struct known_findings *findings);

/** Returns the exit status for findings: `status` is the value of --error-exitcode, 0 if not given.
 */
int known_findings_exit(const struct known_findings *findings, bool has_findings, uint64_t status);

/**
 * Writes the baseline, if the options ask for one.
 *
 * @param trace  its file; must not be overwritten
 * @return an exit status; on failure a message was printed
 */
int known_findings_write(struct known_findings *findings, struct definitions *definitions,
                         const char *trace);

#endif
