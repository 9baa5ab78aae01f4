/* SPDX-License-Identifier: MIT */
#include "summary.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "messages.h"

static void print_ending(const struct collector *collector)
{
    int status = collector->launched_status;
    if (WIFSIGNALED(status))
        message("the program was killed by signal %d (%s)", WTERMSIG(status),
                strsignal(WTERMSIG(status)));
}

/* Says how to learn which process lost the most bytes: the collector knows only how many blocks
 * each of them has left, since a release does not say how large its block is. */
static void summary_print_largest(const struct collector *collector, const char *output)
{
    const char *largest = collector->most_live_path;
    if (largest != NULL && strcmp(largest, output) != 0)
        message("most blocks were left by another process, %" PRIu64 ": see 'ttdanalyze leaks %s'",
                collector->most_live, largest);
    message("processes by the bytes that they lost: see 'ttdanalyze leaks --group %s'", output);
}

void summary_print(const struct collector *collector, const char *output)
{
    struct stat status;
    bool file = stat(output, &status) == 0 && S_ISREG(status.st_mode);
    print_ending(collector);
    message("%" PRIu64 " events (%" PRIu64 " allocations, %" PRIu64 " frees), %" PRIu64 " lost%s",
            collector->events, collector->acquisitions, collector->releases, collector->lost,
            collector->lost != 0 ? "; findings will say so" : "");
    if (collector->gaps != 0)
        message("recording was off %" PRIu64 " time%s: calls made meanwhile are not among these",
                collector->gaps, collector->gaps == 1 ? "" : "s");
    if (collector->children != 0)
        message("%u child process%s recorded, in '%s.PID.NAME'; see 'ttdanalyze info --group %s'",
                collector->children, collector->children == 1 ? "" : "es", output, output);
    if (!file)
        return;
    message("'%s', %.*f %s; see 'ttdanalyze leaks %s'", output, status.st_size < 1000000 ? 0 : 1,
            (double)status.st_size / (status.st_size < 1000000 ? 1e3 : 1e6),
            status.st_size < 1000000 ? "kB" : "MB", output);
    if (collector->children != 0)
        summary_print_largest(collector, output);
}

static void print_full(const struct collector *collector)
{
    if (collector->full != 0)
        message("warning: %u trace%s reached the size of --max-size: what came after it is missing",
                collector->full, collector->full == 1 ? " has" : "s have");
}

static void print_missing_snapshots(const struct collector *collector)
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

static void print_doubtful_snapshots(const struct collector *collector)
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
    print_full(collector);
    print_missing_snapshots(collector);
    print_doubtful_snapshots(collector);
    if (collector->is_left_alone)
        message("warning: processes of the program go on, and are not recorded any more");
    if (message_count(MESSAGE_UNNAMED) > 1)
        message("warning: %u traces lack names of addresses", message_count(MESSAGE_UNNAMED));
    if (collector->closers.failures != 0)
        message("warning: %u trace%s not whole", collector->closers.failures,
                collector->closers.failures == 1 ? " is" : "s are");
}
