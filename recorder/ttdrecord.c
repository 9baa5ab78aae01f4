/* SPDX-License-Identifier: MIT */
/* ttdrecord: records the heap events of a program. */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/collector.h"
#include "messages.h"
#include "common/standard_descriptors.h"
#include "control_client.h"
#include "inherited.h"
#include "launch.h"
#include "options.h"
#include "signals.h"
#include "symbolize_command.h"

enum { KEPT_MEMORY = 16 << 20 };

/* Joins the command line, for the trace's metadata. */
static char *join(char *const *arguments)
{
    size_t size = 1;
    for (char *const *argument = arguments; *argument != NULL; argument++)
        size += strlen(*argument) + 1;
    char *joined = calloc(size, 1);
    if (joined == NULL)
        return NULL;
    char *end = joined;
    for (char *const *argument = arguments; *argument != NULL; argument++)
        end += sprintf(end, "%s%s", argument == arguments ? "" : " ", *argument);
    return joined;
}

static void print_ending(const struct collector *collector)
{
    int status = collector->launched_status;
    if (WIFSIGNALED(status))
        message("the program was killed by signal %d (%s)", WTERMSIG(status),
                strsignal(WTERMSIG(status)));
}

static void print_summary(const struct collector *collector, const struct options *options)
{
    struct stat status;
    bool file = stat(options->output, &status) == 0 && S_ISREG(status.st_mode);
    print_ending(collector);
    message("%" PRIu64 " events (%" PRIu64 " allocations, %" PRIu64 " frees), %" PRIu64 " lost%s",
            collector->events, collector->acquisitions, collector->releases, collector->lost,
            collector->lost != 0 ? "; findings will say so" : "");
    if (collector->gaps != 0)
        message("recording was off %" PRIu64 " time%s: calls made meanwhile are not among these",
                collector->gaps, collector->gaps == 1 ? "" : "s");
    if (collector->children != 0)
        message("%u child process%s recorded, in '%s.PID.NAME'; see 'ttdanalyze info --group %s'",
                collector->children, collector->children == 1 ? "" : "es", options->output,
                options->output);
    if (!file)
        return;
    const char *largest = collector->most_live_path;
    message("'%s', %.*f %s; see 'ttdanalyze leaks %s'", options->output,
            status.st_size < 1000000 ? 0 : 1,
            (double)status.st_size / (status.st_size < 1000000 ? 1e3 : 1e6),
            status.st_size < 1000000 ? "kB" : "MB", options->output);
    if (largest != NULL && strcmp(largest, options->output) != 0)
        message("most blocks were left by another process, %" PRIu64 ": see 'ttdanalyze leaks %s'",
                collector->most_live, largest);
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

/* Prints warnings about whatever is missing from the trace, also with --quiet. */
static void print_warnings(struct collector *collector)
{
    if (!collector->has_attached_first)
        message("the program was not recorded: its loader did not load the recorder, or it is in "
                "another PID namespace; it has no trace");
    if (collector->notes & NOTE_FOREIGN_MALLOC)
        message("warning: the program has a malloc, free or operator new of its own, whose calls "
                "are not all seen");
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
    if (collector->images_left != 0)
        message("warning: %u process%s executed a program that could not be recorded, such as one "
                "that is statically linked or changes its user",
                collector->images_left, collector->images_left == 1 ? "" : "es");
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

/* Ends this process as the program ended, by the same signal or status. */
static int pass_on(int status)
{
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    /* The program has dumped core; this process need not. */
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(WTERMSIG(status), SIG_DFL);
    /* Not raise(): the system may have no memory to queue a real-time signal of another kind. */
    kill(getpid(), WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

/* Keeps freed memory for the next trace: many processes end soon, and to give it back to the system
 * and get it again, page by page, is most of what recording such a process costs here. */
static void keep_memory(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TRIM_THRESHOLD, KEPT_MEMORY);
    mallopt(M_MMAP_THRESHOLD, KEPT_MEMORY);
}

static void raise_limit(int resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(resource, &limit);
    }
}

/* Opens the channel. It is larger than some programs' limit of files, which they keep. */
static int open_channel(struct host *host, uint32_t flags)
{
    struct rlimit limit;
    bool is_known = getrlimit(RLIMIT_FSIZE, &limit) == 0;
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    raise_limit(RLIMIT_FSIZE);
    int reason = host_open(host, flags);
    if (is_known)
        setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, before);
    return reason;
}

/* Records the program. Returns an exit status of our own, or 0 and the program's wait status: a
 * program's failure is more than that of its trace. */
static int record(const struct options *options, const char *path, const char *preload,
                  char *const *arguments, const char *command, int *status)
{
    static struct collector collector; /* larger than the stack may be */
    struct launch launch;
    struct ttd_error error;
    collector.command = command;
    collector.snapshots = options->snapshots;
    collector.is_quiet = options->is_quiet;
    int reason = open_channel(&collector.host, options->has_no_children ? CHANNEL_NO_CHILDREN : 0);
    if (reason != 0) {
        message("cannot create shared memory: %s", strerror(reason));
        return EXIT_RECORDER;
    }
    if (!launch_prepare(&launch, path, arguments, preload, &collector.host))
        return EXIT_RECORDER;
    collector.launched = launch.pid;
    if (!collector_open(&collector, options->output, &error)) {
        message_error(options->output, &error);
        launch_cancel(&launch);
        collector_close(&collector);
        return EXIT_OUTPUT;
    }
    signals_catch(launch.pid);
    inherited_close();
    /* Each recorded process may take two descriptors, and traces may be large; the program started
       with the old limits. */
    raise_limit(RLIMIT_NOFILE);
    raise_limit(RLIMIT_FSIZE);
    keep_memory();
    if (!launch_go(&launch)) {
        collector_close(&collector);
        return EXIT_CANNOT_RUN;
    }
    collector.done = &signals_seen.done;
    collector.wants_stop = signals_want_stop;
    collector.stop = signals_stop;
    collector_run(&collector, &signals_seen.detach);
    print_warnings(&collector);
    if (!options->is_quiet && collector.has_attached_first)
        print_summary(&collector, options);
    bool is_written = collector.closers.unwritten == 0;
    collector_close(&collector);
    *status = collector.launched_status;
    return *status == 0 && !is_written ? EXIT_OUTPUT : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct options options;
    char path[LAUNCH_PATH_MAX], preload[LAUNCH_PATH_MAX];
    inherited_note();
    standard_descriptors_open();
    if (control_is_command(argc, argv))
        return control_ask(argv);
    if (symbolize_is_command(argc, argv))
        return symbolize_command(argc, argv);
    options_parse(argc, argv, &options);
    if (!launch_is_possible())
        return EXIT_RECORDER;
    int refused = launch_find(argv[optind], path);
    if (refused != 0)
        return refused;
    if (!launch_find_preload(preload))
        return EXIT_RECORDER;
    int status = 0;
    char *command = join(argv + optind);
    int own_status = record(&options, path, preload, argv + optind, command, &status);
    free(command);
    return own_status != EXIT_SUCCESS ? own_status : pass_on(status);
}
