/* SPDX-License-Identifier: MIT */
/** The command line of ttdrecord. Its commands and a session share it, and need no more. */
#ifndef RECORDER_OPTIONS_H
#define RECORDER_OPTIONS_H

#include <getopt.h>

#include "collect/collector.h"

/** Questions whose findings are a failure: bits. */
enum fail_on { FAIL_ON_LEAKS = 1, FAIL_ON_ERRORS = 2 };

struct options {
    const char *output;
    int ready; /* descriptor that gets a byte once the recording has begun; -1 for none */
    bool is_quiet;
    bool has_descendants;   /* of `attach`: the process's present descendants are recorded, too */
    struct ttd_group group; /* of the traces; zeros for a new one */
    unsigned fail_on;       /* enum fail_on */
    struct recording_options recording;
    struct snapshot_options snapshots;
};

/** The long options, as getopt_long() takes them; ended by an option of zeros. */
extern const struct option options_long[];

/** Parses the options in front of a program, or those of `attach`, which may stand behind the
 * process id. Sets `optind` to the index of the program or the process id. Ends this process, with
 * a message, if they are wrong, or if they only ask for the usage or the version. */
void options_parse(int argc, char **argv, bool is_attach, struct options *options);

/** If the command line asks for the help of a command without options of its own, such as
 * `ttdrecord detach --help`, prints it and returns true. */
bool options_print_command_help(int argc, char **argv);

/** Returns such a command with its arguments, as "detach PID"; NULL for an unknown name. Static. */
const char *options_usage_of(const char *command);

/** Returns the nanoseconds of a number of seconds. Ends this process, with a message, if it is
 * none.
 */
uint64_t options_seconds(const char *text);

/** Returns the calls that have no stacks (enum channel_calls), by a list of those that have. Ends
 * this process, with a message, if it is none. */
uint32_t options_stackless(const char *text);

/** Returns a number of frames, or ends this process likewise. */
uint32_t options_stack_depth(const char *text);

/** Says that the recording has begun to whoever waits for it. */
void options_report_ready(const struct options *options);

/** Prints why getopt_long() did not take an option; `argument` is the last one that it looked at.
 */
void options_refuse(int option, const char *argument);

#endif
