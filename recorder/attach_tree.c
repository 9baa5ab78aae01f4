/* SPDX-License-Identifier: MIT */
/* ttdrecord attach --children: a recorder for a process, and one for each of its descendants. */
#include "subcommands.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arrays.h"
#include "channel.h"
#include "collect/process/origin.h"
#include "launch.h"
#include "messages.h"

/* How often descendants are looked for: those that began meanwhile are found the next time. */
enum { TREE_LOOKS = 4 };

/* A process, and its recorder; 0 if it has none. */
struct tree_member {
    uint32_t pid;
    pid_t recorder;
    bool is_attached;
    bool is_foreign; /* another recorder recorded it before */
};

/* A process of the system. */
struct tree_process {
    uint32_t pid;
    uint32_t parent;
};

struct tree {
    const struct options *options;
    struct ttd_group group;
    uint32_t root;
    struct tree_member *members; /* the first one is the root */
    size_t count, capacity;
    struct tree_process *processes;
    size_t process_count, process_capacity;
};

static volatile sig_atomic_t tree_is_over;

static void tree_on_signal(int number)
{
    (void)number;
    tree_is_over = true;
}

/* Has signals that end a recording interrupt waiting. A terminal sends them to all recorders. */
static void tree_catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = tree_on_signal};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

/* ---- Processes ---- */

/* Whether a recorder's memory is mapped: children of a recorded process have it. */
static bool tree_is_recorded(uint32_t pid)
{
    char path[64], line[PATH_MAX + 128];
    bool is_recorded = false;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/maps", pid);
    FILE *file = fopen(path, "re");
    while (file && !is_recorded && fgets(line, sizeof line, file))
        is_recorded = strstr(line, CHANNEL_NAME);
    if (file)
        fclose(file);
    return is_recorded;
}

/* Adds a process to the tree, unless it is there. False if memory ran out. */
static bool tree_add_member(struct tree *tree, uint32_t pid)
{
    for (size_t i = 0; i < tree->count; i++)
        if (tree->members[i].pid == pid)
            return true;
    struct tree_member *members =
        array_grow(tree->members, tree->count, &tree->capacity, sizeof *members);
    if (!members)
        return false;
    tree->members = members;
    members[tree->count++] = (struct tree_member){.pid = pid};
    return true;
}

static bool tree_add_process(struct tree *tree, uint32_t pid)
{
    struct tree_process *processes = array_grow(tree->processes, tree->process_count,
                                                &tree->process_capacity, sizeof *processes);
    if (!processes)
        return false;
    tree->processes = processes;
    processes[tree->process_count++] = (struct tree_process){pid, origin_parent(pid)};
    return true;
}

static bool tree_list_processes(struct tree *tree)
{
    const struct dirent *entry;
    bool has_memory = true;
    DIR *directory = opendir("/proc");
    tree->process_count = 0;
    while (directory && has_memory && (entry = readdir(directory)))
        if (isdigit((unsigned char)*entry->d_name))
            has_memory = tree_add_process(tree, (uint32_t)strtoul(entry->d_name, NULL, 10));
    if (directory)
        closedir(directory);
    return directory && has_memory;
}

/* Adds the processes that descend from the root. */
static void tree_find_members(struct tree *tree)
{
    bool has_memory = tree_list_processes(tree);
    for (size_t i = 0; i < tree->count && has_memory; i++)
        for (size_t k = 0; k < tree->process_count && has_memory; k++)
            if (tree->processes[k].parent == tree->members[i].pid)
                has_memory = tree_add_member(tree, tree->processes[k].pid);
    if (!has_memory)
        message("warning: the system does not list all descendants of process %" PRIu32,
                tree->root);
}

/* ---- Recorders ---- */

/* Names the trace of a member as a child's trace is named: FILE.PID.NAME. */
static void tree_name_file(const struct tree *tree, const struct tree_member *member, char *path,
                           size_t size)
{
    char file_name[64], name[32] = "";
    if (member->pid == tree->root) {
        snprintf(path, size, "%s", tree->options->output);
        return;
    }
    snprintf(file_name, sizeof file_name, "/proc/%" PRIu32 "/comm", member->pid);
    FILE *file = fopen(file_name, "re");
    if (file) {
        if (fgets(name, sizeof name, file))
            name[strcspn(name, "\n")] = '\0';
        fclose(file);
    }
    for (char *c = name; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && !strchr("+_-", *c))
            *c = '_';
    snprintf(path, size, "%s.%" PRIu32 "%s%s", tree->options->output, member->pid,
             name[0] != '\0' ? "." : "", name);
}

