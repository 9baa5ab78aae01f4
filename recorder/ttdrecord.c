/* SPDX-License-Identifier: MIT */
/* ttdrecord: records the heap events of a program. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

#include "arrays.h"
#include "subcommands.h"
#include "collect/collector.h"
#include "common/output_path.h"
#include "control.h"
#include "launch.h"
#include "messages.h"
#include "options.h"

/* The descriptors that ttdrecord was started with. They are the program's: as long as ttdrecord
 * kept them open as well, nobody would see the end of a pipe that the program closes. */

static int *descriptors;
static size_t count, capacity;

static void ttdrecord_inherited_add(int descriptor)
{
    void *grown = array_grow(descriptors, count, &capacity, sizeof *descriptors);
    if (!grown)
        return;
    descriptors = grown;
    descriptors[count++] = descriptor;
}

/* Notes the open descriptors. Called before any other is opened. */
static void ttdrecord_inherited_note(void)
{
    DIR *files = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (files && (entry = readdir(files))) {
        int descriptor = atoi(entry->d_name);
        if (descriptor > STDERR_FILENO && descriptor != dirfd(files))
            ttdrecord_inherited_add(descriptor);
    }
    if (files)
        closedir(files);
}

/* Closes them, and replaces standard input and output by nothing; standard error stays, for
 * messages. Called once the program has its own. */
static void ttdrecord_inherited_close(void)
{
    while (count > 0)
        close(descriptors[--count]);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0)
        return;
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    close(nothing);
}

/* Joins the command line, for the trace's metadata. */
static char *ttdrecord_record_join_arguments(char *const *arguments)
{
    size_t size = 1;
    for (char *const *argument = arguments; *argument; argument++)
        size += strlen(*argument) + 1;
    char *joined = calloc(size, 1);
    if (!joined)
        return NULL;
    char *end = joined;
    for (char *const *argument = arguments; *argument; argument++)
        end += sprintf(end, "%s%s", argument == arguments ? "" : " ", *argument);
    return joined;
}

/* Ends this process as the program ended, by the same signal or status. */
static int ttdrecord_pass_on(int status)
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

/* Answers --fail-on. A program that was not recorded has no verdict. */
static int ttdrecord_record_judge(const struct options *options, bool is_recorded, bool is_group)
{
    if (is_recorded)
        return summary_judge(options->fail_on, options->output, is_group);
    message("--fail-on has no answer: the program was not recorded");
    return EXIT_RECORDER;
}

static struct collector collector; /* larger than the stack may be */

/* Prepares this process after the program has got its copies of the inherited settings. */
static void ttdrecord_prepare(pid_t program)
{
    signals_catch(program);
    ttdrecord_inherited_close();
    /* Each recorded process may take two descriptors, and traces may be large; the program started
       with the old limits. */
    limits_raise(RLIMIT_NOFILE);
    limits_raise(RLIMIT_FSIZE);
    limits_keep_memory();
}

/* Starts a program that is recorded by the library that it loads. Returns an exit status. */
static int ttdrecord_start(const struct options *options, const char *path, const char *preload,
                           char *const *arguments)
{
    struct launch launch;
    struct ttd_error error;
    int reason = limits_open_channel(&collector.host, -1, options->recording.flags);
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
    ttdrecord_prepare(launch.pid);
    if (launch_go(&launch))
        return EXIT_SUCCESS;
    collector_close(&collector);
    return EXIT_CANNOT_RUN;
}

/* Starts a program that is linked statically. Returns an exit status. */
static int ttdrecord_start_static(const struct options *options, const char *path,
                                  char *const *arguments)
{
    int status = attach_launch(&collector, options, path, arguments);
    if (status == EXIT_SUCCESS)
        ttdrecord_prepare(collector.launched);
    return status;
}

/* Records the program that was started. Returns an exit status of our own, or 0 and the program's
 * wait status: a program's failure counts more than its trace's. */
static int ttdrecord_record(const struct options *options, int *status)
{
    collector.done = &signals_seen.done;
    collector.wants_stop = signals_want_stop;
    collector.stop = signals_stop;
    collector_run(&collector, &signals_seen.detach);
    summary_warn(&collector);
    if (!options->is_quiet && collector.has_attached_first)
        summary_print(&collector, options->output);
    bool is_written = collector.closers.unwritten == 0;
    bool is_recorded = collector.has_attached_first;
    /* A child that was not recorded makes the answer of the group uncertain. */
    bool is_group = collector.children != 0 || atomic_load(&collector.host.channel->refused) != 0;
    collector_close(&collector);
    *status = collector.launched_status;
    int verdict = options->fail_on != 0 ? ttdrecord_record_judge(options, is_recorded, is_group)
                                        : EXIT_SUCCESS;
    if (*status != 0)
        return EXIT_SUCCESS;
    return is_written ? verdict : EXIT_OUTPUT;
}

int main(int argc, char **argv)
{
    struct options options;
    char path[LAUNCH_PATH_MAX], preload[LAUNCH_PATH_MAX];
    ttdrecord_inherited_note();
    standard_descriptors_open();
    if (options_print_command_help(argc, argv))
        return EXIT_SUCCESS;
    bool detaches = control_is_command(argc, argv) && strcmp(argv[1], "detach") == 0;
    int cleaned = detaches ? attach_clean_command(argv[2]) : -1;
    if (cleaned >= 0)
        return cleaned;
    if (control_is_command(argc, argv) && strcmp(argv[1], "resume") == 0 && suspend_resume(argv[2]))
        return EXIT_SUCCESS;
    if (control_is_command(argc, argv))
        return control_ask(argv);
    if (session_is_command(argc, argv))
        return session_command(argc, argv);
    if (suspend_is_command(argc, argv))
        return suspend_command(argc, argv);
    if (symbolize_is_command(argc, argv))
        return symbolize_command(argc, argv);
    if (attach_is_command(argc, argv))
        return attach_command(argc, argv);
    options_parse(argc, argv, false, &options);
    if (!launch_is_possible() || (options.fail_on != 0 && !summary_can_judge(options.output)))
        return EXIT_RECORDER;
    bool is_static = false;
    int refused = launch_find(argv[optind], path, &is_static);
    const char *usage = options_usage_of(argv[optind]);
    if (refused == EXIT_NOT_FOUND && usage)
        message("did you mean 'ttdrecord %s'?", usage);
    if (refused != 0)
        return refused;
    if (!launch_find_preload(preload))
        return EXIT_RECORDER;
    int status = 0;
    char *command = ttdrecord_record_join_arguments(argv + optind);
    collector.command = command;
    collector.recording = options.recording;
    collector.snapshots = options.snapshots;
    collector.is_quiet = options.is_quiet;
    int own_status = is_static ? ttdrecord_start_static(&options, path, argv + optind)
                               : ttdrecord_start(&options, path, preload, argv + optind);
    if (own_status == EXIT_SUCCESS)
        own_status = ttdrecord_record(&options, &status);
    free(command);
    return own_status != EXIT_SUCCESS ? own_status : ttdrecord_pass_on(status);
}
