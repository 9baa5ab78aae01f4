/* SPDX-License-Identifier: MIT */
#include "subcommands.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"
#include "messages.h"

/* Events of a trace that the analyzer is asked about at once, and the processor time and the time
 * that it may take, in seconds. */
enum { ANSWER_EVENTS = 2000000, ANSWER_CPU = 1, ANSWER_TIME = 5 };

/* The analyzer's exit status for a trace that cannot answer; ttdanalyze(1), "EXIT STATUS". */
enum { ANSWER_UNJUDGED = 6 };

/* 20 digits, six commas and the end. */
enum { GROUPED = 27 };

/* Formats a number with a comma for each three digits. */
static const char *summary_group(uint64_t value, char text[GROUPED])
{
    char *begin = text + GROUPED - 1;
    *begin = '\0';
    for (unsigned digits = 0; digits == 0 || value != 0; digits++) {
        if (digits != 0 && digits % 3 == 0)
            *--begin = ',';
        *--begin = (char)('0' + value % 10);
        value /= 10;
    }
    return begin;
}

/* Makes a child of the recorder one that can execute the analyzer: it reads nothing, and writes to
 * stderr. */
static void summary_prepare_analyzer(void)
{
    static const int fatal[] = {SIGALRM, SIGXCPU, SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t none;
    int input = open("/dev/null", O_RDONLY);
    if (input < 0 || dup2(input, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        _exit(EXIT_RECORDER);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], SIG_DFL);
    /* A terminal would stop a process of a background group that writes. */
    signal(SIGTTOU, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
}

/* Executes the analyzer for the summary. It may be killed at any moment: it writes its answer at
 * once, at the end. */
static void summary_ask_analyzer(const char *analyzer, const char *trace)
{
    summary_prepare_analyzer();
    setrlimit(RLIMIT_CPU, &(struct rlimit){ANSWER_CPU, ANSWER_CPU});
    alarm(ANSWER_TIME);
    execl(analyzer, analyzer, "summary", "--brief", "--", trace, (char *)NULL);
    _exit(EXIT_RECORDER);
}

/* Asks for the findings of one kind. Returns the analyzer's status, or -1 if it did not end by
 * itself. */
static int summary_verdict_ask(const char *analyzer, const char *kind, const char *trace,
                               bool is_group)
{
    char status_text[12];
    int status = 0;
    snprintf(status_text, sizeof status_text, "%d", EXIT_FINDINGS);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        summary_prepare_analyzer();
        execl(analyzer, analyzer, kind, "--error-exitcode", status_text,
              is_group ? "--group" : "--no-pager", "--", trace, (char *)NULL);
        _exit(EXIT_RECORDER);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool summary_can_judge(const char *output)
{
    char analyzer[LAUNCH_PATH_MAX];
    struct stat status;
    bool is_found = launch_find_analyzer(analyzer);
    if (!is_found)
        message("--fail-on needs ttdanalyze, which is not installed beside this program");
    /* The analyzer would wait for what nobody writes to a pipe any more. */
    if (!is_found || stat(output, &status) != 0 || S_ISREG(status.st_mode))
        return is_found;
    message("--fail-on needs a regular file: '%s' cannot be read again", output);
    return false;
}

int summary_judge(unsigned kinds, const char *output, bool is_group)
{
    static const struct {
        enum fail_on kind;
        const char *command;
    } questions[] = {{FAIL_ON_ERRORS, "errors"}, {FAIL_ON_LEAKS, "leaks"}};
    char analyzer[LAUNCH_PATH_MAX];
    bool has_findings = false, lacks_answer = false;
    if (!summary_can_judge(output) || !launch_find_analyzer(analyzer))
        return EXIT_RECORDER;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        if ((kinds & questions[i].kind) == 0)
            continue;
        int status = summary_verdict_ask(analyzer, questions[i].command, output, is_group);
        has_findings |= status == EXIT_FINDINGS;
        if (status == EXIT_SUCCESS || status == EXIT_FINDINGS)
            continue;
        lacks_answer = true;
        message("--fail-on has no answer: %s '%s'",
                status == ANSWER_UNJUDGED ? "the recording has none to" : "the analyzer failed in",
                questions[i].command);
    }
    if (has_findings) {
        message("suppressions, baselines and other kinds: see ttdrecord(1), --fail-on");
        return EXIT_FINDINGS;
    }
    return lacks_answer ? EXIT_RECORDER : EXIT_SUCCESS;
}

/* Prints the errors, the lost blocks and the peak, if the analyzer is installed beside this program
 * and the trace is small. Says nothing of a failure: the answer is an extra. */
static void summary_print_answers(const struct collector *collector, const char *output)
{
    char analyzer[LAUNCH_PATH_MAX];
    if (collector->events == 0 || collector->events > ANSWER_EVENTS ||
        !launch_find_analyzer(analyzer))
        return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        summary_ask_analyzer(analyzer, output);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* Says how to find the process that lost the most bytes: the collector knows only how many blocks
 * each of them has left, since a release does not say how large its block is. */
static void summary_print_largest(const struct collector *collector, const char *output)
{
    const char *largest = collector->most_live_path;
    if (largest && strcmp(largest, output) != 0)
        message("most blocks were left by another process, %s: see 'ttdanalyze leaks %s'",
                summary_group(collector->most_live, (char[GROUPED]){0}), largest);
    message("processes by the bytes that they lost: see 'ttdanalyze leaks --group %s'", output);
}

void summary_print(const struct collector *collector, const char *output)
{
    struct stat status;
    bool file = stat(output, &status) == 0 && S_ISREG(status.st_mode);
    int ending = collector->launched_status;
    if (WIFSIGNALED(ending))
        message("the program was killed by signal %d (%s)", WTERMSIG(ending),
                strsignal(WTERMSIG(ending)));
    message("%s events (%s allocations, %s frees), %s lost%s",
            summary_group(collector->events, (char[GROUPED]){0}),
            summary_group(collector->acquisitions, (char[GROUPED]){0}),
            summary_group(collector->releases, (char[GROUPED]){0}),
            summary_group(collector->lost, (char[GROUPED]){0}),
            collector->lost != 0 ? "; findings will say so" : "");
    if (collector->left_out != 0)
        message("%s of them were dropped, as --keep says",
                summary_group(collector->left_out, (char[GROUPED]){0}));
    if (collector->gaps != 0)
        message("recording was off %" PRIu64 " time%s: calls made meanwhile are not among these",
                collector->gaps, collector->gaps == 1 ? "" : "s");
    if (collector->children != 0)
        message("%u child process%s recorded, in '%s.PID.NAME'; see 'ttdanalyze info --group %s'",
                collector->children, collector->children == 1 ? "" : "es", output, output);
    if (!file)
        return;
    summary_print_answers(collector, output);
    message("'%s', %.*f %s; see 'ttdanalyze %s',", output, status.st_size < 1000000 ? 0 : 1,
            (double)status.st_size / (status.st_size < 1000000 ? 1e3 : 1e6),
            status.st_size < 1000000 ? "kB" : "MB", output);
    message("or 'ttdanalyze report -o report.html %s' for a page", output);
    if (collector->children != 0)
        summary_print_largest(collector, output);
}

static void summary_print_full(const struct collector *collector)
{
    if (collector->full != 0)
        message("warning: %u trace%s reached the size of --max-size: later calls are lost",
                collector->full, collector->full == 1 ? " has" : "s have");
}

static void summary_print_missing_snapshots(const struct collector *collector)
{
    unsigned denied = collector->snapshots_missing.denied;
    unsigned failed = collector->snapshots_missing.failed;
    unsigned late = collector->snapshots_missing.late;
    if (denied != 0)
        message("warning: %u snapshot%s could not be taken: the system does not permit it", denied,
                denied == 1 ? "" : "s");
    if (failed != 0)
        message("warning: %u snapshot%s could not be taken: a process could not be read, or memory "
                "ran out",
                failed, failed == 1 ? "" : "s");
    if (late != 0)
        message("warning: %u process%s ended without a snapshot, which took too long", late,
                late == 1 ? "" : "es");
}

static void summary_print_doubtful_snapshots(const struct collector *collector)
{
    unsigned torn = collector->snapshots_doubtful.torn;
    unsigned incomplete = collector->snapshots_doubtful.incomplete;
    if (torn != 0)
        message("warning: %u snapshot%s taken while threads ran on, so that nothing is certain by "
                "%s",
                torn, torn == 1 ? " was" : "s were", torn == 1 ? "it" : "them");
    if (incomplete != 0)
        message("warning: %u snapshot%s not complete, so that nothing is certain by %s", incomplete,
                incomplete == 1 ? " is" : "s are", incomplete == 1 ? "it" : "them");
    if (collector->snapshots_stalled != 0)
        message("warning: %u snapshot%s could not read memory in time: what provides it, such as a "
                "file server or a thread with userfaultfd, did not answer",
                collector->snapshots_stalled, collector->snapshots_stalled == 1 ? "" : "s");
    if (collector->stacks_missing != 0)
        message("%zu stack%s of threads in snapshots %s not followed, for want of time: reports do "
                "not name the functions that hold what only %s to",
                collector->stacks_missing, collector->stacks_missing == 1 ? "" : "s",
                collector->stacks_missing == 1 ? "was" : "were",
                collector->stacks_missing == 1 ? "it points" : "they point");
}

void summary_warn(struct collector *collector)
{
    if (!collector->has_attached_first)
        message("the program was not recorded: its loader did not load the recorder, or it is in "
                "another PID namespace; it has no trace");
    if (collector->notes & NOTE_FOREIGN_MALLOC)
        message("warning: the program has a malloc, free or operator new of its own, whose calls "
                "are not all seen");
    if (collector->notes & NOTE_PATCHED)
        message("warning: the program has a malloc, free or operator new of its own: calls before "
                "its start, and those that were inlined, are not seen");
    if (collector->foreign_mallocs != 0)
        message("warning: %u child process%s a malloc, free or operator new of %s own, whose calls "
                "are not all seen",
                collector->foreign_mallocs, collector->foreign_mallocs == 1 ? " has" : "es have",
                collector->foreign_mallocs == 1 ? "its" : "their");
    if (collector->notes & NOTE_WITHIN)
        message("warning: the program has another allocator, such as je_malloc(), whose calls are "
                "not seen");
    if (collector->within != 0)
        message("warning: %u child process%s another allocator, such as je_malloc(), whose calls "
                "are not seen",
                collector->within, collector->within == 1 ? " has" : "es have");
    if (collector->notes & NOTE_NAMESPACE)
        message("warning: the calls of modules that were loaded with dlmopen() are not seen");
    if (collector->notes & NOTE_ALLOCATOR)
        message("warning: modules that were loaded later call mallocx() or its like, unseen");
    if (collector->notes & NOTE_ARENAS)
        message("warning: an arena's blocks may have been released at once, which is not seen");
    unsigned refused = atomic_load(&collector->host.channel->refused);
    if (refused != 0)
        message("warning: %u child process%s could not be recorded", refused,
                refused == 1 ? "" : "es");
    unsigned images_left = collector->images_left - collector->has_left_launched;
    if (collector->has_left_launched)
        message("warning: the program executed another one that could not be recorded, such as one "
                "that is statically linked or changes its user: all of that is missing");
    if (images_left != 0)
        message("warning: %u process%s executed a program that could not be recorded, such as one "
                "that is statically linked or changes its user",
                images_left, images_left == 1 ? "" : "es");
    summary_print_full(collector);
    summary_print_missing_snapshots(collector);
    summary_print_doubtful_snapshots(collector);
    if (collector->is_left_alone)
        message("warning: processes of the program go on, and are not recorded any more");
    if (message_count(MESSAGE_UNNAMED) > 1)
        message("warning: %u traces lack names of addresses", message_count(MESSAGE_UNNAMED));
    if (collector->closers.failures != 0)
        message("warning: %u trace%s not whole", collector->closers.failures,
                collector->closers.failures == 1 ? " is" : "s are");
}