/* In the new process: records the member until it ends or is left. It ends with its parent. */
static _Noreturn void tree_record(const struct tree *tree, const struct tree_member *member,
                                  pid_t self, int ready)
{
    static char path[PATH_MAX + 64];
    struct options options = *tree->options;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self)
        _exit(EXIT_RECORDER);
    tree_name_file(tree, member, path, sizeof path);
    options.output = path;
    options.ready = ready;
    options.is_quiet = true;
    options.group = tree->group;
    _exit(attach_process(&options, member->pid));
}

/* Starts the recorder of a member, and waits until the process is recorded or cannot be. */
static bool tree_attach(const struct tree *tree, struct tree_member *member)
{
    int ends[2];
    char byte;
    pid_t self = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    member->recorder = fork();
    if (member->recorder == 0) {
        close(ends[0]);
        tree_record(tree, member, self, ends[1]);
    }
    close(ends[1]);
    ssize_t size;
    while ((size = read(ends[0], &byte, 1)) < 0 && errno == EINTR)
        ;
    close(ends[0]);
    member->is_attached = size == 1;
    return member->is_attached;
}

/* Attaches to descendants that are not recorded. Those that fork from now on are recorded by the
 * recorders of their parents. Returns how many there are. */
static size_t tree_attach_descendants(struct tree *tree)
{
    size_t descendants = 0;
    for (int look = 0; look < TREE_LOOKS && !tree_is_over; look++) {
        size_t before = descendants;
        tree_find_members(tree);
        for (size_t i = 1; i < tree->count && !tree_is_over; i++) {
            struct tree_member *member = &tree->members[i];
            if (member->recorder != 0 || !origin_is_running(member->pid) ||
                (!member->is_foreign && tree_is_recorded(member->pid)))
                continue;
            descendants++;
            (void)tree_attach(tree, member);
        }
        if (descendants == before)
            break;
    }
    return descendants;
}

static size_t tree_count_attached(const struct tree *tree)
{
    size_t count = 0;
    for (size_t i = 1; i < tree->count; i++)
        count += tree->members[i].is_attached;
    return count;
}

static void tree_end_recorders(const struct tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (tree->members[i].recorder > 0)
            kill(tree->members[i].recorder, SIGTERM);
}

/* Waits for all recorders. Once the root is recorded no longer, but runs, nor are the others.
 * Returns the exit status of the root's recorder, or else the first that is no success. */
static int tree_wait(struct tree *tree)
{
    int result = EXIT_SUCCESS;
    for (;;) {
        int status;
        if (tree_is_over)
            tree_end_recorders(tree);
        pid_t recorder = waitpid(-1, &status, 0);
        if (recorder < 0 && errno == EINTR)
            continue;
        if (recorder < 0)
            return result;
        int ended = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_RECORDER;
        for (size_t i = 0; i < tree->count; i++) {
            struct tree_member *member = &tree->members[i];
            if (member->recorder != recorder)
                continue;
            member->recorder = -1;
            if (i == 0)
                tree_is_over |= origin_is_running(tree->root);
            if (i == 0 || (result == EXIT_SUCCESS && member->is_attached))
                result = ended != EXIT_SUCCESS ? ended : result;
        }
    }
}

int attach_tree(const struct options *options, uint32_t pid)
{
    struct tree tree = {.options = options, .root = pid};
    if (!tree_add_member(&tree, pid) ||
        getrandom(&tree.group, sizeof tree.group, 0) != (ssize_t)sizeof tree.group)
        return EXIT_RECORDER;
    tree_find_members(&tree);
    for (size_t i = 1; i < tree.count; i++)
        tree.members[i].is_foreign = tree_is_recorded(tree.members[i].pid);
    tree_catch_signals();
    if (tree_attach(&tree, &tree.members[0])) {
        size_t descendants = tree_attach_descendants(&tree);
        options_report_ready(options);
        if (!options->is_quiet)
            message("attached to process %" PRIu32 " and %zu of its %zu descendant%s; ^C or "
                    "'ttdrecord detach %" PRIu32 "' ends it",
                    pid, tree_count_attached(&tree), descendants, descendants == 1 ? "" : "s", pid);
    }
    bool was_attached = tree.members[0].is_attached;
    int status = tree_wait(&tree);
    if (was_attached && !options->is_quiet)
        message("the traces are '%s' and '%s.PID.NAME'; see 'ttdanalyze leaks --group %s'",
                options->output, options->output, options->output);
    free(tree.members);
    free(tree.processes);
    return status;
}
