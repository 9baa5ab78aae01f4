/* SPDX-License-Identifier: MIT */
/* Whatever the child does: see false_names.c. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pretend.h"

TestSuite(child, .timeout = 30);

static void name(const struct symbolize_module *modules, size_t count, struct seen *seen,
                 struct symbolize_summary *summary)
{
    name_with(NULL, modules, count, seen, summary);
    expect_no_child();
}

ParameterizedTestParameters(child, does_not_take_others_down)
{
    return all_bad();
}

ParameterizedTest(struct behaviour *behaviour, child, does_not_take_others_down)
{
    const struct symbolize_module modules[] = {pretend("good"), pretend(behaviour->path),
                                               pretend("absent"), pretend("good")};
    struct symbolize_summary summary;
    struct seen seen;
    name(modules, 4, &seen, &summary);
    expect_answered(&seen, 0);
    expect_answered(&seen, 3);
    for (size_t i = 0; i < OFFSETS; i++)
        cr_assert(seen.times[1][i] <= 1);
    cr_assert_eq(summary.modules_read, 2);
    cr_assert_eq(summary.modules_absent, 1);
    cr_assert_eq(summary.modules_failed, 1);
    cr_assert_eq(summary.modules_reduced + summary.modules_skipped, 0);
}

ParameterizedTestParameters(child, is_asked_again_for_less)
{
    return all_bad();
}

/* Answers that were given stay, and are not given twice. */
ParameterizedTest(struct behaviour *behaviour, child, is_asked_again_for_less)
{
    char path[64];
    snprintf(path, sizeof path, "once late %s", behaviour->path);
    const struct symbolize_module modules[] = {pretend(path), pretend("good")};
    struct symbolize_summary summary;
    struct seen seen;
    name(modules, 2, &seen, &summary);
    expect_answered(&seen, 0);
    expect_answered(&seen, 1);
    cr_assert_eq(seen.reduced[0], 2);
    cr_assert_eq(seen.reduced[1], 0);
    cr_assert_eq(summary.modules_read, 1);
    cr_assert_eq(summary.modules_reduced, 1);
    cr_assert_eq(summary.addresses_named, 2 * OFFSETS);
}

static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

Test(child, has_limited_time_for_all)
{
    const struct symbolize_module modules[] = {pretend("good"), pretend("hang"), pretend("good")};
    const struct symbolize_options options = {.total_time = 2000};
    struct symbolize_summary summary;
    struct seen seen = {0};
    double begin = seconds();
    cr_assert(symbolize_with(&options, modules, 3, note, &seen, &summary) == 0);
    cr_assert(seconds() - begin < 20);
    expect_answered(&seen, 0);
    cr_assert_eq(summary.modules_read, 1);
    cr_assert_eq(summary.modules_skipped, 2);
    cr_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

Test(child, has_the_time_of_a_module_for_each)
{
    const struct symbolize_module modules[] = {pretend("slow"), pretend("slow"), pretend("slow")};
    const struct symbolize_options options = {.module_time = 10000};
    struct symbolize_summary summary;
    struct seen seen = {0};
    cr_assert(symbolize_with(&options, modules, 3, note, &seen, &summary) == 0);
    cr_assert_eq(summary.modules_read, 3);
}

static volatile sig_atomic_t handled;

static void handle(int number)
{
    (void)number;
    handled++;
}

Test(child, has_little_around_it)
{
    const struct symbolize_module module = pretend("surroundings");
    struct symbolize_summary summary;
    struct seen seen;
    sigset_t blocked;
    sigset_t after;
    unsetenv("DEBUGINFOD_URLS");
    struct rlimit core;
    getrlimit(RLIMIT_CORE, &core);
    core.rlim_cur = core.rlim_max;
    setrlimit(RLIMIT_CORE, &core);
    signal(SIGUSR1, handle);
    signal(SIGINT, handle);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    name(&module, 1, &seen, &summary);
    cr_assert_str_eq(seen.last, "files 4 core 0 size 0 blocked 0 handler 0 memory 0");
    cr_assert_eq(handled, 0);
    sigprocmask(SIG_SETMASK, NULL, &after);
    cr_assert(sigismember(&after, SIGUSR2) == 1 && sigismember(&after, SIGUSR1) == 0);
}

Test(child, works_with_standard_files_closed)
{
    const struct symbolize_module module = pretend("surroundings");
    struct symbolize_summary summary;
    struct seen seen;
    unsetenv("DEBUGINFOD_URLS");
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    name(&module, 1, &seen, &summary);
    cr_assert_str_eq(seen.last, "files 4 core 0 size 0 blocked 0 handler 0 memory 0");
}

Test(child, is_the_only_one_waited_for)
{
    pid_t other = fork();
    if (other == 0)
        _exit(7);
    const struct symbolize_module modules[] = {pretend("crash"), pretend("good")};
    const struct symbolize_options options = {.module_time = 1000};
    struct symbolize_summary summary;
    struct seen seen = {0};
    cr_assert(symbolize_with(&options, modules, 2, note, &seen, &summary) == 0);
    int status;
    cr_assert(waitpid(other, &status, 0) == other && WEXITSTATUS(status) == 7);
    cr_assert(waitpid(-1, NULL, 0) < 0 && errno == ECHILD);
}

Test(child, may_be_reaped_by_the_system)
{
    signal(SIGCHLD, SIG_IGN);
    const struct symbolize_module modules[] = {pretend("crash"), pretend("hang"), pretend("good")};
    struct symbolize_summary summary;
    struct seen seen;
    name(modules, 3, &seen, &summary);
    expect_answered(&seen, 2);
    cr_assert_eq(summary.modules_failed, 2);
}

Test(child, signals_while_waiting_do_no_harm)
{
    struct sigaction action = {.sa_handler = handle};
    sigaction(SIGALRM, &action, NULL);
    ualarm(1000, 1000);
    const struct symbolize_module modules[] = {pretend("good"), pretend("hang"), pretend("good")};
    struct symbolize_summary summary;
    struct seen seen;
    name(modules, 3, &seen, &summary);
    ualarm(0, 0);
    cr_assert(handled > 10);
    cr_assert_eq(summary.modules_read, 2);
    cr_assert_eq(summary.modules_failed, 1);
}
